"""Topics: which one, what it is called, what it says."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server import clustering
from halo_server.clustering import exchange_vector, joined, nearest, opened, overall, without
from halo_server.domain import Message, Sentence, Topic
from halo_server.transcript import read_message

EAST, NORTH = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
NONE = np.zeros(2, np.float32)


def said(*texts: str) -> list[Message]:
    return [
        read_message({"role": role, "content": text})
        for text, role in zip(texts, cycle(["user", "assistant"]), strict=False)
    ]


def topic(*texts: str, vector: np.ndarray = EAST, taken: tuple[str, ...] = ()) -> Topic:
    return opened("t", "e1", said(*texts), vector, taken, 5)


def test_the_vector_of_an_exchange_is_the_direction_of_its_messages() -> None:
    np.testing.assert_allclose(exchange_vector([EAST, None, NORTH], 2), [0.5**0.5, 0.5**0.5], rtol=1e-6)
    for nothing in ([], [None]):
        assert exchange_vector(nothing, 2).tolist() == [0, 0]


def test_an_exchange_joins_the_nearest_topic_that_is_near_enough() -> None:
    sums, sizes = np.stack([3 * NORTH, 2 * EAST, NONE]), np.array([3, 2, 0])

    assert nearest(EAST, sums, sizes, None) == 1
    assert nearest(-EAST, sums, sizes, None) is None
    assert nearest(NONE, sums, sizes, None) is None
    assert nearest(EAST, np.empty((0, 0), np.float32), np.array([], np.int64), None) is None


def test_a_topic_of_many_subjects_is_not_near_to_each_of_them() -> None:
    """Its centre points somewhere between; what counts is how near its exchanges are on average."""
    mixed = np.array([[2, 8]], np.float32)

    assert nearest(EAST, mixed, np.array([10]), None) is None
    assert nearest(NORTH, mixed, np.array([10]), None) == 0


def test_a_follow_up_stays_on_its_topic_until_it_is_about_another() -> None:
    sums, sizes = np.stack([EAST, NORTH]), np.array([1, 1])
    vague = 0.2 * EAST + 0.1 * NORTH

    assert nearest(vague, sums, sizes, None) is None
    assert nearest(vague, sums, sizes, 0) == 0
    assert nearest(NORTH, sums, sizes, 0) == 1


def test_a_full_scope_opens_no_more_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "MOST_TOPICS", 2)

    assert nearest(-EAST, np.stack([EAST, NORTH]), np.array([1, 1]), None) == 1


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("My daughter Mia is allergic to peanuts.", "daughter_mia"),
        ("我女儿对花生过敏", "女儿_花生过敏"),
        ("ok", "notes"),
        ("", "notes"),
    ],
)
def test_a_key_is_words_of_the_users_language(text: str, key: str) -> None:
    assert topic(text).key == key


@given(taken=st.sets(st.sampled_from(["notes", "notes_2", "notes_3"])))
def test_a_key_is_free(taken: set[str]) -> None:
    assert topic("ok", taken=tuple(taken)).key not in taken


def test_a_topic_names_and_quotes_what_was_said() -> None:
    found = topic("Are peanuts bad? Mia is allergic to peanut butter.", "Then no peanut butter.")

    assert (found.label, found.exchanges, found.enabled, found.updated_at) == ("peanut butter", 1, True, 5)
    assert found.summary == (Sentence("Mia is allergic to peanut butter.", "e1"),)
    assert "peanut butter" not in found.aliases
    assert "mia" in found.aliases
    assert found.confidence == 0.5
    assert replace(found, exchanges=0).confidence == 0


def test_a_long_sentence_is_cut_and_the_newest_three_are_kept() -> None:
    grown = topic("first " + "word " * 90)
    assert len(grown.summary[0].text) == 240
    assert grown.summary[0].text.endswith("…")

    for n in range(2, 6):
        grown = joined(grown, f"e{n}", said(f"Fact {n} about violin."), EAST, n)
    assert [sentence.exchange_id for sentence in grown.summary] == ["e5", "e4", "e3"]
    assert (grown.key, grown.exchanges, grown.updated_at) == (topic("first " + "word " * 90).key, 5, 5)


@given(
    texts=st.lists(
        st.sampled_from(["violin lessons", "peanut butter", "Lisbon trip", "ok", "Who?"]),
        min_size=2,
        max_size=4,
    )
)
def test_taking_an_exchange_out_undoes_its_joining(texts: list[str]) -> None:
    before = topic(texts[0])
    after = without(joined(before, "e2", said(*texts[1:]), NORTH, 9), "e2", said(*texts[1:]), NORTH)

    np.testing.assert_allclose(after.vector_sum, before.vector_sum)
    assert (after.exchanges, after.terms, after.key, after.label) == (
        1,
        before.terms,
        before.key,
        before.label,
    )
    assert "e2" not in {sentence.exchange_id for sentence in after.summary}
    assert set(after.aliases) == set(before.aliases)


def test_the_overall_summary_quotes_the_largest_enabled_topics() -> None:
    small, large = topic("The violin is red."), replace(topic("Lisbon is warm."), exchanges=3)
    off, long = (
        replace(small, enabled=False),
        replace(small, exchanges=2, summary=(Sentence("x" * 480, "e"),)),
    )

    assert overall([small, large, off]) == "Lisbon is warm. The violin is red."
    assert overall([small, long, large]) == "Lisbon is warm."
    assert overall([]) == ""
