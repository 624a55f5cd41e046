"""Which exchanges answer a query: hits in, a ranked choice with its reason out. Pure; nothing here waits for anything.

The message is what is found, the exchange is what is given back. The constants were chosen on LoCoMo conversations 1-5 (R@10
of entries 83.0 %) and reported on 6-10 (79.8 %); see README, decision D4. It changes when a better measurement says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from halo_server.domain import Candidates

__all__ = ["Choice", "bare_query", "explain", "named_speakers", "rank", "shared_terms"]

_COVERAGE = 5.5  # a fully covered query weighs as much as 11 standard deviations of similarity
_TOGETHER = 2.0  # an exchange's messages cover a query together: the question names it, the answer tells it
_SMOOTH = (0.5, 0.3)  # share of the neighbour one and two messages away
_LONG_WORDS = 120.0  # a message of so many words leans on its neighbours by 1/e
_SPEAKER = 1.5  # said by the only person the query names
_QUESTION = 1.0  # a question seldom answers one
_LENGTH = 0.2  # a longer message says more
_TOPIC = 0.5  # how far the topic's own nearness moves its messages

_Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Choice:
    """One exchange and how well its best message fits.

    Attributes:
        score: Compares only within one ranking.
        similarity: Cosine of that message; None where only words were compared.
    """

    exchange: int
    score: float
    similarity: float | None


def named_speakers(query: str, speakers: Sequence[str]) -> list[str]:
    """Return those of `speakers` whose first name is a word of `query`, in either case."""
    words = set(re.findall(r"\w+", query.lower()))
    return [speaker for speaker in speakers if speaker and speaker.lower().split()[0] in words]


def bare_query(query: str, speakers: Sequence[str]) -> str:
    """Return `query` without the names of `speakers`: in a conversation of two, a name says who, not what."""
    for speaker in named_speakers(query, speakers):
        query = re.sub(rf"\b{re.escape(speaker.split()[0])}\b(?:['\u2019]s)?", "", query, flags=re.IGNORECASE)
    return " ".join(query.split())


def rank(candidates: Candidates, query: str, limit: int, *, hidden: frozenset[int]) -> list[Choice]:
    """Return at most `limit` exchanges, best first.

    Args:
        candidates: What the indexes say.
        query: As asked; only its names are read here.
        limit: Most exchanges; at least 1.
        hidden: Topic rows nothing may be chosen from.

    Source:
        Standardised similarity plus coverage-normalised BM25, context from neighbours in proportion to how short a message
        is: measured on LoCoMo, REALTALK and BEAM against reciprocal rank fusion, min-max and plain z-scores, which lose
        2 to 5 points of R@10.
    """
    if not len(candidates.exchange):
        return []
    short = np.exp(-candidates.words / _LONG_WORDS)
    scores = _from_neighbours(_fused(candidates), candidates.previous, short)
    scores += short * (_LENGTH * _standard(np.log1p(candidates.words)) - _QUESTION * candidates.asks)
    scores += _from_topics(candidates) + _TOGETHER * _covered_together(candidates)
    named = named_speakers(query, candidates.speakers)
    if len(named) == 1:
        scores += _SPEAKER * (candidates.speaker == candidates.speakers.index(named[0]))
    if hidden:
        scores = np.where(np.isin(candidates.topic, list(hidden)), -np.inf, scores)
    return _choices(candidates, scores, limit)


def _fused(candidates: Candidates) -> _Scores:
    own = _COVERAGE * candidates.coverage
    similarity = candidates.similarity
    seen = ~np.isnan(similarity)
    if seen.any():
        nearest = similarity[seen]
        lowest = nearest.min()
        own = own + 0.5 * (np.where(seen, similarity, lowest) - nearest.mean()) / (nearest.std() + 1e-6)
    return own.astype(np.float32)


def _from_neighbours(own: _Scores, previous: npt.NDArray[np.int64], short: _Scores) -> _Scores:
    """Let each message take a share of what its neighbours score, the more the shorter it is itself."""
    out = own.copy()
    places = np.arange(len(own))
    before = previous
    for share in _SMOOTH:
        has = before >= 0
        earlier, later = before[has], places[has]
        out[later] += share * own[earlier] * short[later]
        out += share * short * np.bincount(earlier, weights=own[later], minlength=len(own)).astype(np.float32)
        before = np.where(has, previous[before], -1)
    return out


def _from_topics(candidates: Candidates) -> _Scores:
    if not candidates.topics:
        return np.zeros(len(candidates.topic), dtype=np.float32)
    width = int(max(candidates.topic.max(), *candidates.topics)) + 1
    nearness = np.zeros(width, dtype=np.float32)
    nearness[list(candidates.topics)] = [_TOPIC * cosine for cosine in candidates.topics.values()]
    return nearness[candidates.topic]


def _covered_together(candidates: Candidates) -> _Scores:
    """Return for each message how much of the query its whole exchange covers, at most 1."""
    # An exchange's messages stand side by side, since they are written in one transaction.
    starts = np.flatnonzero(np.diff(candidates.exchange, prepend=-1))
    sums = np.minimum(np.add.reduceat(candidates.coverage, starts), 1.0)
    return np.repeat(sums, np.diff(np.append(starts, len(candidates.exchange)))).astype(np.float32)


def _standard(values: _Scores) -> _Scores:
    spread = np.float32(values.std() + 1e-6)
    return (values - np.float32(values.mean())) / spread


def _choices(candidates: Candidates, scores: _Scores, limit: int) -> list[Choice]:
    found: dict[int, Choice] = {}
    for place in np.argsort(-scores, kind="stable"):  # the earlier of equals first
        exchange = int(candidates.exchange[place])
        if exchange in found or scores[place] == -np.inf:
            continue
        near = float(candidates.similarity[place])
        found[exchange] = Choice(exchange, float(scores[place]), None if np.isnan(near) else near)
        if len(found) == limit:
            break
    return list(found.values())


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
    spans = [np.searchsorted(candidates.exchange, (seq, seq + 1)) for seq in exchanges]
    return {
        term
        for term, places in candidates.holders.items()
        if any(np.diff(np.searchsorted(places, span)).any() for span in spans)
    }


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
