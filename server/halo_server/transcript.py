"""Reads what applications send as conversation: who said what, when, and what the question is.

Every provider and framework spells a message its own way; after this module there is one. What must not be stored as
memory (instructions, reasoning, signatures, binary data, HALO's own recalled text) leaves here as a typed placeholder.
It changes when the world learns another message format.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from halo_server.domain import JSON, Instant, Message
from halo_server.errors import InvalidRequest

__all__ = [
    "FUNCTION_PREFIX",
    "Transcript",
    "natural_query",
    "read_message",
    "read_session",
    "read_time",
    "split_response",
]

FUNCTION_PREFIX = "halo_"
"""Functions of this name are ours: their calls and results are recalled memory, not new memory."""

_LISTS = ("messages", "contents", "input", "history", "conversation")
_ROLES = {
    "user": "user",
    "human": "user",
    "customer": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "aimessagechunk": "assistant",
    "humanmessagechunk": "user",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "user_input": "user",
    "model_output": "assistant",
    "reasoning": "assistant",
    "thought": "assistant",
    "image_generation_call": "assistant",
    "request": "user",
    "response": "assistant",
}
_TIMES = ("timestamp", "created_at", "createdAt", "occurredAt", "ts", "time", "at", "date")
_SPEAKERS = ("name", "speaker", "author", "speaker_name")
_SECRETIVE = (
    "thoughtSignature",
    "thought_signature",
    "signature",
    "encrypted_content",
    "reasoning_content",
    "reasoning",
)
_KINDS = ("type", "part_kind", "block_type")
_REASONING = ("thinking", "redacted_thinking", "reasoning", "thought")
_INSTRUCTIONS = ("system-prompt", "instruction", "instruction-delta", "instruction-baseline", "instructions")
_CALLS = (
    "function_call",
    "tool_use",
    "functionCall",
    "function_calls",
    "tool-call",
    "tool_call",
    "custom_tool_call",
    "mcp_call",
    "mcp_tool_use",
)
_RESULTS = (
    "function_call_output",
    "tool_result",
    "functionResponse",
    "function_response",
    "function_result",
    "tool-return",
    "custom_tool_call_output",
    "mcp_tool_result",
)
_RETURNED = ("content", "output", "result")  # where the result of a call says what was returned
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]*")
_DATA_LEFT = re.compile(r"\[(?:data|[\w.+-]+/[\w.+-]+) omitted\]")  # what stands for one in a stored message
_LATEST = 4_102_444_800_000  # 2100-01-01; a later time is a unit we do not know
_MEDIA = {
    "image": "image", "image_url": "image", "input_image": "image", "audio": "audio", "input_audio": "audio",
    "file": "file", "input_file": "file", "document": "file", "video": "video", "inlineData": "file",
    "inline_data": "file", "fileData": "file", "file_data": "file", "image_generation_call": "image",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transcript:
    """The messages of a conversation, and the application state that came beside them."""

    messages: tuple[Message, ...]
    state: Mapping[str, JSON]


def read_session(session: Mapping[str, JSON]) -> Transcript:
    """Return the messages and the state in `session`.

    Raises:
        InvalidRequest: The message list holds something that is neither an object nor a string.
    """
    key = next((name for name in _LISTS if isinstance(session.get(name), list | str)), None)
    if key is None:
        return Transcript((), dict(session))
    state = {name: value for name, value in session.items() if name != key}
    listed = session[key]
    return Transcript(tuple(map(read_message, [listed] if isinstance(listed, str) else listed)), state)


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


def read_message(raw: JSON) -> Message:
    """Return one message, whatever dialect it is written in.

    Raises:
        InvalidRequest: `raw` is neither an object nor a string.
    """
    if isinstance(raw, str):
        raw = {"role": "user", "content": raw}
    if not isinstance(raw, dict):
        raise InvalidRequest("Each message must be an object or a string.")
    raw = _from_completion(raw)
    kept = {key: _without_binary(value) for key, value in raw.items() if key not in _SECRETIVE}
    role = _role(raw)
    if role == "system":
        return Message(role, {"role": role, "content": None, "omitted": "instructions"})
    if not raw.get("role") and raw.get("type") in _REASONING:
        return Message(role, {"role": role, "content": None, "omitted": "reasoning"})
    if not raw.get("role") and str(raw.get("type")) in _MEDIA:
        return Message(role, {"role": role, "content": [_keep_part(raw)]})
    if _is_ours(raw):
        return Message(role, {"role": role, "content": None, "omitted": "recalled memory"})
    body = next((name for name in ("content", "parts", "blocks", "text") if name in raw), None)
    if body is not None and isinstance(raw[body], list):
        kept[body] = [_keep_part(part) for part in raw[body]]
    text = _text(raw.get(body)) if body else ""
    if not text and isinstance(raw.get("refusal"), str):
        text = raw["refusal"]
    spoken = bool(text.strip()) and role in ("user", "assistant")
    return Message(role, kept, text, spoken, _speaker(raw), _time(raw))


def natural_query(transcript: Transcript) -> str:
    """Return the question a reader would search for.

    That is the newest user text, else the newest assistant text, else the short strings of the state, else "".
    """
    for role in ("user", "assistant"):
        for message in reversed(transcript.messages):
            if message.spoken and message.role == role:
                return message.text
    return " ".join(text for text in _strings(transcript.state) if len(text) <= 200)[:2000]


def _from_completion(raw: dict[str, JSON]) -> dict[str, JSON]:
    """Unwrap a whole provider response: the message inside an OpenAI completion or a Gemini answer."""
    for key in ("choices", "candidates"):
        found = raw.get(key)
        if isinstance(found, list) and found and isinstance(found[0], dict):
            inner = found[0].get("message") or found[0].get("content")
            if isinstance(inner, dict):
                return {"role": "assistant", **inner}
    if isinstance(raw.get("data"), dict) and raw.get("type") in ("human", "ai", "tool", "system"):
        return {**raw["data"], "type": raw["type"]}
    if "role" not in raw and isinstance(raw.get("output_text"), str):
        return {"role": "assistant", "content": raw["output_text"]}
    return raw


def _role(raw: Mapping[str, JSON]) -> str:
    named = raw.get("role") or raw.get("speaker_kind") or raw.get("sender")
    if isinstance(named, str):
        return _ROLES.get(named.lower(), "user" if named.lower() != "self" else "assistant")
    kind = raw.get("type") or raw.get("kind")
    if kind in _CALLS:
        return "assistant"
    if kind in _RESULTS:
        return "tool"
    return _ROLES.get(kind.lower(), "user") if isinstance(kind, str) else "user"


def _text(content: JSON) -> str:
    if isinstance(content, str):
        return _plain(content)
    if isinstance(content, dict):
        return _part_text(content)
    if isinstance(content, list):
        return "\n".join(text for text in map(_text, content) if text)
    return ""


def _plain(text: str) -> str:
    """Return the text without data URLs: the same before it is stored and after."""
    return _DATA_LEFT.sub("", _DATA_URL.sub("", text))


def _part_text(part: Mapping[str, JSON]) -> str:
    if _is(part, _REASONING) or part.get("thought") is True:
        return ""
    for key in ("text", "refusal", "value"):
        if isinstance(part.get(key), str):
            return _plain(part[key])
    if part.get("part_kind") in ("user-prompt", "text"):
        return _text(part.get("content"))
    return _text(part["parts"]) if isinstance(part.get("parts"), list) else ""


def _is(part: Mapping[str, JSON], kinds: tuple[str, ...]) -> bool:
    return any(part.get(key) in kinds for key in _KINDS)


def _keep_part(part: JSON) -> JSON:
    """Return a content part as it may be stored."""
    if not isinstance(part, dict):
        return _without_binary(part)
    if _is(part, _REASONING) or part.get("thought") is True:
        return {"type": "reasoning", "omitted": True}
    if _is(part, _INSTRUCTIONS):
        return {"type": "instructions", "omitted": True}
    if _names_ours(part) or (_is(part, _RESULTS) and any(_is_recalled(part.get(key)) for key in _RETURNED)):
        return {"type": "recalled memory", "omitted": True}
    kind = _MEDIA.get(str(part.get("type"))) or next(
        (_MEDIA[key] for key in part if key in _MEDIA and part[key]), None
    )
    if kind:
        text = _part_text(part)
        inside = _strings({key: value for key, value in part.items() if key != "type"})
        data = max((found for found in inside if found != text), key=len, default="").rpartition(",")[2]
        omitted = {"type": kind, "omitted": True, "bytes": len(data) * 3 // 4}
        return {**omitted, "text": text} if text else omitted
    return {key: _without_binary(value) for key, value in part.items() if key not in _SECRETIVE}


def _without_binary(value: JSON) -> JSON:
    if isinstance(value, str):
        return (
            _DATA_URL.sub(lambda found: f"[{found[1] or 'data'} omitted]", value)
            if "base64," in value
            else value
        )
    if isinstance(value, dict):
        return {key: _without_binary(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_binary(item) for item in value]
    return value


def _is_ours(raw: Mapping[str, JSON]) -> bool:
    """Whether the message is nothing but a call of our functions, or their result. What was said beside a call is not ours.

    A result carries our name in most dialects; in OpenAI's only the note that every `functionResponse` begins with.
    """
    if _names_ours(raw):
        return _role(raw) == "tool" or not _text(raw.get("content"))
    calls = raw.get("tool_calls")
    if isinstance(calls, list) and calls and not _text(raw.get("content")):
        return all(isinstance(call, dict) and _names_ours(call) for call in calls)
    return _role(raw) == "tool" and any(_is_recalled(raw.get(key)) for key in _RETURNED)


def _is_recalled(returned: JSON) -> bool:
    if isinstance(returned, str):
        return '"requestId"' in returned and '"rawEntries"' in returned
    if isinstance(returned, list):
        return any(_is_recalled(part.get("text")) for part in returned if isinstance(part, dict))
    return isinstance(returned, dict) and "requestId" in returned and "rawEntries" in returned


def _names_ours(value: Mapping[str, JSON]) -> bool:
    inner = next(
        (value[key] for key in ("function", *_CALLS, *_RESULTS) if isinstance(value.get(key), dict)), value
    )
    acts = inner is not value or _is(value, (*_CALLS, *_RESULTS)) or value.get("role") in ("tool", "function")
    name = inner.get("name") or inner.get("tool_name")
    return acts and isinstance(name, str) and name.startswith(FUNCTION_PREFIX)


def _speaker(raw: Mapping[str, JSON]) -> str | None:
    found = next((raw[key] for key in _SPEAKERS if isinstance(raw.get(key), str)), "")
    return found.strip()[:160] or None


def _time(raw: Mapping[str, JSON]) -> Instant | None:
    return next(
        (time for time in (read_time(raw[key]) for key in _TIMES if key in raw) if time is not None), None
    )


def read_time(value: JSON) -> Instant | None:
    """Return the instant in `value` (ISO 8601 with or without offset, seconds, milliseconds), or None if unusable.

    A time without an offset is read as UTC. Numbers below 10^11 are seconds: in milliseconds they would lie in 1973; below
    10^8 they are counters, not times.
    """
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        seconds = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        return _instant(seconds * 1000)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if value < 1e8:
        return None
    return _instant(value * 1000 if value < 1e11 else value)


def _instant(ms: float) -> Instant | None:
    return round(ms) if 0 <= ms <= _LATEST else None


def _strings(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
