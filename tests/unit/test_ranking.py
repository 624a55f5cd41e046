"""Hits in, a choice with its reason out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.domain import Candidates
from halo_server.ranking import Choice, bare_query, explain, named_speakers, rank, shared_terms


def candidates(*messages: dict[str, Any], **more: Any) -> Candidates:
    """Build what the indexes say; a message is its exchange unless said otherwise, of 10 words, near to nothing."""

    def column(name: str, default: Any, kind: Any) -> Any:
        return np.array([message.get(name, default) for message in messages], dtype=kind)

    places = np.arange(len(messages), dtype=np.int64)
    covers = column("covers", 0, np.float32)
    # A query of ten words of the same weight: what covers so much of it holds so many of them.
    holders = {term: np.flatnonzero(covers * 10 > term) for term in range(10)}
    near, previous = column("near", np.nan, np.float32), column("previous", -1, np.int64)
    following = np.full(len(messages), -1, dtype=np.int64)
    following[previous[previous >= 0]] = places[previous >= 0]
    return Candidates(
        message=places + 1,
        exchange=np.array(
            [message.get("exchange", n + 1) for n, message in enumerate(messages)], dtype=np.int64
        ),
        topic=column("topic", 1, np.int64),
        previous=previous,
        following=following,
        thread=np.array([message.get("thread", n) for n, message in enumerate(messages)], dtype=np.int32),
        words=column("words", 10, np.float32),
        terms=column("words", 10, np.float32) / 2,
        asks=column("asks", False, np.bool_),
        dated=column("dated", False, np.bool_),
        personal=column("personal", 0, np.float32),
        specifics=column("specifics", 0, np.float32),
        speaker=column("speaker", -1, np.int32),
        speakers=more.get("speakers", ()),
        assistant=column("assistant", False, np.bool_),
        replies=column("replies", False, np.bool_),
        alike=np.array([message.get("alike", n) for n, message in enumerate(messages)], dtype=np.int64),
        eligible=column("eligible", True, np.bool_),
        similarity=near,
        meaning=np.nan_to_num(near, nan=-0.5) * 3,
        coverage=covers / 2,
        phrases=column("phrases", 0, np.float32),
        topics=more.get("topics", {}),
        shares=more.get("shares", dict.fromkeys(range(10), 0.1)),
        holders=more.get("holders", holders),
    )


def ranked(found: Candidates, query: str = "", limit: int = 9) -> list[Choice]:
    return rank(found, query).exchanges(limit)


def order(found: Candidates, query: str = "", limit: int = 9) -> list[int]:
    return [choice.exchange for choice in ranked(found, query, limit)]


def test_nothing_in_nothing_out() -> None:
    assert ranked(candidates(), "peanuts") == []


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"near": 0.9}, {"near": 0.1}),
        ({"near": 0.1}, {}),
        ({"covers": 0.8}, {"covers": 0.2}),
        ({"phrases": 0.5}, {}),
        ({"covers": 0.5}, {"covers": 0.5, "asks": True}),
        ({"words": 400, "replies": True}, {"words": 200, "replies": True}),
        ({"personal": 2}, {"personal": 1}),
        ({"specifics": 2}, {"specifics": 1}),
        ({"dated": True}, {}),
        ({"speaker": 0}, {"speaker": 1}),
        ({"topic": 2}, {"topic": 1}),
        ({}, {"assistant": True}),
    ],
)
def test_one_reason_more_puts_a_message_first(better: Any, worse: Any) -> None:
    other = {"near": -0.9, "replies": True, "words": 300}
    known = {"topics": {1: 0.1, 2: 0.9}, "speakers": ("Mia", "Ben")}

    assert order(candidates(worse, better, other, **known), "What did Mia say?")[0] == 2
    assert order(candidates(better, worse, other, **known), "What did Mia say?")[0] == 1


@pytest.mark.parametrize("sign", ["personal", "specifics", "dated", "asks"])
def test_where_nobody_replies_to_anybody_a_message_is_judged_by_what_it_says_alone(sign: str) -> None:
    assert order(candidates({}, {sign: 1})) == [1, 2]
    assert order(candidates({sign: 1}, {})) == [1, 2]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When did Mia move?", {"dated": True}),
        ("いつ引っ越しましたか", {"dated": True}),
        ("Who lives next door?", {"specifics": 1}),
        ("谁住在隔壁？", {"specifics": 1}),
    ],
)
def test_what_the_question_wants_comes_first(question: str, answer: dict[str, Any]) -> None:
    assert order(candidates({}, answer), question) == [2, 1]
    assert order(candidates({}, answer), "Mia?") == [1, 2]


def test_a_question_that_was_asked_before_comes_after_what_answers_it() -> None:
    words = {"shares": {7: 0.6, 8: 0.4}, "holders": {7: np.array([0, 1]), 8: np.array([0])}}
    asked, answer = {"covers": 0.6, "asks": True, "words": 4}, {"covers": 0.4}

    assert order(candidates(asked, answer, **words)) == [2, 1]
    assert order(candidates({**asked, "words": 40}, answer, **words)) == [1, 2]


def test_what_was_said_again_in_the_same_words_comes_last() -> None:
    again = [{"covers": 0.5, "alike": 5} for _ in range(3)]

    assert order(candidates(*again, {"covers": 0.1}, {"covers": 0.2})) == [1, 5, 4, 2, 3]


def test_where_several_things_are_wanted_several_conversations_are_heard() -> None:
    near = [
        {"covers": 0.50, "thread": 1},
        {"covers": 0.49, "thread": 1},
        {"covers": 0.48, "thread": 2},
        {},
        {},
    ]
    talk = candidates(*({**message, "replies": True} for message in near))

    assert order(talk, "Which books did Mia read?")[:3] == [1, 3, 2]
    assert order(talk, "Which book did Mia read?")[:3] == [1, 2, 3]
    assert order(candidates(*near), "Which books did Mia read?")[:3] == [1, 2, 3]  # records stand together


def test_words_that_a_message_and_its_neighbour_hold_together_count_for_both() -> None:
    apart = {"shares": {7: 0.5, 8: 0.5}, "holders": {7: np.array([0, 2]), 8: np.array([1, 3])}}

    assert order(candidates({}, {}, {}, {"previous": 2, "thread": 2}, **apart))[:2] == [3, 4]


def test_a_name_prefers_nobody_when_two_are_named() -> None:
    found = candidates({"speaker": 1}, {"speaker": 0}, speakers=("Mia", "Ben"))

    assert order(found, "Mia and Ben") == [1, 2]
    assert order(found, "Mia") == [2, 1]


def test_a_short_answer_is_found_by_the_question_before_it() -> None:
    asked, answered, other = {"covers": 0.9, "asks": True}, {"previous": 0, "words": 2}, {"words": 2}

    assert order(candidates(asked, answered, other)) == [2, 1, 3]


def test_an_exchange_is_chosen_once_by_its_best_message() -> None:
    said = candidates({"exchange": 7, "near": 0.2}, {"exchange": 7, "near": 0.9, "covers": 1.0})
    [found] = ranked(said)

    assert found.exchange == 7
    assert found.similarity == pytest.approx(0.9)
    [by_words] = ranked(candidates({"covers": 0.5}))
    assert by_words.similarity is None


def test_only_what_is_eligible_is_chosen_and_the_others_still_stand_beside_it() -> None:
    asked = {"covers": 0.9, "asks": True, "eligible": False}

    assert order(candidates(asked, {"previous": 0}, {})) == [2, 3]
    assert order(candidates(asked)) == []


def test_a_long_exchange_does_not_crowd_the_others_out() -> None:
    long = [{"exchange": 1, "covers": 0.9} for _ in range(60)]

    assert order(candidates(*long, {"exchange": 2}, {"exchange": 3}), limit=3) == [1, 2, 3]


messages = st.lists(
    st.fixed_dictionaries(
        {
            "near": st.sampled_from([float("nan"), 0.1, 0.5, 0.9]),
            "covers": st.sampled_from([0.0, 0.5, 1.0]),
            "words": st.integers(0, 300),
            "asks": st.booleans(),
            "topic": st.integers(0, 3),
            "eligible": st.booleans(),
        }
    ),
    min_size=1,
    max_size=40,
)


@given(said=messages, limit=st.integers(1, 6))
def test_choices_are_few_different_in_falling_order_and_the_best_of_all(said: Any, limit: int) -> None:
    found = candidates(*said, topics={1: 0.5, 2: 0.1})
    whole, few = (ranked(found, limit=most) for most in (99, limit))

    assert few == whole[:limit]
    assert len({choice.exchange for choice in whole}) == len(whole)
    assert [choice.score for choice in whole] == sorted((choice.score for choice in whole), reverse=True)
    assert {choice.exchange for choice in whole} == {n for n, m in enumerate(said, 1) if m["eligible"]}
    assert all(np.isfinite(choice.score) for choice in whole)


@given(covers=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=40, max_size=120), limit=st.integers(1, 5))
def test_the_earlier_of_equals_comes_first(covers: list[float], limit: int) -> None:
    found = candidates(*({"covers": one} for one in covers))

    assert (
        order(found, limit=limit)
        == sorted(range(1, len(covers) + 1), key=lambda n: (-covers[n - 1], n))[:limit]
    )


def test_a_name_in_a_question_says_who_and_not_what() -> None:
    people = ("Mia Berg", "Ben", "")

    assert named_speakers("Did MIA call Benjamin?", people) == ["Mia Berg"]
    assert bare_query("What did mia's cat eat?", people) == "What did cat eat?"
    assert bare_query("Who is Ben’s friend?", people) == "Who is friend?"
    assert bare_query("What is new?", people) == "What is new?"


@pytest.mark.parametrize(
    ("labels", "words", "asked", "close", "reason"),
    [
        ([], [], True, True, ""),
        (["a"], [], False, False, "The topic “a” is the most recent; nothing particular was asked."),
        (
            ["a", "b"],
            [],
            False,
            False,
            "The topics “a” and “b” are the most recent; nothing particular was asked.",
        ),
        (["a"], ["x"], True, False, "The topic “a” shares “x” with the question."),
        (
            ["a", "b", "c"],
            ["x", "y"],
            True,
            True,
            "The topics “a”, “b” and “c” share “x” and “y” with the question and are close to it in meaning.",
        ),
        (["a"], [], True, True, "The topic “a” is nearest to the question in meaning."),
        (["a"], [], True, False, "The topic “a” is nearest to the question in meaning, though not near."),
    ],
)
def test_the_reason_is_one_sentence(labels: Any, words: Any, asked: bool, close: bool, reason: str) -> None:
    assert explain(labels, words, asked=asked, close=close) == reason


def test_shared_terms_are_those_that_the_chosen_hold() -> None:
    holders = {10: np.array([0, 3]), 20: np.array([1]), 30: np.array([2])}
    found = candidates({"exchange": 1}, {"exchange": 1}, {"exchange": 2}, {"exchange": 4}, holders=holders)

    assert shared_terms(found, [1]) == {10, 20}
    assert shared_terms(found, [2, 4]) == {10, 30}
    assert shared_terms(found, []) == set()
