"""What a memory promises, asked of every store: stored once, found at once, kept apart, gone when forgotten."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
    Receipt,
    Retrieved,
    Scope,
    Topic,
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
from halo_server.transcript import read_message
from tests.memory import NOW, WINDOW_MS, FrozenClock, Memory, Said, assistant, user

ANA = Scope("p", "ana")
BEN = Scope("p", "ben")
OTHER_PROJECT = Scope("q", "ana")

_numbers = count(1)


def _nobody() -> Scope:
    """Return an end user of whom nothing was ever captured: the examples of a property share one store."""
    return Scope("p", f"user-{next(_numbers)}")


FORGOTTEN = Receipt("", (), forgotten=True)

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
            messages=stored[0].messages,
        )
    ]
    assert len(stored[0].messages) == 1
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

    is_local = True

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


@pytest.mark.parametrize("overtaken", [1, 2, 3])
def test_a_capture_that_is_overtaken_tries_again_and_at_last_asks_for_a_retry(
    store: Store, overtaken: int
) -> None:
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
    meddler.meanwhile = [begin_again(known) for known in (4, 2, 1)[:overtaken]]

    if overtaken == 3:
        with pytest.raises(Unavailable):
            memory.capture(ANA, *talk)
        assert memory.said(ANA) == [talk[:1]]
    assert memory.capture(ANA, *talk).exchange_id in memory.found(ANA)
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


# -- what nobody said ------------------------------------------------------------------------------------------------

RULES = {"role": "system", "content": "Be kind."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "function": {"name": "get_weather"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "21 °C"}
OUR_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"function": {"name": "halo_retrieve_memory"}}],
}
OUR_RESULT = {"role": "tool", "name": "halo_retrieve_memory", "content": "recalled"}
OUR_PARTS = {"role": "user", "parts": [{"functionResponse": {"name": "halo_retrieve_memory"}}]}
UNSAID = (RULES, CALL, RESULT, OUR_CALL, OUR_RESULT, OUR_PARTS)


def _kept(*messages: Any) -> list[Said]:
    """Return messages as they are stored."""
    return [read_message(message).raw for message in messages]


def test_what_nobody_said_may_come_and_go_without_storing_the_history_again(memory: Memory) -> None:
    memory.capture(ANA, RULES, Q1, response=A1)
    memory.capture(ANA, Q1, OUR_CALL, OUR_RESULT, A1, RULES, Q2, CALL, RESULT, response=A2)
    memory.capture(ANA, RULES, Q1, A1, Q2, A2, Q3, OUR_CALL, OUR_RESULT, response=A3)

    assert memory.said(ANA) == [
        _kept(RULES, Q1, A1),
        _kept(RULES, Q2, CALL, RESULT, A2),
        _kept(Q3, OUR_CALL, OUR_RESULT, A3),
    ]


def test_a_whole_thread_is_rebuilt_with_its_placeholders_and_a_cut_one_as_far_as_it_was_sent(
    memory: Memory,
) -> None:
    memory.capture(ANA, RULES, Q1, response=A1)
    whole = memory.capture(ANA, RULES, Q1, A1, Q2, OUR_CALL, OUR_RESULT, response=A2)
    cut = memory.capture(ANA, RULES, Q2, A2, Q3, CALL, RESULT, response=A3)

    assert memory.inventory.sent_messages(ANA, whole.exchange_id) == _kept(
        RULES, Q1, A1, Q2, OUR_CALL, OUR_RESULT
    )
    assert memory.inventory.sent_messages(ANA, cut.exchange_id) == _kept(
        Q2, OUR_CALL, OUR_RESULT, A2, Q3, CALL, RESULT
    )


def test_a_history_sent_again_is_a_duplicate_though_what_nobody_said_came_after_it(memory: Memory) -> None:
    memory.capture(ANA, Q1, response=A1)
    second = memory.capture(ANA, Q1, A1, Q2, response=A2)
    memory.capture(ANA, Q1, A1, Q2, A2, RULES, Q3, response=A3)

    for sent in ([Q1, A1, Q2], [RULES, Q1, A1, RULES, Q2, CALL, RESULT]):
        assert memory.capture(ANA, *sent, response=A2) == replace(second, duplicate=True)
    memory.forget.exchange(ANA, second.exchange_id)
    assert memory.capture(ANA, Q1, A1, Q2, response=A2) == FORGOTTEN
    assert memory.capture(ANA, Q1, A1, Q2, A2, RULES) == FORGOTTEN
    assert memory.said(ANA) == [_kept(Q1, A1), _kept(RULES, Q3, A3)]


def test_an_answer_given_anew_repeats_its_question_with_what_nobody_said(memory: Memory) -> None:
    sent = (RULES, Q1, A1, RULES, Q2, CALL, RESULT)
    memory.capture(ANA, *sent, response=A2)
    again = memory.capture(ANA, *sent, response=A3)

    assert memory.said(ANA) == [_kept(*sent, A2), _kept(Q2, CALL, RESULT, A3)]
    assert memory.inventory.sent_messages(ANA, again.exchange_id) == _kept(*sent)


def test_a_request_that_ends_with_what_nobody_said_is_known_again_and_continues(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, A1, Q2, CALL)
    assert memory.capture(ANA, Q1, A1, Q2, CALL) == replace(first, duplicate=True)
    assert memory.capture(ANA, Q1, A1, Q2) == replace(first, duplicate=True)

    memory.capture(ANA, Q1, A1, Q2, A2, CALL)
    memory.capture(ANA, Q1, A1, Q2, A2, CALL, RESULT, Q3, response=A3)
    edited = memory.capture(ANA, Q1, A1, Q2, A2, Q1, response=A1)

    assert memory.said(ANA) == [_kept(Q1, A1, Q2, CALL), _kept(Q2, A2, CALL), _kept(RESULT, Q3, A3), [Q1, A1]]
    assert memory.inventory.sent_messages(ANA, edited.exchange_id) == _kept(Q1, A1, Q2, A2, Q1)


def test_an_answer_that_stands_in_the_messages_too_is_stored_once(memory: Memory) -> None:
    shapes = (
        A1["content"],
        {"role": "model", "parts": [{"text": A1["content"]}]},
        {"choices": [{"message": A1}]},
    )
    for scope, response in zip((ANA, BEN, OTHER_PROJECT), shapes, strict=True):
        memory.capture(scope, Q1, A1, response=response)

        [stored] = memory.exchanges(scope)
        assert stored.request == (Q1,)
        assert stored.response == read_message(response if isinstance(response, dict) else A1).raw


@settings(max_examples=40)
@given(data=st.data())
def test_whatever_nobody_said_stands_anywhere_each_word_is_stored_once_with_its_turn(
    memory: Memory, data: st.DataObject
) -> None:
    """A conversation takes turns, sent whole or cut, each time with other unsaid messages around what was said."""
    scope = _nobody()

    def strewn(said: Sequence[Said]) -> list[Said]:
        return [message for one in said for message in (*data.draw(unsaid), one)]

    unsaid = st.lists(st.sampled_from(UNSAID), max_size=2)
    talk: list[Said] = []
    turns: list[tuple[list[Said], Said, Receipt]] = []
    for turn in range(data.draw(st.integers(1, 4))):
        asked = [user(f"question {turn}.{n}") for n in range(data.draw(st.integers(1, 2)))]
        answer = assistant(f"answer {turn}")
        before = talk[data.draw(st.integers(0, max(0, len(talk) - 1))) :]
        own = [*asked, *data.draw(unsaid)]
        sent = [*strewn(before), *data.draw(unsaid), *own]
        ending = {"response": answer} if data.draw(st.booleans()) else {}
        receipt = memory.capture(scope, *sent, *([] if ending else [answer]), **ending)

        assert not receipt.duplicate
        assert memory.exchanges(scope)[-1].request[-len(own) :] == tuple(_kept(*own))
        rebuilt = memory.inventory.sent_messages(scope, receipt.exchange_id)
        assert _spoken(rebuilt) == [*before, *asked]
        talk += [*asked, answer]
        turns.append(([*before, *asked], answer, receipt))

    def unchanged() -> bool:
        return _spoken(message for exchange in memory.said(scope) for message in exchange) == talk

    assert unchanged()
    for said, answer, receipt in turns:
        if len(said) > 1:
            assert memory.capture(scope, *strewn(said), response=answer) == replace(receipt, duplicate=True)
    assert unchanged()
    said, answer, receipt = data.draw(st.sampled_from(turns))
    memory.forget.exchange(scope, receipt.exchange_id)
    talk = [message for exchange in memory.said(scope) for message in _spoken(exchange)]
    if len(said) > 1:
        assert memory.capture(scope, *strewn(said), response=answer) == FORGOTTEN
    assert unchanged()


def _spoken(messages: Iterable[Said]) -> list[Said]:
    return [message for message in messages if read_message(dict(message)).spoken]


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


class _Alike:
    """An embedder under which all texts are alike."""

    is_local = True
    id, dim = "alike-v1-3", 3

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))


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
        rows = [connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables.metadata.tables]
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


def test_a_retry_with_its_key_does_not_bring_a_forgotten_exchange_back(memory: Memory, store: Store) -> None:
    first = memory.capture(ANA, Q1, response=A1, key="k")
    second = memory.capture(ANA, Q2, response=A2, key="l")
    memory.forget.exchange(ANA, first.exchange_id)
    memory.forget.topic(ANA, second.topic_keys[0], include_raw=True)
    left = _everything(store)

    assert memory.capture(ANA, Q1, response=A1, key="k") == FORGOTTEN
    assert memory.capture(ANA, Q2, response=A2, key="l") == FORGOTTEN
    with pytest.raises(IdempotencyKeyReused):
        memory.capture(ANA, Q3, response=A3, key="k")
    assert _everything(store) == left
    assert memory.capture(ANA, Q1, response=A1, key="m").exchange_id  # said anew, not sent again


@pytest.mark.parametrize("erase", ["end user", "project"])
def test_a_key_is_free_again_when_its_end_user_is_forgotten(memory: Memory, erase: str) -> None:
    memory.capture(ANA, Q1, response=A1, key="k")
    if erase == "project":
        memory.forget.project("p")
        memory.inventory.add_project("p")
    else:
        memory.forget.end_user(ANA)

    assert memory.capture(ANA, Q2, response=A2, key="k").exchange_id
    assert memory.said(ANA) == [[Q2, A2]]


@pytest.mark.parametrize("cut", [0, 1, 2])
@pytest.mark.parametrize("key", [None, "k", "another"])
def test_a_whole_history_sent_again_after_its_last_exchange_was_forgotten_writes_nothing(
    memory: Memory, store: Store, cut: int, key: str | None
) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q1, A1, Q2, response=A2)
    talk = [Q1, A1, Q2, A2, Q3][cut:]
    last = memory.capture(ANA, *talk, response=A3, key="k")
    memory.forget.exchange(ANA, last.exchange_id)
    left = _everything(store)

    assert memory.capture(ANA, *talk, response=A3, key=key) == FORGOTTEN
    assert _everything(store) == left
    memory.capture(ANA, Q1, A1, Q2, A2, Q3, A3, user("And pears?"), response=A1)
    assert memory.said(ANA) == [[Q1, A1], [Q2, A2], [user("And pears?"), A1]]


def test_what_another_exchange_still_holds_is_a_duplicate_and_not_forgotten(memory: Memory) -> None:
    first = memory.capture(ANA, Q1, A1, Q2)
    second = memory.capture(ANA, Q1, A1, Q2, CALL)
    memory.forget.exchange(ANA, second.exchange_id)

    assert memory.capture(ANA, Q1, A1, Q2, CALL) == replace(first, duplicate=True)
    assert memory.said(ANA) == [[Q1, A1, Q2]]


def test_a_forgotten_exchange_that_named_a_topic_is_not_read_off_its_name(store: Store) -> None:
    memory = Memory(store, _Alike())
    gone = memory.capture(ANA, user("The zebrafish quarantine!"), response=assistant("Zebrafish quarantine."))
    kept = memory.capture(ANA, user("More violin lessons?"), response=assistant("Violin it is."))
    assert kept.topic_keys == gone.topic_keys == ("zebrafish_quarantine",)
    memory.found(ANA, "violin")

    memory.forget.exchange(ANA, gone.exchange_id)

    assert not {word for word in ("zebrafish", "quarantine") if word in _everything(store).lower()}
    [topic] = memory.inventory.topics(ANA, after=0, limit=9)
    assert topic.label in ("violin", "violin lessons")
    assert memory.inventory.exchange(ANA, kept.exchange_id).topic_key == topic.key
    assert memory.find(ANA, "violin").topics[0].key == topic.key


def test_forgetting_takes_exactly_what_the_exchange_had_given_its_topic(memory: Memory) -> None:
    """The words beside binary data and before instructions are read the same from what was stored."""
    memory.capture(ANA, user("violin lessons"), response=assistant("violin lessons"))
    [before] = memory.inventory.topics(ANA, after=0, limit=9)
    picture = {"role": "user", "content": "violin lessons in the red data:image/png;base64,QUJD car"}
    memory.capture(ANA, RULES, picture, CALL, RESULT, response=assistant("violin lessons, violin strings"))
    memory.forget.exchange(ANA, memory.exchanges(ANA)[-1].id)

    [after] = memory.inventory.topics(ANA, after=0, limit=9)
    assert (after.key, after.label, after.terms) == (before.key, before.label, before.terms)
    assert set(after.aliases) == set(before.aliases)
    np.testing.assert_allclose(after.vector_sum, before.vector_sum, atol=1e-5)


@settings(max_examples=10)
@given(data=st.data())
def test_the_sums_of_topics_return_to_what_they_were_before_an_exchange_joined(
    memory: Memory, data: st.DataObject
) -> None:
    scope = _nobody()

    def sums() -> dict[str, tuple[int, list[float]]]:
        topics = memory.inventory.topics(scope, after=0, limit=99)
        return {topic.id: (topic.exchanges, topic.vector_sum.tolist()) for topic in topics}

    def said(n: int) -> str:
        return f"{' '.join(data.draw(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=3)))} {n}"

    moments = []
    for n in range(data.draw(st.integers(1, 6))):
        before = sums()
        receipt = memory.capture(scope, user(said(n)), response=assistant(said(n)), key=str(n))
        moments.append((before, receipt))
    for before, receipt in reversed(moments):
        memory.forget.exchange(scope, receipt.exchange_id)
        now = sums()
        assert {topic: held[0] for topic, held in now.items()} == {t: held[0] for t, held in before.items()}
        for topic, (_, total) in now.items():
            np.testing.assert_allclose(total, before[topic][1], atol=1e-5)


class _Silent:
    """An embedder without a usable vector for anything but its word."""

    is_local = True
    id, dim = "silent-v1-2", 2

    def __init__(self, word: str, nothing: float) -> None:
        self.word, self.nothing = word, nothing

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.array(
            [[1, 0] if self.word in text else [self.nothing, self.nothing] for text in texts], np.float32
        ).reshape(len(texts), 2)


@pytest.mark.parametrize("nothing", [0.0, float("nan")])
def test_exchanges_without_a_vector_share_a_topic_or_stay_on_that_of_their_conversation(
    store: Store, nothing: float
) -> None:
    memory = Memory(store, _Silent("violin", nothing))
    talk = [user("violin"), assistant("violin")]
    named = memory.capture(ANA, *talk)
    stayed = memory.capture(ANA, *talk, user("ok"), response=assistant("Lisbon trip"))
    apart = [memory.capture(ANA, user(text), response=assistant("ok")) for text in ("Lisbon", "peanuts", "!")]

    assert named.topic_keys == stayed.topic_keys == ("violin",)
    assert {receipt.topic_keys for receipt in apart} == {("notes",)}
    held = {topic.key: topic.exchanges for topic in memory.inventory.topics(ANA, after=0, limit=9)}
    assert held == {"violin": 2, "notes": 3}
    assert memory.found(ANA, "peanuts") >= {apart[1].exchange_id}
    for receipt in apart:
        memory.forget.exchange(ANA, receipt.exchange_id)
    assert [topic.key for topic in memory.inventory.topics(ANA, after=0, limit=9)] == ["violin"]


# -- another embedder ------------------------------------------------------------------------------------------------


@pytest.fixture
def other(open_again: Callable[..., Store], memory: Memory) -> Memory:
    """The same database under another embedder."""
    return Memory(open_again(_Alike.id), _Alike(), new_id=memory.new_id)


def test_the_first_embedder_is_remembered(memory: Memory, other: Memory) -> None:
    for each in (memory, other, memory):
        assert each.store.write(lambda tx: tx.first_embedder()) == "hashing-v1-512"


def test_topics_of_another_embedder_are_found_by_words_and_joined_by_nobody(
    memory: Memory, other: Memory
) -> None:
    violin = memory.capture(ANA, user("violin lessons"), response=assistant("violin lessons"))
    more = other.capture(ANA, user("violin strings"), response=assistant("violin strings"))

    assert violin.topic_keys != more.topic_keys
    sums = {topic.key: topic.vector_sum.tolist() for topic in other.inventory.topics(ANA, after=0, limit=9)}
    assert sums == {violin.topic_keys[0]: [], more.topic_keys[0]: [1, 0, 0]}
    assert other.found(ANA, "lessons") == {violin.exchange_id, more.exchange_id}
    index = other.store.read(lambda tx: other.indexes.open(ANA, tx))
    found = index.search(other.embedder.encode(["violin"]), term_ids("violin"))
    assert list(found.topics.values()) == [1.0]
    again = memory.capture(ANA, user("violin lessons again"), response=assistant("violin lessons"))
    assert again.topic_keys == violin.topic_keys


def test_a_topic_of_another_embedder_becomes_unsorted_without_a_sum(memory: Memory, other: Memory) -> None:
    violin = memory.capture(ANA, user("violin lessons"), response=assistant("violin lessons"))
    for each in (memory, other):
        each.capture(ANA, user("Lisbon in May"), response=assistant("Lisbon"))

    other.forget.topic(ANA, violin.topic_keys[0], include_raw=False)

    for each in (memory, other):
        more = each.capture(ANA, user(f"garden {each.embedder.id}"), response=assistant("garden"))
        assert more.topic_keys != ("unsorted",)
        sums = {topic.key: topic.vector_sum.size for topic in each.inventory.topics(ANA, after=0, limit=9)}
        assert sums["unsorted"] == 0
        assert sums[more.topic_keys[0]] == each.embedder.dim
        assert violin.exchange_id in each.found(ANA, "violin lessons")


def test_forgetting_under_another_embedder_keeps_every_topic_usable_under_both(
    memory: Memory, other: Memory
) -> None:
    first, second, lisbon = (
        memory.capture(ANA, user(text), response=assistant(text)).exchange_id
        for text in ("violin lessons", "violin lessons again", "Lisbon in May")
    )
    gone, kept = (
        other.capture(ANA, user(text), response=assistant(text)) for text in ("peanuts", "peanuts and pears")
    )
    keys = {topic.label: topic.key for topic in memory.inventory.topics(ANA, after=0, limit=9)}

    other.forget.exchange(ANA, first)
    other.forget.topic(ANA, keys["lisbon"], include_raw=False)
    other.forget.topic(ANA, kept.topic_keys[0], include_raw=False)
    memory.forget.exchange(ANA, gone.exchange_id)

    held = {topic.key: topic.exchanges for topic in memory.inventory.topics(ANA, after=0, limit=9)}
    assert held == {keys["violin lessons"]: 1, "unsorted": 2}
    for each in (memory, other):
        grown = each.capture(ANA, user("garden and invoice"), response=assistant("garden"))
        assert grown.exchange_id in each.found(ANA, "garden")
        each.forget.exchange(ANA, grown.exchange_id)
        assert each.found(ANA) == {second, lisbon, kept.exchange_id}


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


@pytest.mark.parametrize("known", [True, False])
def test_a_project_forgotten_while_its_end_users_speak_is_gone_or_still_whole(
    memory: Memory, store: Store, known: bool
) -> None:
    scopes = [Scope("p", f"end-user-{n}") for n in range(6)]
    for scope in scopes if known else scopes[:1]:
        memory.capture(scope, Q1, response=A1)
    barrier = threading.Barrier(7)

    def act(n: int) -> None:
        barrier.wait()
        if n == 6:
            memory.forget.project("p")
            return
        for turn in range(5):
            memory.capture(
                scopes[n], user(f"zebrafish {turn}"), response=assistant("zebrafish"), key=str(turn)
            )

    with ThreadPoolExecutor(7) as pool:
        futures = [pool.submit(act, n) for n in range(7)]
        errors = [future.exception(timeout=60) for future in futures]

    assert {type(error) for error in errors} <= {type(None), Unavailable, ProjectNotFound}
    if errors[-1]:  # a new end user came between; asked again, it goes
        memory.forget.project("p")
    assert not {word for word in ("zebrafish", "end-user", "peanuts") if word in _everything(store)}


def test_forgetting_a_project_waits_for_what_is_being_written_and_takes_it_too(store: Store) -> None:
    writing, erased = threading.Event(), threading.Event()
    numbers = count(1)

    def new_id() -> str:
        """Ids are made inside the transaction of a capture."""
        number = next(numbers)
        if number == 3:
            writing.set()
            erased.wait(0.3)  # in vain
        return f"id-{number}"

    memory = Memory(store, new_id=new_id)
    memory.capture(ANA, Q1, response=A1)

    def erase() -> Counts:
        assert writing.wait(10)
        counts = memory.forget.project("p")
        erased.set()
        return counts

    with ThreadPoolExecutor(2) as pool:
        erasing = pool.submit(erase)
        taken = pool.submit(memory.capture, ANA, Q2, response=A2)

    assert taken.result().exchange_id == "id-3"
    assert erasing.result() == Counts(exchanges=2, messages=4, topics=2, end_users=1)
    assert memory.exchanges(ANA) == []


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


# -- a person's word -------------------------------------------------------------------------------------------------


def _held(memory: Memory, scope: Scope) -> dict[str, int]:
    """Return how many exchanges each topic says it has, which is how many it has."""
    topics = memory.inventory.topics(scope, after=0, limit=99, include_disabled=True)
    counted = {topic.key: topic.exchanges for topic in topics}
    keys = [exchange.topic_key for exchange in memory.exchanges(scope)]
    assert counted == {key: keys.count(key) for key in {*keys, *counted}}
    return counted


def test_a_former_key_belongs_to_one_end_user(memory: Memory, store: Store) -> None:
    for scope in (ANA, BEN, OTHER_PROJECT):
        for said in (Q1, Q2):
            memory.capture(scope, said, response=said)
    peanuts, lisbon = [topic.key for topic in memory.inventory.topics(ANA, after=0, limit=9)]

    memory.topics.merge(ANA, peanuts, lisbon)

    for scope, found in ((ANA, lisbon), (BEN, peanuts), (OTHER_PROJECT, peanuts)):
        assert [topic.key for topic in store.read(lambda tx, s=scope: tx.topics(s, [peanuts]))] == [found]
        assert set(store.read(lambda tx, s=scope: tx.topic_keys(s))) == {peanuts, lisbon}
    assert _held(memory, ANA) == {lisbon: 2}
    assert memory.topics.edit(BEN, peanuts, label="Nuts").label == "Nuts"
    assert memory.inventory.topics(ANA, after=0, limit=9)[0].label != "Nuts"
    memory.forget.topic(ANA, peanuts, include_raw=True)
    assert _held(memory, ANA) == {}
    assert _held(memory, BEN) == {peanuts: 1, lisbon: 1}


def test_a_persons_word_is_there_after_a_restart_and_under_another_embedder(
    memory: Memory, other: Memory, open_again: Callable[..., Store]
) -> None:
    memory.capture(ANA, Q1, response=A1)
    memory.capture(ANA, Q2, response=A2)
    peanuts, lisbon = [topic.key for topic in memory.inventory.topics(ANA, after=0, limit=9)]
    memory.topics.edit(ANA, lisbon, label="Travel", aliases=["trips"], enabled=False)
    wished = memory.topics.merge(ANA, peanuts, lisbon)
    assert wished.pinned == {"enabled", "label", "aliases"}

    for each in (Memory(open_again()), other):
        assert each.found(ANA) == each.found(ANA, "Lisbon peanuts") == set()
        [topic] = each.inventory.topics(ANA, after=0, limit=9, include_disabled=True)
        assert (topic.key, topic.label, topic.aliases, topic.enabled, topic.pinned, topic.former_labels) == (
            lisbon,
            "Travel",
            wished.aliases,
            False,
            wished.pinned,
            wished.former_labels,
        )


def test_topics_merged_and_named_while_exchanges_join_them_lose_none(memory: Memory) -> None:
    words = ("violin", "lisbon", "marathon")
    for word in words:
        memory.capture(ANA, user(f"{word} {word} 0"), response=assistant(word))
    violin, lisbon, marathon = [topic.key for topic in memory.inventory.topics(ANA, after=0, limit=9)]
    pairs = [(violin, lisbon), (lisbon, violin), (violin, lisbon), (violin, marathon), (marathon, lisbon)]
    barrier = threading.Barrier(len(pairs) + 1 + 2 * len(words))

    def merge(pair: tuple[str, str]) -> None:
        barrier.wait()
        with suppress(InvalidRequest):  # another had merged them the other way round
            memory.topics.merge(ANA, *pair)

    def name() -> None:
        barrier.wait()
        memory.topics.edit(ANA, lisbon, label="All of it")

    def capture(number: int) -> str:
        barrier.wait()
        said = f"{words[number % 3]} {words[number % 3]} {number}"
        return memory.capture(ANA, user(said), response=assistant(said), key=said).exchange_id

    with ThreadPoolExecutor(barrier.parties) as pool:
        taken = [pool.submit(capture, number) for number in range(2 * len(words))]
        others = [*(pool.submit(merge, pair) for pair in pairs), pool.submit(name)]
    ids = {each.result() for each in taken}
    assert [each.result() for each in others] == [None] * 6

    held = _held(memory, ANA)
    assert sum(held.values()) == 9
    assert ids <= memory.found(ANA)
    [one] = {violin, lisbon, marathon} & set(held)
    for key in (violin, lisbon, marathon):
        [topic] = memory.store.read(lambda tx, key=key: tx.topics(ANA, [key]))
        assert topic.key == one
    for number, word in enumerate(words):
        assert memory.find(ANA, f"{word} {number + 3}").exchanges[0].topic_key in held


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
            [
                "capture",
                "capture",
                "continue",
                "forget",
                "unsort",
                "erase topic",
                "merge",
                "hide or show",
                "erase user",
                "look",
            ]
        ),
        st.integers(0, 99),
        st.sampled_from(_WORDS),
    ),
    max_size=12,
)


def _change_topic(memory: Memory, scope: Scope, action: str, topics: Sequence[Topic], number: int) -> None:
    key = topics[number % len(topics)].key
    if action == "merge" and len(topics) > 1:
        memory.topics.merge(scope, key, topics[(number + 1) % len(topics)].key)
    elif action == "hide or show":
        memory.topics.edit(scope, key, enabled=bool(number % 2))
    elif action in ("unsort", "erase topic"):
        memory.forget.topic(scope, key, include_raw=action == "erase topic")


@settings(max_examples=20)
@given(changes=_changes)
def test_an_index_that_followed_every_change_shows_what_a_fresh_one_shows(
    memory: Memory, store: Store, changes: list[Any]
) -> None:
    scope, index = _nobody(), ScopeIndex(memory.embedder.dim)
    talk: list[dict[str, str]] = []
    for action, number, word in changes:
        stored = memory.exchanges(scope)
        topics = memory.inventory.topics(scope, after=0, limit=99, include_disabled=True)
        if action == "capture":
            memory.capture(scope, user(f"{word} {number}", name="Mia"), response=assistant(word), key=None)
        elif action == "continue":
            talk = [*talk, user(f"{word} again {number}?")]
            memory.capture(scope, *talk, response=assistant(f"{word} {number}"))
            talk.append(assistant(f"{word} {number}"))
        elif action == "forget" and stored:
            memory.forget.exchange(scope, stored[number % len(stored)].id)
        elif topics and action not in ("look", "erase user"):
            _change_topic(memory, scope, action, topics, number)
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
        return memory.retrieves._best(tx, ANA, Question("peanuts", 5), memory.embedder.encode(["peanuts"]))

    found = store.read(overtaken)

    assert [exchange.id for exchange in found.exchanges] == [peanuts.exchange_id]
    assert [topic.key for topic in found.topics] == list(peanuts.topic_keys)
    assert memory.find(ANA, "peanuts").exchanges[0].topic_key == "unsorted"


def test_a_question_is_embedded_outside_every_moment_of_the_store(
    memory: Memory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.capture(ANA, user("It rains.", name="Xaviera"), response=A1)
    open_now: list[int] = []
    embedded: list[tuple[str, int]] = []
    read, encode = Store.read, memory.embedder.encode

    def watched_read(self: Store, work: Callable[[Transaction], Any]) -> Any:
        def counted(tx: Transaction) -> Any:
            open_now.append(1)
            try:
                return work(tx)
            finally:
                open_now.pop()

        return read(self, counted)

    def watched_encode(texts: Sequence[str]) -> Vectors:
        embedded.extend((text, len(open_now)) for text in texts)
        return encode(texts)

    monkeypatch.setattr(Store, "read", watched_read)
    monkeypatch.setattr(memory.embedder, "encode", watched_encode)

    assert memory.found(ANA, "What did Xaviera say?")
    assert memory.found(ANA, "")
    assert embedded == [("What did say?", 0)]


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
