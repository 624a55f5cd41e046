"""Conversations no application should send, of every dialect at once: each is read or refused, never more than that."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.domain import Message
from halo_server.errors import InvalidRequest
from halo_server.transcript import natural_query, read_document, read_message, read_session, split_response

WORDS = ("", " ", "hello", "User: hi\nAI: ho", "<think>hm</think>yes", "[image/png omitted]", "\ud800", "a\0b",
         "data:image/png;base64,iVBORw0KGgo=", '<details type="reasoning">hm</details>yes', "halo_retrieve", "x" * 300)  # fmt: skip
ROLES = ("user", "USER", "human", "assistant", "ai", "bot", "model", "tool", "function", "system", "developer", "observer",
         "self", "agent", "Role.USER", "gemini", "info", "message", "用户")  # fmt: skip
KINDS = ("text", "input_text", "output_text", "thinking", "reasoning", "think", "tool_use", "tool_result", "function_call",
         "function_call_output", "tool-call", "tool-result", "tool-weather", "tool-halo_x", "image", "image_url", "input_audio",
         "file", "document", "media", "message", "human", "constructor", "service", "user-prompt", "system-prompt", "tool-return",
         "recalled memory", "tool-invocation", "image_generation_call", "response_item")  # fmt: skip
TIMES = (0, -1, 1, 1e8, 1_793_534_400, 1_793_534_400.5, 1_793_534_402_000, 1_793_534_403_000_000, 10**18, 10**400, -(10**400),
         float("nan"), float("inf"), float("-inf"), 2.5e11, "1793534405", "1793534406.000700", "9" * 400, "-1", "1e400", "nan",
         "2026-11-01T12:00:07Z", "2026-11-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "yesterday",
         "Sun, 01 Nov 2026 12:00:14 +0000", "99 Xxx 9999 99:99", {"$date": {"$date": {"$date": {}}}}, {"$date": "2026-11-01T12:00:18Z"},
         {"seconds": 1_793_534_400, "nanos": 5})  # fmt: skip
KEYS = ("role", "content", "parts", "blocks", "text", "type", "kind", "part_kind", "block_type", "name", "function", "tool_calls",
        "toolInvocations", "choices", "message", "candidates", "thought", "refusal", "ts", "timestamp", "created_at", "image_url",
        "functionCall", "functionResponse", "function_response", "tool_call_id", "toolCallId", "toolName", "speaker", "sender", "from",
        "author", "output", "output_text", "result", "response", "data", "kwargs", "id", "images", "attachments", "files", "meta",
        "omitted", "bytes", "mimeType", "transcript", "event", "items", "value", "object", "isCreatedByUser", "user", "assistant",
        "args", "input", "source", "thinking", "from_id", "media_type")  # fmt: skip
LISTS = ("messages", "contents", "input", "history", "conversation", "chat_history", "items", "events", "turns", "transcript",
         "chat_messages", "conversations", "messagesTree", "agents", "rawEntries", "results", "tools", "system")  # fmt: skip

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(WORDS + ROLES + KINDS)
    | st.sampled_from(TIMES)
)
anything: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
words = st.sampled_from(WORDS)
names = st.sampled_from(("weather", "halo_retrieve_end_user_memory"))
ids = st.sampled_from(("c1", "c2", ""))
calls = st.builds(
    lambda name, at: {"id": at, "type": "function", "function": {"name": name, "arguments": "{}"}}, names, ids
)
parts = (
    st.builds(lambda kind, text: {"type": kind, "text": text}, st.sampled_from(KINDS), words | anything)
    | st.builds(lambda name: {"functionCall": {"name": name, "args": {}}, "text": None}, names)
    | st.builds(lambda name, out: {"functionResponse": {"name": name, "response": out}}, names, anything)
    | st.builds(lambda at, out: {"type": "tool_result", "tool_use_id": at, "content": out}, ids, anything)
    | st.builds(
        lambda text: {"part_kind": "user-prompt", "content": text, "timestamp": "2026-11-01T08:10:00Z"},
        words | anything,
    )
    | st.builds(lambda source: {"type": "image", "source": source, "title": "a"}, anything)
    | st.builds(lambda text: {"type": "input_audio", "transcript": text, "audio": "UklGRg" * 20}, words)
    | anything
)
contents = words | st.lists(parts, max_size=4) | anything
messages = (
    st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(ROLES), contents)
    | st.builds(
        lambda kind, content: {"type": kind, "data": {"content": content}},
        st.sampled_from(ROLES + KINDS),
        contents,
    )
    | st.builds(
        lambda role, said: {"role": role, "parts": said}, st.sampled_from(ROLES), st.lists(parts, max_size=4)
    )
    | st.builds(lambda at, out: {"role": "tool", "tool_call_id": at, "content": out}, ids, contents)
    | st.builds(
        lambda made, text: {"role": "assistant", "content": text, "tool_calls": made},
        st.lists(calls, max_size=2),
        words,
    )
    | st.builds(
        lambda time, text: {"sender": "human", "text": text, "created_at": time},
        st.sampled_from(TIMES),
        words,
    )
    | st.builds(
        lambda inner: {"type": "user", "message": inner},
        st.dictionaries(st.sampled_from(KEYS), anything, max_size=4),
    )
    | st.builds(lambda u, a: [u, a], words | st.none(), words | st.none())
    | words
    | anything
)
changed = st.builds(
    lambda message, wrong: {**message, **wrong} if isinstance(message, dict) else message,
    messages,
    st.dictionaries(st.sampled_from(KEYS), anything, max_size=2),
)
sessions = st.dictionaries(
    st.sampled_from(LISTS), st.lists(messages | changed, max_size=5) | anything, min_size=1, max_size=3
)
nodes = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(
        lambda message, parent: {"message": message, "parent": parent, "parentId": parent},
        changed,
        st.sampled_from("abcdx") | anything,
    )
    | anything,
    max_size=4,
)
documents = (
    sessions
    | st.lists(changed | sessions, max_size=4)
    | st.builds(lambda mapping, at: {"mapping": mapping, "current_node": at}, nodes, st.sampled_from("abcdx") | anything)
    | st.builds(lambda known, at: {"chat": {"history": {"messages": known, "currentId": at}}}, nodes, st.sampled_from("abcdx"))
    | st.builds(lambda said: {"messages": [{**one, "messageId": str(n), "parentMessageId": str(n // 2)} for n, one in enumerate(said)]},
                st.lists(st.dictionaries(st.sampled_from(KEYS), anything, max_size=3), max_size=5))
    | st.builds(lambda said: {"messages": [{**one, "from_id": "user1", "text_entities": []} for one in said]},
                st.lists(st.dictionaries(st.sampled_from(KEYS), anything, max_size=3), max_size=4))
    | st.builds(lambda said: [{"type": "message", "user": "U", "ts": "1.5", **one} for one in said],
                st.lists(st.dictionaries(st.sampled_from(KEYS), anything, max_size=3), max_size=4))
    | st.builds(lambda more: [{"header": "h", "title": "Prompted x", "time": "t", "safeHtmlItem": more}], anything)
    | st.builds(lambda said, answer: {"sessionData": said, "response": answer, "occurredAt": answer}, sessions | anything, anything)
    | anything
)  # fmt: skip


def is_read(message: Message) -> None:
    """Assert what holds of every message, and that it is the same when it is read from what is kept of it."""
    assert message.role in ("user", "assistant", "system", "tool", "other")
    assert message.spoken == (bool(message.text.strip()) and message.role in ("user", "assistant"))
    assert message.occurred_at is None or -2_208_988_800_000 <= message.occurred_at <= 4_102_444_800_000
    assert message.speaker is None or 0 < len(message.speaker) <= 160
    again = read_message(dict(message.raw))
    assert (again.role, again.text, again.spoken) == (message.role, message.text, message.spoken)
    assert repr(again.raw) == repr(message.raw)
    assert "base64," not in message.text


@given(raw=messages | changed)
def test_a_message_is_read_or_refused_and_what_is_kept_is_read_the_same(raw: Any) -> None:
    try:
        message = read_message(raw)
    except InvalidRequest:
        assert not isinstance(raw, dict | str)
        return
    assert repr(message) == repr(read_message(raw))
    is_read(message)


@given(session=sessions)
def test_a_session_is_read_or_refused(session: dict[str, Any]) -> None:
    try:
        transcript = read_session(session)
    except InvalidRequest:
        return
    assert repr(transcript) == repr(read_session(session))
    for message in transcript.messages:
        is_read(message)
    asked, answer = split_response(transcript.messages, None)
    assert len(asked) + (answer is not None) == len(transcript.messages)
    assert isinstance(natural_query(transcript), str)


@given(document=documents, as_text=st.booleans())
def test_a_document_is_read_or_refused_in_whatever_form(document: Any, *, as_text: bool) -> None:
    content = json.dumps(document) if as_text else document
    try:
        export = read_document(content)
    except InvalidRequest:
        return
    assert repr(export) == repr(read_document(content))
    for conversation in export.conversations:
        assert conversation.messages or conversation.facts
        assert len(conversation.messages) == len(conversation.authors)
        for message in conversation.messages:
            is_read(message)
            message.text.encode()
            assert "\0" not in message.text


@given(
    lines=st.lists(
        st.sampled_from(
            (
                "01/11/2026, 09:00 - Mara: hi",
                "[11/13/26, 9:05:09 PM] Teo: ho",
                "99/99/9999, 99:99 - X: y",
                "User: hi",
                "AI: ho",
                "Q: why",
                "A: so",
                "用户：你好",
                "{",
                '{"role": "user", "content": "x"}',
                "[1]",
                "",
                "plain words",
                "\ufeff",
                "\u2028",
                "01/11/2026, 09:00 - Mara: <Media omitted>",
                '"a"',
                "NaN",
                "[" * 30_000,
            )
        )
        | st.text(max_size=20),
        max_size=6,
    ),
    encoding=st.sampled_from(("utf-8", "utf-16", "latin-1")),
)
def test_lines_of_anything_are_read_or_refused(lines: list[str], encoding: str) -> None:
    content = "\n".join(lines).encode(encoding, "replace")
    try:
        export = read_document(content)
    except InvalidRequest:
        return
    for conversation in export.conversations:
        for message in conversation.messages:
            is_read(message)


@pytest.mark.parametrize(
    "text",
    [
        '<details type="reasoning">' * 20_000,
        "<think>" * 50_000,
        "data:;base64," * 20_000,
        "User: x\n" * 20_000 + "AI: y",
        "[" * 100_000,
        "<" * 100_000,
        "01/11/2026, 09:00 - " * 10_000,
        "a: " * 50_000,
    ],
    ids=range(8),
)
def test_long_text_is_read_in_one_pass(text: str) -> None:
    read_message({"role": "assistant", "content": text})
    read_session({"content": text})
    try:
        read_document(text)
    except InvalidRequest:
        return
