"""Anything a provider's SDK hands out, as plain JSON; and answers that fit."""

import dataclasses
import enum
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from halo_sdk._budget import fitted
from halo_sdk._plain import MAX_DEPTH, dumps, loads, plain


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    at: datetime
    count: int = 0
    nothing: str | None = None


@dataclasses.dataclass
class Point:
    x: int
    inner: object = None


class WithToDict:
    def to_dict(self):
        return {"a": Colour.RED}


class Refusing:
    def model_dump(self, **options):
        return "not a mapping"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Model(at=datetime(2026, 1, 2, tzinfo=UTC)), {"at": "2026-01-02T00:00:00Z", "count": 0}),
        (Model.model_construct(at="not a date", count="many"), {"at": "not a date", "count": "many"}),
        (Point(1, Point(2)), {"x": 1, "inner": {"x": 2}}),
        (WithToDict(), {"a": "red"}),
        (SimpleNamespace(a=(1, 2)), {"a": [1, 2]}),
        ({1: date(2026, 1, 2), None: UUID(int=1)}, {"1": "2026-01-02", "None": str(UUID(int=1))}),
        ([Decimal("1.5"), float("inf"), 10**2_000, True], ["1.5", None, None, True]),
        ({"a\ud800": "b\udc00"}, {"a\ufffd": "b\ufffd"}),
        (object(), "<object>"),
        (Refusing(), "<Refusing>"),
        (dict, "<type>"),
    ],
    ids=repr,
)
def test_fc53_fc54_every_carrier_becomes_plain_json(value, expected):
    assert plain(value) == expected


def test_bytes_become_a_placeholder():
    assert plain(bytearray(b"abc"))["bytes"] == 3


def test_nesting_is_cut_before_a_serialiser_would_fail():
    value: list = []
    for _ in range(5_000):
        value = [value]
    assert dumps(plain(value)).count("[") == MAX_DEPTH


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text() | st.binary(), st.lists))
def test_plain_json_always_serialises(value):
    text = dumps(plain(value))
    assert loads(text.encode()) == plain(value)


def test_a_body_that_fits_is_untouched():
    body = {"rawEntries": [{"id": "a"}]}
    assert fitted(body, 100) is body


def test_the_last_entry_is_cut_inside_its_texts_and_keeps_its_names():
    entry = {"id": "raw_1", "requestRaw": {"messages": [{"role": "user", "content": "y" * 5_000, "n": 1}]}}
    body = fitted({"rawEntries": [entry, entry]}, 400)
    (cut,) = body["rawEntries"]
    message = cut["requestRaw"]["messages"][0]
    assert (cut["id"], message["role"], body["truncated"]) == ("raw_1", "user", True)
    assert message["content"].endswith("…")
    assert 350 < len(dumps(body)) <= 400


@pytest.mark.parametrize(
    "body",
    [
        {"overallSummary": "z" * 5_000},
        {"rawEntries": [{"many": [1] * 5_000}], "overallSummary": "z" * 5_000},
        {"requestId": "r" * 5_000},
    ],
)
def test_what_cannot_be_cut_in_its_entries_is_cut_elsewhere(body):
    shorter = fitted(body, 200)
    assert len(dumps(shorter)) <= 200
    assert shorter["truncated"] is True


ENTRIES = st.lists(
    st.fixed_dictionaries({"id": st.text(max_size=5), "text": st.text(max_size=400)}), max_size=6
)


@given(entries=ENTRIES, summary=st.text(max_size=300), limit=st.integers(200, 2_000))
def test_every_answer_fits_is_valid_and_keeps_the_best_entries(entries, summary, limit):
    body = {"overallSummary": summary, "rawEntries": entries}
    shorter = fitted(body, limit)
    assert len(dumps(shorter)) <= limit
    assert json.loads(dumps(shorter)) == shorter
    kept = [entry.get("id") for entry in shorter.get("rawEntries", [])]
    assert kept == [entry["id"] for entry in entries][: len(kept)]
    assert (shorter == body) or shorter["truncated"] is True
