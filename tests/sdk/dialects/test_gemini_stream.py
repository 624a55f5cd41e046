"""What only a stream of `generateContent` does: parts that arrive in any grouping, and its own SDK's objects."""

import json
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sdk.fakes import RETRIEVE

Json = dict[str, Any]
THOUGHT: Json = {"text": "They ask about tea.", "thought": True}
CALL: Json = {
    "functionCall": {"id": "a", "name": RETRIEVE, "args": {"query": "tea"}},
    "thoughtSignature": "c2ln",
}
FOREIGN: Json = {"functionCall": {"name": "weather", "args": {"days": 3.0}}}
SIGNED: Json = {"text": "", "thoughtSignature": "bGFzdA=="}
PARTS = [THOUGHT, CALL, FOREIGN, SIGNED]


def chunk(*parts: Json, finish: str | None = None, **candidate: Any) -> Json:
    """Return a response that is one piece of a stream."""
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": finish, **candidate}]}


END = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"totalTokenCount": 3}}


def fed(memory: Any, *chunks: Any) -> Any:
    accumulator = memory.accumulator("gemini")
    for each in chunks:
        accumulator.feed(each)
    return accumulator


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.booleans(), min_size=len(PARTS) - 1, max_size=len(PARTS) - 1))
def test_fc28_a_turn_keeps_its_parts_and_signatures_however_they_are_spread_over_chunks(
    memory, service, cuts
):
    groups = [[PARTS[0]]]
    for part, cut in zip(PARTS[1:], cuts, strict=True):
        groups = [*groups, [part]] if cut else [*groups[:-1], [*groups[-1], part]]
    streamed = memory.handle(fed(memory, *(chunk(*group) for group in groups), END))
    whole = memory.handle(chunk(*PARTS, finish="STOP"))
    assert streamed.turn == whole.turn == [{"role": "model", "parts": PARTS}]
    assert list(streamed) == list(whole)
    assert streamed.problem is None


@pytest.mark.parametrize(
    ("finish", "problem", "carried_out"),
    [("STOP", None, True), ("MAX_TOKENS", "truncated", False), ("SAFETY", "safety", True)],
)
def test_fc31_the_last_finish_reason_of_a_stream_counts(service, memory, finish, problem, carried_out):
    results = memory.handle(fed(memory, chunk(CALL, finish="STOP"), chunk(finish=finish)))
    assert results.problem == problem
    assert service["function"].called is carried_out


def test_fc31_a_stream_of_nothing_but_a_finish_reason_says_what_is_wrong(memory):
    results = memory.handle(fed(memory, {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}))
    assert (results.problem, results.turn, bool(results)) == ("malformed_function_call", [], False)


def test_a_stream_without_content_keeps_the_reason_why_it_was_blocked(memory):
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}}
    assert fed(memory, blocked, {"usageMetadata": {"totalTokenCount": 1}}).reply == {
        **blocked,
        "usageMetadata": {"totalTokenCount": 1},
        "candidates": [],
    }


def test_fc33_the_calls_of_a_second_streamed_candidate_are_not_carried_out_and_said(service, memory, caplog):
    with caplog.at_level(logging.WARNING, "halo_sdk"):
        results = memory.handle(
            fed(memory, chunk(CALL, index=1), chunk({"text": "Tea."}, index=0, finish="STOP"))
        )
    assert not results
    assert results.turn == [{"role": "model", "parts": [{"text": "Tea."}]}]
    assert "calls of all but the first are ignored" in caplog.text
    assert not service["function"].called


def test_fc28_chunks_of_the_sdk_give_a_turn_that_goes_back_as_it_came(service, memory):
    genai, httpx2 = pytest.importorskip("google.genai"), pytest.importorskip("httpx2")
    received: list[Json] = []
    lines = "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in [*map(chunk, PARTS), END])

    def answer(request: Any) -> Any:
        received.append(json.loads(request.content))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=lines)

    options = genai.types.HttpOptions(httpx_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    client = genai.Client(api_key="k", http_options=options)
    asked = {"model": "m", "config": {"tools": memory.tools("gemini")}}
    accumulator = fed(memory, *client.models.generate_content_stream(contents="tea?", **asked))
    results = memory.handle(accumulator)
    results.add(results.pending[0], "rain")
    list(client.models.generate_content_stream(contents=["tea?", *results.turn, *results], **asked))
    _, turn, answered = received[1]["contents"]
    assert turn["parts"] == PARTS
    answers = [part["functionResponse"] for part in answered["parts"]]
    assert [(each.get("id"), each["name"]) for each in answers] == [("a", RETRIEVE), (None, "weather")]
    client.close()
