"""What only Gemini Interactions does: steps that are filled side by side, and its own SDK's objects."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_sdk import EmptyAnswerError, TruncatedArgumentsError
from tests.sdk.fakes import FOUND, RETRIEVE, sent

Json = dict[str, Any]
ASKED: Json = {"type": "user_input", "content": [{"type": "text", "text": "What do I drink?"}]}
THOUGHT: Json = {"type": "thought", "signature": "c2VjcmV0"}
ANSWER: Json = {"type": "model_output", "content": [{"type": "text", "text": "Tea."}]}
SOURCE: Json = {"type": "url_citation", "url": "https://example.org", "start_index": 0, "end_index": 3}


def call(call_id: Any = "a", name: str = RETRIEVE, **arguments: Any) -> Json:
    return {"type": "function_call", "id": call_id, "name": name, "arguments": arguments}


def interaction(*steps: Json, status: str = "requires_action", **fields: Any) -> Json:
    return {
        "id": "i",
        "object": "interaction",
        "model": "m",
        "status": status,
        "steps": list(steps),
        **fields,
    }


def start(index: Any, step: Json) -> Json:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: Any, kind: str, **fields: Any) -> Json:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: Any) -> Json:
    return {"event_type": "step.stop", "index": index}


def end(status: str = "requires_action", **fields: Any) -> Json:
    return {"event_type": "interaction.completed", "interaction": {"id": "i", "status": status, **fields}}


CREATED = {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress"}}


def fed(memory: Any, *events: Any) -> Any:
    accumulator = memory.accumulator("gemini-interactions")
    for event in events:
        accumulator.feed(event)
    return accumulator


@pytest.fixture
def gemini_client() -> Any:
    """A function that makes the official client whose service answers as told, and the requests it received."""
    genai, httpx2 = pytest.importorskip("google.genai"), pytest.importorskip("httpx2")
    clients, requests = [], []

    def made(whole: Json, *events: Json) -> tuple[Any, list[Json]]:
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"

        def answer(request: Any) -> Any:
            requests.append(json.loads(request.content))
            if requests[-1].get("stream"):
                return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=lines)
            return httpx2.Response(200, json=whole)

        http = httpx2.Client(transport=httpx2.MockTransport(answer))
        options = genai.types.HttpOptions(httpx_client=http)
        clients.extend([http, genai.Client(api_key="k", http_options=options)])
        return clients[-1], requests

    yield made
    for client in clients:
        client.close()


# -- the official client ---------------------------------------------------------------------------------------------


def test_fc30_what_is_appended_reaches_the_service_as_it_left_it_and_with_every_result(
    service, memory, gemini_client
):
    steps = [THOUGHT, call(query="tea"), call("b", "weather")]
    client, requests = gemini_client(interaction(*steps))
    declared = memory.tools("gemini-interactions")
    reply = client.interactions.create(model="m", input="What do I drink?", tools=declared)
    results = memory.handle(reply)
    results.add(results.pending[0], ["rain", "later"], is_error=True)
    client.interactions.create(model="m", input=[ASKED, *results.turn, *results])
    client.interactions.create(model="m", input=list(results), previous_interaction_id=reply.id)
    answers = [
        {
            "type": "function_result",
            "call_id": "a",
            "name": RETRIEVE,
            "result": FOUND["functionResponse"],
        },
        {
            "type": "function_result",
            "call_id": "b",
            "name": "weather",
            "result": {"output": ["rain", "later"]},
            "is_error": True,
        },
    ]
    assert requests[0]["tools"] == declared
    assert requests[1]["input"] == [ASKED, *steps, *answers]
    assert requests[2]["input"] == answers


def test_events_of_the_sdk_lead_where_the_whole_reply_leads(service, memory, gemini_client):
    said = {"type": "text", "text": "Let me see.", "annotations": [SOURCE]}
    whole = interaction(THOUGHT, {"type": "model_output", "content": [said]}, call(query="tea"))
    events = [
        CREATED,
        start(0, {"type": "thought"}),
        delta(0, "thought_signature", signature="c2Vj"),
        delta(0, "thought_signature", signature="cmV0"),
        stop(0),
        start(1, {"type": "model_output"}),
        delta(1, "text", text="Let me "),
        delta(1, "text_annotation_delta", annotations=[SOURCE]),
        delta(1, "text", text="see."),
        stop(1),
        start(2, call()),
        delta(2, "arguments_delta", arguments='{"query"'),
        delta(2, "arguments_delta", arguments=':"tea"}'),
        stop(2),
        end(),
    ]
    client, _ = gemini_client(whole, *events)
    streamed = memory.handle(fed(memory, *client.interactions.create(model="m", input="hi", stream=True)))
    expected = memory.handle(client.interactions.create(model="m", input="hi"))
    assert streamed.turn == expected.turn == whole["steps"]
    assert list(streamed) == list(expected)
    assert (streamed.problem, expected.problem) == (None, None)


# -- streams ---------------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_steps_are_filled_side_by_side_each_in_its_own_order(memory, data):
    steps = [call("a", query="tea"), call("b", "weather", city="Rome"), ANSWER]
    texts = [json.dumps(step["arguments"]) for step in steps[:2]] + ["Tea."]
    queues = []
    for index, (step, text) in enumerate(zip(steps, texts, strict=True)):
        spoken = step is ANSWER
        kind, field = ("text", "text") if spoken else ("arguments_delta", "arguments")
        size = data.draw(st.integers(1, len(text)))
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        begun = {"type": "model_output"} if spoken else {**step, "arguments": {}}
        filled = [delta(index, kind, **{field: piece}) for piece in pieces]
        queues.append([start(index, begun), *filled, stop(index)])
    events = [queue.pop(0) for queue in queues]
    while any(queues):
        events.append(data.draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    assert fed(memory, CREATED, *events, end()).turn == steps


@pytest.mark.parametrize(
    "last",
    [
        end(),
        end("completed"),
        {"event_type": "error", "error": {"code": "x", "message": "secret"}},
        {"event_type": "interaction.status_update", "status": "requires_action"},
    ],
    ids=["requires action", "completed", "error", "broken off"],
)
def test_fc06_a_call_whose_step_was_never_closed_is_not_carried_out(service, memory, last):
    results = memory.handle(fed(memory, CREATED, start(0, call()), last))
    assert results.problem == "truncated"
    assert isinstance(results.outcomes[0].error, TruncatedArgumentsError)
    assert not service["function"].called


def test_a_stream_that_fails_between_two_steps_has_failed(memory):
    error = {"event_type": "error", "error": {"code": "x", "message": "secret"}}
    results = memory.handle(fed(memory, CREATED, start(0, THOUGHT), stop(0), error))
    assert results.problem == "failed"
    assert results.turn == [THOUGHT]


def test_steps_that_come_whole_at_the_end_are_the_reply(service, memory):
    whole = [THOUGHT, call(query="tea")]
    for events in ([], [start(0, {"type": "thought"})]):
        results = memory.handle(fed(memory, CREATED, *events, end(steps=whole)))
        assert results.turn == whole
        assert results.problem is None


@pytest.mark.parametrize(
    "events",
    [
        [delta(0, "text", text="x")],
        [start([0], ANSWER), delta({}, "text", text="x"), stop("0")],
        [start(0, {"type": "model_output", "content": 7}), delta(0, "text", text=None), stop(0)],
        [start(0, {"type": "thought", "summary": "x"}), delta(0, "thought_summary"), stop(0)],
        [start(0, {"type": "model_output"}), delta(0, "text_annotation_delta", annotations=None), stop(0)],
        [
            start(0, {"type": "model_output"}),
            {"event_type": "step.delta", "index": 0, "delta": None},
            stop(0),
        ],
    ],
)
def test_fc41_events_nobody_understands_are_no_calls(memory, events):
    assert not memory.handle(fed(memory, CREATED, *events, end()))


# -- replies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ("idle", None),
        ("queued", "queued"),
        ("in_progress", "in_progress"),
        ("cancelled", "cancelled"),
        ("budget_exceeded", "budget_exceeded"),
        ("requires_continuation", "requires_continuation"),
    ],
)
def test_a_reply_that_is_not_finished_says_so(memory, status, problem):
    results = memory.handle(interaction(THOUGHT, status=status))
    assert not results
    assert results.problem == problem


def test_a_failed_reply_without_steps_is_known_by_what_it_says_it_is(memory):
    results = memory.handle({"object": "interaction", "id": "i", "status": "failed"})
    assert (results.turn, results.problem) == ([], "failed")


@pytest.mark.parametrize("missing", [{"id": None}, {"id": ""}, {}])
def test_fc18_ids_missing_or_of_another_kind_are_made_up_the_same_in_the_turn_and_the_result(
    service, memory, missing
):
    def nameless(name: str) -> Json:
        return {"type": "function_call", "name": name, "arguments": {}, **missing}

    results = memory.handle(interaction(THOUGHT, nameless(RETRIEVE), nameless("weather")))
    results.add(results.pending[0], "rain")
    made = [step["id"] for step in results.turn[1:]]
    assert made == [result["call_id"] for result in results]
    assert len(set(made)) == 2
    assert all(isinstance(each, str) and each for each in made)


def test_the_words_of_the_end_user_that_a_reply_repeats_are_not_appended_again(service, memory):
    results = memory.handle(interaction(ASKED, THOUGHT, call()))
    assert results.turn == [THOUGHT, call()]
    assert len(results) == 1


def test_the_answer_of_a_stream_is_captured_without_the_thought_before_it(service, memory):
    events = [start(0, THOUGHT), stop(0), start(1, ANSWER), stop(1), end("completed")]
    accumulator = fed(memory, CREATED, *events)
    for messages, answer in (([ASKED, *accumulator.turn], None), ([ASKED], accumulator)):
        memory.capture(messages, answer)
        body = sent(service["capture"])
        assert (body["sessionData"]["messages"], body["response"]) == ([ASKED], ANSWER)
    with pytest.raises(EmptyAnswerError):
        memory.capture([ASKED], fed(memory, CREATED, *events[:2], end("completed")))
