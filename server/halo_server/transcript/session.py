"""The conversation and the application state in what an application passes about now, and the question in them.

It changes when applications put their messages somewhere else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from halo_server.domain import JSON, Message
from halo_server.transcript.messages import (
    FUNCTION_PREFIX,
    calls,
    read_message,
    stated_role,
    strings,
    without_binary,
)
from halo_server.transcript.texts import turns

__all__ = [
    "Transcript",
    "find_messages",
    "natural_query",
    "one_by_one",
    "read_messages",
    "read_session",
    "split_response",
]

_LISTS = ("messages", "contents", "input", "history", "conversation")
_OTHER_LISTS = (
    "chat_history", "chatHistory", "conversation_history", "message_history", "chat_messages", "conversations",
    "turns", "dialogue", "transcript", "items", "events",
)  # fmt: skip
"""Names that an application may as well have for something else: a conversation only if somebody speaks in it."""

_THINGS = ("items", "events")
_TEXTS = ("content", "transcript", "conversation", "history", "messages", "text")
_PAIRS = (("user", "assistant"), ("human", "ai"), ("prompt", "response"), ("question", "answer"))
_NO_PAIR = ("role", "content", "text", "parts", "body", "message")
_INSTRUCTIONS = {
    "messages": ("system",),
    "input": ("instructions",),
    "contents": ("systemInstruction", "system_instruction"),
}
"""Where a provider's request says beside its messages what the model has to do."""

_TOOLS = ("tools", "functions")
_SCHEMAS = (
    "function", "parameters", "input_schema", "inputSchema", "functionDeclarations", "function_declarations",
)  # fmt: skip
_SEARCHED = re.compile(
    r".{0,40}(?:query|search|question)(?:_?(?:text|term|terms|string))?|q|(?:user_?)?prompt", re.IGNORECASE
)
_SHORT = 200
_LONGEST_QUERY = 2000


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of a conversation, and the application state that came beside them."""

    messages: tuple[Message, ...]
    state: Mapping[str, JSON]


def read_session(session: Mapping[str, JSON], *, zone: tzinfo | None = None) -> Transcript:
    """Return the messages and the state in `session`.

    Args:
        session: What the application passed.
        zone: Where a time without an offset was written; unknown when None.

    Raises:
        InvalidRequest: The message list holds something that is neither an object nor a string.
    """
    names, listed = find_messages(session)
    if not names:
        return Transcript((), without_binary(dict(session)))
    return Transcript(tuple(read_messages(listed, zone=zone)), _state(session, names))


def find_messages(session: Mapping[str, JSON]) -> tuple[tuple[str, ...], list[JSON]]:
    """Return under which names the conversation is in `session`, and its messages."""
    key = next((name for name in _LISTS if isinstance(session.get(name), list | str)), None)
    if key is not None and isinstance(session[key], list) and session[key]:
        return (key,), session[key]
    # What is asked now may stand beside what was said before.
    asked = (key,) if key == "input" and session[key] else ()
    for name in (*_LISTS, *_OTHER_LISTS):
        listed = session.get(name)
        if isinstance(listed, list) and any(_speaks(one, pairs=name not in _THINGS) for one in listed):
            return (name, *asked), listed + [session[key] for key in asked]
    for name in _TEXTS:
        if isinstance(session.get(name), str) and (said := turns(session[name])):
            spoken: list[JSON] = [{"role": role, "content": text} for role, text in said]
            return (name, *asked), spoken + [session[key] for key in asked]
    if key is None or (key == "messages" and isinstance(session[key], str)):
        return (), []
    return (key,), [session[key]] if isinstance(session[key], str) else session[key]


def _speaks(one: JSON, *, pairs: bool) -> bool:
    if isinstance(one, dict) and stated_role(one) not in (None, "other"):
        return True
    pair = _pair_in(one) if pairs else None
    return pair is not None and any(isinstance(said, str) for said in pair)


def read_messages(listed: list[JSON], *, zone: tzinfo | None = None) -> Iterator[Message]:
    """Yield the messages of a conversation.

    Raises:
        InvalidRequest: It holds something that is no message.
    """
    ours: set[str] = set()
    for raw in one_by_one(listed):
        for call in calls(raw) if isinstance(raw, dict) else ():
            if call.id and call.name.startswith(FUNCTION_PREFIX):
                ours.add(call.id)
            else:  # some number their calls anew each turn
                ours.discard(call.id)
        yield read_message(raw, ours=ours, zone=zone)


def one_by_one(listed: list[JSON]) -> Iterator[JSON]:
    """Yield messages where question and answer may stand together, as in a chat window: `[question, answer or null]`."""
    for one in listed:
        pair = _pair_in(one)
        if pair is None:
            yield one
            continue
        for role, said in zip(("user", "assistant"), pair, strict=True):
            if isinstance(said, dict) and stated_role(said) is not None:
                yield said
            elif said is not None:
                yield {
                    "role": role,
                    "content": said if isinstance(said, str) else [{"type": "file", "file": said}],
                }


def _pair_in(one: JSON) -> tuple[JSON, JSON] | None:
    if isinstance(one, list):
        fits = len(one) == 2 and all(said is None or isinstance(said, str | dict | list) for said in one)
        return (one[0], one[1]) if fits else None
    if not isinstance(one, dict) or any(key in one for key in _NO_PAIR):
        return None
    keys = next((keys for keys in _PAIRS if isinstance(one.get(keys[0]), str) and keys[1] in one), None)
    if keys is None or not isinstance(one[keys[1]], str | None):
        return None
    return one[keys[0]], one[keys[1]]


def _state(session: Mapping[str, JSON], conversation: tuple[str, ...]) -> dict[str, JSON]:
    state: dict[str, JSON] = without_binary(
        {name: value for name, value in session.items() if name not in conversation}
    )
    for name in _INSTRUCTIONS.get(conversation[0], ()):
        if isinstance(state.get(name), str | list) or (
            isinstance(state.get(name), dict) and "parts" in state[name]
        ):
            state[name] = {"omitted": "instructions"}
    for name in _TOOLS:
        if isinstance(state.get(name), list) and any(_is_schema(one) for one in state[name]):
            state[name] = {"omitted": "tools"}
    return state


def _is_schema(one: JSON) -> bool:
    return isinstance(one, dict) and any(isinstance(one.get(key), dict | list) for key in _SCHEMAS)


def split_response(
    messages: tuple[Message, ...], response: Message | None
) -> tuple[tuple[Message, ...], Message | None]:
    """Return the request's messages and the answer: the one given, else the trailing assistant message.

    An answer that also ends the messages, in whatever shape, is not part of the request.
    """
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or not last.spoken:
        return messages, response
    if response is None or response.text.strip() == last.text.strip():
        return messages[:-1], response or last
    return messages, response


def natural_query(transcript: Transcript) -> str:
    """Return the question a reader would search for.

    That is the newest user text, else the newest assistant text, else what was searched for in the application, else the short
    strings of the state, else "".
    """
    for role in ("user", "assistant"):
        for message in reversed(transcript.messages):
            if message.spoken and message.role == role:
                return message.text
    state = {
        key: value for key, value in transcript.state.items() if key != "messages" and not _omitted(value)
    }
    texts = list(_searched(state)) or list(strings(state))
    return " ".join(text for text in texts if len(text) <= _SHORT)[:_LONGEST_QUERY]


def _omitted(value: JSON) -> bool:
    return isinstance(value, dict) and "omitted" in value


def _searched(value: JSON) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str) and one.strip() and len(one) <= _SHORT and _SEARCHED.fullmatch(key):
                yield one
            else:
                yield from _searched(one)
    elif isinstance(value, list):
        for one in value:
            yield from _searched(one)
