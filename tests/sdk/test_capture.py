"""What is stored after the final answer, and what is left out."""

import asyncio
import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import httpx
import pytest

from halo_sdk import (
    EmptyAnswerError,
    HaloConfigError,
    HaloConnectionError,
    HaloResponseError,
    IdempotencyError,
)
from halo_sdk import _session as session_module
from tests.sdk.fakes import RECEIPT, RETRIEVE, async_memory, gemini_reply, openai_reply, sent

CONTENT = b"any picture" * 20
B64 = base64.b64encode(CONTENT).decode()

USER = {"role": "user", "content": "Keep my reports short."}
ANSWER = {"role": "assistant", "content": "I will."}


def captured(service, memory, *args, **options):
    memory.capture(*args, **options)
    return sent(service["capture"])


def test_the_answer_that_ends_a_conversation_is_its_response(service, memory):
    receipt = memory.capture([USER, ANSWER])
    assert sent(service["capture"]) == {
        "projectKey": "customer-product",
        "endUserKey": "user_123",
        "sessionData": {"messages": [USER]},
        "response": ANSWER,
    }
    assert receipt.to_dict() == RECEIPT
    assert (receipt.raw_entry_id, receipt.topic_keys, receipt.truncated_history) == ("raw_2", ("a",), False)


@pytest.mark.parametrize(
    ("messages", "response", "session_data", "answer"),
    [
        (
            "Hello",
            "Hi",
            {"messages": [{"role": "user", "content": "Hello"}]},
            {"role": "assistant", "content": "Hi"},
        ),
        ([USER], ANSWER, {"messages": [USER]}, ANSWER),
        # Whether the two say the same is the service's to tell: it reads every shape.
        ([USER, ANSWER], ANSWER, {"messages": [USER, ANSWER]}, ANSWER),
        ({"messages": [USER, ANSWER], "plan": "pro"}, None, {"messages": [USER], "plan": "pro"}, ANSWER),
        ({"contents": [USER, ANSWER], "plan": "pro"}, None, {"messages": [USER], "plan": "pro"}, ANSWER),
        (
            {"input": [USER], "history": [1]},
            "Hi",
            {"messages": [USER], "history": [1]},
            {"role": "assistant", "content": "Hi"},
        ),
        (
            [("user", "What?"), ("ai", "That.")],
            None,
            {"messages": [{"role": "user", "content": "What?"}]},
            {"role": "assistant", "content": "That."},
        ),
        ([USER], {"message": ANSWER, "raw": None}, {"messages": [USER]}, ANSWER),
        ({"plan": "pro"}, "Hi", {"plan": "pro"}, {"role": "assistant", "content": "Hi"}),
        (USER, ANSWER, {"messages": [USER]}, ANSWER),
        ([USER, ANSWER, USER], None, {"messages": [USER, ANSWER, USER]}, None),
        ("Just a note", None, {"messages": [{"role": "user", "content": "Just a note"}]}, None),
        (["Hello", 5], {"text": "Hi"}, {"messages": [{"role": "user", "content": "Hello"}]}, {"text": "Hi"}),
        (
            [USER],
            openai_reply(content="Done", finish="stop"),
            {"messages": [USER]},
            {"role": "assistant", "content": "Done"},
        ),
        (
            [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}],
            None,
            {"messages": [{"role": "user", "parts": [{"text": "a"}]}]},
            {"role": "model", "parts": [{"text": "b"}]},
        ),
        ([SimpleNamespace(**USER), SimpleNamespace(**ANSWER)], None, {"messages": [USER]}, ANSWER),
        (
            [USER],
            {"role": "assistant", "content": 42},
            {"messages": [USER]},
            {"role": "assistant", "content": 42},
        ),
    ],
)
def test_a_conversation_comes_in_any_form(service, memory, messages, response, session_data, answer):
    body = captured(service, memory, messages, response)
    assert (body["sessionData"], body["response"]) == (session_data, answer)


@pytest.mark.parametrize(
    ("messages", "response"),
    [
        ([USER], ""),
        ([USER], "  "),
        ([USER], {"role": "assistant", "content": None}),
        (
            [USER],
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Rome"}}}]},
        ),
        ([USER, {"role": "assistant", "content": []}], None),
        ([USER, None], None),
        ([USER, openai_reply((RETRIEVE, "{}"))["choices"][0]["message"]], None),
        ([USER, openai_reply(("weather", "{}"))["choices"][0]["message"]], None),
        ([USER], {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}),
        ([USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}], None),
        ([USER], {"type": "reasoning", "summary": "hm"}),
    ],
)
def test_an_answer_that_says_nothing_is_not_stored(service, memory, messages, response):
    with pytest.raises(EmptyAnswerError):
        memory.capture(messages, response)
    assert not service["capture"].called


@pytest.mark.parametrize(
    ("messages", "response"), [(5, None), (None, "x"), (b"hi", "x"), ([USER], ["x"]), ([USER], 5)]
)
def test_what_is_no_conversation_is_refused(memory, messages, response):
    with pytest.raises(HaloConfigError):
        memory.capture(messages, response)


def test_fc24_fc56_memory_does_not_learn_its_own_words_again_from_openai_messages(service, memory):
    reply = openai_reply((RETRIEVE, "{}"), ("weather", "{}"))["choices"][0]["message"]
    alone = openai_reply((RETRIEVE, "{}"))["choices"][0]["message"]
    talking = openai_reply((RETRIEVE, "{}"), content="One moment.")["choices"][0]["message"]
    history = [
        USER,
        reply,
        {"role": "tool", "tool_call_id": "call_0", "content": "recalled"},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        alone,
        {"role": "tool", "tool_call_id": "call_0", "content": "recalled"},
        talking,
        {"role": "tool", "tool_call_id": "call_0", "content": "recalled"},
        {"role": "tool", "tool_call_id": "gone", "content": "an orphan"},
        {"role": "function", "name": RETRIEVE, "content": "recalled"},
        {"role": "assistant", "function_call": {"name": RETRIEVE, "arguments": "{}"}},
        {"role": "assistant", "function_call": {"name": "clock", "arguments": "{}"}},
        {"role": "function", "name": "clock", "content": "noon"},
        ANSWER,
    ]
    assert captured(service, memory, history)["sessionData"]["messages"] == [
        USER,
        {"role": "assistant", "content": None, "tool_calls": reply["tool_calls"][1:]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "assistant", "content": "One moment."},
        {"role": "assistant", "function_call": {"name": "clock", "arguments": "{}"}},
        {"role": "function", "name": "clock", "content": "noon"},
    ]


def test_memory_does_not_learn_its_own_words_again_from_gemini_contents(service, memory):
    call = {"functionCall": {"name": RETRIEVE, "args": {}}, "thoughtSignature": "c2ln"}
    other = {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": "c2ln"}
    history = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "thinking", "thought": True}, call, other]},
        {
            "role": "user",
            "parts": [
                {"function_response": {"name": RETRIEVE, "response": {"output": "recalled"}}},
                {"function_response": {"name": "weather", "response": {"output": "rain"}}},
            ],
        },
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"functionResponse": {"name": RETRIEVE, "response": {}}}]},
        {"role": "model", "parts": [{"text": "It rains.", "thought_signature": "c2ln"}]},
    ]
    body = captured(service, memory, history)
    assert body["sessionData"]["messages"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"function_response": {"name": "weather", "response": {"output": "rain"}}}],
        },
    ]
    assert body["response"] == {"role": "model", "parts": [{"text": "It rains."}]}


def test_thoughts_and_signatures_stay_with_their_provider(service, memory):
    history = [
        USER,
        {"type": "reasoning", "encrypted_content": "gAAA"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Yes.", "encrypted_content": "x"},
                "and",
            ],
            "reasoning_content": "hm",
        },
    ]
    body = captured(service, memory, history)
    assert body["sessionData"]["messages"] == [USER]
    assert body["response"] == {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, "and"]}


IMAGE = {"type": "image", "omitted": True, "bytes": 3}


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + B64, "detail": "low"}},
            "image",
        ),
        ({"type": "input_image", "image_url": "data:image/png;base64," + B64}, "image"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": B64}}, "image"),
        ({"inlineData": {"mimeType": "video/mp4", "data": B64}}, "video"),
        ({"inline_data": {"mime_type": "image/png", "data": CONTENT}}, "file"),
        ({"type": "input_audio", "input_audio": {"format": "wav", "data": B64}}, "audio"),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64," + B64}}, "file"),
        ({"type": "image", "base64": B64, "mime_type": "image/png"}, "image"),
        ({"block_type": "image", "image": B64, "image_mimetype": "image/png"}, "image"),
        ({"block_type": "audio", "audio": B64, "format": "wav"}, "audio"),
        ({"block_type": "document", "data": B64, "document_mimetype": "application/pdf"}, "file"),
    ],
)
def test_fc50_binary_content_becomes_a_placeholder(service, memory, block, kind):
    body = captured(service, memory, [{"role": "user", "content": [block]}, ANSWER])
    (placeholder,) = body["sessionData"]["messages"][0]["content"]
    assert placeholder.pop("sha256") == hashlib.sha256(CONTENT).hexdigest()
    assert placeholder == {"type": kind, "omitted": True, "bytes": len(CONTENT)}


def test_text_that_only_looks_binary_is_kept(service, memory):
    state = {
        "note": "data: none",
        "link": "data:text/plain,hi",
        "format": "wav",
        "table": {"format": "csv", "data": "name,age\nAnn,34"},
        "film": {"format": "mp4", "video": "clips/2024/birthday.mp4"},
        "page": {"format": "A4", "image": "a drawing of a red cat", "mime_type": "text/plain"},
    }
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    body = captured(service, memory, {"messages": [{"role": "user", "content": [image]}, ANSWER], **state})
    assert body["sessionData"] == {"messages": [{"role": "user", "content": [image]}], **state}


def test_base64_that_is_none_is_still_left_out(service, memory):
    body = captured(
        service, memory, {"messages": [USER, ANSWER], "picture": "data:image/png;base64," + "a" * 201}
    )
    assert body["sessionData"]["picture"]["bytes"] == 201


def test_broken_text_is_repaired(service, memory):
    body = captured(service, memory, [{"role": "user", "content": "a\ud800b \ud83d\ude00"}, ANSWER])
    assert body["sessionData"]["messages"][0]["content"] == "a\ufffdb \U0001f600"


def test_a_very_long_history_sends_its_newest_part_and_says_so(service, memory, monkeypatch):
    monkeypatch.setattr(session_module, "MAX_MESSAGES", 3)
    call = openai_reply(("weather", "{}"))["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "call_0", "content": "rain"}
    receipt = memory.capture([USER, call, result, USER, USER, ANSWER])
    body = sent(service["capture"])
    assert body["sessionData"]["messages"] == [USER, USER]
    assert body["truncatedHistory"] is True
    assert receipt.truncated_history
    assert receipt.to_dict()["truncatedHistory"] is True


def test_a_very_large_history_fits_into_one_capture(service, memory):
    large = {"role": "user", "content": "x" * 3_000_000}
    body = captured(service, memory, [large, large, large, ANSWER])
    assert len(body["sessionData"]["messages"]) == 2
    assert body["truncatedHistory"] is True


def test_the_last_message_is_sent_however_large(service, memory):
    body = captured(service, memory, [USER, {"role": "user", "content": "x" * 9_000_000}, ANSWER])
    assert len(body["sessionData"]["messages"]) == 1


def test_fc59_every_attempt_of_a_capture_carries_the_same_key_and_every_capture_another(service, memory):
    service["capture"].mock(
        side_effect=[
            httpx.Response(503, json={"error": "x"}),
            httpx.ReadTimeout("slow"),
            httpx.Response(201, json=RECEIPT),
            httpx.Response(200, json={**RECEIPT, "duplicate": True}),
        ]
    )
    memory.capture([USER, ANSWER])
    assert memory.capture([USER, ANSWER]).duplicate
    first, second, third, other = [
        call.request.headers["Idempotency-Key"] for call in service["capture"].calls
    ]
    assert first == second == third != other


def test_an_application_s_own_key_is_used_when_it_can_be(service, memory):
    memory.capture([USER, ANSWER], idempotency_key="turn-7")
    assert service["capture"].calls.last.request.headers["Idempotency-Key"] == "turn-7"
    for key in ("", "x" * 256, "é", "a\nb"):
        with pytest.raises(HaloConfigError, match="idempotency_key"):
            memory.capture([USER, ANSWER], idempotency_key=key)


def test_a_reused_key_is_told_apart(service, memory):
    service["capture"].respond(422, json={"error": "another body", "code": "IDEMPOTENCY_KEY_REUSED"})
    with pytest.raises(IdempotencyError, match="IDEMPOTENCY_KEY_REUSED"):
        memory.capture([USER, ANSWER])
    assert service["capture"].call_count == 1


@pytest.mark.parametrize(
    ("occurred_at", "written"),
    [
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=9))), "2026-01-02T03:04:00+09:00"),
        ("2026-01-02", "2026-01-02"),
    ],
)
def test_when_it_was_said_travels_with_it(service, memory, occurred_at, written):
    assert captured(service, memory, [USER, ANSWER], occurred_at=occurred_at)["occurredAt"] == written


def test_an_instant_without_a_time_zone_is_refused(memory):
    with pytest.raises(HaloConfigError, match="time zone"):
        memory.capture([USER, ANSWER], occurred_at=datetime(2026, 1, 2))  # noqa: DTZ001


@pytest.mark.parametrize("status", [200, 201, 202])
def test_the_shortest_receipt_is_enough(service, memory, status):
    service["capture"].respond(status, json={"captured": True}, headers={"X-Request-Id": "req_h"})
    receipt = memory.capture([USER, ANSWER])
    assert (receipt.captured, receipt.request_id, receipt.raw_entry_id) == (True, "req_h", None)


def test_a_receipt_that_cannot_be_read_is_an_error_that_says_so(service, memory):
    service["capture"].respond(201, text="<html>", headers={"X-Request-Id": "req_h"})
    with pytest.raises(HaloResponseError, match="not JSON") as caught:
        memory.capture([USER, ANSWER])
    assert caught.value.request_id == "req_h"


def test_a_capture_is_awaited_the_same(service, time):
    async def run():
        client, memory = async_memory(time)
        async with client:
            return await memory.capture([USER, ANSWER])

    assert asyncio.run(run()).raw_entry_id == "raw_2"


def test_a_service_out_of_reach_is_raised_by_capture_with_a_hint(service, memory):
    service["capture"].mock(side_effect=httpx.ConnectError("refused"))
    with pytest.raises(HaloConnectionError, match=r"127\.0\.0\.1:8765 \(ConnectError\): .*`halo serve`"):
        memory.capture(gemini_history())


def gemini_history():
    return [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"text": json.dumps(gemini_reply())}]},
    ]


def test_fields_of_an_application_s_own_stay_and_a_framework_s_go(service, memory):
    mine = {
        "role": "user",
        "content": "Ring twice.",
        "instructions": "leave it at the door",
        "extras": {"floor": 3},
    }
    theirs = {
        "kind": "request",
        "instructions": "secret",
        "parts": [
            {"part_kind": "user-prompt", "content": "hi", "extras": {"signature": "secret", "note": "n"}}
        ],
    }
    body = captured(service, memory, [mine, theirs, ANSWER])
    assert body["sessionData"]["messages"][0] == mine
    assert body["sessionData"]["messages"][1]["parts"][0]["extras"] == {"note": "n"}
    assert "secret" not in json.dumps(body)


def test_what_is_no_message_is_left_out_and_said(service, memory, caplog):
    captured(service, memory, [USER, 5, ["x", "secret words"], ANSWER])
    assert "2 elements of a conversation are no messages" in caplog.text
    assert "secret" not in caplog.text
