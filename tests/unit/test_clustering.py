"""Topics: which one, what it is called, what it says."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server import clustering
from halo_server.clustering import (
    Gist,
    exchange_vector,
    gist,
    gives_away,
    joined,
    merged,
    nearest,
    opened,
    overall,
    united,
    without,
)
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
    return opened("t", "e1", gist(said(*texts), vector), taken, 5)


def words_of(topic: Topic) -> str:
    """Return everything of a topic that is made of words."""
    parts = (topic.key, topic.label, *topic.aliases, *topic.terms, *(one.text for one in topic.summary))
    return " ".join(parts).lower().replace("_", " ")


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
    assert nearest(NONE, sums, sizes, 1) == 1


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
        grown = joined(grown, f"e{n}", gist(said(f"Fact {n} about violin."), EAST), n)
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
    before, more = topic(texts[0]), gist(said(*texts[1:]), NORTH)
    after = without(joined(before, "e2", more, 9), "e2", more, {before.key})

    np.testing.assert_allclose(after.vector_sum, before.vector_sum)
    assert (after.exchanges, after.terms, after.key, after.label) == (
        1,
        before.terms,
        before.key,
        before.label,
    )
    assert "e2" not in {sentence.exchange_id for sentence in after.summary}
    assert set(after.aliases) == set(before.aliases)


def test_a_gist_reads_what_was_said_and_no_more_than_its_beginning() -> None:
    called = read_message(
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "violin"}}]}
    )
    long = read_message("peanuts " * 1_000 + "violin. Lisbon is warm.")
    found = gist([called, long, *said("Porto is cold.")], EAST)

    assert {"porto", "cold"} < set(" ".join(found.terms).split())
    assert not {"violin", "lisbon"} & set(f"{found.terms} {found.telling}".lower().split())
    assert found.telling == "Porto is cold."
    assert found.vector is EAST
    assert gist([], NONE) == Gist({}, "", NONE)


def test_what_has_no_direction_names_no_topic() -> None:
    """Others without one join it, whatever they are about."""
    found = topic("Mia is allergic to peanuts.", vector=NONE)

    assert (found.key, found.label) == ("notes", "notes")
    assert "mia" in found.terms


def test_a_topic_is_named_anew_when_nobody_else_said_its_name() -> None:
    first, second = (
        gist(said(text), EAST) for text in ("Zebrafish quarantine!", "Violin lessons, violin strings.")
    )
    both = joined(opened("t", "e1", first, (), 5), "e2", second, 6)
    assert (both.key, both.label) == ("zebrafish_quarantine", "zebrafish quarantine")

    left = without(both, "e1", first, {both.key, "violin_lessons", "violin_strings"})

    assert left.label in ("violin lessons", "violin strings")
    assert left.key == f"{left.label.replace(' ', '_')}_2"
    assert left.label not in left.aliases
    assert "zebrafish" not in words_of(left)
    assert "quarantine" not in words_of(left)
    assert (without(left, "e2", second, {left.key}).label, left.id) == ("notes", both.id)


def test_a_topic_keeps_its_name_while_somebody_else_said_it() -> None:
    first, second = (
        gist(said(text), EAST) for text in ("Violin lessons!", "Violin lessons, Lisbon trip plans.")
    )
    both = joined(opened("t", "e1", first, (), 5), "e2", second, 6)

    for gone in (("e1", first), ("e2", second)):
        left = without(both, *gone, {both.key})
        assert (left.key, left.label) == ("violin_lessons", "violin lessons")
    unsorted = replace(both, key="unsorted", label="unsorted")
    assert without(unsorted, "e1", first, {"unsorted"}).key == "unsorted"


def test_the_name_of_a_topic_stays_among_its_phrases_however_many_others_are_said() -> None:
    named = gist(said("Violin lessons!"), EAST)
    grown = joined(opened("t", "e1", named, (), 5), "e2", named, 6)
    for n in range(3, 6):
        often = ", ".join(f"plant{letter}{n} garden" for letter in 9 * "abcdefghijklmnopqrstuvwxyz"[:20])
        grown = joined(grown, f"e{n}", gist(said(often), EAST), n)
    assert len(grown.terms) <= 49

    left = without(grown, "e1", named, {grown.key})

    assert (left.key, left.label) == ("violin_lessons", "violin lessons")
    assert "violin" not in words_of(without(left, "e2", named, {left.key}))


unit_vectors = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3).map(
    lambda numbers: exchange_vector([np.array(numbers, np.float32)], 3)
)


@given(vectors=st.lists(unit_vectors, min_size=2, max_size=8), data=st.data())
def test_the_sum_of_a_topic_is_that_of_the_exchanges_it_still_holds(
    vectors: list[np.ndarray], data: st.DataObject
) -> None:
    gists = {f"e{n}": gist([], vector) for n, vector in enumerate(vectors)}
    held = opened("t", "e0", gists["e0"], (), 0)
    for n in range(1, len(vectors)):
        held = joined(held, f"e{n}", gists[f"e{n}"], n)
    gone = data.draw(st.sets(st.sampled_from(sorted(gists)), max_size=len(gists) - 1))
    for name in gone:
        held = without(held, name, gists[name], {held.key})

    left = np.sum([one.vector for name, one in gists.items() if name not in gone], axis=0)
    np.testing.assert_allclose(held.vector_sum, left, atol=1e-5)
    assert held.exchanges == len(gists) - len(gone)


def test_a_sum_of_another_embedder_counts_as_none() -> None:
    mine, foreign = topic("violin", vector=EAST), replace(topic("Lisbon"), vector_sum=np.zeros(0, np.float32))
    more = gist([], NORTH)

    assert joined(foreign, "e2", more, 6).vector_sum.tolist() == NORTH.tolist()
    assert without(foreign, "e1", more, set()).vector_sum.tolist() == [0, 0]
    assert merged(mine, foreign).vector_sum.tolist() == EAST.tolist()
    assert merged(foreign, mine).vector_sum.tolist() == EAST.tolist()
    assert merged(foreign, foreign).vector_sum.tolist() == []
    assert merged(mine, foreign).exchanges == 2


@pytest.mark.parametrize("pinned", [{"label"}, {"aliases"}, {"label", "aliases"}, {"enabled"}])
def test_nothing_that_comes_or_goes_changes_what_a_person_set(pinned: set[str]) -> None:
    first, more = gist(said("Violin lessons!"), EAST), gist(said("Lisbon trip, Lisbon plans."), NORTH)
    mine = replace(
        opened("t", "e1", first, (), 5), aliases=("b", "a"), enabled=False, pinned=frozenset(pinned)
    )
    grown = joined(mine, "e2", more, 6)
    left = without(grown, "e1", first, {mine.key})
    together = joined(united(mine, topic("garden"), 7), "e3", more, 8)

    for changed in (grown, left, merged(grown, topic("garden")), together):
        assert (changed.pinned, changed.enabled) == (mine.pinned, False)
        assert changed.label == mine.label or "label" not in pinned
        assert (changed.aliases[:2] == mine.aliases) == ("aliases" in pinned)
    assert (left.label == mine.label) == ("label" in pinned)
    assert "garden" in together.aliases


def test_a_key_gives_away_a_phrase_that_nobody_else_said() -> None:
    for key in ("violin_lessons", "violin_lessons_2"):
        assert gives_away(key, ["Lisbon", "violin  Lessons!"], ["violin", "Lisbon"])
        assert not gives_away(key, ["violin lessons"], ["Violin lessons"])
        assert not gives_away(key, ["violin", "lessons", "violin lessons 2 go"], [])
    assert not gives_away("violin_lessons", [], [])

    gone = gist(said("Violin lessons!"), EAST)
    named = replace(opened("t", "e1", gone, (), 5), label="Music", pinned=frozenset({"label"}))
    left = without(
        joined(named, "e2", gist(said("Cello strings."), EAST), 6), "e1", gone, {named.key, "music"}
    )
    assert (left.key, left.label) == ("music_2", "Music")
    assert "violin" not in words_of(left)


def test_two_topics_that_become_one_hold_what_both_held_and_are_called_by_both_names() -> None:
    violin, lisbon = topic("Violin lessons, violin lessons."), topic("Lisbon trip plans.", vector=NORTH)
    lisbon = joined(lisbon, "e2", gist(said("Lisbon trip is long."), NORTH), 9)
    both = united(violin, lisbon, 7)

    assert (both.id, both.key, both.label, both.exchanges, both.updated_at) == (
        "t",
        violin.key,
        violin.label,
        3,
        9,
    )
    assert both.vector_sum.tolist() == (EAST + 2 * NORTH).tolist()
    assert both.former_labels == (lisbon.label,)
    assert lisbon.label in both.aliases
    assert both.terms == {**violin.terms, **lisbon.terms}
    assert [sentence.text for sentence in both.summary] == [
        "Lisbon trip is long.",
        "Lisbon trip plans.",
        "Violin lessons, violin lessons.",
    ]
    assert united(both, replace(violin, label="Cello"), 7).former_labels == ("Cello", lisbon.label)


def test_what_merged_topics_were_called_stays_an_alias_as_long_as_it_is_not_forgotten() -> None:
    gone = gist(said("Zebrafish quarantine!"), NORTH)
    zebrafish = opened("z", "e2", gone, (), 5)
    both = united(topic("Violin lessons."), zebrafish, 6)
    for n in range(3, 8):
        often = ", ".join(f"plant{letter}{n} garden" for letter in 9 * "abcdefghijklmnopqrst")
        both = joined(both, f"e{n}", gist(said(often), EAST), n)
    assert zebrafish.label in both.aliases

    left = without(both, "e2", gone, {both.key})
    assert left.former_labels == ()
    assert "zebrafish" not in words_of(left)


def test_no_topic_has_more_than_sixteen_aliases_the_newest_names_among_them() -> None:
    both = topic("Violin lessons.")
    for n in range(30):
        both = united(both, replace(topic("Lisbon trip."), label=f"name {n}"), n)
        assert both.former_labels[0] == f"name {n}"
        assert f"name {n}" in both.aliases
    assert (len(both.aliases), len(both.former_labels)) == (16, 16)


def test_the_overall_summary_quotes_topics_in_the_order_given_until_it_is_long() -> None:
    small, large = topic("The violin is red."), topic("Lisbon is warm.")
    long, silent = replace(small, summary=(Sentence("x" * 480, "e"),)), replace(small, summary=())

    assert overall([large, silent, small]) == "Lisbon is warm. The violin is red."
    assert overall([large, long, small]) == "Lisbon is warm."
    assert overall([]) == ""
