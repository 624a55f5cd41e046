"""What only OpenAI Responses does: items that finish in any order, several ways to fail, and its own SDK's objects."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_sdk import TruncatedArgumentsError
from tests.sdk.fakes import FOUND, RETRIEVE, sent

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "What do I drink?"}
REASONING: Json = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2VjcmV0"}
SHELL: Json = {"type": "custom_tool_call", "id": "ct", "call_id": "b", "name": "shell", "input": "ls"}
ANSWER: Json = {
    "type": "message",
    "id": "msg",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Tea.", "annotations": []}],
}


def call(call_id: Any = "a", name: str = RETRIEVE, arguments: str = "{}", **fields: Any) -> Json:
    return {
        "type": "function_call",
        "id": "fc",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **fields,
    }


def response(*items: Json, status: str = "completed", **fields: Any) -> Json:
    """Return a whole response with every field that the SDK's model requires."""
    return {
        "object": "response",
        "id": "r",
        "created_at": 1,
        "model": "m",
        "output": list(items),
        "parallel_tool_calls": True,
        "status": status,
        "tool_choice": "auto",
        "tools": [],
        **fields,
    }


def added(index: int, item: Json) -> Json:
    begun = {**item, **{name: "" for name in ("arguments", "call_id", "input", "name") if name in item}}
    return {"type": "response.output_item.added", "sequence_number": 0, "output_index": index, "item": begun}


def done(index: int, item: Json) -> Json:
    return {"type": "response.output_item.done", "sequence_number": 0, "output_index": index, "item": item}


def end(whole: Json) -> Json:
    return {"type": f"response.{whole['status']}", "sequence_number": 0, "response": whole}


def fed(memory: Any, *events: Any) -> Any:
    accumulator = memory.accumulator("openai-responses")
    for event in events:
        accumulator.feed(event)
    return accumulator


@pytest.fixture
def openai_client() -> Any:
    """A function that makes the official client whose service answers as told, and the requests it received."""
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    clients, requests = [], []

    def made(*events: Json) -> tuple[Any, list[Json]]:
        lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

        def answer(request: Any) -> Any:
            requests.append(json.loads(request.content))
            if requests[-1].get("stream"):
                return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=lines)
            return httpx2.Response(200, json=events[-1]["response"])

        http = httpx2.Client(transport=httpx2.MockTransport(answer))
        clients.append(openai.OpenAI(api_key="k", http_client=http, max_retries=0))
        return clients[-1], requests

    yield made
    for client in clients:
        client.close()


# -- the official client ---------------------------------------------------------------------------------------------


def test_fc30_what_is_appended_reaches_the_service_as_it_left_it_and_with_every_result(
    service, memory, openai_client
):
    items = [REASONING, call(arguments='{"query":"tea"}', status="completed", **{"async": False}), SHELL]
    client, requests = openai_client(end(response(*items)))
    reply = client.responses.create(model="m", input=[USER], tools=memory.tools("openai-responses"))
    results = memory.handle(reply)
    results.add(results.pending[0], "a.txt")
    client.responses.create(model="m", input=[USER, *results.turn, *results])
    assert requests[0]["tools"] == memory.tools("openai-responses")
    assert requests[1]["input"] == [
        USER,
        *items,
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": json.dumps(FOUND["functionResponse"], separators=(",", ":")),
        },
        {"type": "custom_tool_call_output", "call_id": "b", "output": "a.txt"},
    ]


@pytest.mark.parametrize("repeated", [True, False], ids=["repeated at the end", "not repeated"])
def test_events_of_the_sdk_lead_where_the_whole_reply_leads(service, memory, openai_client, repeated):
    items = [REASONING, call(arguments='{"query":"tea"}'), SHELL, ANSWER]
    whole = response(*items)
    events = [
        {"type": "response.created", "sequence_number": 0, "response": response(status="in_progress")},
        *(added(at, item) for at, item in enumerate(items)),
        {
            "type": "response.function_call_arguments.delta",
            "sequence_number": 0,
            "item_id": "fc",
            "output_index": 1,
            "delta": '{"que',
        },
        *(done(at, item) for at, item in enumerate(items)),
        end(whole if repeated else {**whole, "output": []}),
    ]
    client, _ = openai_client(*events)
    streamed = memory.handle(fed(memory, *client.responses.create(model="m", input="hi", stream=True)))
    expected = memory.handle(whole)
    assert streamed.turn == expected.turn == items
    assert (list(streamed), streamed.pending) == (list(expected), expected.pending)
    assert streamed.problem is None


# -- streams ---------------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_items_stand_in_their_places_in_whatever_order_they_finish(memory, data):
    items = [REASONING, call("a", "weather"), call("b", "clock"), SHELL, ANSWER]
    finished = data.draw(st.permutations(list(enumerate(items))))
    accumulator = fed(memory, *(done(at, item) for at, item in finished), end(response()))
    assert accumulator.turn == items


def test_fc39_a_reply_that_lost_an_item_it_announced_is_not_carried_out(service, memory):
    first, second = call("a"), call("b", "weather")
    events = [added(0, first), added(1, second), done(0, first), end(response())]
    results = memory.handle(fed(memory, *events))
    assert results.problem == "truncated"
    assert isinstance(results.outcomes[0].error, TruncatedArgumentsError)
    assert not service["function"].called
    assert memory.handle(fed(memory, *events[:-1], end(response(first, second)))).problem is None


def test_fc41_events_without_a_place_or_an_item_are_no_calls(memory):
    nothing = [
        {"type": "response.output_item.done", "output_index": None},
        {"type": "response.output_item.done"},
    ]
    assert not memory.handle(fed(memory, *nothing, end(response())))


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        ({"type": "error", "code": "server_error", "message": "secret", "param": None}, "server_error"),
        (
            {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "secret"}},
            "rate_limit_exceeded",
        ),
        ({"type": "error", "message": "secret"}, "failed"),
        (end(response(status="failed", error={"code": "bio_policy", "message": "secret"})), "bio_policy"),
        (
            end(response(status="incomplete", incomplete_details={"reason": "content_filter"})),
            "content_filter",
        ),
        (end(response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})), "truncated"),
        (end(response(status="incomplete", incomplete_details=None)), "incomplete"),
    ],
)
def test_a_stream_that_ends_badly_says_how_in_one_word(memory, last, problem):
    results = memory.handle(fed(memory, added(0, REASONING), done(0, REASONING), last))
    assert results.problem == problem
    assert results.turn == [REASONING]


# -- replies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
def test_a_reply_that_is_not_finished_says_so(memory, status):
    results = memory.handle(response(status=status))
    assert not results
    assert results.problem == status


def test_fc06_a_call_that_says_itself_that_it_was_cut_is_not_carried_out(service, memory):
    results = memory.handle(response(call(arguments="{}", status="incomplete")))
    assert results.problem == "truncated"
    assert not service["function"].called


@pytest.mark.parametrize("missing", [{"call_id": None}, {"call_id": ""}, {}])
def test_fc18_ids_missing_or_of_another_kind_are_made_up_the_same_in_the_turn_and_the_result(
    service, memory, missing
):
    def nameless(name: str) -> Json:
        return {**{key: value for key, value in call(name=name).items() if key != "call_id"}, **missing}

    results = memory.handle(response(REASONING, nameless(RETRIEVE), nameless("weather")))
    results.add(results.pending[0], "rain")
    made = [item["call_id"] for item in results.turn[1:]]
    assert made == [result["call_id"] for result in results]
    assert len(set(made)) == 2
    assert all(isinstance(each, str) and each not in {"", "fc"} for each in made)


def test_fc48_reasoning_between_the_calls_of_a_reply_does_not_make_the_first_an_earlier_one(service, make):
    memory = make().for_user("user_123", max_calls_per_turn=1)
    reply = response(REASONING, call("a"), REASONING, call("b", arguments='{"limit":2}'))
    results = memory.handle(reply, session=[USER, *reply["output"]])
    assert [outcome.ok for outcome in results.outcomes] == [True, False]
    again = memory.handle(reply, session=[USER, *results.turn, *results, *reply["output"]])
    assert again.exhausted


def test_the_answer_of_a_stream_is_captured_without_the_reasoning_before_it(service, memory):
    items = [REASONING, ANSWER]
    accumulator = fed(memory, *(done(at, item) for at, item in enumerate(items)), end(response()))
    for messages, answer in (([USER, *accumulator.turn], None), ([USER], accumulator)):
        memory.capture(messages, answer)
        body = sent(service["capture"])
        assert (body["sessionData"]["messages"], body["response"]) == ([USER], ANSWER)
