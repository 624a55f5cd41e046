"""How good retrieval is on a labelled set: figures at the level of messages, measured through the services every door calls.

R@k is the share of a question's relevant messages among the first k, MRR one over the rank of the first of them, nDCG@10 the
discounted gain with gains of 0 or 1; every question counts alike. A score says little beside a small haystack, so each comes
with what a random order would score. It changes when quality is judged by another measure.

Source:
    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002; Efron and Tibshirani, "An Introduction
    to the Bootstrap", 1993 (percentile intervals).
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halo_server.api.intake import submission
from halo_server.config import Settings
from halo_server.domain import JSON, Document, Question, Receipt, Scope, Submission
from halo_server.labelled import ADVERSARIAL, EndUser, LabelledMessage, LabelledSet, Session
from halo_server.services.capture import Capture
from halo_server.services.retrieve import Retrieve
from halo_server.store.store import Store, Transaction

__all__ = [
    "FIGURES",
    "Estimate",
    "Group",
    "Replay",
    "Report",
    "Row",
    "evaluate",
    "groups",
    "score",
]

KS = (1, 5, 10, 20)
FIGURES = (*(f"R@{k}" for k in KS), "MRR", "nDCG@10")
OVERALL = "all"

_PROJECT = "evaluation"
_MOST = 200  # messages ranked for a question
_RESAMPLES = 1000

Advance = Callable[[int], object]
"""Called with how many more exchanges were captured, or questions asked."""


# -- figures -----------------------------------------------------------------------------------------------------


def score(ranked: Sequence[str], relevant: frozenset[str]) -> dict[str, float]:
    """Return the `FIGURES` of one ranking, in [0, 1].

    Args:
        ranked: Ids of messages, best first, each once.
        relevant: Ids of the messages that answer; at least one.
    """
    hits = [place for place, one in enumerate(ranked) if one in relevant]
    figures = {f"R@{k}": sum(place < k for place in hits) / len(relevant) for k in KS}
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(relevant))))
    gained = sum(1 / math.log2(place + 2) for place in hits if place < 10)
    return {**figures, "MRR": 1 / (hits[0] + 1) if hits else 0.0, "nDCG@10": gained / ideal}


def chance(size: int) -> dict[str, float]:
    """Return the R@k expected of a random order of `size` messages."""
    return {f"R@{k}": min(1.0, k / size) for k in KS}


@dataclass(frozen=True, slots=True)
class Row:
    """One question, asked.

    Attributes:
        size: How many messages could have been found.
        ranked: Ids of the messages found, best first.
        ms: How long the retrieval took.
    """

    end_user: str
    id: str
    category: str
    size: int
    relevant: tuple[str, ...]
    ranked: tuple[str, ...]
    figures: Mapping[str, float]
    ms: float

    def plain(self) -> dict[str, JSON]:
        """Return the row as JSON; of what was found, as much as the figures look at."""
        return {
            "endUser": self.end_user,
            "id": self.id,
            "category": self.category,
            "size": self.size,
            "relevant": list(self.relevant),
            "ranked": list(self.ranked[: max(KS)]),
            "ms": round(self.ms, 3),
            **self.figures,
        }


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over questions and the interval that holds 95 % of the means of questions drawn again."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one category; `OVERALL` of all but the adversarial ones."""

    category: str
    questions: int
    figures: Mapping[str, Estimate]
    chance: Mapping[str, float]
    ms: float

    def plain(self) -> dict[str, JSON]:
        """Return the group as JSON."""
        figures = {name: [one.mean, one.low, one.high] for name, one in self.figures.items()}
        rounded = {name: [round(value, 4) for value in values] for name, values in figures.items()}
        by_chance = {name: round(value, 4) for name, value in self.chance.items()}
        shape = {"category": self.category, "questions": self.questions, "ms": round(self.ms, 3)}
        return {**shape, "figures": rounded, "chance": by_chance}


def groups(rows: Sequence[Row]) -> list[Group]:
    """Return every category in the order of its name, then all together."""
    categories = sorted({row.category for row in rows})
    by_category = [_group(name, [row for row in rows if row.category == name]) for name in categories]
    counted = [row for row in rows if row.category != ADVERSARIAL]
    return [*by_category, _group(OVERALL, counted)] if counted else by_category


def _group(category: str, rows: Sequence[Row]) -> Group:
    figures = {name: _estimate([row.figures[name] for row in rows]) for name in FIGURES}
    expected = [chance(row.size) for row in rows]
    by_chance = {name: statistics.fmean(one[name] for one in expected) for name in expected[0]}
    return Group(category, len(rows), figures, by_chance, statistics.median(row.ms for row in rows))


def _estimate(values: Sequence[float]) -> Estimate:
    found = np.array(values)
    drawn = np.random.default_rng(0).integers(len(found), size=(_RESAMPLES, len(found)))
    low, high = np.percentile(found[drawn].mean(axis=1), (2.5, 97.5))
    return Estimate(float(found.mean()), float(low), float(high))


# -- the run -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Round:
    """One exchange as an application would hand it over.

    Attributes:
        ids: Ids of the labelled messages in it that somebody said, in their order, history included.
    """

    submission: Submission
    ids: tuple[str, ...]


class Replay:
    """Conversations of one end user, captured as they went on, and asked about.

    Args:
        settings: The rules of a door; the exchanges come in by them.
    """

    def __init__(self, settings: Settings, store: Store, capture: Capture, retrieve: Retrieve) -> None:
        self._settings = settings
        self._store = store
        self._capture = capture
        self._retrieve = retrieve
        self._scope = Scope(_PROJECT, "")
        self._ids: dict[int, list[str]] = {}
        store.write(lambda tx: tx.add_project(_PROJECT, capture.clock()))

    def capture(
        self,
        end_user: str,
        sessions: Sequence[Session],
        *,
        bulk: bool = True,
        advance: Advance = lambda _: None,
    ) -> None:
        """Capture the sessions, exchange by exchange, for an end user nothing was captured for before."""
        self._scope = Scope(_PROJECT, end_user)
        rounds = list(self._rounds(sessions))
        if bulk:
            receipts = self._capture.many(self._scope, [one.submission for one in rounds])
            advance(len(rounds))
        else:
            receipts = []
            for one in rounds:
                receipts.append(self._capture(self._scope, one.submission))
                advance(1)
        self._ids = self._store.read(lambda tx: self._named(tx, rounds, receipts))

    def search(self, question: str) -> list[str]:
        """Return the ids of the messages found, best first, each once."""
        selection = self._retrieve.select(self._scope, Question(question, _MOST))
        found = (one for hit in selection.messages(_MOST) for one in self._ids[hit.message])
        return list(dict.fromkeys(found))[:_MOST]

    def documents(self) -> list[tuple[str, Document]]:
        """Return every labelled message with what the index is told of it."""
        documents = self._store.read(lambda tx: tx.documents(self._scope))
        return [(one, document) for document in documents for one in self._ids[document.message]]

    def erase(self) -> None:
        """Forget the end user, so that a long run needs no more room than its largest conversation."""
        self._store.write(lambda tx: tx.erase_scope(self._scope))

    def _rounds(self, sessions: Sequence[Session]) -> Iterator[_Round]:
        for session in sessions:
            for messages in exchanges(session.messages):
                said = [_raw(message, session) for message in messages]
                taken = submission(self._settings, {"messages": said}, None)
                everything = (*taken.messages, *([taken.response] if taken.response else []))
                spoken = [m.id for m, one in zip(messages, everything, strict=True) if one.spoken]
                if spoken:
                    yield _Round(taken, tuple(spoken))

    def _named(
        self, tx: Transaction, rounds: Sequence[_Round], receipts: Sequence[Receipt]
    ) -> dict[int, list[str]]:
        """Return the labelled ids of each stored message: several, where the same was said again in the same place."""
        rows: dict[int, list[int]] = {}
        for document in tx.documents(self._scope):
            rows.setdefault(document.exchange, []).append(document.message)
        by_id = {exchange.id: rows[exchange.seq] for exchange in tx.exchanges(self._scope, list(rows))}
        named: dict[int, list[str]] = {row: [] for added in rows.values() for row in added}
        for one, receipt in zip(rounds, receipts, strict=True):
            # An exchange adds the end of what was sent.
            for row, labelled in zip(reversed(by_id[receipt.exchange_id]), reversed(one.ids), strict=False):
                named[row].append(labelled)
        return named


def exchanges(messages: Sequence[LabelledMessage]) -> Iterator[Sequence[LabelledMessage]]:
    """Yield what an application would hand over at the end of each exchange: the session up to there.

    An exchange ends where the user speaks again after an answer, or after anything where nobody answers in all the session.
    """
    alone = len({message.role for message in messages}) < 2
    for end in range(1, len(messages) + 1):
        if (
            end == len(messages)
            or alone
            or (messages[end].role, messages[end - 1].role) == ("user", "assistant")
        ):
            yield messages[:end]


def _raw(message: LabelledMessage, session: Session) -> dict[str, Any]:
    said = {"role": message.role, "content": message.content}
    more = {"name": message.name, "createdAt": message.created_at or session.occurred_at}
    return {**said, **{name: value for name, value in more.items() if value}}


@dataclass(frozen=True, slots=True)
class Report:
    """What a labelled set showed."""

    name: str
    rows: tuple[Row, ...]

    @property
    def groups(self) -> list[Group]:
        """Every category, then all together."""
        return groups(self.rows)

    @property
    def overall(self) -> Group:
        """The figures to go by."""
        return self.groups[-1]


def steps(labelled: LabelledSet) -> int:
    """Return how often `evaluate` will advance, in sum."""
    return sum(
        len(one.questions) + sum(1 for session in one.sessions for _ in exchanges(session.messages))
        for one in labelled.everyone
    )


def evaluate(
    labelled: LabelledSet, replay: Replay, *, bulk: bool = True, advance: Advance = lambda _: None
) -> Report:
    """Capture every end user's conversations and ask every question."""
    rows: list[Row] = []
    for one in labelled.everyone:
        replay.capture(one.name, one.sessions, bulk=bulk, advance=advance)
        rows += _asked(one, replay, advance)
        replay.erase()
    return Report(labelled.name, tuple(rows))


def _asked(one: EndUser, replay: Replay, advance: Advance) -> Iterator[Row]:
    places = {message.id: place for place, message in enumerate(one.messages)}
    for question in one.questions:
        size = places[question.before] if question.before else len(places)
        began = time.perf_counter()
        found = replay.search(question.question)
        ms = (time.perf_counter() - began) * 1000
        known = tuple(message for message in found if places[message] < size)
        advance(1)
        figures = score(known, frozenset(question.relevant))
        yield Row(one.name, question.id, question.category, size, question.relevant, known, figures, ms)
