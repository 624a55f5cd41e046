"""One message out of every dialect: who said it, what, when, and what of it may be stored.

What must not be stored as memory (instructions, reasoning, signatures, binary data, HALO's own recalled text) leaves here as a
typed placeholder, and text is read from what is kept: reading a stored message again gives the same. It changes when a
provider or a framework spells a message in another way.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import NamedTuple

from halo_server.domain import JSON, Instant, Message
from halo_server.errors import InvalidRequest
from halo_server.transcript.times import stated_time

__all__ = [
    "FUNCTION_PREFIX",
    "ROLES",
    "Call",
    "author",
    "calls",
    "is_notice",
    "media",
    "read_message",
    "stated_role",
    "strings",
    "without_binary",
]

FUNCTION_PREFIX = "halo_"
"""Functions of this name are ours: their calls and results are recalled memory, not new memory."""

ROLES = {
    **dict.fromkeys(
        ("user", "human", "customer", "client", "visitor", "caller", "end_user", "user_input", "request", "incoming",
         "inbound", "用户", "使用者", "ユーザー", "사용자", "usuario", "usuário", "utilisateur", "benutzer", "nutzer",
         "utente", "пользователь"),
        "user",
    ),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "chatbot", "agent", "model", "self", "gpt", "chatgpt", "gemini", "llm",
         "copilot", "model_output", "response", "reasoning", "thought", "thinking", "redacted_thinking",
         "image_generation_call", "outgoing", "outbound",
         "助手", "机器人", "アシスタント", "어시스턴트", "asistente", "assistente", "assistent", "ассистент"),
        "assistant",
    ),
    **dict.fromkeys(("system", "developer", "系统"), "system"),
    **dict.fromkeys(("tool", "function", "ipython", "observation", "functionexecutionresult"), "tool"),
}  # fmt: skip
"""What a role is called, in lower case, and what it is."""

_SPEAKING = ("user", "assistant")
_ROLE_KEYS = ("role", "speaker_kind", "role_type")  # these name a role and nothing else
_WHO_KEYS = ("sender", "speaker", "author", "from", "source", "direction")  # these a role or a person
_SAID_BY_USER = ("isCreatedByUser", "is_user", "isUser", "fromMe")
_SAID_BY_BOT = ("isBot", "is_bot")
_NOTICES = ("info", "warning", "error", "notice", "status", "service", "summary", "event")
_BODIES = (
    "content", "parts", "blocks", "text", "items", "body", "message", "value", "transcript", "utterance", "mes",
)  # fmt: skip
_PART_LISTS = frozenset((*_BODIES, "output", "toolInvocations", "toolCalls"))
_TIMES = (
    "timestamp", "created_at", "createdAt", "occurredAt", "ts", "time", "at", "date_unixtime", "date", "created",
    "create_time", "createTime", "sent_at", "sentAt", "datetime",
)  # fmt: skip
_TIMES_BESIDE = ("timestamp", "ts", "created_at", "createdAt", "sent_at", "sentAt")
_TIMED = frozenset((*_TIMES, "meta", "metadata"))
_SPEAKERS = ("name", "speaker", "author", "speaker_name", "from", "sender", "username", "user_name")
_SPOKEN_BY = frozenset(_SPEAKERS)
_NAMES = ("nickname", "display_name", "displayName", "name", "real_name", "username")
_AUTHORS = (
    "user_id", "userId", "author_id", "authorId", "from_id", "sender_id", "senderId", "discord_user_id",
)  # fmt: skip
_SECRETIVE = frozenset(
    (
        "thoughtSignature", "thought_signature", "signature", "encrypted_content", "reasoning_content", "reasoning",
        "reasoning_details", "reasoningContent", "thinking", "thoughts",
    )
)  # fmt: skip
_KINDS = ("type", "part_kind", "block_type", "kind", "content_type")
_REASONING = ("thinking", "redacted_thinking", "reasoning", "thought", "think", "thoughts", "reasoning_recap")
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
    "server_tool_use",
    "toolUse",
    "tool-invocation",
    "toolInvocation",
    "dynamic-tool",
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
    "tool-result",
    "tool_call_result",
    "toolResult",
    "retry-prompt",
)
_ACTING = frozenset(("function", "toolCallId", *_KINDS, *_CALLS, *_RESULTS))
_RETURNED = ("content", "output", "result", "response")  # where the result of a call says what was returned
_CALL_LISTS = ("tool_calls", "toolCalls", "toolInvocations")
_CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "id")
_CALL_NAMES = ("name", "tool_name", "toolName")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]*")
_BASE64 = re.compile(r"(?=\D*\d)(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[A-Za-z0-9+/_\r\n-]{64,}={0,2}\s*")
_BINARY_KEYS = ("data", "bytes", "base64", "b64_json", "blob", "audio", "image", "file_data", "fileData")
_DATA_LEFT = re.compile(r"\[(?:data|[\w.+-]+/[\w.+-]+) omitted\]")  # what stands for one in a stored message
_THOUGHT = "[reasoning omitted]"
_THOUGHT_LEFT = re.compile(re.escape(_THOUGHT) + r"\s*")
_THINKS = re.compile(r"\s*<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_FOLDED = re.compile(r"<details\s+type=\"(?:reasoning|tool_calls|code_interpreter)\"[^>]{0,2000}>")
_MEDIA = {
    "image": "image", "image_url": "image", "input_image": "image", "audio": "audio", "input_audio": "audio",
    "file": "file", "input_file": "file", "document": "file", "video": "video", "inlineData": "file",
    "inline_data": "file", "fileData": "file", "file_data": "file", "image_generation_call": "image",
}  # fmt: skip
_MEDIA_KINDS = {
    **_MEDIA, "output_audio": "audio", "audio_url": "audio", "input_video": "video", "video_url": "video",
    "image_file": "image", "file_url": "file", "media": "file", "binary": "file", "image-url": "image",
    "audio-url": "audio", "video-url": "video", "document-url": "file", "image_asset_pointer": "image",
    "audio_asset_pointer": "audio", "video_container_asset_pointer": "video",
}  # fmt: skip
_ATTACHED = {
    "images": "image", "attachments": "file", "files": "file", "experimental_attachments": "file",
}  # fmt: skip
_MEDIA_TYPES = (
    "mime_type", "mimeType", "media_type", "mediaType", "mimetype", "contentType", "image_mimetype",
    "document_mimetype",
)  # fmt: skip
_FILE_NAMES = ("filename", "file_name", "fileName", "name", "displayName", "display_name", "title")
_ATTACHMENT = (*_MEDIA_TYPES, *_FILE_NAMES, "url", "data", "extracted_content", "file_id")
_OMITTED = ("image", "audio", "video", "file", "reasoning", "instructions", "recalled memory")
_PLACEHOLDER = {"bytes": int, "sha256": str, "mimeType": str, "name": str, "text": str}
_LONGEST_NAME = 160


class Call(NamedTuple):
    """A call of a function: the id its result names again ("" if none), and the function's name."""

    id: str
    name: str


def read_message(raw: JSON, *, ours: Collection[str] = (), zone: tzinfo | None = None) -> Message:
    """Return one message, whatever dialect it is written in.

    Args:
        raw: The message, or the words of a user.
        ours: Ids of calls of our functions: a result that names one is recalled memory.
        zone: Where a time without an offset was written; unknown when None.

    Raises:
        InvalidRequest: `raw` is neither an object nor a string.
    """
    if isinstance(raw, str):
        raw = {"role": "user", "content": raw}
    if not isinstance(raw, dict):
        raise InvalidRequest("Each message must be an object or a string.")
    message = _unwrapped(raw)
    if not message.get("role") and str(message.get("type")) in _MEDIA:
        message = {"role": _role(message), "content": [message]}
    role = _role(message)
    if role == "system":
        return Message(role, {"role": role, "content": None, "omitted": "instructions"})
    if not message.get("role") and message.get("type") in _REASONING:
        return Message(role, {"role": role, "content": None, "omitted": "reasoning"})
    if _is_ours(message, role, ours):
        return Message(role, {"role": role, "content": None, "omitted": "recalled memory"})
    kept = _kept(message, role, ours)
    text = _read_text(kept, role)
    spoken = bool(text.strip()) and role in _SPEAKING
    at = _time(message, zone)
    if at is None and message is not raw:
        at = _time(raw, zone)
    return Message(role, kept, text, spoken, _speaker(kept), at)


def _unwrapped(raw: dict[str, JSON]) -> dict[str, JSON]:
    """Return the message inside a whole provider response, a framework's envelope or a line of a log."""
    inner = _opened(raw)
    while inner is not None:
        raw, inner = inner, _opened(inner)
    return raw


def _opened(raw: dict[str, JSON]) -> dict[str, JSON] | None:
    for key in ("choices", "candidates"):
        found = raw.get(key)
        if isinstance(found, list) and found and isinstance(found[0], dict):
            inner = found[0].get("message") or found[0].get("content")
            if isinstance(inner, dict):
                return {"role": "assistant", **inner}
    if isinstance(raw.get("data"), dict) and _role_of_kind(raw.get("type")) in (*_SPEAKING, "system", "tool"):
        return {**raw["data"], "type": raw["type"]}
    if raw.get("type") == "constructor" and isinstance(raw.get("kwargs"), dict):
        path = raw.get("id")
        named = path[-1] if isinstance(path, list) and path and isinstance(path[-1], str) else "human"
        return {**raw["kwargs"], "type": named}
    if "role" in raw or "content" in raw:
        return None
    if isinstance(raw.get("output_text"), str):
        return {"role": "assistant", "content": raw["output_text"]}
    return _opened_deeper(raw)


def _opened_deeper(raw: dict[str, JSON]) -> dict[str, JSON] | None:
    output, message = raw.get("output"), raw.get("message")
    if isinstance(output, dict):
        message = output.get("message")
    if isinstance(message, dict) and any(key in message for key in ("role", "content", "parts")):
        return {"role": _role({key: value for key, value in raw.items() if key != "message"}), **message}
    if raw.get("object") == "response" and isinstance(output, list):
        return {"role": "assistant", "content": list(_output_parts(output))}
    return None


def _output_parts(output: list[JSON]) -> Iterator[JSON]:
    for part in output:
        inner = part.get("content") if isinstance(part, dict) and part.get("type") == "message" else None
        yield from inner if isinstance(inner, list) else [part]


# -- who ---------------------------------------------------------------------------------------------------------


def stated_role(raw: Mapping[str, JSON]) -> str | None:
    """Return the role a message states, "other" for one we do not know, or None if it states none."""
    for key in _ROLE_KEYS:
        if (named := _name_of_role(raw.get(key))) is not None:
            return ROLES.get(named) or ROLES.get(named.removesuffix("message"), "other")
    for key in _SAID_BY_USER:
        if isinstance(raw.get(key), bool):
            return "user" if raw[key] else "assistant"
    for key in _WHO_KEYS:
        if (named := _name_of_role(raw.get(key))) in ROLES:
            return ROLES[named]
    who = raw.get("author")
    if any(raw.get(key) is True or (isinstance(who, dict) and who.get(key) is True) for key in _SAID_BY_BOT):
        return "assistant"
    if isinstance(raw.get("event"), str) and not any(
        isinstance(raw.get(key), str) for key in ("type", "kind")
    ):
        return ROLES.get(raw["event"].lower(), "other")
    return _role_of_kind(raw.get("type") or raw.get("kind"))


def _name_of_role(value: JSON) -> str | None:
    if isinstance(value, dict):
        value = next((value[key] for key in ("role", "label", "Label", "value") if value.get(key)), None)
    # Enumerations print as "Role.USER".
    return value.rpartition(".")[2].strip().lower() or None if isinstance(value, str) else None


def _role_of_kind(kind: JSON) -> str | None:
    if not isinstance(kind, str):
        return None
    if kind in _CALLS:
        return "assistant"
    if kind in _RESULTS:
        return "tool"
    named = kind.lower().removesuffix("chunk")
    if named in _NOTICES:
        return "other"
    return ROLES.get(named) or ROLES.get(named.removesuffix("message"))


def is_notice(raw: Mapping[str, JSON]) -> bool:
    """Whether it is a line of a log that nobody said: an event, a warning, a status."""
    return stated_role(raw) == "other" and not any(_name_of_role(raw.get(key)) for key in _ROLE_KEYS)


def _role(raw: Mapping[str, JSON]) -> str:
    role = stated_role(raw) or "user"
    if role != "user":
        return role
    parts = next((raw[key] for key in _BODIES if isinstance(raw.get(key), list) and raw[key]), None)
    # The results of calls travel under the user's name with some providers.
    return "tool" if parts and all(map(_is_result, parts)) else role


def _is_result(part: JSON) -> bool:
    return isinstance(part, dict) and _sort(part) in ("result", "recalled memory")


def _sort(part: Mapping[str, JSON]) -> str:
    """Return what a content part is: one of `_OMITTED` if it may not be stored, "result", "kept" (left out before) or ""."""
    if part.get("omitted") is True and part.get("type") in _OMITTED:
        return "recalled memory" if part["type"] == "recalled memory" else "kept"
    if _is(part, _REASONING) or part.get("thought") is True:
        return "reasoning"
    if _is(part, _INSTRUCTIONS):
        return "instructions"
    if _names_ours(part):
        return "recalled memory"
    if _is(part, _RESULTS) or (
        any(isinstance(part.get(key), dict) for key in _RESULTS) and not part.get("text")
    ):
        return "result"
    return _media_kind(part) or ""


def _speaker(raw: Mapping[str, JSON]) -> str | None:
    if _SPOKEN_BY.isdisjoint(raw):
        return None
    found = next((raw[key] for key in _SPEAKERS if _names_somebody(raw.get(key), key)), None)
    if found is None:
        who: Mapping[str, JSON] = next(
            (raw[key] for key in ("author", "from", "sender") if isinstance(raw.get(key), dict)), {}
        )
        found = next((who[key] for key in _NAMES if isinstance(who.get(key), str) and who[key].strip()), "")
    return str(found).strip()[:_LONGEST_NAME] or None


def _names_somebody(value: JSON, key: str) -> bool:
    return isinstance(value, str) and not (key in _WHO_KEYS and value.strip().lower() in ROLES)


def author(raw: Mapping[str, JSON]) -> str | None:
    """Return the stable id of who said it, where one is stated."""
    found = next((raw[key] for key in _AUTHORS if isinstance(raw.get(key), str | int)), None)
    for key in ("author", "from", "sender"):
        if found is None and isinstance(raw.get(key), dict):
            found = raw[key].get("id")
    return str(found) if isinstance(found, str | int) and not isinstance(found, bool) else None


def _time(raw: Mapping[str, JSON], zone: tzinfo | None) -> Instant | None:
    """Return when it was said: as the message states, else what is said about it, else its parts."""
    parts: list[JSON] = next((raw[key] for key in ("parts", "content") if isinstance(raw.get(key), list)), [])
    if not parts and _TIMED.isdisjoint(raw):
        return None
    places = [(raw, _TIMES), (raw.get("meta"), _TIMES_BESIDE), (raw.get("metadata"), _TIMES_BESIDE)]
    places += [(part, _TIMES_BESIDE) for part in parts]
    times = (
        stated_time(place[key], zone)
        for place, keys in places
        if isinstance(place, dict)
        for key in keys
        if key in place
    )
    return next((time for time in times if time is not None), None)


# -- what --------------------------------------------------------------------------------------------------------


def _read_text(kept: Mapping[str, JSON], role: str) -> str:
    """Return the words of a message as it is kept."""
    if role == "other" and is_notice(kept):
        return ""
    for key in _BODIES:
        if key in kept and (text := _text(kept[key], role)):
            return text
    if isinstance(kept.get("refusal"), str):
        return _plain(kept["refusal"], role)
    return _plain(_returned(kept), role) if role == "tool" else ""


def _text(content: JSON, role: str) -> str:
    if isinstance(content, str):
        return _plain(content, role)
    if isinstance(content, dict):
        return _part_text(content, role)
    if isinstance(content, list):
        return _joined([_text(part, role) for part in content], role)
    return ""


def _joined(texts: Iterable[str], role: str) -> str:
    """Return the texts of parts as one.

    Providers cut what a model says where a citation or a delta ends, in the middle of a sentence: what stands side by side
    there is one text. What a user puts into several parts are paragraphs.
    """
    if role != "assistant":
        return "\n".join(text for text in texts if text)
    runs, apart = [""], False
    for text in texts:
        if text and apart and runs[-1]:
            runs.append("")
        runs[-1] += text
        apart = not text
    return "\n".join(filter(None, runs))


def _plain(text: str, role: str) -> str:
    """Return the text without what was left out of it: the same before it is stored and after."""
    text = _DATA_LEFT.sub("", _DATA_URL.sub("", text))
    return _THOUGHT_LEFT.sub("", text) if role == "assistant" else text


def _part_text(part: Mapping[str, JSON], role: str) -> str:
    if _is(part, (*_REASONING, *_CALLS, *_RESULTS)) or part.get("thought") is True:
        return ""
    for key in ("text", "refusal", "value", "transcript"):
        if isinstance(part.get(key), str):
            return _plain(part[key], role)
    if isinstance(part.get("text"), dict):
        return _part_text(part["text"], role)
    if part.get("part_kind") in ("user-prompt", "text"):
        return _text(part.get("content"), role)
    return _text(part["parts"], role) if isinstance(part.get("parts"), list) else ""


def _returned(kept: Mapping[str, JSON]) -> str:
    """Return what a function returned, as text; what is no text as JSON."""
    places = [kept]
    for key in _BODIES:
        if isinstance(kept.get(key), list):
            places += [part for part in kept[key] if isinstance(part, dict)]
    return "\n".join(text for text in map(_result_text, places) if text)


def _result_text(place: Mapping[str, JSON]) -> str:
    inner = next((place[key] for key in _RESULTS if isinstance(place.get(key), dict)), None)
    if inner is None and not _is(place, _RESULTS) and place.get("type") is not None:
        return ""
    result = next(
        (found[key] for found in [inner or place] for key in _RETURNED if found.get(key) is not None), None
    )
    if isinstance(result, dict) and set(result) == {"type", "value"}:
        result = result["value"]
    if isinstance(result, str):
        return result
    if isinstance(result, list) and (text := _text(result, "tool")):
        return text
    return json.dumps(result, ensure_ascii=False) if isinstance(result, dict) and result else ""


# -- calls -------------------------------------------------------------------------------------------------------


def calls(raw: Mapping[str, JSON]) -> list[Call]:
    """Return the calls of functions a message makes, each once."""
    if "type" not in raw and not any(isinstance(value, list | dict) for value in raw.values()):
        return []
    raw = _unwrapped(dict(raw))
    lists = [raw[key] for key in (*_CALL_LISTS, *_BODIES, "output") if isinstance(raw.get(key), list)]
    places = [raw, *(part for parts in lists for part in parts if isinstance(part, dict))]
    listed = {id(part) for key in _CALL_LISTS if isinstance(raw.get(key), list) for part in raw[key]}
    found = (_call(place, sure=id(place) in listed) for place in places)
    return list(dict.fromkeys(call for call in found if call))


def _call(place: Mapping[str, JSON], *, sure: bool) -> Call | None:
    inner = next((place[key] for key in ("function", *_CALLS) if isinstance(place.get(key), dict)), place)
    kind = place.get("type")
    named_by_kind = kind.removeprefix("tool-") if isinstance(kind, str) and "toolCallId" in place else None
    if _is(place, _RESULTS) or not (sure or inner is not place or _is(place, _CALLS) or named_by_kind):
        return None
    name = next((inner[key] for key in _CALL_NAMES if isinstance(inner.get(key), str)), named_by_kind)
    known = (at.get(key) for at in (place, inner) for key in _CALL_IDS)
    return Call(next((one for one in known if isinstance(one, str)), ""), name) if name else None


def _is_ours(raw: Mapping[str, JSON], role: str, ours: Collection[str]) -> bool:
    """Whether the message is nothing but a call of our functions, or their result. What was said beside a call is not ours.

    A result carries our name in most dialects; in others only its call's id, or the note that every `functionResponse`
    begins with.
    """
    if _names_ours(raw):
        return role == "tool" or not _text(raw.get("content"), role)
    called = raw.get("tool_calls")
    if isinstance(called, list) and called and not _text(raw.get("content"), role):
        return all(isinstance(call, dict) and _names_ours(call) for call in called)
    return role == "tool" and (_answers(raw, ours) or any(_is_recalled(raw.get(key)) for key in _RETURNED))


def _answers(result: Mapping[str, JSON], ours: Collection[str]) -> bool:
    return any(isinstance(result.get(key), str) and result[key] in ours for key in _CALL_IDS)


def _is_recalled(returned: JSON) -> bool:
    if isinstance(returned, str):
        return '"requestId"' in returned and '"rawEntries"' in returned
    if isinstance(returned, list):
        return any(_is_recalled(part.get("text")) for part in returned if isinstance(part, dict))
    return isinstance(returned, dict) and "requestId" in returned and "rawEntries" in returned


def _names_ours(value: Mapping[str, JSON]) -> bool:
    if _ACTING.isdisjoint(value) and value.get("role") not in ("tool", "function"):
        return False
    inner = next(
        (value[key] for key in ("function", *_CALLS, *_RESULTS) if isinstance(value.get(key), dict)), value
    )
    kind = value.get("type")
    if "toolCallId" in value and isinstance(kind, str) and kind.startswith(f"tool-{FUNCTION_PREFIX}"):
        return True
    acts = inner is not value or "toolCallId" in value or value.get("role") in ("tool", "function")
    name = next((inner[key] for key in _CALL_NAMES if inner.get(key)), None)
    named = isinstance(name, str) and name.startswith(FUNCTION_PREFIX)
    return named and (acts or _is(value, (*_CALLS, *_RESULTS)))


# -- what is kept ------------------------------------------------------------------------------------------------


def _kept(raw: Mapping[str, JSON], role: str, ours: Collection[str]) -> dict[str, JSON]:
    """Return the message as it may be stored."""
    kept: dict[str, JSON] = {}
    for key, value in raw.items():
        if key in _SECRETIVE:
            continue
        if key in _ATTACHED and isinstance(value, list):
            kept[key] = [_attached(one, _ATTACHED[key]) for one in value]
        elif key in _PART_LISTS and isinstance(value, list):
            kept[key] = [_keep_part(part, role, ours) for part in value]
        elif key in _BODIES and isinstance(value, str):
            kept[key] = _without_thoughts(without_binary(value), role)
        else:
            kept |= without_binary({key: value})
    return kept


def _is(part: Mapping[str, JSON], kinds: tuple[str, ...]) -> bool:
    return any(part.get(key) in kinds for key in _KINDS)


def _keep_part(part: JSON, role: str, ours: Collection[str] = ()) -> JSON:
    """Return a content part as it may be stored."""
    if not isinstance(part, dict):
        return (
            _without_thoughts(without_binary(part), role) if isinstance(part, str) else without_binary(part)
        )
    sort = _sort(part)
    if sort == "kept":
        return _placeholder(part)
    if sort == "recalled memory" or _returns_ours(part, ours):
        return {"type": "recalled memory", "omitted": True}
    if sort in ("reasoning", "instructions"):
        return {"type": sort, "omitted": True}
    if sort in _OMITTED:
        return _left_out(part, sort)
    return {key: _keep_inside(key, value, role) for key, value in part.items() if key not in _SECRETIVE}


def _returns_ours(part: Mapping[str, JSON], ours: Collection[str]) -> bool:
    if not _is(part, _RESULTS):
        return False
    return _answers(part, ours) or any(_is_recalled(part.get(key)) for key in _RETURNED)


def _keep_inside(key: str, value: JSON, role: str) -> JSON:
    if key in _BODIES and isinstance(value, list):
        return [_keep_part(part, role) for part in value]
    if key in ("text", "content") and isinstance(value, str):
        return _without_thoughts(without_binary(value), role)
    return without_binary(value)


def _media_kind(part: Mapping[str, JSON]) -> str | None:
    kinds = (_MEDIA_KINDS.get(part[key]) for key in _KINDS if isinstance(part.get(key), str))
    kind = next(filter(None, kinds), None) or next(
        (_MEDIA[key] for key in part if key in _MEDIA and part[key]), None
    )
    return _finer(kind, part) if kind == "file" else kind


def _finer(kind: str, part: Mapping[str, JSON]) -> str:
    told = _told(part, _MEDIA_TYPES).partition("/")[0]
    return told if told in ("image", "audio", "video") else kind


def _told(part: Mapping[str, JSON], keys: tuple[str, ...]) -> str:
    """Return what a part, or what it holds, says under one of `keys`."""
    places = [part, *(value for value in part.values() if isinstance(value, dict))]
    return next((at[key] for at in places for key in keys if isinstance(at.get(key), str) and at[key]), "")


def _left_out(part: Mapping[str, JSON], kind: str) -> dict[str, JSON]:
    """Return what stands for media: what kind, how much, called what; words beside it stay."""
    text = _part_text(part, "user")
    inside = strings({key: value for key, value in part.items() if key not in _KINDS})
    data = max((found for found in inside if found != text), key=len, default="").rpartition(",")[2]
    if text and not data:
        return {key: without_binary(value) for key, value in part.items()}
    omitted = {"type": kind, "omitted": True, "bytes": len(data) * 3 // 4}
    told = _named(part) if kind == "file" else {"name": _told(part, _FILE_NAMES)}
    told = {
        key: without_binary(value)[:_LONGEST_NAME] for key, value in told.items() if value and value != text
    }
    return {**omitted, **told, **({"text": text} if text else {})}


def _named(part: Mapping[str, JSON]) -> dict[str, str]:
    kind = _told(part, _MEDIA_TYPES)
    return {"mimeType": kind if "/" in kind else "", "name": _told(part, _FILE_NAMES)}


def _placeholder(part: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a placeholder somebody made before us, without anything else it carries."""
    known = {key: part[key] for key, kind in _PLACEHOLDER.items() if type(part.get(key)) is kind}
    short = {
        key: value[:_LONGEST_NAME] if key in ("sha256", "mimeType", "name") else value
        for key, value in known.items()
    }
    return {
        "type": part["type"],
        "omitted": True,
        **{key: without_binary(value) for key, value in short.items()},
    }


def _attached(one: JSON, kind: str) -> JSON:
    """Return what stands for something attached to a message."""
    if isinstance(one, str):
        data = one.rpartition(",")[2]
        return {"type": kind, "omitted": True, "bytes": len(data) * 3 // 4}
    if isinstance(one, dict) and one.get("omitted") is True and one.get("type") in _OMITTED:
        return _placeholder(one)
    if not isinstance(one, dict) or not any(isinstance(one.get(key), str) for key in _ATTACHMENT):
        return without_binary(one)
    told = {key: without_binary(value)[:_LONGEST_NAME] for key, value in _named(one).items() if value}
    return {"type": _finer(kind, one), "omitted": True, **told}


def media(raw: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """Return the placeholders of the media in a message as it is kept."""
    lists = (
        raw[key] for key in raw if (key in _PART_LISTS or key in _ATTACHED) and isinstance(raw[key], list)
    )
    parts = (part for parts in lists for part in parts if isinstance(part, dict))
    return [part for part in parts if part.get("omitted") is True and part.get("type") in _OMITTED[:4]]


def without_binary(value: JSON) -> JSON:
    """Return `value` with a word in the place of everything that is encoded binary data."""
    if isinstance(value, str):
        return (
            _DATA_URL.sub(lambda found: f"[{found[1] or 'data'} omitted]", value)
            if "base64," in value
            else value
        )
    if isinstance(value, dict):
        return {
            key: "[data omitted]"
            if key in _BINARY_KEYS and isinstance(one, str) and _BASE64.fullmatch(one)
            else without_binary(one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [without_binary(one) for one in value]
    return value


def _without_thoughts(text: str, role: str) -> str:
    """Return what a model said, its reasoning left out where that stands in the text itself.

    Source:
        `<think>` of reasoning models as their chat templates write it; `<details type="reasoning">` of Open WebUI.
    """
    if role != "assistant":
        return text
    if begun := _THINKS.match(text):
        ends = _THOUGHT_ENDS.search(text, begun.end())
        text = _THOUGHT + (text[ends.end() :] if ends else "")
    pieces, at = [], 0
    while folded := _FOLDED.search(text, at):
        end = text.find("</details>", folded.end())
        if end < 0:
            break
        pieces += [text[at : folded.start()], _THOUGHT]
        at = end + len("</details>")
    return "".join([*pieces, text[at:]])


def strings(value: JSON) -> Iterator[str]:
    """Yield every text in `value`, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
