"""The index of one scope over a source in memory: what it adds, hides, replaces, and how much it holds."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from halo_server.domain import Change, Document, Scope, Topic, Traits
from halo_server.index import scope
from halo_server.index.hot import HotIndexes
from halo_server.index.scope import ScopeIndex
from halo_server.text import term_ids

DIM = 8
ANA = Scope("p", "ana")


def unit(n: int) -> np.ndarray:
    vector = np.zeros(DIM, np.float32)
    vector[n % DIM] = 1
    return vector


@dataclass
class Log:
    """A source with the whole change log in memory, for any scope."""

    documents_: list[Document] = field(default_factory=list)
    topics_: dict[int, Topic] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    def _log(self, kind: Any, target: int) -> None:
        self.changes.append(Change(len(self.changes) + 1, kind, target))

    def say(
        self, exchange: int, *texts: str, vectors: bool = True, topic: int = 1, speaker: str | None = None
    ) -> None:
        for text in texts:
            number = len(self.documents_) + 1
            vector = unit(number) if vectors else None
            parent = number - 1 if texts.index(text) else None
            self.documents_.append(
                Document(
                    number,
                    exchange,
                    topic,
                    parent,
                    text.encode().ljust(16, b"."),
                    "user",
                    speaker,
                    vector,
                    term_ids(text),
                    Traits(len(text.split())),
                )
            )
        self._log("exchange", exchange)

    def put(self, row: int, vector: np.ndarray, *, enabled: bool = True, exchanges: int = 1) -> None:
        self.topics_[row] = Topic(f"t{row}", f"t{row}", "t", (), (), enabled, exchanges, vector, {}, 0, row)
        self._log("topic", row)

    def drop(self, row: int) -> None:
        del self.topics_[row]
        self._log("topic", row)

    def forget(self, exchange: int) -> None:
        self.documents_ = [document for document in self.documents_ if document.exchange != exchange]
        self._log("exchange", exchange)

    def position(self, scope: Scope) -> int:
        return len(self.changes)

    def changes_since(self, scope: Scope, position: int, *, limit: int = 1000) -> list[Change]:
        return self.changes[position:][:limit]

    def documents(self, scope: Scope, seqs: Sequence[int] | None = None) -> list[Document]:
        self.asked.append(seqs)
        return [document for document in self.documents_ if seqs is None or document.exchange in seqs]

    def topics(self, scope: Scope) -> list[Topic]:
        return list(self.topics_.values())

    def topics_by_row(self, scope: Scope, rows: Sequence[int]) -> list[Topic]:
        return [self.topics_[row] for row in rows if row in self.topics_]


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def index() -> ScopeIndex:
    return ScopeIndex(DIM)


def test_vectors_alone_find_messages_and_topics(log: Log, index: ScopeIndex) -> None:
    """Without the words' half, the nearest message and the nearest topic still come from the vector index."""
    log.put(1, 2 * unit(2))
    log.say(1, "violin", "peanuts", speaker="Mia")
    index.catch_up(ANA, log)

    found = index.search(unit(2)[None], term_ids(""))

    assert found.similarity.tolist() == [0, 1]
    assert found.topics == {1: 1.0}
    assert found.coverage.tolist() == [0, 0]
    assert found.holders == {}
    assert (found.exchange.tolist(), found.previous.tolist(), found.speakers) == ([1, 1], [-1, 0], ("Mia",))
    assert index.speakers == ("Mia",)


def test_words_alone_find_messages_that_have_no_vector(log: Log, index: ScopeIndex) -> None:
    log.say(1, "violin", "peanuts", vectors=False)
    index.catch_up(ANA, log)

    for query in (None, unit(1)[None]):
        found = index.search(query, term_ids("peanut"))
        assert np.isnan(found.similarity).all()
        assert found.coverage.argmax() == 1
        assert found.topics == {}


def test_a_vector_that_comes_later_than_the_first_words_is_found(log: Log, index: ScopeIndex) -> None:
    log.say(1, "violin", vectors=False)
    index.catch_up(ANA, log)
    log.say(2, "peanuts")
    index.catch_up(ANA, log)

    assert np.nanargmax(index.search(unit(2)[None], term_ids("")).similarity) == 1
    assert log.asked == [None, [2]]


def test_topics_move_hide_return_and_go(log: Log, index: ScopeIndex) -> None:
    def look() -> tuple[dict[int, float], list[int]]:
        index.catch_up(ANA, log)
        found = index.search(unit(3)[None], term_ids(""))
        return dict(found.topics), found.exchange[found.eligible].tolist()

    log.say(1, "violin", topic=1)
    log.say(2, "peanuts", topic=2)
    log.put(1, unit(3))
    log.put(2, unit(4))
    assert look() == ({1: 1.0, 2: 0.0}, [1, 2])
    log.put(1, unit(4))
    log.put(2, unit(3), enabled=False)
    assert look() == ({1: 0.0}, [1])
    log.put(2, unit(3))
    log.drop(1)
    assert look() == ({2: 1.0}, [1, 2])
    log.put(3, np.zeros(DIM, np.float32), exchanges=0)
    assert look() == ({2: 1.0}, [1, 2])
    assert log.asked == [None, [], [], []]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few messages be many."""
    monkeypatch.setattr(scope, "_DEPTH", 4)
    monkeypatch.setattr(scope, "_WORTH", 8)


@pytest.mark.parametrize("words", ["violin", "nothing of it"])
def test_a_small_topic_of_a_large_scope_is_found_whole(
    log: Log, index: ScopeIndex, narrow: None, words: str
) -> None:
    """What is near and covers the question elsewhere takes no place from what was asked for."""
    for exchange in range(1, 41):
        log.say(exchange, "violin", topic=2 if exchange % 20 == 0 else 1)
    log.put(1, unit(0), enabled=False)
    log.put(2, unit(0))
    index.catch_up(ANA, log)

    for found in (
        index.search(unit(1)[None], term_ids(words)),
        index.search(unit(1)[None], term_ids(words), only={2}, include_disabled=True),
    ):
        assert found.exchange[found.eligible].tolist() == [20, 40]
        assert not np.isnan(found.similarity[found.eligible]).any()
    whole = index.search(unit(1)[None], term_ids(words), include_disabled=True)
    assert whole.eligible.all()
    assert len(whole.exchange) < 40
    assert index.search(unit(1)[None], term_ids(words), only=set()).eligible.any() is np.False_


def test_a_topic_without_a_sum_of_this_embedder_is_no_neighbour(log: Log, index: ScopeIndex) -> None:
    log.say(1, "violin")
    log.put(1, np.zeros(0, np.float32))
    log.put(2, unit(3))
    index.catch_up(ANA, log)
    assert index.search(unit(3)[None], term_ids("")).topics == {2: 1.0}

    log.put(2, np.zeros(0, np.float32))
    index.catch_up(ANA, log)
    assert index.search(unit(3)[None], term_ids("")).topics == {}


def test_what_was_taken_away_is_rebuilt_and_an_older_view_changes_nothing(
    log: Log, index: ScopeIndex
) -> None:
    log.say(1, "violin")
    log.say(2, "peanuts")
    older = replace(log, documents_=list(log.documents_), changes=list(log.changes))
    index.catch_up(ANA, log)
    log.forget(1)

    assert index.catch_up(ANA, log)
    assert not index.catch_up(ANA, older)
    assert index.search(None, term_ids("violin")).exchange.tolist() == [2]


def test_what_was_added_and_taken_away_unseen_never_was(log: Log, index: ScopeIndex) -> None:
    log.say(1, "violin")
    index.catch_up(ANA, log)
    log.say(2, "peanuts")
    log.forget(2)
    log.say(3, "lisbon")

    index.catch_up(ANA, log)

    assert index.search(None, term_ids("")).exchange.tolist() == [1, 3]


def test_searches_beside_additions_see_a_whole_moment(log: Log, index: ScopeIndex) -> None:
    log.put(1, unit(1))
    log.say(0, "violin zero", "answer")
    index.catch_up(ANA, log)
    grown, lock = threading.Event(), threading.Lock()

    def add() -> None:
        for n in range(1, 150):
            with lock:
                log.say(n, f"violin {n}", f"answer {n}")
                log.put(1, unit(n))
            index.catch_up(ANA, log)
        grown.set()

    def search() -> int:
        done = 0
        while not (grown.is_set() and done):
            found = index.search(unit(done)[None], term_ids("violin"))
            columns = (found.exchange, found.similarity, found.coverage, found.words)
            assert {len(column) for column in columns} == {len(found.exchange)}
            assert np.count_nonzero(found.coverage) * 2 == len(found.exchange)
            done += 1
        return done

    with ThreadPoolExecutor(5) as pool:
        searching = [pool.submit(search) for _ in range(4)]
        pool.submit(add).result()
        assert all(each.result() for each in searching)
    assert index.search(None, term_ids("")).exchange.tolist() == [n for n in range(150) for _ in (0, 1)]


# -- hot indexes -----------------------------------------------------------------------------------------------------


def _scope(n: int) -> Scope:
    return Scope("p", f"user-{n}")


def test_an_index_is_opened_once_and_followed() -> None:
    hot, log = HotIndexes(DIM, 1 << 30), Log()
    log.say(1, "violin")
    first = hot.open(ANA, log)
    before = hot.nbytes
    log.say(2, "peanuts")

    assert hot.open(ANA, log) is first
    assert (len(hot), hot.nbytes) == (1, first.nbytes)
    assert hot.nbytes > before > 0


def test_the_longest_unused_index_goes_when_bytes_run_over() -> None:
    log = Log()
    log.say(1, "violin")
    hot = HotIndexes(DIM, 3 * HotIndexes(DIM, 1 << 30).open(ANA, log).nbytes)
    opened = [hot.open(_scope(n), log) for n in range(3)]
    assert len(hot) == 3

    hot.open(_scope(0), log)
    hot.open(_scope(3), log)

    assert len(hot) == 3
    assert hot.nbytes == 3 * opened[0].nbytes
    assert hot.open(_scope(0), log) is opened[0]
    assert hot.open(_scope(1), log) is not opened[1]


def test_the_index_in_use_stays_however_large_it_is() -> None:
    hot, log = HotIndexes(DIM, 1), Log()
    log.say(1, "violin")

    for n in range(3):
        index = hot.open(_scope(n), log)
        assert hot.open(_scope(n), log) is index
        assert (len(hot), hot.nbytes) == (1, index.nbytes)


def test_end_users_without_memory_do_not_fill_it_either() -> None:
    hot = HotIndexes(DIM, 50 * ScopeIndex(DIM).nbytes)

    for n in range(200):
        hot.open(_scope(n), Log())

    assert len(hot) == 50


def test_an_index_evicted_while_it_catches_up_is_not_counted() -> None:
    hot, log = HotIndexes(DIM, 1), Log()
    log.say(1, "violin")

    class Slow(Log):
        def position(self, scope: Scope) -> int:
            hot.open(_scope(2), log)  # another request, meanwhile
            return super().position(scope)

    slow = Slow()
    slow.say(1, "peanuts")
    hot.open(_scope(1), slow)

    assert hot.nbytes == sum(hot._sizes.values())
    assert len(hot) == 1
