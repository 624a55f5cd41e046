"""What a model's reply is answered with."""

import asyncio
import json
import logging
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halo_sdk import (
    AuthenticationError,
    Halo,
    HaloConfigError,
    HaloError,
    PermissionDeniedError,
    ServerError,
    ToolResults,
    TruncatedArgumentsError,
    UnknownToolError,
)
from tests.sdk.fakes import FOUND, RETRIEVE, async_memory, contents, gemini_reply, openai_reply, sent


def test_a_call_is_answered_with_the_function_response_under_its_own_id(service, memory):
    results = memory.handle(openai_reply((RETRIEVE, '{"sessionData":{},"query":"tea"}')))
    assert [(r["role"], r["tool_call_id"]) for r in results] == [("tool", "call_0")]
    assert contents(results) == [FOUND["functionResponse"]]
    assert results.complete
    assert results.outcomes[0].ok
    assert results.problem is None


def test_a_reply_without_calls_is_false_and_asks_the_service_nothing(service, memory):
    results = memory.handle(openai_reply(content="It is raining.", finish="stop"))
    assert not results
    assert list(results) == []
    assert results.complete
    assert not service["function"].called


@pytest.mark.parametrize(
    "response",
    [
        openai_reply((RETRIEVE, "{}")),
        openai_reply((RETRIEVE, "{}"))["choices"][0]["message"],
        json.dumps(openai_reply((RETRIEVE, "{}"))),
        json.dumps(openai_reply((RETRIEVE, "{}"))).encode(),
        SimpleNamespace(
            choices=[
                SimpleNamespace(
                    finish_reason="tool_calls",
                    message=SimpleNamespace(
                        role="assistant",
                        tool_calls=[
                            SimpleNamespace(
                                id="call_0",
                                type="function",
                                function=SimpleNamespace(name=RETRIEVE, arguments="{}"),
                            )
                        ],
                    ),
                )
            ]
        ),
    ],
    ids=["dict", "message", "text", "bytes", "object"],
)
def test_a_reply_may_be_an_object_a_dict_or_json_text(service, memory, response):
    assert [r["tool_call_id"] for r in memory.handle(response)] == ["call_0"]


@pytest.mark.parametrize("response", ["no JSON", "[]", "{}", 5, None, {"output": []}])
def test_a_reply_of_no_known_shape_asks_for_the_dialect(memory, response):
    with pytest.raises(HaloConfigError, match=r"dialect|JSON"):
        memory.handle(response)


def test_a_named_dialect_reads_what_its_shape_does_not_tell(memory):
    results = memory.handle({}, dialect="gemini")
    assert (list(results), results.problem) == ([], "empty_candidates")
    assert memory.handle({"choices": []}).problem == "empty_choices"
    with pytest.raises(HaloConfigError, match="unknown dialect 'klingon'"):
        memory.handle({}, dialect="klingon")


def test_provider_sdk_objects_are_read_as_they_come(service, memory):
    chat = pytest.importorskip("openai.types.chat")
    genai = pytest.importorskip("google.genai.types")
    completion = chat.ChatCompletion.construct(**openai_reply((RETRIEVE, '{"query":"x"}')))
    assert contents(memory.handle(completion)) == [FOUND["functionResponse"]]
    reply = genai.GenerateContentResponse.model_validate(
        gemini_reply({"name": RETRIEVE, "args": {"limit": 5.0}})
    )
    (content,) = memory.handle(reply)
    assert content["parts"][0]["function_response"]["response"]["output"] == FOUND["functionResponse"]
    assert sent(service["function"])["arguments"]["limit"] == 5


def test_fc26_fc27_gemini_gets_one_content_with_every_response_and_ids_only_where_the_call_had_one(
    service, memory
):
    reply = gemini_reply(
        {"name": RETRIEVE, "args": None}, {"id": "f1", "name": "weather", "args": {"city": "Rome"}}
    )
    results = memory.handle(reply)
    results.add(results.pending[0], {"degrees": 20})
    assert list(results) == [
        {
            "role": "user",
            "parts": [
                {
                    "function_response": {
                        "name": RETRIEVE,
                        "response": {"output": FOUND["functionResponse"]},
                    }
                },
                {
                    "function_response": {
                        "id": "f1",
                        "name": "weather",
                        "response": {"output": {"degrees": 20}},
                    }
                },
            ],
        }
    ]


def test_the_json_schema_dialect_answers_calls_made_by_hand(service, memory):
    results = memory.handle(
        [{"id": "1", "name": RETRIEVE, "arguments": {}}, {"name": "halo_x", "arguments": {}}]
    )
    assert results[0] == {"id": "1", "name": RETRIEVE, "output": FOUND["functionResponse"]}
    assert set(results[1]) == {"name", "error"}


def test_calls_of_other_functions_are_pending_and_results_keep_the_order_of_the_reply(service, memory):
    results = memory.handle(
        openai_reply(("weather", '{"city":"Rome"}'), (RETRIEVE, "{}"), ("clock", "not json"))
    )
    assert [call.name for call in results.pending] == ["weather", "clock"]
    assert results.pending[0].arguments == {"city": "Rome"}
    assert results.pending[1].arguments == "not json"
    assert [r["tool_call_id"] for r in results] == ["call_1"]
    assert results
    assert not results.complete
    for call in results.pending:
        results.add(call, f"{call.name} says so", is_error=call.name == "clock")
    assert [r["tool_call_id"] for r in results] == ["call_0", "call_1", "call_2"]
    assert results[0]["content"] == "weather says so"
    assert json.loads(results[2]["content"]) == {"error": "clock says so"}
    assert results.complete
    messages: list[dict[str, Any]] = []
    messages += results
    assert len(messages) == 3


def test_a_call_is_answered_only_once(service, memory):
    results = memory.handle(openai_reply(("weather", "{}")))
    (call,) = results.pending
    results.add(call, "rain")
    with pytest.raises(HaloConfigError, match="not pending"):
        results.add(call, "sun")


def test_a_reply_with_only_foreign_calls_is_true_although_nothing_is_answered_yet(memory):
    results = memory.handle(openai_reply(("weather", "{}")))
    assert results
    assert len(results) == 0
    assert list(memory.handle(gemini_reply({"name": "weather", "args": {}}))) == []


def test_custom_calls_of_openai_are_pending_too(memory):
    reply = openai_reply()
    reply["choices"][0]["message"]["tool_calls"] = [
        {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    ]
    (call,) = memory.handle(reply).pending
    assert (call.name, call.arguments) == ("shell", "ls")


def test_fc07_an_invented_function_of_ours_is_answered_with_those_that_exist(service, memory):
    results = memory.handle(openai_reply(("halo_retrieve_end_user_memories", "{}"), ("halo_zzz", "{}")))
    first, second = (content["error"] for content in contents(results))
    assert first.endswith(f"did you mean {RETRIEVE}?")
    assert RETRIEVE in second
    assert "mean" not in second
    assert isinstance(results.outcomes[0].error, UnknownToolError)
    assert not service["function"].called


def test_fc18_missing_ids_are_made_up_the_same_in_the_echo_and_the_result(service, memory):
    reply = openai_reply((RETRIEVE, "{}"), (RETRIEVE, "{}"))
    for call in reply["choices"][0]["message"]["tool_calls"]:
        call["id"] = None
    results = memory.handle(reply)
    (turn,) = results.turn
    ids = [call["id"] for call in turn["tool_calls"]]
    assert ids == [result["tool_call_id"] for result in results]
    assert len(set(ids)) == 2
    assert all(ids)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (openai_reply((RETRIEVE, '{"sessionData":{}'), finish="length"), "truncated"),
        (gemini_reply({"name": RETRIEVE, "args": {}}, finish="MAX_TOKENS"), "truncated"),
    ],
)
def test_fc06_a_reply_cut_by_the_token_limit_is_not_carried_out(service, memory, reply, problem):
    results = memory.handle(reply)
    assert results.problem == problem
    assert isinstance(results.outcomes[0].error, TruncatedArgumentsError)
    assert "cut off" in results.outcomes[0].body
    assert not service["function"].called


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "malformed_function_call"),
        ({"candidates": None, "promptFeedback": {"blockReason": "SAFETY"}}, "empty_candidates"),
        ({"role": "model", "parts": [{"text": "hi"}]}, None),
    ],
)
def test_fc31_a_gemini_reply_without_calls_says_what_is_wrong_with_it(memory, reply, problem):
    results = memory.handle(reply)
    assert not results
    assert results.problem == problem


def test_fc32_calls_decide_and_a_good_finish_reason_does_not(service, memory):
    assert len(memory.handle(openai_reply((RETRIEVE, "{}"), finish="stop"))) == 1
    assert not memory.handle(openai_reply(finish="tool_calls"))


@pytest.mark.parametrize("finish", ["content_filter", "error"])
def test_a_reply_stopped_by_the_service_says_so(memory, finish):
    assert memory.handle(openai_reply(content="I", finish=finish)).problem == finish


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        httpx.Response(500, text="secret stack trace"),
        httpx.Response(503, json={"error": "secret", "code": "UNAVAILABLE"}),
        httpx.Response(429, json={"error": "secret"}),
        httpx.Response(200, text="secret, not JSON"),
        httpx.Response(200, json=["secret"]),
    ],
)
def test_an_outage_becomes_a_result_that_lets_the_model_go_on(service, memory, failure):
    service["function"].mock(side_effect=[failure] * 3)
    (content,) = contents(memory.handle(openai_reply((RETRIEVE, "{}"))))
    assert content == {"error": "memory is unavailable; answer without it"}


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_refused_call_becomes_a_result_that_repeats_nothing_of_the_service(service, memory, status):
    service["function"].respond(status, json={"error": "secret detail", "code": "X"})
    results = memory.handle(openai_reply((RETRIEVE, "{}")))
    assert "secret" not in results[0]["content"]
    assert results.outcomes[0].error.status_code == status


@pytest.mark.parametrize(("status", "kind"), [(401, AuthenticationError), (403, PermissionDeniedError)])
def test_a_key_that_is_not_accepted_is_raised_to_the_application(service, memory, status, kind):
    service["function"].respond(status, json={"error": "no", "code": "FORBIDDEN"})
    with pytest.raises(kind):
        memory.handle(openai_reply((RETRIEVE, "{}")))


def test_on_error_raise_raises_what_the_service_did(service, make):
    service["function"].respond(500, json={"error": "broken"})
    memory = make(on_error="raise", max_retries=0).for_user("user_123")
    with pytest.raises(ServerError):
        memory.handle(openai_reply((RETRIEVE, "{}")))
    assert not memory.handle(openai_reply((RETRIEVE, "not json"))).outcomes[0].ok


def test_fc22_fc25_one_failing_call_does_not_cost_its_siblings_their_results(service, memory):
    service["function"].mock(
        side_effect=[httpx.Response(404, json={"error": "x"}), httpx.Response(200, json=FOUND)]
    )
    results = memory.handle(openai_reply((RETRIEVE, "{}"), (RETRIEVE, "[]"), (RETRIEVE, '{"query":"tea"}')))
    assert [outcome.ok for outcome in results.outcomes] == [False, False, True]
    assert [r["tool_call_id"] for r in results] == ["call_0", "call_1", "call_2"]


def test_calls_beyond_the_cap_are_told_that_memory_was_consulted(service, make):
    memory = make().for_user("user_123", max_calls_per_turn=2)
    results = memory.handle(openai_reply(*[(RETRIEVE, {"limit": n}) for n in (1, 2, 3)]))
    assert [outcome.ok for outcome in results.outcomes] == [True, True, False]
    assert "already consulted" in contents(results)[2]["error"]
    assert service["function"].call_count == 2


def test_fc48_the_cap_counts_the_whole_turn_when_the_session_is_passed(service, make):
    memory = make().for_user("user_123", max_calls_per_turn=2)
    messages: list[Any] = [{"role": "user", "content": "before"}]
    for question in ("one", "two"):
        messages.append({"role": "user", "content": question})
        answered = []
        for _ in range(3):
            reply = openai_reply((RETRIEVE, "{}"))
            messages.append(reply["choices"][0]["message"])
            results = memory.handle(reply, session=messages)
            messages += results
            answered.append(results.outcomes[0].ok)
        assert answered == [True, True, False]


def test_the_cap_counts_gemini_turns_whose_results_carry_the_role_user(service, make):
    memory = make().for_user("user_123", max_calls_per_turn=1)
    history: list[Any] = [{"role": "user", "parts": [{"text": "hi"}]}]
    for expected in (True, False):
        reply = gemini_reply({"name": RETRIEVE, "args": {}})
        history.append(reply["candidates"][0]["content"])
        results = memory.handle(reply, session=history)
        history += results
        assert results.outcomes[0].ok is expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"endUserKey": "victim", "projectKey": "other", "query": "q"},
        {"sessionData": {"endUserKey": "victim", "deep": [{"project_key": "other"}]}},
        {"sessionData": '{"endUserKey":"victim","projectKey":"other"}'},
        '{"end_user_key":"victim","arguments":{"projectKey":"other"}}',
        json.dumps(json.dumps({"endUserKey": "victim"})),
    ],
)
def test_fc08_identity_comes_from_the_application_whatever_the_model_writes(service, memory, arguments):
    memory.handle(openai_reply((RETRIEVE, arguments)))
    body = sent(service["function"])
    assert (body["projectKey"], body["endUserKey"]) == ("customer-product", "user_123")
    assert "victim" not in json.dumps(body)
    assert "other" not in json.dumps(body)


def test_undeclared_arguments_are_logged_by_name_only(service, memory, caplog):
    with caplog.at_level(logging.WARNING, "halo_sdk"):
        memory.handle(openai_reply((RETRIEVE, {"endUserKey": "victim", "new\nline": "secret"})))
    assert "endUserKey" in caplog.text
    assert "victim" not in caplog.text
    assert "secret" not in caplog.text
    assert "new\\nline" in caplog.text


def test_the_application_s_session_replaces_what_the_model_invented(service, memory):
    memory.handle(
        openai_reply((RETRIEVE, {"sessionData": {"mood": "invented"}})),
        session=[{"role": "user", "content": "real"}],
    )
    assert sent(service["function"])["arguments"]["sessionData"] == {
        "messages": [{"role": "user", "content": "real"}]
    }


def test_a_model_shown_no_session_data_cannot_send_any(service, make):
    memory = make().for_user("user_123", session="app")
    memory.handle(openai_reply((RETRIEVE, {"sessionData": {"a": 1}, "query": None, "limit": 3})))
    assert sent(service["function"])["arguments"] == {"sessionData": {}, "limit": 3}


def test_fc51_a_result_stays_within_its_budget_and_valid(service, make):
    entries = [{"id": f"raw_{n}", "requestRaw": {"messages": [{"content": "x" * 900}]}} for n in range(20)]
    service["function"].respond(json={"functionResponse": {"rawEntries": entries, "requestId": "r"}})
    memory = make(max_result_chars=2_500).for_user("user_123")
    (result,) = memory.handle(openai_reply((RETRIEVE, "{}")))
    body = json.loads(result["content"])
    assert len(result["content"]) <= 2_500
    assert body["truncated"] is True
    assert [entry["id"] for entry in body["rawEntries"]] == ["raw_0", "raw_1"]


def test_fc52_results_survive_broken_text_from_the_service(service, memory):
    service["function"].respond(text='{"functionResponse":{"note":"bad \\ud800 text"}}')
    (result,) = memory.handle(openai_reply((RETRIEVE, "{}")))
    assert json.loads(result["content"])["note"] == "bad � text"
    assert result["content"].encode()


def test_asynchronous_calls_go_out_side_by_side_and_keep_their_order(service, time):
    async def run() -> ToolResults:
        client, memory = async_memory(time)
        async with client:
            return await memory.handle(openai_reply((RETRIEVE, "{}"), ("weather", "{}"), (RETRIEVE, "{}")))

    results = asyncio.run(run())
    assert [r["tool_call_id"] for r in results] == ["call_0", "call_2"]
    assert [call.name for call in results.pending] == ["weather"]


def test_asynchronous_outages_become_results_too(service, time):
    service["function"].mock(side_effect=httpx.ConnectError("refused"))

    async def run() -> ToolResults:
        client, memory = async_memory(time)
        async with client:
            return await memory.handle(openai_reply((RETRIEVE, "{}")))

    assert contents(asyncio.run(run())) == [{"error": "memory is unavailable; answer without it"}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = (
    JSON
    | st.text()
    | JSON.map(json.dumps)
    | st.fixed_dictionaries(
        {}, optional={"sessionData": JSON, "query": JSON, "limit": JSON, "endUserKey": JSON}
    )
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(st.tuples(st.sampled_from([RETRIEVE, "halo_made_up", "weather"]), ARGUMENTS), max_size=3)
)
def test_handle_never_raises_and_answers_each_call_exactly_once(service, memory, calls):
    results = memory.handle(openai_reply(*calls))
    own = [index for index, (name, _) in enumerate(calls) if name != "weather"]
    assert [result["tool_call_id"] for result in results] == [f"call_{index}" for index in own]
    assert len(results.pending) == len(calls) - len(own)
    for call in service["function"].calls:
        body = json.loads(call.request.content)
        assert (body["projectKey"], body["endUserKey"]) == ("customer-product", "user_123")
        assert isinstance(body["arguments"]["sessionData"], dict)


def test_fc63_a_memory_keeps_its_connections_open_after_its_client_is_out_of_sight(service):
    memory = Halo("k", project_key="p").for_user("u")
    assert memory.handle(openai_reply((RETRIEVE, "{}"))).complete


def test_a_call_by_hand_raises_what_handle_would_have_told_the_model(service, memory):
    assert memory.call(RETRIEVE, {"query": "x"}, session="hello").request_id == "req_1"
    assert sent(service["function"])["arguments"] == {
        "sessionData": {"messages": [{"role": "user", "content": "hello"}]},
        "query": "x",
    }
    with pytest.raises(UnknownToolError):
        memory.call("halo_other", {})
    with pytest.raises(HaloError, match="JSON"):
        memory.call(RETRIEVE, "{")
