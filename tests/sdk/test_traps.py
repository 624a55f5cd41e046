"""Traps of function calling that others fell into, by their number in TRAPS.md; those of one part are named in its own tests."""

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from halo_sdk import HaloError
from halo_sdk.dialects import DIALECTS
from tests.sdk.fakes import FOUND, RETRIEVE, contents, gemini_reply, openai_reply, sent

TESTS = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("TRAPS.md")
USER = {"role": "user", "content": "What do I drink?"}
ANSWER = {"role": "assistant", "content": "Tea."}


def test_each_trap_has_a_test_named_after_it_or_a_reason_why_it_cannot_apply():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    names = re.findall(r"def test_((?:fc\d\d_)+)", tests)
    named = {int(number) for name in names for number in re.findall(r"\d\d", name)}
    rows = re.findall(r"^\| FC(\d+) \|[^|]*\| ([^|]*) \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 71))
    assert named == {int(number) for number, where in rows if not where.startswith("cannot apply")}


def test_fc14_a_key_written_twice_counts_once_and_never_names_a_person(service, memory):
    memory.handle(
        openai_reply((RETRIEVE, '{"query":"tea","endUserKey":"a","query":"milk","endUserKey":"b"}'))
    )
    assert sent(service["function"])["arguments"] == {"sessionData": {}, "query": "milk"}
    assert sent(service["function"])["endUserKey"] == "user_123"


def test_fc19_calls_with_the_same_id_are_answered_in_their_order_and_said(service, memory, caplog):
    reply = openai_reply((RETRIEVE, "[]"), (RETRIEVE, "{}"), (RETRIEVE, "{}"))
    for call in reply["choices"][0]["message"]["tool_calls"]:
        call["id"] = "same"
    with caplog.at_level(logging.WARNING, "halo_sdk"):
        results = memory.handle(reply)
    assert [result["tool_call_id"] for result in results] == ["same"] * 3
    assert [outcome.ok for outcome in results.outcomes] == [False, True, True]
    assert service["function"].call_count == 1
    assert "an id for several calls" in caplog.text


@pytest.mark.parametrize("length", [1, 40, 41, 64, 10_000])
def test_fc20_an_id_comes_back_byte_for_byte_however_long(service, memory, length):
    reply = openai_reply((RETRIEVE, "{}"))
    id_ = ("call_é__thought__" + "x" * length)[-length:]
    reply["choices"][0]["message"]["tool_calls"][0]["id"] = id_
    (result,) = memory.handle(reply)
    assert result["tool_call_id"] == id_


def test_fc23_a_call_and_its_result_stay_together_however_little_of_a_conversation_travels(service, memory):
    history: list[Any] = []
    for number in range(60):
        reply = openai_reply(("weather", "{}"))["choices"][0]["message"]
        reply["tool_calls"][0]["id"] = f"call_{number}"
        history += [USER, reply, {"role": "tool", "tool_call_id": f"call_{number}", "content": "rain " * 900}]
    memory.handle(openai_reply((RETRIEVE, "{}")), session=history)
    travelled = sent(service["function"])["arguments"]["sessionData"]["messages"]
    called = [call["id"] for message in travelled for call in message.get("tool_calls", [])]
    answered = [message["tool_call_id"] for message in travelled if message["role"] == "tool"]
    assert 0 < len(answered) < 60
    assert answered == called[: len(answered)]


def test_fc28_the_model_s_turn_is_never_rebuilt_without_its_signatures(service, memory):
    reply = gemini_reply({"name": RETRIEVE, "args": {}}, {"name": RETRIEVE, "args": {"limit": 1.0}})
    reply["candidates"][0]["content"]["parts"][0]["thoughtSignature"] = "c2lnbmF0dXJl"
    results = memory.handle(reply)
    assert results.turn == [reply["candidates"][0]["content"]]
    memory.capture([{"role": "user", "parts": [{"text": "hi"}]}, *results.turn, *results, ANSWER])
    assert "c2lnbmF0dXJl" not in json.dumps(sent(service["capture"]))


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [openai_reply()["choices"][0], openai_reply((RETRIEVE, "{}"))["choices"][0]]},
        {
            "candidates": [
                *gemini_reply()["candidates"],
                *gemini_reply({"name": RETRIEVE, "args": {}})["candidates"],
            ]
        },
    ],
    ids=["openai", "gemini"],
)
def test_fc33_only_the_first_of_several_answers_is_carried_out_and_the_others_are_said(
    service, memory, caplog, reply
):
    with caplog.at_level(logging.WARNING, "halo_sdk"):
        results = memory.handle(reply)
    assert not results
    assert "calls of all but the first are ignored" in caplog.text
    assert not service["function"].called


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_fc42_the_conversation_a_model_writes_is_declared_open(memory, dialect):
    (declared,) = [each for tool in memory.tools(dialect) for each in DIALECTS[dialect].declared(tool)]
    assert declared.parameters["properties"]["sessionData"]["additionalProperties"] is True


@pytest.mark.parametrize("session", ["model", "app"])
@pytest.mark.parametrize("dialect", ["openai", "openai-responses"])
def test_fc43_strictness_is_always_said(make, dialect, session):
    memory = make().for_user("user_123", session=session)
    for strict in {False, session == "app"}:
        (tool,) = memory.tools(dialect, strict=strict)
        assert tool.get("function", tool)["strict"] is strict


def test_fc47_a_loop_whose_tool_choice_forces_a_call_can_be_ended(service, make):
    memory = make().for_user("user_123", max_calls_per_turn=2)
    assert "tool_choice" not in json.dumps(memory.tools("openai"))
    messages: list[Any] = [USER]
    rounds = 0
    while True:
        reply = openai_reply((RETRIEVE, "{}"))
        messages.append(reply["choices"][0]["message"])
        results = memory.handle(reply, session=messages)
        messages += results
        if results.exhausted:
            break
        rounds += 1
    assert rounds == 2
    foreign = memory.handle(openai_reply((RETRIEVE, "{}"), ("weather", "{}")), session=messages)
    assert not foreign.exhausted
    foreign.add(foreign.pending[0], "rain")
    assert not foreign.exhausted
    assert not memory.handle(openai_reply(content="Tea.")).exhausted


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "tool_calls": None},
        {"role": "tool", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, "and", None, 5]},
        {"role": "assistant", "content": [], "refusal": None},
        {"role": "user", "content": {"text": "hi"}},
        {"parts": None},
    ],
)
def test_fc55_messages_without_plain_text_are_captured_as_they_are(service, memory, message):
    memory.capture([message, USER, ANSWER])
    assert sent(service["capture"])["sessionData"]["messages"][-1] == USER


def test_fc58_an_end_user_never_seen_before_is_an_ok_result_with_nothing_in_it(service, memory):
    nothing = {**FOUND, "topics": [], "rawEntries": [], "selectedTopicKeys": [], "overallSummary": ""}
    nothing["functionResponse"] = {"requestId": "r", "overallSummary": "", "rawEntries": []}
    service["function"].respond(json=nothing)
    results = memory.handle(openai_reply((RETRIEVE, "{}")))
    assert results.outcomes[0].ok
    assert contents(results)[0]["rawEntries"] == []
    assert memory.retrieve("hi").raw_entries == ()


def test_fc68_the_client_that_waits_works_inside_a_running_event_loop(service, memory):
    async def inside() -> int:
        return len(memory.handle(openai_reply((RETRIEVE, "{}"))))

    assert asyncio.run(inside()) == 1


def test_a_dialect_that_is_not_streamed_says_so(memory):
    with pytest.raises(HaloError, match="'json-schema' are not streamed"):
        memory.accumulator("json-schema")
