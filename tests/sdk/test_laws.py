"""What holds for any reply and any history, in every dialect."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from halo_sdk._plain import plain, size_bytes
from halo_sdk._session import cleaned
from halo_sdk.dialects import DIALECTS, HISTORIES, named
from halo_sdk.dialects.base import Answered, Called
from tests.sdk.fakes import RETRIEVE
from tests.sdk.replies import REPLY, Call, answered

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = JSON | st.fixed_dictionaries(
    {}, optional={"sessionData": JSON, "query": JSON, "limit": JSON, "endUserKey": JSON}
)
CALLS = st.lists(
    st.builds(
        Call,
        id=st.none() | st.sampled_from(["a", "b"]) | st.text(min_size=1, max_size=50),
        name=st.sampled_from([RETRIEVE, "halo_made_up", "weather", ""]),
        arguments=ARGUMENTS,
    ),
    max_size=4,
)
LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_every_dialect_that_is_asked_in_replies_is_under_the_laws():
    assert set(REPLY) | {"mcp"} == set(DIALECTS)


@pytest.mark.parametrize("dialect", sorted(REPLY))
@LAW
@given(calls=CALLS)
def test_results_answer_the_calls_one_to_one_in_their_order(service, memory, dialect, calls):
    results = memory.handle(REPLY[dialect](calls), dialect=dialect)
    for call in results.pending:
        results.add(call, {"weather": "rain"})
    assert results.complete
    assert [call.name for call in results.calls] == [call.name for call in calls]
    echoed = [part.id for message in results.turn for part in named(dialect).parts(message)]
    ids = [id_ for id_, _, _ in answered(dialect, list(results))]
    assert len(ids) == len(calls)
    assert ids == [call.id for call in results.calls]
    if dialect != "json-schema":  # a list of calls is no turn
        assert ids == echoed
    for call, id_ in zip(calls, ids, strict=True):
        assert id_ == plain(call.id) if call.id else id_ != ""
    for request in service["function"].calls:
        body = json.loads(request.request.content)
        assert (body["projectKey"], body["endUserKey"]) == ("customer-product", "user_123")


@pytest.mark.parametrize("dialect", sorted(REPLY))
@LAW
@given(calls=CALLS)
def test_what_is_written_is_read_back_with_its_ids(service, memory, dialect, calls):
    results = memory.handle(REPLY[dialect](calls), dialect=dialect)
    for call in results.pending:
        results.add(call, "rain")
    spoken = named(dialect)
    read = [part for message in results for part in spoken.parts(message)]
    assert all(isinstance(part, Answered) for part in read)
    assert [part.id for part in read] == [call.id for call in results.calls]
    called = [part for message in results.turn for part in spoken.parts(message)]
    if dialect != "json-schema":
        assert called == [Called(call.name, call.id) for call in results.calls]


BASE64 = st.binary(max_size=200).map(lambda data: "data:image/png;base64," + data.hex())
BLOCKS = st.lists(
    JSON
    | st.builds(lambda text: {"type": "text", "text": text}, st.text())
    | st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, BASE64)
    | st.builds(
        lambda data: {"type": "image", "source": {"type": "base64", "media_type": "a/b", "data": data}},
        st.text(),
    )
    | st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": text}, st.text())
    | st.builds(lambda data: {"inlineData": {"mimeType": "image/png", "data": data}}, st.text()),
    max_size=4,
)
SAID = st.builds(
    lambda role, field, value: {"role": role, field: value},
    st.sampled_from(["user", "assistant", "model", "tool", "system"]),
    st.sampled_from(["content", "parts"]),
    st.text() | BLOCKS | JSON,
) | st.dictionaries(st.sampled_from(["role", "type", "content", "data", "tool_calls", "parts"]), JSON)


ENTRIES = st.builds(
    lambda spell, name, id_, arguments: spell(name, id_, arguments),
    st.sampled_from(
        [
            lambda name, id_, arguments: {"id": id_, "function": {"name": name, "arguments": arguments}},
            lambda name, id_, arguments: {"type": "tool_use", "id": id_, "name": name, "input": arguments},
            lambda name, id_, arguments: {"id": id_, "name": name},
            lambda name, id_, arguments: {"name": name},
        ]
    ),
    st.sampled_from([RETRIEVE, "weather", ""]),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from(["{}", {}]) | ARGUMENTS,
)
OF_LLAMA_INDEX = st.builds(
    lambda calls, blocks, results: [
        {"role": "assistant", "blocks": blocks, "additional_kwargs": {"tool_calls": calls}},
        *(
            {"role": "tool", "blocks": blocks, "additional_kwargs": {"name": name, "tool_call_id": id_}}
            for name, id_ in results
        ),
    ],
    st.lists(ENTRIES | JSON, max_size=6),
    st.lists(st.just({"block_type": "text", "text": "a"}) | JSON, max_size=2),
    st.lists(st.tuples(st.sampled_from([RETRIEVE, "weather", None]), st.sampled_from([None, "a", "b"]))),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Any]:
    """Draw a history in which dialects, calls, results, thoughts and pictures stand side by side."""
    history: list[Any] = []
    for _ in range(draw(st.integers(0, 4))):
        history.append(draw(SAID))
        dialect = draw(st.sampled_from(sorted(REPLY)))
        calls = draw(CALLS)
        reply = DIALECTS[dialect].read(plain(REPLY[dialect](calls)))
        history += reply.turn
        history += draw(st.lists(SAID, max_size=1))
        history += draw(st.just([]) | OF_LLAMA_INDEX)
    return history


@settings(max_examples=300, deadline=None)
@given(history=histories() | OF_LLAMA_INDEX)
def test_cleaning_a_history_twice_changes_nothing_more_and_never_makes_it_longer(history):
    before = plain(history)
    once = cleaned([message for message in before if isinstance(message, dict)])
    assert cleaned(once) == once
    assert size_bytes(once) <= size_bytes(before)


@settings(max_examples=100, deadline=None)
@given(history=histories())
def test_no_call_of_ours_survives_cleaning(history):
    kept = cleaned([message for message in plain(history) if isinstance(message, dict)])
    assert sum(reader.own_calls(message) for reader in HISTORIES for message in kept) == 0
