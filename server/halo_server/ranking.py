"""Which messages and exchanges answer a query: hits in, a ranked choice with its reason out. Pure; nothing here waits for anything.

The message is what is found, the exchange is what is given back. A message's score is a sum of signs, each times a weight. The
weights are those under which the right messages were likeliest on LoCoMo, REALTALK and BEAM, conversations 1-5 of each (a
multinomial model, small ridge); figures are reported on the others: see README, decision D4. Two people chatting, a user with an
assistant, and single records are told apart by the messages themselves: by their length and by whether they reply to each other.
It changes when a better measurement says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halo_server.domain import Candidates
from halo_server.traits import wants

__all__ = [
    "Choice",
    "Hit",
    "Selection",
    "bare_query",
    "explain",
    "named_speakers",
    "rank",
    "shared_terms",
]

_LONG_WORDS = 120.0  # a message of so many words is `short` by 1/e only
_TALK = 4.0  # a scope in which a quarter of the messages reply to somebody is a talk altogether

# What a message says itself.
_MEANING = 0.75
_COVERAGE = 13.0
_COVERAGE_SHORT = -8.2  # a short message covers much by chance
_COVERAGE_SQUARED = -8.8
_COVERED = 0.65  # a single mention of every word covers no more; what is beyond says nothing
_PHRASES = 2.2
# What stands around it, for it is short.
_MEANING_BESIDE = (0.15, 0.14)  # one and two messages away
_COVERAGE_ASKED = 0.9  # of the question it follows
_MEANING_ASKED = 0.23
_TOGETHER = 2.3  # with the messages beside it
_THREAD = 4.5  # the best that messages beside each other cover anywhere in its conversation
_THREAD_MEANING = 0.36  # the nearest message of its conversation, for it is long
# Who says it, and what of: in a talk.
_NAMED = 2.4  # said by the only person the query names
_ASSISTANT = -1.4
_ASKS, _ASKS_LONG = -1.3, 0.55
_PERSONAL = 0.3
_SPECIFIC = 0.3
_DATED = 0.4
_LENGTH_LONG = 0.68
_TOPIC = 0.5  # how far its topic's own nearness moves it; from 0 to 4 R@10 moves by 0.2 (measured)
# What the question wants.
_TIME = 1.5
_NAME = 0.8

_REPEATS = 4.0  # a question that was asked before answers nothing
_REPEATED = 0.9  # share of the query's weight from which it was
_REPEATED_TERMS = 1.5  # and most terms it has for one of the query's
_SPREAD = 0.2  # in standard deviations: less for each hit of a conversation, where several things are wanted
_SPREAD_DEPTH = 80
_MOST_HITS = 3  # of one exchange
_CLOSE = 1.5  # standard deviations nearer than any message from which a message is near in meaning

_Scores = npt.NDArray[np.float32]
_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hit:
    """One message of a ranking.

    Attributes:
        message, exchange: The numbers the store gave them.
        score: Compares only within one ranking.
        similarity: Cosine with the query; None where only words were compared.
        why: See `Match`.
    """

    message: int
    exchange: int
    score: float
    similarity: float | None
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One exchange and the hits within it, best first; there is at least one."""

    hits: tuple[Hit, ...]

    @property
    def exchange(self) -> int:
        """The number the store gave it."""
        return self.hits[0].exchange

    @property
    def score(self) -> float:
        """How well its best message fits; compares only within one ranking."""
        return self.hits[0].score

    @property
    def similarity(self) -> float | None:
        """Cosine of its best message; None where only words were compared."""
        return self.hits[0].similarity


@dataclass(frozen=True, slots=True)
class Selection:
    """Messages, best first. A hit is made when it is asked for: a scope has thousands of messages, an answer a few.

    Attributes:
        order: Places in `candidates`, best first.
        speaker: Place of the only speaker the query names.
    """

    candidates: Candidates
    scores: _Scores
    order: _Places
    speaker: int | None = None

    def messages(self, limit: int) -> list[Hit]:
        """Return at most `limit` messages."""
        return [self._hit(place) for place in self.order[:limit].tolist()]

    def exchanges(self, limit: int) -> list[Choice]:
        """Return at most `limit` exchanges in the order of their best messages, each with at most `_MOST_HITS` of them."""
        exchange = self.candidates.exchange[self.order]
        _, firsts = np.unique(exchange, return_index=True)
        best = exchange[np.sort(firsts)[:limit]]
        hits: dict[int, list[Hit]] = {number: [] for number in best.tolist()}
        for place in self.order[np.isin(exchange, best)].tolist():
            found = hits[int(self.candidates.exchange[place])]
            if len(found) < _MOST_HITS:
                found.append(self._hit(place))
        return [Choice(tuple(found)) for found in hits.values()]

    def _hit(self, place: int) -> Hit:
        candidates, near = self.candidates, float(self.candidates.similarity[place])
        signs = {
            "words": candidates.coverage[place] > 0,
            "phrase": candidates.phrases[place] > 0,
            "meaning": candidates.meaning[place] >= _CLOSE,
            "speaker": self.speaker is not None and candidates.speaker[place] == self.speaker,
        }
        return Hit(
            message=int(candidates.message[place]),
            exchange=int(candidates.exchange[place]),
            score=float(self.scores[place]),
            similarity=None if np.isnan(near) else near,
            why=tuple(sign for sign, holds in signs.items() if holds) or ("context",),
        )


def named_speakers(query: str, speakers: Sequence[str]) -> list[str]:
    """Return those of `speakers` whose first name is a word of `query`, in either case."""
    words = set(re.findall(r"\w+", query.lower()))
    return [speaker for speaker in speakers if speaker and speaker.lower().split()[0] in words]


def bare_query(query: str, speakers: Sequence[str]) -> str:
    """Return `query` without the names of `speakers`: in a conversation of two, a name says who, not what."""
    for speaker in named_speakers(query, speakers):
        query = re.sub(rf"\b{re.escape(speaker.split()[0])}\b(?:['\u2019]s)?", "", query, flags=re.IGNORECASE)
    return " ".join(query.split())


def rank(candidates: Candidates, query: str) -> Selection:
    """Return the messages in the order in which they should be read.

    Messages of the same words as a better one come after all others.

    Args:
        candidates: What the indexes say.
        query: As asked; its names and what it wants are read here.
    """
    if not candidates.eligible.any():
        return Selection(candidates, np.empty(0, np.float32), np.empty(0, np.int64))
    wanted = wants(query)
    short, talk, speaker = _short(candidates), _talk(candidates), _named_speaker(candidates, query)
    scores = _of_itself(candidates, short) + _of_its_place(candidates, short)
    scores += _of_its_kind(candidates, short, talk, speaker) + _of_its_topic(candidates)
    if wanted.time:
        scores += _TIME * short * candidates.dated
    if wanted.name:
        scores += _NAME * short * np.minimum(candidates.specifics, 3)
    scores -= _REPEATS * _asked_before(candidates)
    order = np.flatnonzero(candidates.eligible)
    order = order[np.argsort(-scores[order], kind="stable")]  # the earlier of equals first
    if wanted.several and talk == 1.0:  # records of one kind stand together
        order = _spread(order, scores, candidates.thread)
    return Selection(candidates, scores, _each_once(order, candidates.alike), speaker)


def _of_itself(candidates: Candidates, short: _Scores) -> _Scores:
    covered = np.minimum(candidates.coverage, _COVERED)
    own = _MEANING * candidates.meaning + _PHRASES * candidates.phrases
    own += (_COVERAGE + _COVERAGE_SHORT * short) * covered + _COVERAGE_SQUARED * covered**2
    return own


def _of_its_place(candidates: Candidates, short: _Scores) -> _Scores:
    """Return what the conversation around a message says for it: the more, the shorter it is itself."""
    around = np.zeros(len(short), dtype=np.float32)
    before, after = candidates.previous, candidates.following
    for share in _MEANING_BESIDE:
        around += share * (_at(candidates.meaning, before) + _at(candidates.meaning, after))
        before, after = _step(candidates.previous, before), _step(candidates.following, after)
    asked = _at(candidates.asks.astype(np.float32), candidates.previous)
    around += asked * (
        _MEANING_ASKED * _at(candidates.meaning, candidates.previous)
        + _COVERAGE_ASKED * _at(candidates.coverage, candidates.previous)
    )
    together = _share(candidates, candidates.previous, candidates.following)
    _, conversation = np.unique(candidates.thread, return_inverse=True)
    around += _TOGETHER * together + _THREAD * _most(together, conversation)
    return short * around + (1 - short) * _THREAD_MEANING * _most(candidates.meaning, conversation)


def _of_its_kind(candidates: Candidates, short: _Scores, talk: float, speaker: int | None) -> _Scores:
    """Return what speaks for a message whatever it says; among records, where nobody talks to anybody, nearly nothing does."""
    chat = _PERSONAL * candidates.personal + _SPECIFIC * candidates.specifics
    chat += _DATED * candidates.dated + _ASKS * candidates.asks
    length = _standard(np.log1p(candidates.terms))
    kind = talk * (short * chat + (1 - short) * (_LENGTH_LONG * length + _ASKS_LONG * candidates.asks))
    kind += _ASSISTANT * candidates.assistant
    return kind if speaker is None else kind + _NAMED * (candidates.speaker == speaker)


def _of_its_topic(candidates: Candidates) -> _Scores:
    """Return how far its topic's own nearness moves a message."""
    rows, which = np.unique(candidates.topic, return_inverse=True)
    nearness = [_TOPIC * candidates.topics.get(row, 0.0) for row in rows.tolist()]
    return np.array(nearness, dtype=np.float32)[which]


def _named_speaker(candidates: Candidates, query: str) -> int | None:
    """Return the place of the only speaker the query names."""
    named = named_speakers(query, candidates.speakers)
    return candidates.speakers.index(named[0]) if len(named) == 1 else None


def _talk(candidates: Candidates) -> float:
    """Return how far people talk to each other here, from 0 (records) to 1."""
    return min(1.0, _TALK * float(candidates.replies.mean()))


def _short(candidates: Candidates) -> _Scores:
    """Return how little a message says by itself, in (0, 1]: short ones lean on their neighbours, long ones stand alone."""
    short: _Scores = np.exp(-candidates.words / _LONG_WORDS)
    return short


def _asked_before(candidates: Candidates) -> npt.NDArray[np.bool_]:
    """Tell which messages ask the same: questions that hold the query's words and hardly any other."""
    held = _share(candidates)
    return (
        candidates.asks & (held >= _REPEATED) & (candidates.terms <= _REPEATED_TERMS * len(candidates.shares))
    )


def _share(candidates: Candidates, *beside: _Places) -> _Scores:
    """Return the share of the query's weight whose words each message, or one it stands beside, holds."""
    size = len(candidates.exchange)
    share = np.zeros(size, dtype=np.float32)
    for term, places in candidates.holders.items():
        holds = np.zeros(size + 1, dtype=np.bool_)  # the last is the place that is nowhere
        holds[places] = True
        for steps in beside:
            holds[steps[places]] = True
        share += np.float32(candidates.shares[term]) * holds[:size]
    return share


def _most(values: _Scores, conversation: _Places) -> _Scores:
    """Return for each message the greatest value in its conversation."""
    most = np.full(conversation.max() + 1, -np.inf, dtype=np.float32)
    np.maximum.at(most, conversation, values)
    return most[conversation]


def _at(values: npt.NDArray[np.float32], places: _Places) -> _Scores:
    """Return the values at other places, 0 where there is none."""
    return np.where(places >= 0, values[places], np.float32(0))


def _step(steps: _Places, places: _Places) -> _Places:
    return np.where(places >= 0, steps[places], -1)


def _standard(values: _Scores) -> _Scores:
    spread = np.float32(values.std() + 1e-6)
    return (values - np.float32(values.mean())) / spread


def _spread(order: _Places, scores: _Scores, thread: npt.NDArray[np.int32]) -> _Places:
    """Return the order in which each further message of one conversation counts less: several answers lie apart."""
    less = _SPREAD * float(scores[order].std())
    first = order[:_SPREAD_DEPTH]
    left, chosen = scores[first].astype(np.float64), []
    for _ in range(len(first)):
        best = int(np.argmax(left))
        chosen.append(best)
        left[thread[first] == thread[first[best]]] -= less
        left[best] = -np.inf
    return np.concatenate([first[chosen], order[_SPREAD_DEPTH:]])


def _each_once(order: _Places, alike: npt.NDArray[np.int64]) -> _Places:
    """Return the order with the messages whose words were chosen already at the end."""
    _, firsts = np.unique(alike[order], return_index=True)
    is_first = np.zeros(len(order), dtype=np.bool_)
    is_first[firsts] = True
    return np.concatenate([order[is_first], order[~is_first]])


def explain(labels: Sequence[str], words: Sequence[str], *, asked: bool, close: bool) -> str:
    """Return one sentence that says why these topics were chosen; "" when none was.

    Args:
        labels: What the chosen topics are called, best first.
        words: Words of the question that occur in what was chosen.
        asked: Whether there was a question at all.
        close: Whether the best message is near the question in meaning.
    """
    if not labels:
        return ""
    one = len(labels) == 1
    topics = f"The {'topic' if one else 'topics'} {_listed([f'“{label}”' for label in labels])}"
    if not asked:
        return f"{topics} {'is' if one else 'are'} the most recent; nothing particular was asked."
    if words:
        shared = _listed([f"“{word}”" for word in words])
        near = f" and {'is' if one else 'are'} close to it in meaning" if close else ""
        return f"{topics} {'shares' if one else 'share'} {shared} with the question{near}."
    nearest = f"{topics} {'is' if one else 'are'} nearest to the question in meaning"
    return f"{nearest}." if close else f"{nearest}, though not near."


def shared_terms(candidates: Candidates, exchanges: Sequence[int]) -> set[int]:
    """Return the query terms that occur in at least one of the exchanges, given by their sequence numbers."""
    chosen = np.isin(candidates.exchange, list(exchanges))
    return {term for term, places in candidates.holders.items() if chosen[places].any()}


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
