"""What of a conversation may travel to memory.

A history holds more than was said: HALO's own calls and the memory they returned, reasoning, signatures, images. Memory must not
learn its own words again, and nobody may be sent what only a provider can read. Meaning is left to the service. A new thing that
must not travel changes this file; a new provider's history changes that provider's dialect.
"""

import base64
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from halo_sdk._budget import cut_to_fit
from halo_sdk._plain import Substitute, omitted, plain, size_bytes
from halo_sdk.dialects import (
    calls_in,
    detected,
    is_answer,
    is_call_or_result,
    opens_turn,
    without_own_calls,
)
from halo_sdk.dialects.base import Accumulator, says_something
from halo_sdk.errors import EmptyAnswerError, HaloConfigError

logger = logging.getLogger("halo_sdk")

MAX_MESSAGES = 4_000
MAX_BYTES = 8 * 1024 * 1024
_ENVELOPE_BYTES = 64 * 1024  # keys, instants and braces around the messages

MAX_QUESTION_BYTES = 64 * 1024
"""Most of a conversation that goes with a question: what it is about is said at its end."""

_MAX_STATE_BYTES = 16 * 1024  # of them, when there are messages too

_LISTS = ("messages", "contents", "input", "history", "conversation")
"""What applications call the list of messages in their session data; the service reads the same names."""

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "thought")  # a tuple: a type may be of any kind
_SHORT_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
}
_KIND_FIELDS = ("type", "part_kind", "block_type")
_PRIVATE_FIELDS = frozenset(
    {
        "additional_kwargs",
        "provider_details",
        "encrypted_content",
        "extra_content",
        "provider_specific_fields",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "response_metadata",
        "signature",
        "thinking",
        "thinking_blocks",
        "thoughtSignature",
        "thought_signature",
        "usage_metadata",
    }
)
_MEDIA_TYPE_FIELDS = (
    "mime_type",
    "mimeType",
    "media_type",
    "mediaType",
    "image_mimetype",
    "document_mimetype",
)
_MEDIA_FIELDS = ("data", "base64", "image", "audio", "video")
_AUDIO_FORMATS = ("aac", "flac", "m4a", "mp3", "mulaw", "ogg", "opus", "pcm", "pcm16", "wav", "webm")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\-\r\n]*")  # padding may stand between pieces
_MEDIA_WRAPPERS = frozenset(
    {"audio", "file", "image", "image_url", "inlineData", "inline_data", "input_audio", "source"}
)
_PLACEHOLDER_KEYS = (("type", "omitted", "bytes", "sha256"), ("type", "omitted", "bytes"), ("omitted",))
_SPOKEN_FIELDS = ("content", "parts", "blocks", "refusal", "audio")
_NOT_SAID = frozenset(
    {
        "block_type",
        "created",
        "finish_reason",
        "id",
        "index",
        "kind",
        "model",
        "name",
        "object",
        "part_kind",
        "role",
        "status",
        "timestamp",
        "tool_calls",
        "type",
    }
)


@dataclass(frozen=True)
class Session:
    """What an application passed as its conversation, as plain JSON and nothing taken away yet.

    Attributes:
        state: The application's own state.
        messages: The history; None where the application appended a turn the model never produced.
    """

    state: dict[str, Any]
    messages: list[dict[str, Any] | None]

    @cached_property
    def question(self) -> dict[str, Any]:
        """What of it goes with a question, in at most `MAX_QUESTION_BYTES` of JSON.

        That is the end user's newest message, cut in its texts if it is larger, and whole messages from the end as they fit.
        State keeps what fits, its smallest fields first.
        """
        messages = cleaned(self.messages)
        state = _fitting(_without_media(self.state), _MAX_STATE_BYTES if messages else MAX_QUESTION_BYTES)
        room_bytes = MAX_QUESTION_BYTES - size_bytes({"messages": [], **state})
        newest = without_own_calls(_around_question(messages, room_bytes))
        return {"messages": newest, **state} if newest else state

    @cached_property
    def calls_this_turn(self) -> int:
        """How many of HALO's calls it holds since the end user last spoke, those of the newest reply left out."""
        earlier = [message for message in self.messages if message is not None]
        while earlier and is_answer(earlier[-1]):
            earlier.pop()
        count = 0
        for message in reversed(earlier):
            if opens_turn(message):
                break
            count += calls_in(message)
        return count


@dataclass(frozen=True, slots=True)
class Conversation:
    """What of it may travel.

    Attributes:
        session_data: `messages` and the application's own state.
        response: The answer, if there is one.
        truncated: Older messages were left out.
    """

    session_data: dict[str, Any]
    response: dict[str, Any] | None = None
    truncated: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether nobody says anything in it: no words, no picture, only calls and their results, or nothing at all."""
        said = (self.response, *self.session_data.get("messages", ()))
        return not any(_holds_words(message) for message in said)


def opened(session: object) -> Session:
    """Read a conversation in any form an application may hold it.

    Args:
        session: Provider messages, SDK objects, session data that holds them beside application state, or the end user's words.

    Raises:
        HaloConfigError: It is none of these.
    """
    value = plain(session)
    if _is_text(value):
        return Session({}, [_spoken("user", value)])
    if isinstance(value, list):
        return Session({}, _messages(value))
    if not isinstance(value, dict) or _is_placeholder(value):
        raise HaloConfigError("a conversation is a list of messages, session data with `messages`, or text")
    listed = next((name for name in _LISTS if isinstance(value.get(name), list)), None)
    if listed is not None:
        state = {key: part for key, part in value.items() if key != listed}
        return Session(state, _messages(value[listed]))
    return Session({}, [value]) if "role" in value else Session(value, [])


def exchange(session: Session, response: object) -> Conversation:
    """Return a conversation and its answer, ready to be captured.

    Args:
        session: The conversation. Without a response, an answer at its end is split off. With one, an answer there is sent as
            it is: only the service reads every shape, and knows whether the two say the same.
        response: The answer: words, a message, a provider's whole reply, or the accumulator of a stream.

    Raises:
        EmptyAnswerError: The answer says nothing.
        HaloConfigError: The answer is of no known kind, or nobody said anything at all.
    """
    messages = _answer_last(_spoken_by_anybody(session.messages))
    if response is not None:
        turn = _answer_last(_spoken_by_anybody(_turn_of(response)))
    elif messages and _is_models(messages[-1]):
        turn = [messages.pop()]
    else:
        conversation = _travelling(session.state, messages, None)
        if conversation.is_silent:
            raise HaloConfigError(
                "there is nothing to capture: no message says anything, and no response is given"
            )
        return conversation
    said = cleaned(turn[-1:])
    if not said or not _has_words(said[0]):
        raise EmptyAnswerError("there is no answer to capture: the model said nothing")
    return _travelling(session.state, [*messages, *turn[:-1]], said[0])


def so_far(session: Session) -> Conversation:
    """Return a conversation up to the end user's last words, the model's turn under way left out."""
    messages = [message for message in _spoken_by_anybody(session.messages) if message is not None]
    last = next((at for at in reversed(range(len(messages))) if opens_turn(messages[at])), None)
    if last is None:  # nobody the SDK knows by shape
        last = next((at for at in reversed(range(len(messages))) if not is_answer(messages[at])), -1)
    return _travelling(session.state, messages[: last + 1], None)


def _messages(values: Sequence[Any]) -> list[dict[str, Any] | None]:
    spoken = [_from_short(each) for each in values]
    messages = [
        each for each in spoken if each is None or (isinstance(each, dict) and not _is_placeholder(each))
    ]
    if len(messages) < len(spoken):
        logger.warning(
            "%d elements of a conversation are no messages, and are left out", len(spoken) - len(messages)
        )
    return messages


def _from_short(value: Any) -> Any:
    """Return a message written as mere words of the end user's, or as a pair of role and words; any other as it is."""
    if _is_text(value):
        return _spoken("user", value)
    if isinstance(value, list) and len(value) == 2 and all(_is_text(part) for part in value):
        role, words = value
        return _spoken(_SHORT_ROLES[role], words) if role in _SHORT_ROLES else value
    return value


def _is_text(value: object) -> bool:
    """Tell whether plain JSON is text that somebody wrote."""
    return isinstance(value, str) and not isinstance(value, Substitute)


def _spoken(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _turn_of(response: object) -> list[dict[str, Any] | None]:
    """Return the messages of an answer; a reply whose model produced none is one that says nothing."""
    if isinstance(response, Accumulator):
        return list(response.turn)
    value = plain(response)
    if _is_text(value):
        return [_spoken("assistant", value)]
    if not isinstance(value, dict) or _is_placeholder(value):
        raise HaloConfigError("a response is text, a message, or a provider's reply")
    if "role" not in value and isinstance(value.get("message"), dict):
        value = value["message"]  # some frameworks and local models wrap it
    try:
        return list(detected(value).read(value).turn)
    except HaloConfigError:  # a message of the application's own making
        return [value]


def _is_models(message: Mapping[str, Any] | None) -> bool:
    return message is None or is_answer(message)


def _spoken_by_anybody(messages: Sequence[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    return [message for message in messages if message is None or not _is_thought(message)]


def _answer_last(messages: list[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """Return messages with what the service did by itself after the last of them before it: a picture made is no answer."""
    end = len(messages)
    while end and _is_aside(messages[end - 1]):
        end -= 1
    if not end or not _is_models(messages[end - 1]):
        return messages
    return [*messages[: end - 1], *messages[end:], messages[end - 1]]


def _is_aside(message: Mapping[str, Any] | None) -> bool:
    """Tell whether a message is the record of a tool that the provider's service runs."""
    if message is None or "role" in message or is_call_or_result(message):
        return False
    return str(message.get("type")).endswith(("_call", "_result"))


def _fitting(state: dict[str, Any], room_bytes: int) -> dict[str, Any]:
    """Return as much of a state as fits: small fields whole, then larger ones cut in their texts and lists."""
    kept: dict[str, Any] = {}
    room_bytes -= len("{}")
    for key in sorted(state, key=lambda name: size_bytes(state[name])):
        field = cut_to_fit({key: state[key]}, room_bytes, size_bytes)
        if field is not None:
            kept |= field
            room_bytes -= size_bytes(field)  # its braces are a comma to spare
    return {key: kept[key] for key in state if key in kept}


def _around_question(messages: list[dict[str, Any]], room_bytes: int) -> list[dict[str, Any]]:
    """Return the end user's newest message, or else the last of all, and the longest end of the history that fits beside it."""
    asked = next((at for at in reversed(range(len(messages))) if opens_turn(messages[at])), len(messages) - 1)
    question = [
        cut
        for message in messages[asked : asked + 1]
        if (cut := cut_to_fit(message, room_bytes, size_bytes)) is not None
    ]
    room_bytes -= size_bytes(question)
    start = len(messages)
    while start > 0:
        room_bytes -= 0 if start - 1 == asked else size_bytes(messages[start - 1]) + 1
        if room_bytes < 0:
            break
        start -= 1
    return [*messages[start:asked], *question, *messages[max(start, asked + 1) :]]


def _travelling(
    state: dict[str, Any], messages: Sequence[dict[str, Any] | None], response: dict[str, Any] | None
) -> Conversation:
    kept = cleaned(messages)
    state = _without_media(state)
    newest = _newest(kept, MAX_BYTES - _ENVELOPE_BYTES - size_bytes(state) - size_bytes(response))
    truncated = len(newest) < len(kept)
    if truncated:
        newest = without_own_calls(newest)  # the cut may have left a result without its call
    return Conversation({"messages": newest, **state} if newest else state, response, truncated)


def _newest(messages: list[dict[str, Any]], room_bytes: int) -> list[dict[str, Any]]:
    """Return the longest end of a history that fits, and at least its last message."""
    start = len(messages)
    while start > max(0, len(messages) - MAX_MESSAGES):
        room_bytes -= size_bytes(messages[start - 1]) + 1
        if room_bytes < 0 and start < len(messages):
            break
        start -= 1
    return messages[start:]


def cleaned(messages: Sequence[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """Return what of a history may travel. Applying it twice changes nothing more, and it never makes a history longer."""
    present = [message for message in _spoken_by_anybody(messages) if message is not None]
    pairs = [(message, _visible(message)) for message in without_own_calls(present)]
    return [left for before, left in pairs if says_something(left) or not says_something(before)]


def _is_thought(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("thought") is True or any(block.get(field) in _THOUGHTS for field in _KIND_FIELDS)


def _visible(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without thoughts, signatures and binary content."""
    if message.get("type") == "image_generation_call" and isinstance(message.get("result"), str):
        message = {**message, "result": _encoded(message["result"], "image")}  # says nowhere what it is
    return {
        key: [_visible_block(block) for block in value if not _is_thought(block)]
        if isinstance(value, list)
        else _without_media(value)
        for key, value in message.items()
        if key not in _PRIVATE_FIELDS and not (key == "instructions" and "kind" in message)
    }


def _visible_block(block: Any) -> Any:
    """Return a part of a message; one that carries binary content becomes its placeholder."""
    if not isinstance(block, dict):
        return block
    parts = _without_media(_public(block))
    if isinstance(parts.get("extras"), dict):  # where a framework keeps what a provider said beside the words
        parts["extras"] = _public(parts["extras"])
    for key in sorted({*_MEDIA_WRAPPERS, *_MEDIA_FIELDS} & parts.keys()):
        carried = [parts[key], *parts[key].values()] if isinstance(parts[key], dict) else []
        for candidate in carried:
            if _is_placeholder(candidate):
                return candidate
    return parts


def _public(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in _PRIVATE_FIELDS}


def _without_media(value: Any) -> Any:
    """Return plain JSON with every base64 content replaced by a placeholder."""
    if isinstance(value, list):
        return [_without_media(part) for part in value]
    if isinstance(value, dict):
        media_type = _media_type(value)
        return {
            key: _encoded(part, media_type)
            if key in _MEDIA_FIELDS and media_type and isinstance(part, str) and _BASE64.fullmatch(part)
            else _without_media(part)
            for key, part in value.items()
        }
    if isinstance(value, str) and value.startswith("data:"):
        header, _, encoded = value.partition(",")
        if header.endswith(";base64"):
            return _encoded(encoded, header.removeprefix("data:"))
    return value


def _media_type(block: Mapping[str, Any]) -> str:
    for field in _MEDIA_TYPE_FIELDS:
        if isinstance(block.get(field), str):
            return str(block[field])
    return f"audio/{block['format']}" if block.get("format") in _AUDIO_FORMATS else ""


def _encoded(text: str, media_type: str) -> dict[str, Any] | str:
    try:
        content = base64.b64decode(text.replace("-", "+").replace("_", "/") + "==")
    except ValueError:
        content = text.encode()
    return _no_longer(omitted(content, media_type), text)


def _no_longer(placeholder: dict[str, Any], text: str) -> dict[str, Any] | str:
    """Return as much of a placeholder as takes no more room than the text it stands for; else no text."""
    room_bytes = size_bytes(text)
    shorter = ({key: placeholder[key] for key in keys} for keys in _PLACEHOLDER_KEYS)
    return next((form for form in shorter if size_bytes(form) <= room_bytes), "")


def _is_placeholder(value: object) -> bool:
    return isinstance(value, dict) and value.get("omitted") is True


def _has_words(message: Mapping[str, Any]) -> bool:
    spoken = [message[field] for field in _SPOKEN_FIELDS if field in message]
    return _holds_words(spoken or dict(message))


def _holds_words(value: Any) -> bool:
    if isinstance(value, dict):
        if is_call_or_result(value):
            return False
        said = (part for key, part in value.items() if key not in _NOT_SAID)
        return _is_placeholder(value) or any(_holds_words(part) for part in said)
    if isinstance(value, list):
        return any(_holds_words(part) for part in value)
    return bool(value.strip()) if _is_text(value) else isinstance(value, int | float)
