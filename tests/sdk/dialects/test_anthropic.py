"""What only Anthropic Messages does: blocks by index, an SDK that guesses at unfinished arguments, and one message of results."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halo_sdk import TruncatedArgumentsError
from halo_sdk.dialects import DIALECTS
from tests.sdk.fakes import FOUND, RETRIEVE, sent

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "What do I drink?"}
THINKING: Json = {"type": "thinking", "thinking": "They ask about tea.", "signature": "c2VjcmV0"}
PICTURE = "aGFsbw==" * 50


def tool_use(call_id: Any = "a", name: str = RETRIEVE, **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def message(*blocks: Json, stop: str | None = "tool_use") -> Json:
    """Return a message with every field that the SDK's model requires."""
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }


def delta(index: Any, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def started(index: Any, block: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def stopped(index: Any) -> Json:
    return {"type": "content_block_stop", "index": index}


def begun(index: int, block: Json) -> Json:
    return started(index, {**block, "input": {}})


def ended(stop: str = "tool_use") -> list[Json]:
    end = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
    return [{**end, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]


START = {"type": "message_start", "message": message(stop=None)}
THOUGHT = [
    started(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, type="thinking_delta", thinking="They ask "),
    delta(0, type="thinking_delta", thinking="about tea."),
    delta(0, type="signature_delta", signature="c2VjcmV0"),
    stopped(0),
]


def fed(memory: Any, *events: Any) -> Any:
    accumulator = memory.accumulator("anthropic")
    for event in events:
        accumulator.feed(event)
    return accumulator


@pytest.fixture
def anthropic_client() -> Any:
    """A function that makes the official client whose service answers as told, and the requests it received."""
    anthropic, httpx2 = pytest.importorskip("anthropic"), pytest.importorskip("httpx2")
    clients, requests = [], []

    def made(reply: Json, *events: Json) -> tuple[Any, list[Json]]:
        lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

        def answer(request: Any) -> Any:
            requests.append(json.loads(request.content))
            if requests[-1].get("stream"):
                return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=lines)
            return httpx2.Response(200, json=reply)

        http = httpx2.Client(transport=httpx2.MockTransport(answer))
        clients.append(anthropic.Anthropic(api_key="k", http_client=http, max_retries=0))
        return clients[-1], requests

    yield made
    for client in clients:
        client.close()


# -- the official client ---------------------------------------------------------------------------------------------


def test_fc22_every_call_is_answered_once_in_one_message_whatever_became_of_it(
    service, memory, anthropic_client
):
    blocks = [
        THINKING,
        tool_use("a", query="tea"),
        tool_use("b", "weather", city="Rome"),
        tool_use("c", "halo_made_up"),
    ]
    client, requests = anthropic_client(message(*blocks))
    asked = {"model": "m", "max_tokens": 99, "tools": memory.tools("anthropic")}
    results = memory.handle(client.messages.create(messages=[USER], **asked))
    results.add(results.pending[0], "closed", is_error=True)
    client.messages.create(messages=[USER, *results.turn, *results], **asked)
    _, turn, answer = requests[1]["messages"]
    assert turn == {"role": "assistant", "content": blocks}
    assert answer["role"] == "user"
    assert [(each["tool_use_id"], each.get("is_error", False)) for each in answer["content"]] == [
        ("a", False),
        ("b", True),
        ("c", True),
    ]
    assert json.loads(answer["content"][0]["content"]) == FOUND["functionResponse"]


EVENTS = [
    START,
    *THOUGHT,
    begun(1, tool_use()),
    delta(1, type="input_json_delta", partial_json=""),
    delta(1, type="input_json_delta", partial_json='{"sessionData":{"messages":[]},'),
    delta(1, type="input_json_delta", partial_json='"query":"tea"}'),
    stopped(1),
    *ended(),
]


@pytest.mark.parametrize("beta", [False, True], ids=["messages", "beta"])
def test_events_of_the_sdk_s_stream_helper_lead_where_the_raw_ones_lead(
    service, memory, anthropic_client, beta
):
    client, _ = anthropic_client({}, *EVENTS)
    spoken = client.beta.messages if beta else client.messages
    with spoken.stream(model="m", max_tokens=99, messages=[USER]) as stream:
        helped = fed(memory, *stream)
        final = stream.get_final_message()
    results = memory.handle(helped)
    assert results.turn == [
        {
            "role": "assistant",
            "content": [THINKING, tool_use(sessionData={"messages": []}, query="tea")],
        }
    ]
    assert results.turn == memory.handle(final).turn == fed(memory, *EVENTS).turn
    assert results.outcomes[0].ok
    assert helped.reply["usage"] == {"input_tokens": 5, "output_tokens": 9}


def test_fc06_arguments_the_sdk_guessed_from_an_unfinished_call_are_not_carried_out(
    service, memory, anthropic_client
):
    client, _ = anthropic_client({}, *EVENTS[:9], stopped(1), *ended("max_tokens"))
    with client.messages.stream(model="m", max_tokens=99, messages=[USER]) as stream:
        helped = fed(memory, *stream)
        final = stream.get_final_message()
    assert final.content[1].input == {"sessionData": {"messages": []}}
    for reply in (helped, final):
        results = memory.handle(reply)
        assert results.problem == "truncated"
        assert isinstance(results.outcomes[0].error, TruncatedArgumentsError)
    assert not service["function"].called


def test_a_message_that_is_only_text_is_echoed_as_a_block(memory):
    reply = {**message(stop="end_turn"), "content": "Tea."}
    assert memory.handle(reply).turn == [{"role": "assistant", "content": [{"type": "text", "text": "Tea."}]}]


# -- streams ---------------------------------------------------------------------------------------------------------

ARGUMENTS = st.fixed_dictionaries({"query": st.text()}, optional={"limit": st.integers(1, 50)})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arguments=st.lists(ARGUMENTS, min_size=2, max_size=3), data=st.data())
def test_fc36_blocks_are_the_same_however_their_pieces_are_interleaved(memory, service, arguments, data):
    calls = [tool_use(f"call_{at}", RETRIEVE, **each) for at, each in enumerate(arguments)]
    events = [START, *(begun(at, call) for at, call in enumerate(calls))]
    left = {at: json.dumps(each) for at, each in enumerate(arguments)}
    while left:
        at = data.draw(st.sampled_from(sorted(left)))
        size = len(left[at]) - data.draw(st.integers(0, len(left[at]) - 1))
        events.append(delta(at, type="input_json_delta", partial_json=left[at][:size]))
        left[at] = left[at][size:]
        if not left[at]:
            events.append(stopped(at))
            del left[at]
    streamed, whole = memory.handle(fed(memory, *events, *ended())), memory.handle(message(*calls))
    assert streamed.turn == whole.turn
    assert list(streamed) == list(whole)


def test_fc29_what_comes_whole_is_kept_as_it_came_last(memory):
    begun_twice = [*THOUGHT[:4], delta(0, type="signature_delta", signature="bGFzdA=="), THOUGHT[4]]
    compaction = [
        started(1, {"type": "compaction", "content": None}),
        delta(1, type="compaction_delta", content="So far: tea.", encrypted_content="c2ln"),
        stopped(1),
    ]
    (turn,) = fed(memory, START, *begun_twice, *compaction, *ended("end_turn")).turn
    assert turn["content"] == [
        {**THINKING, "signature": "bGFzdA=="},
        {"type": "compaction", "content": "So far: tea.", "encrypted_content": "c2ln"},
    ]


@pytest.mark.parametrize("index", [None, "0", [0], {"at": 0}])
def test_fc41_a_block_without_a_usable_index_is_read_all_the_same(service, memory, index):
    pieces = delta(index, type="input_json_delta", partial_json='{"query":"tea"}')
    events = [started(index, tool_use()), pieces, stopped(index)]
    assert memory.handle(fed(memory, START, *events, *ended())).outcomes[0].ok
    assert sent(service["function"])["arguments"]["query"] == "tea"


def test_an_error_in_the_middle_of_a_stream_carries_nothing_out(service, memory):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    results = memory.handle(fed(memory, *EVENTS[:-2], error))
    assert results.problem == "truncated"
    assert not service["function"].called


# -- ids, tools and histories ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given_id", ["", None, 0, 7, {"x": 1}])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_fc18_an_id_that_is_missing_or_no_text_is_the_same_text_in_the_turn_and_the_result(
    service, memory, given_id, streamed
):
    calls = [tool_use(given_id), tool_use(given_id, "halo_made_up")]
    events = [event for at, call in enumerate(calls) for event in (begun(at, call), stopped(at))]
    results = memory.handle(fed(memory, START, *events, *ended()) if streamed else message(*calls))
    echoed = [block["id"] for block in results.turn[0]["content"]]
    assert echoed == [block["tool_use_id"] for block in results[0]["content"]]
    assert all(isinstance(id_, str) and id_ for id_ in echoed)
    assert len(set(echoed)) == (1 if isinstance(given_id, int) else 2)


@pytest.mark.parametrize("session", ["model", "app"])
def test_a_tool_is_read_back_as_it_was_declared(make, session):
    memory = make().for_user("user_123", session=session)
    strict = session == "app"
    (tool,) = memory.tools("anthropic", strict=strict)
    assert ("strict" in tool) is strict
    (declared,) = DIALECTS["anthropic"].declared(tool)
    assert (declared.name, declared.parameters) == (tool["name"], tool["input_schema"])
    assert declared.strict is strict
    assert DIALECTS["anthropic"].declared({"type": "custom", **tool}) == [declared]
    assert DIALECTS["anthropic"].declared({"type": "web_search_20250305", "name": "web_search"}) == []


def test_fc50_fc56_a_history_of_sdk_objects_is_captured_without_memory_thoughts_and_pictures(service, memory):
    types = pytest.importorskip("anthropic.types")
    reply = types.Message.construct(
        **message(
            THINKING, {"type": "redacted_thinking", "data": "c2VjcmV0"}, tool_use(), tool_use("b", "camera")
        )
    )
    results = memory.handle(reply)
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    results.add(results.pending[0], "taken")
    results[0]["content"][1]["content"] = [{"type": "image", "source": source}]
    answer = types.Message.construct(**message({"type": "text", "text": "Tea."}, stop="end_turn"))
    memory.capture([USER, {"role": "assistant", "content": reply.content}, *results], answer)
    body = sent(service["capture"])
    assert body["response"] == {"role": "assistant", "content": [{"type": "text", "text": "Tea."}]}
    _, called, answered = body["sessionData"]["messages"]
    assert called["content"] == [tool_use("b", "camera")]
    assert [block["tool_use_id"] for block in answered["content"]] == ["b"]
    for secret in (PICTURE, "c2VjcmV0", RETRIEVE, FOUND["overallSummary"]):
        assert secret not in json.dumps(body)


@pytest.mark.parametrize(
    ("events", "ids", "carried_out"),
    [
        pytest.param(
            [begun(0, tool_use("a")), stopped(0), begun(0, tool_use("b")), stopped(0)],
            ["a", "b"],
            True,
            id="an index used again",
        ),
        pytest.param(
            [begun(0, tool_use("a")), begun(0, tool_use("b")), stopped(0)],
            ["a", "b"],
            False,
            id="used again before its block ended",
        ),
        pytest.param(
            [
                begun(0, tool_use("a")),
                stopped(0),
                delta(0, type="input_json_delta", partial_json='{"query":"tea"}'),
            ],
            ["a"],
            False,
            id="arguments after the end",
        ),
    ],
)
def test_fc35_no_block_is_lost_and_none_is_carried_out_by_half(service, memory, events, ids, carried_out):
    results = memory.handle(fed(memory, START, *events, *ended()))
    assert [call.id for call in results.calls] == ids
    assert service["function"].called is carried_out
