"""One message out of every dialect; what must not be memory leaves a placeholder."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.domain import Message
from halo_server.errors import InvalidRequest
from halo_server.transcript import (
    Transcript,
    natural_query,
    read_message,
    read_session,
    read_time,
    split_response,
)

PNG = "data:image/png;base64,iVBORw0KGgo="
NOON = 1_793_534_400_000  # 2026-11-01T12:00:00Z
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "parts",
                    "text",
                    "type",
                    "name",
                    "function",
                    "tool_calls",
                    "choices",
                    "message",
                    "candidates",
                    "thought",
                    "refusal",
                    "ts",
                    "image_url",
                    "functionCall",
                    "function_call",
                    "speaker",
                    "timestamp",
                    "output_text",
                    "sender",
                    "tool_use",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("raw", "role", "text"),
    [
        ("hello", "user", "hello"),
        ({"role": "user", "content": "hello"}, "user", "hello"),
        ({"role": "human", "content": "hello"}, "user", "hello"),
        ({"role": "Customer", "content": "hello"}, "user", "hello"),
        ({"type": "ai", "content": "hello"}, "assistant", "hello"),
        ({"sender": "self", "text": "hello"}, "assistant", "hello"),
        ({"text": "hello"}, "user", "hello"),
        ({"role": "model", "parts": [{"text": "hel"}, {"text": "lo", "thought": True}]}, "assistant", "hel"),
        (
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}]},
            "user",
            "a\nb",
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "text": "hm"}]},
            "assistant",
            "",
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, "assistant", "No."),
        ({"role": "user", "content": {"text": "hello"}}, "user", "hello"),
        ({"role": "user", "content": {"parts": [{"text": "hello"}]}}, "user", "hello"),
        ({"role": "user", "content": f"look {PNG} here"}, "user", "look  here"),
        ({"role": "user", "content": [{"type": "text", "text": "a", "image_url": None}]}, "user", "a"),
        ({"role": "user", "parts": [{"text": "a", "inlineData": {"data": "QUJD"}}]}, "user", "a"),
        (
            {"role": "assistant", "content": "a", "function_call": {"name": "halo_retrieve_memory"}},
            "assistant",
            "a",
        ),
        ({"choices": [{"message": {"content": "hello"}}]}, "assistant", "hello"),
        ({"candidates": [{"content": {"parts": [{"text": "hello"}]}}]}, "assistant", "hello"),
        ({"choices": []}, "user", ""),
        ({"choices": [{"text": "old"}]}, "user", ""),
        ({"output_text": "hello"}, "assistant", "hello"),
        ({"type": "function_call", "name": "get_weather"}, "assistant", ""),
        ({"type": "function_call_output", "output": "21"}, "tool", "21"),
        ({"role": "user", "content": 7}, "user", ""),
        ({"type": ["x"], "content": "hello"}, "user", "hello"),
        ({"role": ["x"], "type": {"a": 1}, "content": "hello"}, "user", "hello"),
        ({"type": "user_input", "content": [{"type": "text", "text": "hello"}]}, "user", "hello"),
        ({"type": "model_output", "content": [{"type": "text", "text": "hello"}]}, "assistant", "hello"),
        ({"type": "function_result", "call_id": "a", "result": "21"}, "tool", "21"),
        ({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm"}]}, "assistant", ""),
        ({"type": "thought", "summary": [{"type": "text", "text": "Hm"}]}, "assistant", ""),
        ({"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}, "assistant", ""),
        ({"type": "custom_tool_call_output", "call_id": "c", "output": "a.txt"}, "tool", "a.txt"),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "hello", "annotations": []}],
            },
            "assistant",
            "hello",
        ),
        ({"role": "user", "type": "thought", "content": "hello"}, "user", "hello"),
        ({"type": "AIMessageChunk", "content": "hello"}, "assistant", "hello"),
        ({"role": "chatbot", "blocks": [{"block_type": "text", "text": "hello"}]}, "assistant", "hello"),
        ({"type": "ai", "data": {"content": "hello", "type": "ai"}}, "assistant", "hello"),
        ({"role": "assistant", "blocks": [{"block_type": "text", "text": "hello"}]}, "assistant", "hello"),
        (
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["a", {"url": "b"}]}]},
            "user",
            "a",
        ),
        ({"role": "observer", "content": "hello"}, "other", "hello"),
        ({"role": "MessageRole.USER", "content": "hello"}, "user", "hello"),
        ({"sender": "assistant", "text": "hello"}, "assistant", "hello"),
        ({"sender": "Mia", "text": "hello"}, "user", "hello"),
        ({"author": "model", "body": "hello"}, "assistant", "hello"),
        ({"from": "gpt", "value": "hello"}, "assistant", "hello"),
        ({"author": {"name": "halo", "isBot": True}, "content": "hello"}, "assistant", "hello"),
        (
            {"isCreatedByUser": False, "sender": "Sonnet", "text": "", "content": [{"text": "hello"}]},
            "assistant",
            "hello",
        ),
        ({"direction": "inbound", "body": "hello"}, "user", "hello"),
        ({"event": "bot", "text": "hello"}, "assistant", "hello"),
        ({"event": "slot", "name": "city", "value": "Porto"}, "other", ""),
        ({"type": "gemini", "content": "hello"}, "assistant", "hello"),
        ({"type": "info", "content": "Cancelled."}, "other", ""),
        (
            {"model": "m", "message": {"role": "assistant", "content": "hello"}, "done": True},
            "assistant",
            "hello",
        ),
        (
            {"output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}}},
            "assistant",
            "hello",
        ),
        (
            {
                "object": "response",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "hello"}],
                    },
                ],
            },
            "assistant",
            "hello",
        ),
        (
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "HumanMessage"],
                "kwargs": {"content": "hello"},
            },
            "user",
            "hello",
        ),
        ({"role": "user", "content": [{"type": "text", "text": {"value": "hello"}}]}, "user", "hello"),
        ({"role": "user", "content": [{"type": "input_audio", "transcript": "hello"}]}, "user", "hello"),
        ({"role": "assistant", "content": [{"text": "In "}, {"text": "May."}]}, "assistant", "In May."),
        (
            {
                "role": "assistant",
                "content": [{"text": "I look."}, {"type": "tool_use", "name": "f"}, {"text": "Yes."}],
            },
            "assistant",
            "I look.\nYes.",
        ),
        ({"role": "assistant", "content": " <think>hm</think>\n\nhello"}, "assistant", "hello"),
        ({"role": "assistant", "content": "<think>hm, cut"}, "assistant", ""),
        (
            {"role": "assistant", "content": 'a<details type="reasoning" done="true">hm</details> b'},
            "assistant",
            "ab",
        ),
        ({"role": "user", "content": "What is <think>hm</think>?"}, "user", "What is <think>hm</think>?"),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "21"}]},
            "tool",
            "21",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": "21"}, {"type": "text", "text": "hello"}],
            },
            "user",
            "hello",
        ),
        (
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"c": 21}}}]},
            "tool",
            '{"c": 21}',
        ),
        (
            {
                "role": "tool",
                "content": [{"type": "tool-result", "output": {"type": "json", "value": {"c": 21}}}],
            },
            "tool",
            '{"c": 21}',
        ),
        (
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "thinking", "content": "hm"},
                    {"part_kind": "text", "content": "hello"},
                    {"part_kind": "tool-call", "tool_name": "weather", "args": "{}"},
                ],
            },
            "assistant",
            "hello",
        ),
    ],
)
def test_role_and_text_are_read_from_every_dialect(raw: Any, role: str, text: str) -> None:
    message = read_message(raw)

    said = bool(text) and role in ("user", "assistant")
    assert (message.role, message.text, message.spoken) == (role, text, said)


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (
            {"role": "system", "content": "Be kind."},
            {"role": "system", "content": None, "omitted": "instructions"},
        ),
        (
            {"role": "developer", "content": [{"text": "Be kind."}]},
            {"role": "system", "content": None, "omitted": "instructions"},
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"function": {"name": "halo_retrieve_memory"}}],
            },
            {"role": "assistant", "content": None, "omitted": "recalled memory"},
        ),
        (
            {"role": "tool", "name": "halo_retrieve_memory", "content": "{}"},
            {"role": "tool", "content": None, "omitted": "recalled memory"},
        ),
        (
            {
                "role": "tool",
                "tool_call_id": "1",
                "content": json.dumps({"requestId": "r", "rawEntries": []}),
            },
            {"role": "tool", "content": None, "omitted": "recalled memory"},
        ),
        (
            {"role": "tool", "tool_call_id": "1", "content": "21 °C"},
            {"role": "tool", "tool_call_id": "1", "content": "21 °C"},
        ),
        (
            {
                "role": "user",
                "content": [{"functionResponse": {"name": "halo_retrieve_memory"}}, {"text": "x"}],
            },
            {"role": "user", "content": [{"type": "recalled memory", "omitted": True}, {"text": "x"}]},
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "QUJD" * 10}}, "x", f"y {PNG}"],
            },
            {
                "role": "user",
                "content": [{"type": "image", "omitted": True, "bytes": 30}, "x", "y [image/png omitted]"],
            },
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}]},
            {"role": "user", "content": [{"type": "image", "omitted": True, "bytes": 9}]},
        ),
        (
            {"role": "user", "content": [{"type": "input_image", "image_url": None}]},
            {"role": "user", "content": [{"type": "image", "omitted": True, "bytes": 0}]},
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": "a", "image_url": None}]},
            {"role": "user", "content": [{"type": "text", "text": "a", "image_url": None}]},
        ),
        (
            {"role": "user", "parts": [{"text": "a", "inlineData": {"data": "QUJD"}}]},
            {"role": "user", "parts": [{"type": "file", "omitted": True, "bytes": 3, "text": "a"}]},
        ),
        (
            {
                "role": "assistant",
                "content": "I look it up.",
                "function_call": {"name": "halo_retrieve_memory", "arguments": "{}"},
            },
            {
                "role": "assistant",
                "content": "I look it up.",
                "function_call": {"name": "halo_retrieve_memory", "arguments": "{}"},
            },
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "halo_retrieve_memory"}},
            {"role": "assistant", "content": None, "omitted": "recalled memory"},
        ),
        (
            {"role": "function", "name": "halo_retrieve_memory", "content": "recalled"},
            {"role": "tool", "content": None, "omitted": "recalled memory"},
        ),
        (
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [{"type": "summary_text", "text": "Hm"}],
                "encrypted_content": "s",
            },
            {"role": "assistant", "content": None, "omitted": "reasoning"},
        ),
        (
            {"type": "thought", "signature": "s", "summary": [{"type": "text", "text": "Hm"}]},
            {"role": "assistant", "content": None, "omitted": "reasoning"},
        ),
        (
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": json.dumps({"requestId": "r", "rawEntries": []}),
            },
            {"role": "tool", "content": None, "omitted": "recalled memory"},
        ),
        (
            {"type": "function_result", "call_id": "c", "result": {"requestId": "r", "rawEntries": []}},
            {"role": "tool", "content": None, "omitted": "recalled memory"},
        ),
        (
            {"type": "function_result", "call_id": "c", "result": {"requestId": "r", "degrees": 21}},
            {"type": "function_result", "call_id": "c", "result": {"requestId": "r", "degrees": 21}},
        ),
        (
            {"role": "user", "parts": [{"inlineData": {"mimeType": "a", "data": "QUJD"}}]},
            {"role": "user", "parts": [{"type": "file", "omitted": True, "bytes": 3}]},
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm"}, {"text": "a", "signature": "s"}],
            },
            {"role": "assistant", "content": [{"type": "reasoning", "omitted": True}, {"text": "a"}]},
        ),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "hm", "meta": [{"k": PNG}]},
            {"role": "assistant", "content": "a", "meta": [{"k": "[image/png omitted]"}]},
        ),
        (
            {"role": "user", "content": "data:;base64,QUJD"},
            {"role": "user", "content": "[data omitted]"},
        ),
        (
            {"type": "mcp_call", "name": "halo_retrieve_end_user_memory", "output": "recalled"},
            {"role": "assistant", "content": None, "omitted": "recalled memory"},
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "mcp_tool_use", "id": "a", "name": "halo_retrieve_end_user_memory"},
                    {
                        "type": "mcp_tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": '{"requestId":"r","rawEntries":[]}'}],
                    },
                    {"type": "text", "text": "Tea."},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "recalled memory", "omitted": True},
                    {"type": "recalled memory", "omitted": True},
                    {"type": "text", "text": "Tea."},
                ],
            },
        ),
        (
            {"type": "image_generation_call", "id": "a", "result": "QUJDQUJD"},
            {"role": "assistant", "content": [{"type": "image", "omitted": True, "bytes": 6}]},
        ),
        (
            {
                "kind": "request",
                "parts": [
                    {"part_kind": "system-prompt", "content": "rules"},
                    {"part_kind": "user-prompt", "content": "a"},
                    {
                        "part_kind": "tool-return",
                        "tool_name": "halo_retrieve_end_user_memory",
                        "content": "b",
                    },
                ],
            },
            {
                "kind": "request",
                "parts": [
                    {"type": "instructions", "omitted": True},
                    {"part_kind": "user-prompt", "content": "a"},
                    {"type": "recalled memory", "omitted": True},
                ],
            },
        ),
    ],
)
def test_what_must_not_be_memory_leaves_a_placeholder(raw: Any, kept: Any) -> None:
    assert read_message(raw).raw == kept


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (
            {"role": "user", "content": "a", "images": ["iVBORw0KGgo="], "thinking": "hm"},
            {"role": "user", "content": "a", "images": [{"type": "image", "omitted": True, "bytes": 9}]},
        ),
        (
            {
                "role": "user",
                "content": "a",
                "attachments": [{"file_name": "plan.txt", "extracted_content": "peas"}, {"n": 1}],
                "files": [{"name": "a.png", "mimetype": "image/png"}],
            },
            {
                "role": "user",
                "content": "a",
                "attachments": [{"type": "file", "omitted": True, "name": "plan.txt"}, {"n": 1}],
                "files": [{"type": "image", "omitted": True, "mimeType": "image/png", "name": "a.png"}],
            },
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "filename": "a.pdf", "file_data": "QUJD"}]},
            {"role": "user", "content": [{"type": "file", "omitted": True, "bytes": 3, "name": "a.pdf"}]},
        ),
        (
            {"role": "user", "parts": [{"fileData": {"mimeType": "video/mp4", "fileUri": "u"}}]},
            {"role": "user", "parts": [{"type": "video", "omitted": True, "bytes": 6}]},
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image", "omitted": True, "bytes": 3, "sha256": "f", "secret": "x", "name": 7}],
            },
            {"role": "user", "content": [{"type": "image", "omitted": True, "bytes": 3, "sha256": "f"}]},
        ),
        (
            {"role": "tool", "content": [{"type": "tool_result", "content": [{"type": "image", "source": {"data": "QUJD"}}]}]},
            {"role": "tool", "content": [{"type": "tool_result", "content": [{"type": "image", "omitted": True, "bytes": 3}]}]},
        ),
        (
            {"role": "assistant", "content": "b", "toolInvocations": [{"toolCallId": "t", "toolName": "halo_x", "result": "r"}]},
            {"role": "assistant", "content": "b", "toolInvocations": [{"type": "recalled memory", "omitted": True}]},
        ),
        (
            {"role": "assistant", "parts": [{"type": "tool-halo_x", "toolCallId": "t", "output": "r"}]},
            {"role": "assistant", "parts": [{"type": "recalled memory", "omitted": True}]},
        ),
        (
            {"role": "assistant", "content": "<think>hm</think>b"},
            {"role": "assistant", "content": "[reasoning omitted]b"},
        ),
        (
            {"role": "user", "content": "a", "audio": "UklGRiQ2AABXQVZF" * 8, "note": "Aa1" * 40},
            {"role": "user", "content": "a", "audio": "[data omitted]", "note": "Aa1" * 40},
        ),
    ],
)  # fmt: skip
def test_media_and_thoughts_leave_a_placeholder_wherever_they_stand(raw: Any, kept: Any) -> None:
    message = read_message(raw)

    assert message.raw == kept
    assert read_message(dict(message.raw)) == message


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "NAME"}}]},
         {"role": "tool", "tool_call_id": "1", "content": "recalled"}),
        ({"type": "function_call", "call_id": "1", "name": "NAME"}, {"type": "function_call_output", "call_id": "1", "output": "recalled"}),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "NAME"}]},
         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "recalled"}]}),
        ({"type": "ai", "data": {"content": "", "tool_calls": [{"id": "1", "name": "NAME"}]}},
         {"type": "tool", "data": {"content": "recalled", "tool_call_id": "1"}}),
    ],
)  # fmt: skip
def test_a_result_is_recalled_memory_when_the_call_it_answers_is_ours(call: Any, result: Any) -> None:
    def read(*names: str) -> list[str]:
        sent = [
            json.loads(json.dumps(each).replace("NAME", name)) for name in names for each in (call, result)
        ]
        messages = read_session({"messages": sent}).messages
        assert [message.role for message in messages] == ["assistant", "tool"] * len(names)
        return [message.text for message in messages[1::2]]

    assert read("weather") == ["recalled"]
    assert read("halo_retrieve_end_user_memory") == [""]
    assert read("halo_retrieve_end_user_memory", "weather") == ["", "recalled"]  # ids may begin anew


def test_speaker_and_time_are_read_where_they_are_named() -> None:
    assert read_message({"text": "hi", "speaker": " Mia ", "ts": 1_700_000_000}) == Message(
        role="user",
        raw={"text": "hi", "speaker": " Mia ", "ts": 1_700_000_000},
        text="hi",
        spoken=True,
        speaker="Mia",
        occurred_at=1_700_000_000_000,
    )
    assert (
        read_message({"text": "hi", "timestamp": "soon", "created_at": 1e9}).occurred_at == 1_000_000_000_000
    )
    assert read_message({"text": "hi", "at": 5}).occurred_at is None
    assert read_message({"content": "hi", "meta": {"ts": 1e9}}).occurred_at == 1_000_000_000_000
    assert (
        read_message({"choices": [{"message": {"content": "hi"}}], "created": 1e9}).occurred_at
        == 1_000_000_000_000
    )
    assert (
        read_message({"parts": [{"text": "a"}, {"text": "b", "timestamp": 1e9}]}).occurred_at
        == 1_000_000_000_000
    )
    assert read_message({"text": "hi", "sender": "user"}).speaker is None
    assert read_message({"text": "hi", "author": {"name": "mia", "nickname": "Mia"}}).speaker == "Mia"
    assert read_message({"text": "hi", "name": " "}).speaker is None


@pytest.mark.parametrize("raw", [7, None, True, [], ["x"]])
def test_a_message_is_an_object_or_a_string(raw: Any) -> None:
    with pytest.raises(InvalidRequest, match="Each message must be an object or a string"):
        read_message(raw)


@given(raw=anything)
def test_any_object_is_a_message_and_reading_what_was_kept_reads_it_again(raw: Any) -> None:
    try:
        message = read_message(raw)
    except InvalidRequest:
        assert not isinstance(raw, dict | str)
        return
    again = read_message(dict(message.raw))

    assert message.role in ("user", "assistant", "system", "tool", "other")
    assert message.spoken == (bool(message.text.strip()) and message.role in ("user", "assistant"))
    assert (again.text, again.spoken) == (message.text, message.spoken)


@pytest.mark.parametrize("url", [PNG, "data:;base64,QUJD"])
def test_words_beside_binary_data_are_read_the_same_from_what_was_kept(url: str) -> None:
    for content in (f"red {url} car", [{"type": "text", "text": f"red {url} car"}], [f"red {url} car"]):
        message = read_message({"role": "user", "content": content})
        assert message.text == read_message(dict(message.raw)).text == "red  car"
        assert "QUJD" not in repr(message.raw)


@pytest.mark.parametrize("key", ["messages", "contents", "input", "history", "conversation"])
def test_the_conversation_is_found_under_every_name_and_the_rest_is_state(key: str) -> None:
    session = {key: [{"role": "user", "content": "hi"}], "plan": "gold"}

    assert read_session(session) == Transcript((read_message("hi"),), {"plan": "gold"})


def test_a_session_may_be_state_alone_or_one_text() -> None:
    assert read_session({"plan": "gold", "messages": 7}) == Transcript((), {"plan": "gold", "messages": 7})
    assert read_session({"input": "hi"}) == Transcript((read_message("hi"),), {})
    assert read_session({}) == Transcript((), {})


@pytest.mark.parametrize(
    ("session", "said", "state"),
    [
        ({"items": [{"type": "message", "role": "user", "content": "hi"}], "n": 1}, [("user", "hi")], {"n": 1}),
        ({"items": [{"sku": "A", "title": "figs"}]}, [], {"items": [{"sku": "A", "title": "figs"}]}),
        ({"items": [["sku", "A"]], "n": 1}, [], {"items": [["sku", "A"]], "n": 1}),
        ({"events": [{"event": "page_view"}]}, [], {"events": [{"event": "page_view"}]}),
        ({"messages": [], "chat_history": [{"role": "user", "content": "hi"}]}, [("user", "hi")], {"messages": []}),
        ({"input": "so?", "chat_history": [["hi", "ho"]]}, [("user", "hi"), ("assistant", "ho"), ("user", "so?")], {}),
        ({"history": [["hi", None]]}, [("user", "hi")], {}),
        ({"history": [[["a.png"], "ho"]]}, [("user", ""), ("assistant", "ho")], {}),
        ({"history": [{"user": "hi", "assistant": "ho"}]}, [("user", "hi"), ("assistant", "ho")], {}),
        ({"content": "用户：hi\n助手：ho", "scope": "x"}, [("user", "hi"), ("assistant", "ho")], {"scope": "x"}),
        ({"content": "Menu: soup"}, [], {"content": "Menu: soup"}),
        ({"messages": "not a list"}, [], {"messages": "not a list"}),
        ({"messages": ["hi"], "system": "Be kind."}, [("user", "hi")], {"system": {"omitted": "instructions"}}),
        ({"contents": ["hi"], "systemInstruction": {"parts": []}}, [("user", "hi")], {"systemInstruction": {"omitted": "instructions"}}),
        ({"messages": ["hi"], "system": {"os": "linux"}, "tools": ["saw"]}, [("user", "hi")], {"system": {"os": "linux"}, "tools": ["saw"]}),
        ({"messages": ["hi"], "tools": [{"type": "function", "function": {"name": "f"}}]}, [("user", "hi")], {"tools": {"omitted": "tools"}}),
        ({"messages": ["hi"], "photo": PNG}, [("user", "hi")], {"photo": "[image/png omitted]"}),
        ({"photo": PNG}, [], {"photo": "[image/png omitted]"}),
    ],
)  # fmt: skip
def test_what_is_a_conversation_and_what_is_state(session: Any, said: Any, state: Any) -> None:
    transcript = read_session(session)

    assert [(message.role, message.text) for message in transcript.messages] == said
    assert transcript.state == state


def test_a_conversation_quoted_in_a_message_is_not_taken_apart() -> None:
    text = "User: hi\nAssistant: call the delete function"
    assert [one.text for one in read_session({"messages": [{"role": "user", "content": text}]}).messages] == [
        text
    ]


def test_the_answer_is_the_one_given_else_the_trailing_one() -> None:
    asked, answered = read_message("hi"), read_message({"role": "assistant", "content": "ho"})
    called = read_message({"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]})

    assert split_response((asked, answered), None) == ((asked,), answered)
    assert split_response((asked, answered), asked) == ((asked, answered), asked)
    assert split_response((asked, called), None) == ((asked, called), None)
    assert split_response((), None) == ((), None)


@pytest.mark.parametrize(
    "ending",
    [
        {"role": "assistant", "content": "ho"},
        {"role": "model", "parts": [{"text": " ho "}]},
        {"role": "assistant", "content": [{"type": "text", "text": "ho"}], "id": "m1"},
        {"choices": [{"message": {"role": "assistant", "content": "ho"}}]},
    ],
)
def test_an_answer_that_also_ends_the_messages_is_no_part_of_the_request(ending: Any) -> None:
    asked, answered = read_message("hi"), read_message({"role": "assistant", "content": "ho"})
    repeated = read_message(ending)

    assert split_response((asked, repeated), answered) == ((asked,), answered)
    assert split_response((asked, repeated, asked), answered) == ((asked, repeated, asked), answered)
    other = read_message({"role": "assistant", "content": "no"})
    assert split_response((asked, repeated), other) == ((asked, repeated), other)


@pytest.mark.parametrize(
    ("session", "query"),
    [
        ({"messages": ["first", "second", {"role": "assistant", "content": "answer"}]}, "second"),
        ({"messages": [{"role": "assistant", "content": "answer"}]}, "answer"),
        ({"messages": [{"role": "tool", "content": "x"}], "page": "pricing"}, "pricing"),
        ({"page": {"title": "pricing", "n": 1, "tags": ["a", "b"]}, "blob": 201 * "x"}, "pricing a b"),
        ({"screen": "shop", "filters": {"lastSearch": "oat milk"}, "title": "Shop"}, "oat milk"),
        ({"screen": "shop", "search_term": " "}, "shop  "),
        ({"messages": [{"role": "observer", "content": "x"}], "system": "Be kind."}, ""),
        ({"messages": {"0": "x"}}, ""),
        ({}, ""),
    ],
)
def test_the_question_is_the_newest_thing_somebody_said(session: Any, query: str) -> None:
    assert natural_query(read_session(session)) == query


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        (" 2023-11-14T23:13:20+01:00 ", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        (1_700_000_000, 1_700_000_000_000),
        (1_700_000_000.5, 1_700_000_000_500),
        (1_700_000_000_000, 1_700_000_000_000),
        (100_000_000, 100_000_000_000),
        (99_999_999, None),
        (99_999_999_999, None),
        (100_000_000_000, 100_000_000_000),
        (0, None),
        ("1969-12-31T23:59:59Z", None),
        ("10000-01-01", None),
        ("yesterday", None),
        (-1, None),
        (1e18, None),
        (4_102_444_800_000, 4_102_444_800_000),
        (4_102_444_800_001, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_a_time_is_read_or_none(value: Any, instant: int | None) -> None:
    assert read_time(value) == instant


@given(value=anything)
def test_no_time_is_an_error(value: Any) -> None:
    found = read_time(value)

    assert found is None or 0 <= found <= 4_102_444_800_000


@pytest.mark.parametrize(
    ("stated", "instant"),
    [
        (1_793_534_400, NOON),
        (1_793_534_400_000, NOON),
        (1_793_534_400_000_000, NOON),
        (1_793_534_400_000_000_000, NOON),
        ("1793534400", NOON),
        ("1793534400.000700", NOON + 1),
        ("2026-11-01T13:00:00+0100", NOON),
        ("2026-11-01 12:00:00+00", NOON),
        ("2026-11-01T12:00:00.123456789Z", NOON + 123),
        ("Sun, 01 Nov 2026 12:00:00 +0000", NOON),
        ({"$date": "2026-11-01T12:00:00Z"}, NOON),
        ({"$date": {"$numberLong": "1793534400000"}}, NOON),
        ({"_seconds": 1_793_534_400, "_nanoseconds": 0}, NOON),
        (-1, -1000),
        ("1969-12-31T23:59:59Z", -1000),
        (253_402_300_800, None),  # the year 10000 in seconds, 1978 in milliseconds
        (0, None),
        (5, None),
        ("2026-11-01T12:00:00", None),  # on a clock whose zone nobody told
        ("2026-11-01", None),
        ("Sun, 01 Nov 2026 12:00:00 -0000", None),
        ("yesterday", None),
        ("1e400", None),
        (10**400, None),
        ("9" * 100, None),
        (float("nan"), None),
        (True, None),
        ({"$date": {"$date": {"$date": {"$date": 1}}}}, None),
    ],
)
def test_the_time_of_a_message_is_read_in_every_spelling_or_unknown(stated: Any, instant: int | None) -> None:
    assert read_message({"role": "user", "content": "hi", "timestamp": stated}).occurred_at == instant


def test_a_clock_without_a_zone_is_read_where_the_reader_says_it_stood() -> None:
    said = {"role": "user", "content": "hi", "timestamp": "2026-11-01T21:00:00"}
    (message,) = read_session({"messages": [said]}, zone=ZoneInfo("Asia/Tokyo")).messages
    assert message.occurred_at == NOON
