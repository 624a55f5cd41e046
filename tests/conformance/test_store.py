"""What a memory promises, asked of every store: stored once, found at once, kept apart, gone when forgotten."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from halo_server.api.intake import submission
from halo_server.domain import (
    Candidates,
    Counts,
    Exchange,
    Grant,
    Project,
    Question,
    Retrieved,
    Scope,
    Vectors,
)
from halo_server.embedders.base import Embedder
from halo_server.embedders.hashing import HashingEmbedder
from halo_server.errors import (
    Forbidden,
    IdempotencyKeyReused,
    InvalidRequest,
    NotFound,
    ProjectNotFound,
    Unavailable,
)
from halo_server.index import scope as scope_module
from halo_server.index.scope import ScopeIndex
from halo_server.services.access import Access
from halo_server.store import store as store_module
from halo_server.store import tables
from halo_server.store.store import Store, Transaction
from halo_server.text import term_ids
from tests.memory import NOW, WINDOW_MS, FrozenClock, Memory, assistant, user

ANA = Scope("p", "ana")
BEN = Scope("p", "ben")
OTHER_PROJECT = Scope("q", "ana")

_numbers = count(1)


def _nobody() -> Scope:
    """Return an end user of whom nothing was ever captured: the examples of a property share one store."""
    return Scope("p", f"user-{next(_numbers)}")


Q1, A1 = user("My daughter Mia is allergic to peanuts."), assistant("I will keep peanuts away from Mia.")
Q2, A2 = user("We fly to Lisbon in May."), assistant("Lisbon in May is warm.")
Q3, A3 = user("What should Mia not eat?"), assistant("Peanuts.")


# -- stored once -----------------------------------------------------------------------------------------------------


def test_an_exchange_is_stored_with_its_messages_and_its_receipt_names_it(memory: Memory) -> None:
    receipt = memory.capture(ANA, Q1, response=A1, plan="gold")

    stored = memory.exchanges(ANA)
    assert stored == [
        Exchange(
            id=receipt.exchange_id,
            seq=stored[0].seq,
            topic_key=receipt.topic_keys[0],
            request=(Q1,),
            response=A1,
            state={"plan": "gold"},
            occurred_at=NOW,
            recorded_at=NOW,
        )
    ]
    assert (receipt.index, receipt.duplicate, receipt.sanitized, receipt.truncated) == (
        "ready",
        False,
        0,
        False,
    )


def test_a_growing_history_stores_each_message_once(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    memory.capture(ANA, Q1, A1, Q2, A2, Q3, response=A3)

    assert memory.said(ANA) == [[Q1, A1], [Q2, A2], [Q3, A3]]


def test_the_answer_may_stand_at_the_end_of_the_messages(memory: Memory) -> None:
    memory.capture(ANA, Q1, A1)
    memory.capture(ANA, Q1, A1, Q2, A2)

    assert memory.said(ANA) == [[Q1, A1], [Q2, A2]]
    assert [exchange.response for exchange in memory.exchanges(ANA)] == [A1, A2]


def test_a_history_cut_at_the_front_is_recognised(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    memory.capture(ANA, Q2, A2, Q3, response=A3)

    assert memory.said(ANA) == [[Q1, A1], [Q2, A2], [Q3, A3]]


def test_a_history_cut_at_the_front_is_recognised_though_its_first_message_begins_another_thread(
    memory: Memory,
) -> None:
    other = {"role": "assistant", "content": "Another answer."}
    memory.capture(ANA, Q2, response=other)
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    memory.capture(ANA, Q2, A2, Q3, response=A3)

    assert memory.said(ANA) == [[Q2, other], [Q1, A1], [Q2, A2], [Q3, A3]]


def test_a_history_cut_to_its_last_answer_is_recognised(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, A1, Q2, response=A2)

    assert memory.said(ANA) == [[Q1, A1], [Q2, A2]]


def test_a_word_that_is_said_everywhere_does_not_join_two_conversations(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, user("ok"), response=A2)
    memory.capture(ANA, user("ok"), assistant("What now?"), Q3, response=A3)

    assert memory.said(ANA)[-1] == [user("ok"), assistant("What now?"), Q3, A3]


def test_an_edited_history_continues_from_where_it_still_agrees(memory: Memory) -> None:
    edited = user("We fly to Porto in May.")
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    receipt = memory.capture(ANA, Q1, A1, edited, response=A3)

    assert memory.said(ANA) == [[Q1, A1], [Q2, A2], [edited, A3]]
    assert memory.inventory.sent_messages(ANA, receipt.exchange_id) == [Q1, A1, edited]


def test_an_answer_given_anew_is_an_exchange_with_its_question(memory: Memory) -> None:
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    again = memory.capture(ANA, Q1, A1, Q2, response=A3)

    assert memory.said(ANA) == [[Q1, A1, Q2, A2], [Q2, A3]]
    assert memory.inventory.sent_messages(ANA, again.exchange_id) == [Q1, A1, Q2]


def test_a_history_that_ends_within_an_earlier_exchange_is_an_exchange_of_its_newest_turn(
    memory: Memory,
) -> None:
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    receipt = memory.capture(ANA, Q1, A1, Q2)

    assert memory.said(ANA) == [[Q1, A1, Q2, A2], [Q2]]
    assert memory.inventory.sent_messages(ANA, receipt.exchange_id) == [Q1, A1, Q2]


def test_a_conversation_in_which_only_the_assistant_speaks_continues(memory: Memory) -> None:
    memory.capture(ANA, A1, A2)
    memory.capture(ANA, A1, A2, A3)

    assert memory.said(ANA) == [[A1, A2], [A3]]


class _Meddler:
    """An embedder in whose time something else happens."""

    def __init__(self, inner: Embedder) -> None:
        self.inner, self.id, self.dim = inner, inner.id, inner.dim
        self.meanwhile: list[Callable[[], object]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return self.inner.encode(texts)


def test_what_is_new_is_decided_again_when_the_end_user_was_forgotten_meanwhile(store: Store) -> None:
    meddler = _Meddler(HashingEmbedder())
    memory = Memory(store, meddler)
    memory.capture(ANA, Q1, response=A1)
    meddler.meanwhile = [lambda: memory.forget.end_user(ANA)]

    receipt = memory.capture(ANA, Q1, A1, Q2, response=A2)

    assert memory.said(ANA) == [[Q1, A1, Q2, A2]]
    assert memory.found(ANA, "Mia") == {receipt.exchange_id}


def test_a_capture_that_is_overtaken_again_and_again_asks_for_a_retry(store: Store) -> None:
    meddler = _Meddler(HashingEmbedder())
    memory = Memory(store, meddler)
    talk = [message for n in range(4) for message in (user(f"question {n}"), assistant(f"answer {n}"))]

    def begin_again(known: int) -> Callable[[], object]:
        def act() -> None:
            rest, meddler.meanwhile = meddler.meanwhile, []
            memory.forget.end_user(ANA)
            memory.capture(ANA, *talk[:known])
            meddler.meanwhile = rest

        return act

    memory.capture(ANA, *talk[:6])
    meddler.meanwhile = [begin_again(known) for known in (4, 2, 1)]

    with pytest.raises(Unavailable):
        memory.capture(ANA, *talk)
    assert memory.said(ANA) == [talk[:1]]
    memory.capture(ANA, *talk)
    assert [message for said in memory.said(ANA) for message in said] == talk


def test_a_whole_history_sent_again_is_a_duplicate_under_any_key_and_at_any_time(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    first = memory.capture(ANA, Q1, A1, Q2, response=A2, key="first")
    memory.capture(ANA, Q1, A1, Q2, A2, Q3, response=A3)
    memory.clock.now += 100 * WINDOW_MS

    for key in (None, "second", "third"):
        assert memory.capture(ANA, Q1, A1, Q2, response=A2, key=key) == replace(first, duplicate=True)
    assert memory.said(ANA) == [[Q1, A1], [Q2, A2], [Q3, A3]]


def test_the_same_words_without_history_are_a_duplicate_within_the_window_and_new_after_it(
    memory: Memory,
) -> None:
    first = memory.capture(ANA, user("yes"), response=A1)
    memory.clock.now += WINDOW_MS
    assert memory.capture(ANA, user("yes"), response=A1) == replace(first, duplicate=True)

    memory.clock.now += 1
    later = memory.capture(ANA, user("yes"), response=A1)
    assert not later.duplicate
    assert memory.said(ANA) == [[user("yes"), A1], [user("yes"), A1]]


def test_the_same_words_after_other_words_are_new(memory: Memory) -> None:
    memory.capture(ANA, user("yes"), response=A1)
    memory.capture(ANA, user("no"), response=A2)

    assert not memory.capture(ANA, user("yes"), response=A1).duplicate
    assert len(memory.exchanges(ANA)) == 3


def test_other_state_makes_another_exchange(memory: Memory) -> None:
    memory.capture(ANA, user("yes"), response=A1, order=1)

    assert not memory.capture(ANA, user("yes"), response=A1, order=2).duplicate


def test_each_end_user_has_the_same_words_as_their_own(memory: Memory) -> None:
    receipts = [memory.capture(scope, Q1, response=A1) for scope in (ANA, BEN, OTHER_PROJECT)]

    assert [receipt.duplicate for receipt in receipts] == [False, False, False]
    assert len({receipt.exchange_id for receipt in receipts}) == 3


def test_nothing_to_store_is_refused_and_leaves_no_end_user(memory: Memory, store: Store) -> None:
    with pytest.raises(InvalidRequest, match="nothing to capture"):
        memory.capture(ANA, {"role": "system", "content": "Be kind."})

    assert not store.read(lambda tx: tx.has_scope(ANA))


# -- idempotency keys ------------------------------------------------------------------------------------------------


def test_a_key_used_again_for_the_same_body_gives_the_same_exchange(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, response=A1, key="k")
    memory.capture(ANA, Q2, response=A2)
    memory.clock.now += 100 * WINDOW_MS

    assert memory.capture(ANA, Q1, response=A1, key="k") == replace(first, duplicate=True)
    assert len(memory.exchanges(ANA)) == 2


def test_different_keys_make_the_same_short_words_two_exchanges(memory: Memory) -> None:
    memory.capture(ANA, user("yes"), response=A1, key="k1")

    assert not memory.capture(ANA, user("yes"), response=A1, key="k2").duplicate


@pytest.mark.parametrize(
    "other",
    [
        {"response": A2},
        {"response": A1, "plan": "gold"},
        {"response": None},
        {"response": {**A1, "id": "m1"}},
    ],
)
def test_a_key_used_again_for_another_body_is_refused_and_stores_nothing(
    memory: Memory, other: dict[str, Any]
) -> None:
    memory.capture(ANA, Q1, response=A1, key="k")

    with pytest.raises(IdempotencyKeyReused):
        memory.capture(ANA, Q1, key="k", **other)
    assert memory.said(ANA) == [[Q1, A1]]


def test_a_key_belongs_to_one_end_user(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1, key="k")

    assert not memory.capture(BEN, Q2, response=A2, key="k").duplicate


# -- the request as it was sent --------------------------------------------------------------------------------------


def test_a_request_is_rebuilt_as_it_was_sent(memory: Memory) -> None:
    tool = {"role": "tool", "tool_call_id": "c1", "content": "21 °C"}
    sent = [Q1, A1, Q2, tool, A2, Q3]
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, tool, response=A2)
    last = memory.capture(ANA, *sent, response=A3)

    assert memory.inventory.sent_messages(ANA, last.exchange_id) == sent


def test_a_request_without_an_answer_is_rebuilt_whole(memory: Memory) -> None:
    receipt = memory.capture(ANA, Q1, A1, Q2)

    assert memory.inventory.sent_messages(ANA, receipt.exchange_id) == [Q1, A1, Q2]
    assert memory.exchanges(ANA)[0].response is None


def test_an_answer_alone_has_an_empty_request(memory: Memory) -> None:
    receipt = memory.capture(ANA, response=A1)

    assert memory.inventory.sent_messages(ANA, receipt.exchange_id) == []
    assert memory.said(ANA) == [[A1]]


@settings(max_examples=12)
@given(data=st.data())
def test_whatever_is_cut_edited_or_sent_again_each_request_is_rebuilt_and_no_message_doubles(
    memory: Memory, data: st.DataObject
) -> None:
    """A conversation takes turns; each turn sends all of it, or its newest part, and now and then again."""
    scope = _nobody()
    talk: list[dict[str, str]] = []
    turns = data.draw(st.integers(1, 5))
    for turn in range(turns):
        question, answer = user(f"question {turn} of the talk"), assistant(f"answer {turn} of the talk")
        sent = [*talk, question]
        kept = sent[data.draw(st.integers(0, max(0, len(talk) - 2))) :]
        receipt = memory.capture(scope, *kept, response=answer)
        assert not receipt.duplicate
        rebuilt = memory.inventory.sent_messages(scope, receipt.exchange_id)
        assert rebuilt[-len(kept) :] == kept
        if len(kept) > 1 and data.draw(st.booleans()):
            assert memory.capture(scope, *kept, response=answer) == replace(receipt, duplicate=True)
        talk = [*sent, answer]

    assert [message for exchange in memory.said(scope) for message in exchange] == talk


# -- found at once ---------------------------------------------------------------------------------------------------


def test_what_was_captured_is_found_by_the_next_retrieval(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q2, response=A2)

    best = memory.find(ANA, "Mia and peanuts", limit=1)

    assert [exchange.id for exchange in best.exchanges] == [first.exchange_id]
    assert [topic.key for topic in best.topics] == list(first.topic_keys)
    assert best.more
    assert "“mia”" in best.reason
    assert best.summary


def test_words_that_say_nothing_are_stored_and_disturb_no_search(memory: Memory) -> None:
    """The first thing an end user says may be a word that nobody searches for."""
    first = memory.capture(ANA, user("ok"), response=assistant("Yes, please!"))

    assert memory.find(ANA, "What did I say about peanuts?").exchanges[0].id == first.exchange_id
    memory.capture(ANA, Q1, response=A1)
    assert memory.find(ANA, "peanuts").exchanges[0].request == (Q1,)


def test_an_unknown_end_user_has_nothing_and_that_is_no_error(memory: Memory) -> None:
    nothing = memory.find(ANA, "peanuts")

    assert (nothing.exchanges, nothing.topics, nothing.reason, nothing.summary) == ((), (), "", "")
    assert memory.find(ANA, "") == nothing


def test_without_a_question_the_newest_come_first(memory: Memory) -> None:
    ids = [memory.capture(ANA, user(f"note {n}"), response=assistant("ok")).exchange_id for n in range(4)]

    found = memory.find(ANA, "", limit=3)

    assert [exchange.id for exchange in found.exchanges] == ids[:0:-1]
    assert found.more


def _told(found: Retrieved) -> tuple[Any, ...]:
    return (found.exchanges, [topic.id for topic in found.topics], found.reason, found.summary, found.more)


def test_what_was_captured_is_there_after_a_restart(
    memory: Memory, store: Store, open_again: Callable[[], Store]
) -> None:
    memory.capture(ANA, Q1, response=A1)
    stored, found = memory.exchanges(ANA), memory.find(ANA, "peanuts")
    secret = store.secret("digests")

    again = Memory(open_again())

    assert again.exchanges(ANA) == stored
    assert _told(again.find(ANA, "peanuts")) == _told(found)
    assert again.store.secret("digests") == secret


def test_another_process_sees_what_was_captured_without_being_told(
    memory: Memory, open_again: Callable[[], Store]
) -> None:
    other = Memory(open_again())
    for question, answer in ((Q1, A1), (Q2, A2), (Q3, A3)):
        memory.capture(ANA, question, response=answer)
        assert other.found(ANA, "peanuts") == memory.found(ANA, "peanuts")


# -- kept apart ------------------------------------------------------------------------------------------------------

_WORDS = ("peanuts", "lisbon", "violin", "marathon", "garden", "invoice")
_steps = st.lists(
    st.tuples(st.sampled_from(["capture", "forget", "ask"]), st.booleans(), st.sampled_from(_WORDS)),
    max_size=14,
)


@settings(max_examples=15)
@given(steps=_steps)
def test_no_order_of_steps_ever_shows_one_end_user_to_another(memory: Memory, steps: list[Any]) -> None:
    pair = (_nobody(), _nobody())
    canaries = ("canaryleft", "canaryright")
    owned: tuple[list[str], list[str]] = ([], [])
    for action, right, word in steps:
        me = int(right)
        if action == "capture":
            said = user(f"{word} {canaries[me]} {len(owned[me])}")
            owned[me].append(memory.capture(pair[me], said, response=assistant(word)).exchange_id)
        elif action == "forget" and owned[me]:
            memory.forget.exchange(pair[me], owned[me].pop())
        found = memory.find(pair[me], f"{word} {canaries[1 - me]}")
        assert {exchange.id for exchange in found.exchanges} <= set(owned[me])
        assert canaries[1 - me] not in repr(found)
    for me in (0, 1):
        assert memory.found(pair[me]) == set(owned[me])


def test_a_foreign_id_is_answered_exactly_as_an_unknown_one(memory: Memory, store: Store) -> None:
    mine = memory.capture(ANA, Q1, response=A1)
    topic = memory.inventory.topics(ANA, after=0, limit=1)[0]

    for scope in (BEN, OTHER_PROJECT):
        for asked in (memory.inventory.exchange, memory.inventory.sent_messages, memory.forget.exchange):
            for exchange_id in (mine.exchange_id, "no such id"):
                with pytest.raises(NotFound, match=r"^Not found\.$"):
                    asked(scope, exchange_id)
        with pytest.raises(NotFound):
            memory.forget.topic(scope, topic.key, include_raw=True)
        assert store.read(lambda tx, scope=scope: tx.topics_by_row(scope, [topic.row])) == []
    with pytest.raises(NotFound):
        memory.inventory.find_exchange("q", mine.exchange_id)
    with pytest.raises(NotFound):
        memory.inventory.find_topic("q", topic.id)
    assert memory.inventory.find_exchange("p", mine.exchange_id) == ANA
    assert memory.inventory.find_topic("p", topic.id) == (ANA, topic.key)
    assert memory.said(ANA) == [[Q1, A1]]


# -- forgotten -------------------------------------------------------------------------------------------------------


def test_a_forgotten_exchange_is_blank_in_requests_that_build_on_it_and_nowhere_else(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, response=A1)
    second = memory.capture(ANA, Q1, A1, Q2, response=A2)

    counts = memory.forget.exchange(ANA, first.exchange_id)

    assert counts == Counts(exchanges=1, messages=2, topics=1)
    assert memory.inventory.sent_messages(ANA, second.exchange_id) == [
        {"role": "user", "content": None, "erased": True},
        {"role": "assistant", "content": None, "erased": True},
        Q2,
    ]
    assert memory.found(ANA, "Mia peanuts") == {second.exchange_id}
    assert memory.said(ANA) == [[Q2, A2]]
    with pytest.raises(NotFound):
        memory.inventory.exchange(ANA, first.exchange_id)


def test_a_history_sent_again_does_not_bring_a_forgotten_exchange_back(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    memory.forget.exchange(ANA, first.exchange_id)

    memory.capture(ANA, Q1, A1, Q2, A2, Q3, response=A3)

    assert memory.said(ANA) == [[Q2, A2], [Q3, A3]]
    assert "allergic" not in repr(memory.find(ANA, "allergic to peanuts"))


def _everything(store: Store) -> str:
    """Return all that the database holds, as text."""
    with store.engine.connect() as connection:
        rows = [
            connection.execute(text(f"SELECT * FROM {table}")).all()  # noqa: S608 (our own names)
            for table in tables.metadata.tables
        ]
    return repr(rows)


def test_a_forgotten_exchange_is_in_no_table(memory: Memory, store: Store) -> None:
    """Topic keys and labels are made of words; here the topic goes with its only exchange."""
    receipt = memory.capture(
        ANA, user("zebrafish quarantine", name="Xaviera"), response=assistant("zebrafish"), note="zebrafish"
    )
    assert "zebrafish" in _everything(store)

    memory.forget.exchange(ANA, receipt.exchange_id)

    left = _everything(store)
    assert "zebrafish" not in left
    assert "quarantine" not in left
    assert "Xaviera" not in left
    assert memory.inventory.topics(ANA, after=0, limit=9) == []


def test_forgetting_one_of_two_exchanges_leaves_their_topic_to_the_other(memory: Memory) -> None:
    kept = memory.capture(ANA, user("violin lessons for Mia"), response=assistant("violin lessons"))
    gone = memory.capture(ANA, user("violin lessons on Monday"), response=assistant("violin lessons"))
    assert kept.topic_keys == gone.topic_keys

    assert memory.forget.exchange(ANA, gone.exchange_id) == Counts(exchanges=1, messages=2)

    topic = memory.inventory.topics(ANA, after=0, limit=9)[0]
    assert topic.exchanges == 1
    assert "monday" not in topic.terms
    assert {sentence.exchange_id for sentence in topic.summary} == {kept.exchange_id}
    assert "Monday" not in memory.find(ANA, "violin").summary
    direction = topic.vector_sum / np.linalg.norm(topic.vector_sum)
    vectors = memory.embedder.encode(["violin lessons for Mia", "violin lessons"]).sum(axis=0)
    np.testing.assert_allclose(direction, vectors / np.linalg.norm(vectors), atol=1e-5)


def test_a_forgotten_key_may_be_used_again(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, response=A1, key="k")
    memory.forget.exchange(ANA, first.exchange_id)

    assert not memory.capture(ANA, Q2, response=A2, key="k").duplicate


def test_forgetting_a_topic_with_its_exchanges_leaves_the_other_topics(memory: Memory) -> None:
    peanuts = memory.capture(ANA, Q1, response=A1)
    lisbon = memory.capture(ANA, Q2, response=A2)

    counts = memory.forget.topic(ANA, peanuts.topic_keys[0], include_raw=True)

    assert counts == Counts(exchanges=1, messages=2, topics=1)
    assert memory.found(ANA) == memory.found(ANA, "Mia peanuts") == {lisbon.exchange_id}
    assert "peanuts" not in repr(memory.find(ANA, "Mia peanuts").summary)
    with pytest.raises(NotFound):
        memory.forget.topic(ANA, peanuts.topic_keys[0], include_raw=True)


def test_exchanges_that_outlive_their_topic_are_unsorted_and_found(memory: Memory) -> None:
    peanuts = memory.capture(ANA, Q1, response=A1)
    lisbon = memory.capture(ANA, Q2, response=A2)
    memory.found(ANA, "Lisbon")

    for receipt in (peanuts, lisbon):
        counts = memory.forget.topic(ANA, receipt.topic_keys[0], include_raw=False)
        assert counts == Counts(topics=1)

    assert {exchange.topic_key for exchange in memory.find(ANA, "Lisbon").exchanges} == {"unsorted"}
    assert memory.found(ANA, "Lisbon") == {peanuts.exchange_id, lisbon.exchange_id}
    assert [(topic.key, topic.exchanges) for topic in memory.inventory.topics(ANA, after=0, limit=9)] == [
        ("unsorted", 2)
    ]
    memory.forget.topic(ANA, "unsorted", include_raw=False)  # it has nowhere else to leave them
    assert memory.found(ANA, "Lisbon") == {peanuts.exchange_id, lisbon.exchange_id}
    assert [(topic.key, topic.exchanges) for topic in memory.inventory.topics(ANA, after=0, limit=9)] == [
        ("unsorted", 2)
    ]


def test_forgetting_an_end_user_leaves_nothing_of_theirs_and_everything_of_the_others(
    memory: Memory, store: Store
) -> None:
    memory.capture(ANA, user("zebrafish"), response=assistant("zebrafish"), key="zebrafish key")
    others = [memory.capture(scope, Q2, response=A2) for scope in (BEN, OTHER_PROJECT)]
    memory.found(ANA, "zebrafish")

    assert memory.forget.end_user(ANA) == Counts(exchanges=1, messages=2, topics=1, end_users=1)

    left = _everything(store)
    assert "zebrafish" not in left
    assert memory.found(ANA, "zebrafish") == memory.found(ANA) == set()
    assert memory.found(BEN, "Lisbon") == {others[0].exchange_id}
    assert memory.found(OTHER_PROJECT, "Lisbon") == {others[1].exchange_id}
    with pytest.raises(NotFound):
        memory.forget.end_user(ANA)


def test_an_end_user_can_begin_anew_after_being_forgotten(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.found(ANA, "Mia")
    memory.forget.end_user(ANA)

    anew = memory.capture(ANA, Q2, response=A2)

    assert memory.found(ANA, "Mia in Lisbon") == {anew.exchange_id}


def test_forgetting_a_project_leaves_nothing_of_it_and_everything_of_the_others(
    memory: Memory, store: Store
) -> None:
    access = Access(store, memory.clock, iter(["k1", "k2"]).__next__)
    key, _ = access.create(project="p")
    other_key, other = access.create(project="q")
    for scope in (ANA, BEN):
        memory.capture(scope, user("zebrafish"), response=assistant("zebrafish"))
        memory.found(scope, "zebrafish")
    kept = memory.capture(OTHER_PROJECT, Q2, response=A2)

    assert memory.forget.project("p") == Counts(exchanges=2, messages=4, topics=2, end_users=2)

    left = _everything(store)
    assert "zebrafish" not in left
    assert "ben" not in left
    assert memory.found(ANA, "zebrafish") == memory.found(BEN) == set()
    assert memory.found(OTHER_PROJECT, "Lisbon") == {kept.exchange_id}
    with pytest.raises(Forbidden):
        access.grant(key)
    assert access.grant(other_key) == other
    for again in (memory.forget.project, memory.inventory.project):
        with pytest.raises(ProjectNotFound):
            again("p")
    assert memory.inventory.projects(after="", limit=9) == [Project("q", NOW)]


def test_two_people_forgetting_the_same_at_once_count_it_once(memory: Memory) -> None:
    kept = memory.capture(ANA, user("violin lessons for Mia"), response=assistant("violin lessons"))
    gone = memory.capture(ANA, user("violin lessons on Monday"), response=assistant("violin lessons"))
    barrier = threading.Barrier(4)

    def forget(_: int) -> Counts | None:
        barrier.wait()
        try:
            return memory.forget.exchange(ANA, gone.exchange_id)
        except NotFound:
            return None

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(forget, range(4)))

    assert sorted(answers, key=str) == [Counts(exchanges=1, messages=2), None, None, None]
    assert memory.found(ANA, "violin") == {kept.exchange_id}
    assert [topic.exchanges for topic in memory.inventory.topics(ANA, after=0, limit=9)] == [1]


def test_a_topic_forgotten_while_exchanges_join_it_leaves_none_without_a_topic(memory: Memory) -> None:
    memory.capture(ANA, user("violin lessons 0"), response=assistant("violin lessons"))
    key = memory.inventory.topics(ANA, after=0, limit=1)[0].key
    barrier = threading.Barrier(5)

    def act(n: int) -> None:
        barrier.wait()
        if n:
            memory.capture(ANA, user(f"violin lessons {n}"), response=assistant("violin lessons"), key=str(n))
        else:
            memory.forget.topic(ANA, key, include_raw=False)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(act, range(5)))

    topics = {topic.key: topic.exchanges for topic in memory.inventory.topics(ANA, after=0, limit=9)}
    held = [exchange.topic_key for exchange in memory.exchanges(ANA)]
    assert {key: held.count(key) for key in held} == topics
    assert len(held) == 5


# -- the change log --------------------------------------------------------------------------------------------------


def _seen(index: ScopeIndex, memory: Memory, scope: Scope, query: str) -> dict[str, Any]:
    found: Candidates = index.search(memory.embedder.encode([query]), term_ids(query))
    values = {name: getattr(found, name) for name in Candidates.__dataclass_fields__}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
        if name not in ("similarity", "holders", "hidden", "topics", "speaker", "speakers")
    } | {
        "similarity": [None if np.isnan(near) else round(float(near), 4) for near in found.similarity],
        "holders": {term: places.tolist() for term, places in found.holders.items()},
        "speakers": [None if at < 0 else found.speakers[at] for at in found.speaker],
        "topics": {row: round(near, 4) for row, near in found.topics.items()},
    }


_changes = st.lists(
    st.tuples(
        st.sampled_from(
            ["capture", "capture", "continue", "forget", "unsort", "erase topic", "erase user", "look"]
        ),
        st.integers(0, 99),
        st.sampled_from(_WORDS),
    ),
    max_size=12,
)


@settings(max_examples=20)
@given(changes=_changes)
def test_an_index_that_followed_every_change_shows_what_a_fresh_one_shows(
    memory: Memory, store: Store, changes: list[Any]
) -> None:
    scope, index = _nobody(), ScopeIndex(memory.embedder.dim)
    talk: list[dict[str, str]] = []
    for action, number, word in changes:
        stored, topics = memory.exchanges(scope), memory.inventory.topics(scope, after=0, limit=99)
        if action == "capture":
            memory.capture(scope, user(f"{word} {number}", name="Mia"), response=assistant(word), key=None)
        elif action == "continue":
            talk = [*talk, user(f"{word} again {number}?")]
            memory.capture(scope, *talk, response=assistant(f"{word} {number}"))
            talk.append(assistant(f"{word} {number}"))
        elif action == "forget" and stored:
            memory.forget.exchange(scope, stored[number % len(stored)].id)
        elif action in ("unsort", "erase topic") and topics:
            key = topics[number % len(topics)].key
            memory.forget.topic(scope, key, include_raw=action == "erase topic")
        elif action == "erase user" and stored:
            memory.forget.end_user(scope)
            talk = []
        if action != "look":
            store.read(lambda tx: index.catch_up(scope, tx))

    fresh = ScopeIndex(memory.embedder.dim)
    store.read(lambda tx: (index.catch_up(scope, tx), fresh.catch_up(scope, tx)))
    for query in (*_WORDS, "Mia", "again"):
        assert _seen(index, memory, scope, query) == _seen(fresh, memory, scope, query)


def test_an_index_reads_only_what_is_new_until_something_is_taken_away(memory: Memory, store: Store) -> None:
    index = ScopeIndex(memory.embedder.dim)
    memory.capture(ANA, Q1, response=A1)
    assert store.read(lambda tx: index.catch_up(ANA, tx))
    assert not store.read(lambda tx: index.catch_up(ANA, tx))
    memory.capture(ANA, Q2, response=A2)
    read: list[Any] = []

    class Watched(Transaction):
        def documents(self, scope: Scope, seqs: Any = None) -> Any:
            read.append(seqs)
            return super().documents(scope, seqs)

    def catch_up(tx: Transaction) -> bool:
        return index.catch_up(ANA, Watched(tx.connection, tx.embedder))

    newest = memory.exchanges(ANA)[-1]
    assert store.read(catch_up)
    memory.forget.exchange(ANA, newest.id)
    assert store.read(catch_up)
    assert read == [[newest.seq], None]


def _follow(index: ScopeIndex, store: Store) -> dict[str, int]:
    """Bring the index up to date; return how often each message stands in it."""
    store.read(lambda tx: index.catch_up(ANA, tx))
    found = index.search(None, term_ids("")).exchange.tolist()
    return {seq: found.count(seq) for seq in found}


def test_exchanges_added_and_moved_before_an_index_looks_again_are_indexed_once(
    memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        store_module, "_MANY", 4
    )  # the two lines of one exchange fall into different statements
    index = ScopeIndex(memory.embedder.dim)
    memory.capture(ANA, user("violin lessons"), key="first")
    _follow(index, store)
    lisbon = memory.capture(ANA, Q2, key="second")
    for n in range(6):
        memory.capture(ANA, user("Lisbon in May"), key=str(n))
    memory.forget.topic(ANA, lisbon.topic_keys[0], include_raw=False)

    followed = _follow(index, store)

    assert followed == _follow(ScopeIndex(memory.embedder.dim), store)
    assert list(followed.values()) == 8 * [1]


def test_an_index_far_behind_is_rebuilt(
    memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_module, "_MANY", 3)
    index = ScopeIndex(memory.embedder.dim)
    for n in range(5):
        memory.capture(ANA, user(f"note {n}"), key=str(n))
        if n == 0:
            _follow(index, store)

    assert _follow(index, store) == _follow(ScopeIndex(memory.embedder.dim), store)


def test_a_retrieval_answers_from_its_own_moment_beside_a_newer_index(memory: Memory, store: Store) -> None:
    peanuts = memory.capture(ANA, Q1, response=A1)

    def overtaken(tx: Transaction) -> Retrieved:
        tx.position(ANA)  # the moment begins with the first look
        newer = threading.Thread(
            target=lambda: (
                memory.forget.topic(ANA, peanuts.topic_keys[0], include_raw=False),
                memory.find(ANA, "peanuts"),
            )
        )
        newer.start()
        newer.join()
        return memory.retrieves._retrieve(tx, ANA, Question("peanuts", 5))

    found = store.read(overtaken)

    assert [exchange.id for exchange in found.exchanges] == [peanuts.exchange_id]
    assert [topic.key for topic in found.topics] == list(peanuts.topic_keys)
    assert memory.find(ANA, "peanuts").exchanges[0].topic_key == "unsorted"


# -- lists -----------------------------------------------------------------------------------------------------------


def test_pages_hold_everything_once_in_order(memory: Memory) -> None:
    ids = [memory.capture(ANA, user(f"{word} {word}"), response=A1).exchange_id for word in _WORDS]
    pages: list[str] = []
    before: int | None = None
    while page := memory.inventory.exchanges(ANA, before=before, limit=4):
        pages += [exchange.id for exchange in page]
        before = page[-1].seq
    assert pages == ids[::-1]

    rows: list[int] = []
    while topics := memory.inventory.topics(ANA, after=rows[-1] if rows else 0, limit=2):
        rows += [topic.row for topic in topics]
    assert all(earlier < later for earlier, later in pairwise(rows))
    assert sum(topic.exchanges for topic in memory.inventory.topics(ANA, after=0, limit=99)) == len(ids)

    for key in ("b", "a", "c"):
        memory.inventory.add_project(key)
    assert [project.key for project in memory.inventory.projects(after="a", limit=2)] == ["b", "c"]


def test_only_the_topics_asked_for_are_searched(memory: Memory, store: Store) -> None:
    peanuts, lisbon = memory.capture(ANA, Q1, response=A1), memory.capture(ANA, Q2, response=A2)

    only = store.read(lambda tx: tx.latest(ANA, limit=9, topic_keys=list(lisbon.topic_keys)))

    assert [exchange.id for exchange in only] == [lisbon.exchange_id]
    assert peanuts.topic_keys != lisbon.topic_keys
    for question in ("Mia peanuts", ""):
        found = memory.retrieves(ANA, Question(question, 9, topic_keys=lisbon.topic_keys))
        assert [exchange.id for exchange in found.exchanges] == [lisbon.exchange_id]
        assert memory.retrieves(ANA, Question(question, 9, topic_keys=("no such topic",))).exchanges == ()


def test_a_message_is_found_by_who_said_it_and_on_which_day(memory: Memory) -> None:
    may = memory.capture(ANA, user("It rains.", name="Xaviera", timestamp="2023-05-04T10:00:00Z"))
    memory.capture(ANA, user("The sun shines.", timestamp="2023-06-05T10:00:00Z"))

    assert memory.exchanges(ANA)[0].occurred_at == 1_683_194_400_000
    for question in ("What was on 04 May?", "What did Xaviera say?"):
        assert memory.find(ANA, question).exchanges[0].id == may.exchange_id


def test_erasing_what_is_not_there_is_nothing(store: Store) -> None:
    assert store.write(lambda tx: tx.erase_exchange(ANA, "no such id")) == Counts()


def test_a_disabled_topic_is_hidden_until_it_is_asked_for(memory: Memory, store: Store) -> None:
    hidden, shown = memory.capture(ANA, Q1, response=A1), memory.capture(ANA, Q2, response=A2)
    memory.found(ANA, "Mia")
    topic = store.read(lambda tx: tx.topics(ANA, hidden.topic_keys))[0]
    store.write(lambda tx: tx.put_topic(ANA, replace(topic, enabled=False)))

    assert memory.found(ANA, "Mia peanuts") == memory.found(ANA) == {shown.exchange_id}
    assert len(memory.exchanges(ANA)) == 2

    store.write(lambda tx: tx.put_topic(ANA, topic))
    assert memory.found(ANA, "Mia peanuts") == memory.found(ANA) == {hidden.exchange_id, shown.exchange_id}


def test_a_project_is_made_once_and_counted(memory: Memory) -> None:
    memory.clock.now += 5
    assert memory.inventory.add_project("p") == (Project("p", NOW), False)
    assert memory.inventory.add_project("new") == (Project("new", NOW + 5), True)
    memory.capture(ANA, Q1, response=A1)
    memory.capture(BEN, Q1, response=A1)

    assert memory.inventory.project("p") == (Project("p", NOW), Counts(2, 4, 2, 2))
    assert memory.inventory.project("q") == (Project("q", NOW), Counts())


# -- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_is_good_until_it_is_revoked_or_expires(store: Store) -> None:
    clock = FrozenClock()
    access = Access(store, clock, iter(["k1", "k2", "k3"]).__next__)
    plain, bound = (
        access.create(project="p", end_user="ana", label="a"),
        access.create(admin=True, expires_at=NOW + 5),
    )

    assert bound[1] == Grant("k2", admin=True, created_at=NOW, expires_at=NOW + 5)
    assert [access.grant(key) for key, _ in (plain, bound)] == [plain[1], bound[1]]
    assert access.list() == [plain[1], bound[1]]

    clock.now = NOW + 5
    with pytest.raises(Forbidden):
        access.grant(bound[0])
    assert access.revoke("k1")
    assert not access.revoke("k1")
    for key in (plain[0], "halo_unknown", "\ud800"):
        with pytest.raises(Forbidden):
            access.grant(key)
    assert access.list() == [replace(plain[1], revoked_at=NOW + 5), bound[1]]


def test_no_key_is_kept_in_a_form_that_opens_anything(store: Store) -> None:
    access = Access(store, FrozenClock(), iter(["k1"]).__next__)
    key, _ = access.create(project="p")

    assert key.removeprefix("halo_") not in _everything(store)


def test_the_key_of_an_embedded_client_is_the_same_at_every_start(
    store: Store, open_again: Callable[[], Store]
) -> None:
    keys = [
        Access(one, FrozenClock(), iter(["k1", "k2"]).__next__).embedded_key("p")
        for one in (store, open_again())
    ]

    assert keys[0] == keys[1]
    assert Access(store, FrozenClock(), str).grant(keys[0]).project == "p"


# -- many at once ----------------------------------------------------------------------------------------------------


def test_one_key_sent_by_many_at_once_is_one_exchange(memory: Memory) -> None:
    barrier = threading.Barrier(8)

    def capture(_: int) -> Any:
        barrier.wait()
        return memory.capture(ANA, Q1, response=A1, key="k")

    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(capture, range(8)))

    assert len({receipt.exchange_id for receipt in receipts}) == 1
    assert sorted(receipt.duplicate for receipt in receipts) == [False] + 7 * [True]
    assert memory.said(ANA) == [[Q1, A1]]


def test_a_growing_history_captured_by_many_at_once_is_stored_once(memory: Memory) -> None:
    barrier = threading.Barrier(6)
    talk = [Q1, A1, Q2, A2, Q3]

    def capture(n: int) -> Any:
        barrier.wait()
        return memory.capture(ANA, *talk, response=A3, key=f"k{n}")

    with ThreadPoolExecutor(6) as pool:
        assert len({receipt.exchange_id for receipt in pool.map(capture, range(6))}) == 1
    assert memory.said(ANA) == [[*talk, A3]]


def test_all_that_many_capture_at_once_is_found_afterwards(memory: Memory) -> None:
    """Two end users, and retrievals between the captures, so that indexes follow while they grow."""
    scopes, barrier = (ANA, BEN), threading.Barrier(8)

    def capture(n: int) -> list[tuple[Scope, str]]:
        barrier.wait()
        taken = []
        for turn in range(5):
            scope = scopes[(n + turn) % 2]
            word = f"{_WORDS[n % 6]} {n} {turn}"
            receipt = memory.capture(scope, user(word), response=assistant(word), key=f"{n} {turn}")
            assert receipt.exchange_id in memory.found(scope, word)
            taken.append((scope, receipt.exchange_id))
        return taken

    with ThreadPoolExecutor(8) as pool:
        taken = [one for many in pool.map(capture, range(8)) for one in many]

    for scope in scopes:
        mine = {exchange_id for owner, exchange_id in taken if owner == scope}
        assert memory.found(scope) == {exchange.id for exchange in memory.exchanges(scope)} == mine
        topics = memory.inventory.topics(scope, after=0, limit=99)
        assert sum(topic.exchanges for topic in topics) == len(mine)


def test_a_reader_sees_one_moment_however_much_is_written_meanwhile(memory: Memory, store: Store) -> None:
    memory.capture(ANA, Q1, response=A1)

    def read_twice(tx: Transaction) -> tuple[int, int]:
        before = len(tx.latest(ANA, limit=9))
        writer = threading.Thread(target=memory.capture, args=(ANA, Q2))
        writer.start()
        writer.join()
        return before, len(tx.latest(ANA, limit=9))

    assert store.read(read_twice) == (1, 1)
    assert len(memory.exchanges(ANA)) == 2


# -- failures --------------------------------------------------------------------------------------------------------


def test_work_that_fails_leaves_nothing(memory: Memory, store: Store) -> None:
    def half(tx: Transaction) -> None:
        tx.add_project("half", NOW)
        raise NotFound

    with pytest.raises(NotFound):
        store.write(half)
    assert store.read(lambda tx: tx.project("half")) is None
    assert memory.inventory.add_project("half") == (Project("half", NOW), True)


def test_what_the_database_refuses_is_unavailable_with_its_cause(memory: Memory, store: Store) -> None:
    def bad(tx: Transaction) -> None:
        tx.connection.execute(text("SELECT * FROM no_such_table"))

    for run in (store.read, store.write):
        with pytest.raises(Unavailable) as failed:
            run(bad)
        assert "no_such_table" in str(failed.value.__cause__)
        assert "no_such_table" not in str(failed.value)
    assert memory.capture(ANA, Q1, response=A1).index == "ready"


def test_a_capture_for_an_erased_project_is_not_taken(memory: Memory) -> None:
    memory.forget.project("p")

    with pytest.raises(Unavailable):
        memory.capture(ANA, Q1, response=A1)
    assert memory.exchanges(ANA) == []


def test_a_store_that_answers_can_be_pinged(store: Store) -> None:
    Access(store, FrozenClock(), str).ping()


# -- exact values ----------------------------------------------------------------------------------------------------

_any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_any_text, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25)
@given(
    words=_any_text.filter(str.strip),
    state=st.dictionaries(_any_text, _json, max_size=3),
    end_user=_any_text.filter(bool),
)
def test_words_and_state_come_back_exactly_as_they_went_in(
    memory: Memory, words: str, state: dict[str, Any], end_user: str
) -> None:
    scope, said, answer = Scope("p", end_user), user(words, meta={"words": words}), assistant(words)
    taken = replace(submission(memory.settings, {"messages": [said]}, answer), state=state)
    receipt = memory.captures(scope, taken, f"{words!r} {state!r}")

    stored = memory.inventory.exchange(scope, receipt.exchange_id)

    assert (stored.request, stored.response, stored.state) == ((said,), answer, state)
