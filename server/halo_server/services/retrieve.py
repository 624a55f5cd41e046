"""Find what helps: the exchanges that answer a question, their topics, and why. Writes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from halo_server import ranking
from halo_server.domain import Candidates, Exchange, Match, Question, Retrieved, Scope, Topic, Vectors
from halo_server.index.hot import HotIndexes
from halo_server.services.vectors import QueryVectors
from halo_server.store.store import Store, Transaction
from halo_server.text import content_words, term_ids

__all__ = ["Retrieve"]

_CLOSE = 0.3  # cosine from which "close in meaning" is said; unrelated texts lie below it
_NAMED_WORDS = 4  # most shared words a reason names


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Answers questions from one moment of the store."""

    store: Store
    indexes: HotIndexes
    vectors: QueryVectors

    def __call__(self, scope: Scope, question: Question) -> Retrieved:
        """Return the best exchanges with their topics; nothing, without an error, for an unknown scope.

        Raises:
            Unavailable: As the store.
        """
        if not question.text.strip():
            return self.store.read(lambda tx: self._newest(tx, scope, question))
        vector = self._vector(scope, question)
        return self.store.read(lambda tx: self._best(tx, scope, question, vector))

    def select(self, scope: Scope, question: Question) -> ranking.Selection:
        """Return every message worth reading for a question that says something, best first.

        Raises:
            Unavailable: As the store.
        """
        vector = self._vector(scope, question)
        return self.store.read(lambda tx: self._ranked(tx, scope, question, vector)[1])

    def _vector(self, scope: Scope, question: Question) -> Vectors | None:
        # The names that are not part of the question are known to the index; embedding is slow and waits for no moment.
        speakers = self.store.read(lambda tx: self.indexes.open(scope, tx).speakers)
        vector = self.vectors(ranking.bare_query(question.text, speakers) or question.text)
        return vector if vector.any() else None

    def _ranked(
        self, tx: Transaction, scope: Scope, question: Question, vector: Vectors | None
    ) -> tuple[Candidates, ranking.Selection]:
        keys = question.topic_keys
        only = None if keys is None else {topic.row for topic in tx.topics(scope, keys)}
        candidates = self.indexes.open(scope, tx).search(
            vector, term_ids(question.text), only=only, include_disabled=question.include_disabled
        )
        return candidates, ranking.rank(candidates, question.text)

    def _best(self, tx: Transaction, scope: Scope, question: Question, vector: Vectors | None) -> Retrieved:
        candidates, selection = self._ranked(tx, scope, question, vector)
        ranked = selection.exchanges(question.offset + question.limit + 1)[question.offset :]
        chosen = ranked[: question.limit]
        by_number = {choice.exchange: choice for choice in chosen}
        loaded = tx.exchanges(scope, list(by_number))
        exchanges = tuple(_found(exchange, by_number[exchange.seq]) for exchange in loaded)
        # By key, not by the index's row: the index may already show a later moment, in which an exchange has moved.
        topics = _in_order(tx.topics(scope, {exchange.topic_key for exchange in exchanges}), exchanges)
        near = max((choice.similarity or 0.0 for choice in chosen), default=0.0)
        shared = _shared(question.text, candidates, exchanges)
        reason = ranking.explain([topic.label for topic in topics], shared, asked=True, close=near >= _CLOSE)
        return Retrieved(topics, exchanges, reason, tx.summary(scope), more=len(ranked) > question.limit)

    def _newest(self, tx: Transaction, scope: Scope, question: Question) -> Retrieved:
        wanted = question.offset + question.limit + 1
        found = tx.latest(
            scope, limit=wanted, topic_keys=question.topic_keys, include_disabled=question.include_disabled
        )[question.offset :]
        exchanges = tuple(found[: question.limit])
        topics = _in_order(tx.topics(scope, {exchange.topic_key for exchange in exchanges}), exchanges)
        reason = ranking.explain([topic.label for topic in topics], [], asked=False, close=False)
        return Retrieved(topics, exchanges, reason, tx.summary(scope), more=len(found) > question.limit)


def _found(exchange: Exchange, choice: ranking.Choice) -> Exchange:
    """Return the exchange with how well it fits and which of its messages do."""
    places = {message: place for place, message in enumerate(exchange.messages)}
    matched = tuple(Match(places.get(hit.message), hit.why) for hit in choice.hits)
    return replace(exchange, score=round(choice.score, 4), matched=matched)


def _in_order(topics: Sequence[Topic], exchanges: Sequence[Exchange]) -> tuple[Topic, ...]:
    """Return the topics of the exchanges, each once, in the order of its best exchange."""
    by_key = {topic.key: topic for topic in topics}
    return tuple(by_key[key] for key in dict.fromkeys(exchange.topic_key for exchange in exchanges))


def _shared(query: str, candidates: Candidates, exchanges: Sequence[Exchange]) -> list[str]:
    """Return the query's words, as the user wrote them, that occur in the exchanges."""
    occurring = ranking.shared_terms(candidates, [exchange.seq for exchange in exchanges])
    words = dict.fromkeys(
        word for word in content_words(query) if occurring.intersection(term_ids(word).tolist())
    )
    return list(words)[:_NAMED_WORDS]
