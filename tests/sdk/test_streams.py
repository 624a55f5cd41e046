"""Replies that come in pieces, put together so that nothing cut is ever carried out."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halo_sdk import HaloConfigError, TruncatedArgumentsError
from tests.sdk.fakes import FOUND, RETRIEVE, sent
from tests.sdk.replies import REPLY, Call, answered

Json = dict[str, Any]
STREAMED = ("anthropic", "gemini", "gemini-interactions", "openai", "openai-responses")
LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def delta(index: Any, *, finish: str | None = None, **fields: Any) -> Json:
    """Return a completion chunk with one fragment of a call."""
    fragment = {**({} if index is None else {"index": index}), **fields}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [fragment]}, "finish_reason": finish}]}


def function(name: str | None = None, arguments: str | None = None) -> Json:
    return {
        "function": {
            key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None
        }
    }


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def openai_chunks(calls: list[Call], size: int) -> list[Json]:
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    ]
    for at, call in enumerate(calls):
        chunks.append(delta(at, id=call.id, type="function", **function(call.name, "")))
        chunks += [delta(at, **function(None, piece)) for piece in pieces(json.dumps(call.arguments), size)]
    return [*chunks, END, {"choices": [], "usage": {"total_tokens": 3}}]


def responses_chunks(calls: list[Call], size: int) -> list[Json]:
    reply = REPLY["openai-responses"](calls)
    chunks: list[Json] = [
        {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}
    ]
    for at, item in enumerate(reply["output"]):
        added = {**item, "arguments": "", "call_id": "", "name": "", "status": "in_progress"}
        chunks.append({"type": "response.output_item.added", "output_index": at, "item": added})
        chunks += [
            {"type": "response.function_call_arguments.delta", "output_index": at, "delta": piece}
            for piece in pieces(item["arguments"], size)
        ]
        chunks.append({"type": "response.output_item.done", "output_index": at, "item": item})
    return [*chunks, {"type": "response.completed", "response": {**reply, "output": []}}]


def gemini_chunks(calls: list[Call], size: int) -> list[Json]:
    parts = REPLY["gemini"](calls)["candidates"][0]["content"]["parts"]
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
    return [*chunks, {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]}]


def interactions_chunks(calls: list[Call], size: int) -> list[Json]:
    chunks: list[Json] = [
        {"event_type": "interaction.created", "interaction": {"id": "i", "status": "in_progress"}}
    ]
    for at, call in enumerate(calls):
        step = {"type": "function_call", "id": call.id, "name": call.name, "arguments": {}}
        chunks.append({"event_type": "step.start", "index": at, "step": step})
        chunks += [
            {
                "event_type": "step.delta",
                "index": at,
                "delta": {"type": "arguments_delta", "arguments": piece},
            }
            for piece in pieces(json.dumps(call.arguments), size)
        ]
        chunks.append({"event_type": "step.stop", "index": at})
    end = {"id": "i", "status": "requires_action"}
    return [*chunks, {"event_type": "interaction.completed", "interaction": end}]


def anthropic_chunks(calls: list[Call], size: int) -> list[Json]:
    start = {"type": "message", "role": "assistant", "id": "m", "content": [], "stop_reason": None}
    chunks: list[Json] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for at, call in enumerate(calls):
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        chunks.append({"type": "content_block_start", "index": at, "content_block": block})
        chunks += [
            {
                "type": "content_block_delta",
                "index": at,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in ["", *pieces(json.dumps(call.arguments), size)]
        ]
        chunks.append({"type": "content_block_stop", "index": at})
    return [
        *chunks,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


CHUNKS = {
    "anthropic": anthropic_chunks,
    "gemini": gemini_chunks,
    "gemini-interactions": interactions_chunks,
    "openai": openai_chunks,
    "openai-responses": responses_chunks,
}
CALLS = st.lists(
    st.builds(
        Call,
        id=st.uuids().map(str),
        name=st.sampled_from([RETRIEVE, "halo_made_up", "weather"]),
        arguments=st.fixed_dictionaries({"query": st.text()}, optional={"limit": st.integers(-5, 99)}),
    ),
    min_size=1,
    max_size=3,
)


def fed(memory: Any, dialect: str, chunks: list[Any]) -> Any:
    accumulator = memory.accumulator(dialect)
    for chunk in chunks:
        accumulator.feed(chunk)
    return accumulator


def told(calls: Any) -> list[tuple[Any, ...]]:
    return [(call.id, call.name, call.arguments, call.index) for call in calls]


@pytest.mark.parametrize("dialect", STREAMED)
@LAW
@given(calls=CALLS, size=st.integers(1, 40))
def test_a_reply_is_the_same_streamed_and_not_however_it_is_cut_into_pieces(
    memory, service, dialect, calls, size
):
    streamed = memory.handle(fed(memory, dialect, CHUNKS[dialect](calls, size)))
    whole = memory.handle(REPLY[dialect](calls))
    assert told(streamed.calls) == told(whole.calls)
    assert list(streamed) == list(whole)
    assert streamed.problem is None


@pytest.mark.parametrize("dialect", STREAMED)
@LAW
@given(calls=CALLS, size=st.integers(1, 20), data=st.data())
def test_fc06_a_stream_that_breaks_off_never_leads_to_a_call_with_less_than_the_model_meant(
    memory, service, dialect, calls, size, data
):
    chunks = CHUNKS[dialect](calls, size)
    requests = service["function"].calls
    before = len(requests)
    memory.handle(fed(memory, dialect, chunks[: data.draw(st.integers(0, len(chunks)))]))
    after = len(requests)
    memory.handle(REPLY[dialect](calls))
    asked, meant = (
        [json.loads(call.request.content)["arguments"] for call in list(requests)[start:end]]
        for start, end in ((before, after), (after, None))
    )
    assert [arguments for arguments in asked if arguments not in meant] == []


@pytest.mark.parametrize("dialect", STREAMED)
def test_chunks_come_as_dicts_as_lines_and_as_objects(memory, service, dialect):
    chunks = CHUNKS[dialect]([Call("a", RETRIEVE, {"query": "tea"})], 5)
    lines = [f"data: {json.dumps(chunk)}" for chunk in chunks]
    lines += ["", "data: [DONE]"]
    expected = list(memory.handle(fed(memory, dialect, chunks)))
    assert answered(dialect, expected) == [("a", answered(dialect, expected)[0][1], True)]
    assert list(memory.handle(fed(memory, dialect, lines))) == expected
    assert list(memory.handle(fed(memory, dialect, [line.encode() for line in lines]))) == expected


def test_a_line_that_is_no_json_is_refused(memory):
    with pytest.raises(HaloConfigError, match="chunk"):
        memory.accumulator("openai").feed("data: {")


@pytest.mark.parametrize("dialect", STREAMED)
def test_fc40_fc41_chunks_that_say_nothing_are_ignored_and_the_reply_is_made_once(memory, service, dialect):
    noise = [
        {},
        {"choices": []},
        {"choices": None},
        {"type": "ping"},
        {"obfuscation": "x"},
        {"candidates": []},
        None,
        5,
    ]
    noise += [{"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "x"}}]
    noise += [{"event_type": "step.delta", "index": 9, "delta": {"type": "text", "text": "x"}}]
    chunks = CHUNKS[dialect]([Call("a", RETRIEVE, {"query": "tea"})], 5)
    accumulator = fed(memory, dialect, [*noise, *chunks, *noise])
    assert len(memory.handle(accumulator).calls) == 1
    assert service["function"].call_count == 1


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [
                delta(None, id="a", **function(RETRIEVE, "")),
                delta(None, **function(None, '{"query":')),
                delta(None, **function(None, '"tea"}')),
                delta(None, id="b", **function("weather", "{}")),
            ],
            id="fc34-no-index",
        ),
        pytest.param(
            [
                delta(0, id="a", **function(RETRIEVE, '{"query":"tea"}')),
                delta(0, id="b", **function("weather", "{}")),
            ],
            id="fc35-index-used-again",
        ),
        pytest.param(
            [
                delta(0, id="a", **function(RETRIEVE, '{"query"')),
                delta(1, id="b", **function("weather", "{")),
                delta(0, **function(None, ':"tea"}')),
                delta(1, **function(None, "}")),
            ],
            id="fc36-interleaved",
        ),
        pytest.param(
            [
                delta(0, id="a", **function(RETRIEVE, '{"query":')),
                delta(7, **function(None, '"tea"}')),
                delta(1, id="b", **function("weather", "{}")),
            ],
            id="fc36-unknown-index-without-id",
        ),
        pytest.param(
            [
                delta(0, id="a", **function(RETRIEVE, '{"query"')),
                delta(0, id="a", **function(RETRIEVE, ':"tea"}')),
                delta(1, id="b", **function("weather", "")),
                delta(1, id="b", **function("weather", "{}")),
            ],
            id="fc37-repeated-id-and-name",
        ),
        pytest.param(
            [
                delta(0, id="a", **function(RETRIEVE[:9], "")),
                delta(0, **function(RETRIEVE[9:], '{"query":"tea"}')),
                delta(1, id="b", **function("weather", "{}")),
            ],
            id="fc37-name-in-pieces",
        ),
        pytest.param(
            [
                delta(1, id="a", **function(RETRIEVE, '{"query":"tea"}')),
                delta(2, id="b", **function("weather", "{}")),
            ],
            id="index-from-one",
        ),
        pytest.param(
            [
                {
                    "choices": [
                        {
                            "index": 0,
                            "delta": {
                                "tool_calls": [
                                    {"index": 0, "id": "a", **function(RETRIEVE, '{"query":"tea"}')},
                                    {"index": 1, "id": "b", **function("weather", "{}")},
                                ]
                            },
                        }
                    ]
                }
            ],
            id="several-in-one-chunk",
        ),
    ],
)
@pytest.mark.parametrize("end", [[END], []], ids=["finished", "without-a-finish-reason"])
def test_fc34_fc35_fc36_fc37_fragments_find_their_call_whatever_a_service_leaves_out_or_repeats(
    memory, service, chunks, end
):
    results = memory.handle(fed(memory, "openai", [*chunks, *end]))
    assert [(call.id, call.name) for call in results.calls] == [("a", RETRIEVE), ("b", "weather")]
    assert sent(service["function"])["arguments"]["query"] == "tea"


@pytest.mark.parametrize("index", [0, None])
def test_calls_without_ids_are_told_apart_by_their_whole_arguments(memory, service, index):
    chunks = [
        delta(index, **function(RETRIEVE, '{"query":"tea"}')),
        delta(index, **function("weather", "")),
        delta(index, **function(None, '{"city":"Rome"}')),
        delta(index, **function("weather", '{"city":"Oslo"}')),
    ]
    results = memory.handle(fed(memory, "openai", [*chunks, END]))
    assert [call.arguments for call in results.calls] == [
        {"query": "tea"},
        {"city": "Rome"},
        {"city": "Oslo"},
    ]
    (turn,) = results.turn
    assert [call["id"] for call in turn["tool_calls"]] == [call.id for call in results.calls]


def test_a_placeholder_before_the_arguments_is_replaced_by_them(memory, service):
    chunks = [
        delta(0, id="a", **function(RETRIEVE, "{}")),
        delta(0, **function(None, '{"query":')),
        delta(0, **function(None, '"tea"}')),
    ]
    (call,) = memory.handle(fed(memory, "openai", [*chunks, END])).calls
    assert call.arguments == {"query": "tea"}
    assert sent(service["function"])["arguments"]["query"] == "tea"


def test_fc38_a_call_without_any_argument_delta_has_no_arguments(memory, service):
    block = {"type": "tool_use", "id": "a", "name": RETRIEVE, "input": {}}
    anthropic = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    for dialect, chunks in (
        ("anthropic", anthropic),
        ("openai", [delta(0, id="a", **function(RETRIEVE)), END]),
    ):
        (outcome,) = memory.handle(fed(memory, dialect, chunks)).outcomes
        assert outcome.ok
        assert sent(service["function"])["arguments"] == {"sessionData": {}}
    (cut,) = memory.handle(fed(memory, "openai", [delta(0, id="a", **function(RETRIEVE))])).outcomes
    assert isinstance(cut.error, TruncatedArgumentsError)


def test_fc39_an_item_that_was_only_added_is_no_call(memory, service):
    chunks = responses_chunks([Call("a", RETRIEVE, {"query": "tea"})], 5)
    only_added = [chunk for chunk in chunks if chunk["type"] != "response.output_item.done"]
    assert not memory.handle(fed(memory, "openai-responses", only_added))
    assert not service["function"].called


def test_words_thoughts_and_signatures_arrive_in_the_turn_as_they_would_unstreamed(memory, service):
    def block(index: int, content: Json, *deltas: Json) -> list[Json]:
        return [
            {"type": "content_block_start", "index": index, "content_block": content},
            *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    chunks = [
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Hm"},
            {"type": "thinking_delta", "thinking": "m."},
            {"type": "signature_delta", "signature": "c2ln"},
        ),
        *block(
            1,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "Let me "},
            {"type": "text_delta", "text": "see."},
            {"type": "citations_delta", "citation": {"cited_text": "x"}},
        ),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    assert fed(memory, "anthropic", chunks).turn == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hmm.", "signature": "c2ln"},
                {"type": "text", "text": "Let me see.", "citations": [{"cited_text": "x"}]},
            ],
        }
    ]


def test_a_streamed_gemini_turn_keeps_its_signatures_and_joins_its_words(memory):
    def chunk(*parts: Json, finish: str | None = None) -> Json:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}

    chunks = [
        chunk({"text": "Hm", "thought": True}),
        chunk({"text": "Let me "}),
        chunk({"text": "see."}),
        chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP"),
        {"usageMetadata": {"totalTokenCount": 3}},
    ]
    accumulator = fed(memory, "gemini", chunks)
    assert accumulator.turn == [
        {
            "role": "model",
            "parts": [
                {"text": "Hm", "thought": True},
                {"text": "Let me see."},
                {"text": "", "thoughtSignature": "c2ln"},
            ],
        }
    ]
    assert memory.handle(accumulator).problem is None
    blocked = fed(memory, "gemini", [{"promptFeedback": {"blockReason": "SAFETY"}}])
    assert memory.handle(blocked).problem == "empty_candidates"


def test_gemini_arguments_that_come_in_pieces_are_not_carried_out(memory, service):
    call = {
        "name": RETRIEVE,
        "partialArgs": [{"jsonPath": "$.query", "stringValue": "te"}],
        "willContinue": True,
    }
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [{"functionCall": call}]}}]}]
    assert memory.handle(fed(memory, "gemini", chunks)).problem == "truncated"
    assert not service["function"].called


def test_steps_of_all_kinds_are_put_together(memory, service):
    def step(index: int, started: Json, *deltas: Json) -> list[Json]:
        return [
            {"event_type": "step.start", "index": index, "step": started},
            *({"event_type": "step.delta", "index": index, "delta": each} for each in deltas),
            {"event_type": "step.stop", "index": index},
        ]

    chunks = [
        *step(
            0,
            {"type": "thought"},
            {"type": "thought_summary", "content": {"type": "text", "text": "Hm"}},
            {"type": "thought_signature", "signature": "c2ln"},
        ),
        *step(
            1,
            {"type": "model_output"},
            {"type": "text", "text": "Hel"},
            {"type": "text", "text": "lo"},
            {"type": "image", "data": "aGk=", "mime_type": "image/png"},
        ),
        *step(
            2, {"type": "google_search_call"}, {"type": "google_search_call", "arguments": {"queries": ["x"]}}
        ),
        {"event_type": "interaction.status_update", "status": "in_progress"},
        {"event_type": "interaction.completed", "interaction": {"id": "i", "status": "completed"}},
    ]
    accumulator = fed(memory, "gemini-interactions", chunks)
    assert accumulator.turn == [
        {"type": "thought", "summary": [{"type": "text", "text": "Hm"}], "signature": "c2ln"},
        {
            "type": "model_output",
            "content": [
                {"type": "text", "text": "Hello"},
                {"type": "image", "data": "aGk=", "mime_type": "image/png"},
            ],
        },
        {"type": "google_search_call", "arguments": {"queries": ["x"]}},
    ]
    assert memory.handle(accumulator).problem is None


@pytest.mark.parametrize("dialect", ["anthropic", "gemini-interactions"])
def test_arguments_that_are_no_json_are_told_and_echoed_as_an_empty_object(memory, service, dialect):
    chunks = CHUNKS[dialect]([Call("a", RETRIEVE, {"query": "tea"})], 100)
    broken = json.loads(json.dumps(chunks).replace('{\\"query\\": \\"tea\\"}', "{'query': tea}"))
    results = memory.handle(fed(memory, dialect, broken))
    assert "not valid JSON" in results.outcomes[0].body
    assert "tea" not in json.dumps(results.turn)
    assert not service["function"].called


def test_a_legacy_function_call_is_streamed_too(memory, service):
    def chunk(**fields: Any) -> Json:
        return {"choices": [{"index": 0, "delta": {"function_call": fields}, "finish_reason": None}]}

    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]}
    chunks = [
        chunk(name=RETRIEVE, arguments=""),
        chunk(arguments='{"query":'),
        chunk(arguments='"tea"}'),
        end,
    ]
    (result,) = memory.handle(fed(memory, "openai", chunks))
    assert result["role"] == "function"
    assert json.loads(result["content"]) == FOUND["functionResponse"]


def test_a_free_text_call_is_streamed_too(memory):
    def chunk(text: str) -> Json:
        return delta(0, id="c", type="custom", custom={"name": "shell", "input": text})

    (call,) = memory.handle(fed(memory, "openai", [chunk("ls"), chunk(" -l"), END])).pending
    assert (call.name, call.arguments) == ("shell", "ls -l")


def test_the_answer_of_a_stream_is_captured(memory, service):
    said = [
        {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
        for piece in ("Te", "a.")
    ]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    accumulator = fed(memory, "openai", [*said, end])
    assert not memory.handle(accumulator)
    memory.capture([{"role": "user", "content": "What do I drink?"}, *accumulator.turn])
    assert sent(service["capture"])["response"] == {"role": "assistant", "content": "Tea."}
    memory.capture("What do I drink?", accumulator)
    assert sent(service["capture"])["response"] == {"role": "assistant", "content": "Tea."}


@pytest.mark.parametrize(
    ("dialect", "chunk"),
    [
        ("openai", {"choices": [{"index": 0, "delta": {"content": "You want "}, "finish_reason": None}]}),
        ("gemini", {"candidates": [{"content": {"role": "model", "parts": [{"text": "You want "}]}}]}),
    ],
)
def test_an_answer_whose_end_never_came_is_said_to_be_cut(memory, dialect, chunk):
    results = memory.handle(fed(memory, dialect, [chunk]))
    assert not results
    assert results.problem == "truncated"
