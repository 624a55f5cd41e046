"""What services that speak Chat Completions do in a stream, and what the official client's stream helper hands out."""

import json
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halo_sdk import TruncatedArgumentsError
from tests.sdk.fakes import RETRIEVE, openai_reply, sent

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "What do I drink?"}


def chunk(*, finish: str | None = None, choice: int = 0, **delta: Any) -> Json:
    """Return a chunk with every field that the SDK's model requires."""
    choices = [{"index": choice, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}


def piece(
    index: int | None, arguments: Any = None, name: str | None = None, call_id: Any = None, **fields: Any
) -> Json:
    """Return a fragment of a call, without what is None."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    said = {"index": index, "id": call_id, "type": "function" if name else None, **fields}
    return {**{key: value for key, value in said.items() if value is not None}, "function": function}


def of(*pieces: Json, finish: str | None = None) -> Json:
    return chunk(tool_calls=list(pieces), finish=finish)


END = chunk(finish="tool_calls")


def fed(memory: Any, *chunks: Any) -> Any:
    accumulator = memory.accumulator("openai")
    for each in chunks:
        accumulator.feed(each)
    return accumulator


def told(results: Any) -> list[tuple[Any, ...]]:
    return [(call.id, call.name, call.raw) for call in results.calls]


ARGUMENTS = st.fixed_dictionaries({"query": st.text()}, optional={"limit": st.integers(1, 50)}).map(
    json.dumps
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(ARGUMENTS, min_size=2, max_size=3), data=st.data())
def test_fc36_calls_are_the_same_however_their_pieces_are_interleaved(memory, service, texts, data):
    names = [RETRIEVE, "weather", RETRIEVE][: len(texts)]
    whole = memory.handle(openai_reply(*zip(names, texts, strict=True)))
    chunks = [of(piece(at, "", name, f"call_{at}")) for at, name in enumerate(names)]
    left = dict(enumerate(texts))
    while left:
        at = data.draw(st.sampled_from(sorted(left)))
        size = len(left[at]) - data.draw(st.integers(0, len(left[at]) - 1))
        chunks.append(of(piece(at, left[at][:size])))
        left[at] = left[at][size:]
        left = {key: text for key, text in left.items() if text}
    streamed = memory.handle(fed(memory, *chunks, END))
    assert told(streamed) == told(whole)
    assert list(streamed) == list(whole)


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [
                of(piece(0, "", RETRIEVE, "a")),
                of(piece(0, '{"query":"tea"}')),
                of(piece(1, "", "weather", "a")),
                of(piece(1, '{"city":"Rome"}')),
            ],
            id="in pieces",
        ),
        pytest.param(
            [of(piece(0, '{"query":"tea"}', RETRIEVE, "a")), of(piece(1, '{"city":"Rome"}', "weather", "a"))],
            id="whole",
        ),
        pytest.param(
            [
                of(piece(None, '{"query":"tea"}', RETRIEVE, "a")),
                of(piece(None, '{"city":"Rome"}', "weather", "a")),
            ],
            id="whole and without indexes",
        ),
    ],
)
def test_fc19_calls_that_share_an_id_stay_several(service, memory, chunks):
    results = memory.handle(fed(memory, *chunks, END))
    assert told(results) == [("a", RETRIEVE, '{"query":"tea"}'), ("a", "weather", '{"city":"Rome"}')]


def test_fc18_a_call_without_an_id_is_not_continued_by_the_next_one_that_has_its_index(service, memory):
    chunks = [of(piece(0, '{"query":"tea"}', RETRIEVE)), of(piece(0, "{}", "weather", "b")), END]
    results = memory.handle(fed(memory, *chunks))
    assert [(call.name, call.raw) for call in results.calls] == [
        (RETRIEVE, '{"query":"tea"}'),
        ("weather", "{}"),
    ]
    assert results.calls[1].id == "b"


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (7, "7")])
def test_fc18_an_id_that_is_a_number_is_the_same_text_in_the_turn_and_the_result(
    service, memory, number, text
):
    reply = openai_reply((RETRIEVE, "{}"))
    reply["choices"][0]["message"]["tool_calls"][0]["id"] = number
    results = memory.handle(reply)
    assert [result["tool_call_id"] for result in results] == [text]
    assert [call["id"] for call in results.turn[0]["tool_calls"]] == [text]


@pytest.mark.parametrize("finish", ["", None])
def test_fc06_a_finish_reason_that_says_nothing_does_not_make_a_broken_stream_whole(service, memory, finish):
    results = memory.handle(fed(memory, of(piece(0, None, RETRIEVE, "a"), finish=finish)))
    assert isinstance(results.outcomes[0].error, TruncatedArgumentsError)
    assert not service["function"].called


def test_fc06_a_stream_that_ended_at_the_token_limit_is_cut_whatever_its_arguments_look_like(service, memory):
    results = memory.handle(fed(memory, of(piece(0, "{}", RETRIEVE, "a")), chunk(finish="length")))
    assert results.problem == "truncated"
    assert not service["function"].called


@pytest.mark.parametrize(("end", "problem"), [([END], None), ([], "truncated")])
def test_fc06_a_free_text_call_is_whole_only_where_the_stream_says_that_it_ended(memory, end, problem):
    text = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    results = memory.handle(fed(memory, of(text), *end))
    assert results.problem == problem
    assert [(call.kind, call.arguments) for call in results.pending] == [("custom", "ls")]


def test_arguments_that_stream_as_an_object_are_read(service, memory):
    assert memory.handle(fed(memory, of(piece(0, {"query": "tea"}, RETRIEVE, "a")), END)).outcomes[0].ok
    assert sent(service["function"])["arguments"]["query"] == "tea"


def test_fc28_what_a_service_wants_back_with_a_call_stays_in_a_streamed_turn_and_is_not_captured(
    service, memory
):
    signed = {"google": {"thought_signature": "c2VjcmV0"}}
    chunks = [
        chunk(role="assistant", reasoning_content="They ask "),
        chunk(reasoning_content="about tea."),
        of(piece(0, "{}", "weather", "a", extra_content=signed)),
        of(piece(0, "")),
        END,
    ]
    results = memory.handle(fed(memory, *chunks))
    (turn,) = results.turn
    assert turn["reasoning_content"] == "They ask about tea."
    assert turn["tool_calls"][0]["extra_content"] == signed
    results.add(results.pending[0], "rain")
    memory.capture([USER, *results.turn, *results, {"role": "assistant", "content": "Tea."}])
    captured = json.dumps(sent(service["capture"]))
    assert "weather" in captured
    assert "c2VjcmV0" not in captured
    assert "They ask" not in captured


def test_fc33_the_calls_of_a_second_streamed_answer_are_not_carried_out_and_said(service, memory, caplog):
    second = chunk(choice=1, tool_calls=[piece(0, "{}", RETRIEVE, "a")])
    ends = [chunk(choice=1, finish="tool_calls"), chunk(finish="stop")]
    with caplog.at_level(logging.WARNING, "halo_sdk"):
        results = memory.handle(fed(memory, second, chunk(content="Tea."), *ends))
    assert not results
    assert results.turn == [{"role": "assistant", "content": "Tea."}]
    assert "calls of all but the first are ignored" in caplog.text
    assert not service["function"].called


def test_events_of_the_sdk_s_stream_helper_lead_where_its_chunks_lead(service, memory):
    openai, httpx2 = pytest.importorskip("openai"), pytest.importorskip("httpx2")
    chunks = [
        chunk(role="assistant", content="Let me see."),
        of(piece(0, "", RETRIEVE, "a"), piece(1, "", "weather", "b")),
        of(piece(0, '{"query":')),
        of(piece(1, "{}"), piece(0, '"tea"}')),
        END,
        {**END, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}},
    ]
    lines = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    transport = httpx2.MockTransport(
        lambda request: httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=lines)
    )
    asked = {"model": "m", "messages": [USER], "tools": memory.tools("openai")}
    http = httpx2.Client(transport=transport)
    with (
        openai.OpenAI(api_key="k", http_client=http, max_retries=0) as client,
        client.chat.completions.stream(**asked) as stream,
    ):
        helped = fed(memory, *stream)
        final = stream.get_final_completion()
    results = memory.handle(helped)
    assert told(results) == [("a", RETRIEVE, '{"query":"tea"}'), ("b", "weather", "{}")]
    assert list(results) == list(memory.handle(fed(memory, *chunks))) == list(memory.handle(final))
    assert helped.reply == fed(memory, *chunks).reply
