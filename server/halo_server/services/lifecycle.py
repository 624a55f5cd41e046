"""Forget: an exchange, a topic, an end user or a project leaves the store with everything derived from it."""

from dataclasses import dataclass, replace
from itertools import count

from halo_server import clustering
from halo_server.domain import Clock, Counts, NewId, Scope, Topic
from halo_server.errors import NotFound, ProjectNotFound
from halo_server.services.overview import renew_summary
from halo_server.services.vectors import QueryVectors
from halo_server.store.store import Store, Transaction
from halo_server.transcript import read_message

__all__ = ["Forget"]


@dataclass(frozen=True, slots=True)
class Forget:
    """Erases; unreachable for every request that begins after it returns. Each call is one transaction.

    Args:
        dim: Width of the vectors.
    """

    store: Store
    dim: int
    vectors: QueryVectors
    clock: Clock
    new_id: NewId

    def exchange(self, scope: Scope, exchange_id: str) -> Counts:
        """Erase the exchange and the messages it added.

        Raises:
            NotFound: The scope has no such exchange.
        """
        return self._forgotten(self.store.write(lambda tx: self._exchange(tx, scope, exchange_id)))

    def topic(self, scope: Scope, key: str, *, include_raw: bool) -> Counts:
        """Erase the topic; its exchanges too if `include_raw`, else they stay under the topic `unsorted`.

        Raises:
            NotFound: The scope has no such topic.
        """
        return self._forgotten(
            self.store.write(lambda tx: self._topic(tx, scope, key, include_raw=include_raw))
        )

    def end_user(self, scope: Scope) -> Counts:
        """Erase everything of this end user.

        Raises:
            NotFound: Nothing was ever captured for them.
        """
        counts = self.store.write(lambda tx: tx.erase_scope(scope))
        if not counts.end_users:
            raise NotFound
        return self._forgotten(counts)

    def project(self, key: str) -> Counts:
        """Erase the project, all its end users and its keys.

        Raises:
            ProjectNotFound: There is no such project.
        """

        def erase(tx: Transaction) -> Counts:
            if tx.project(key) is None:
                raise ProjectNotFound
            return tx.erase_project(key)

        return self._forgotten(self.store.write(erase))

    def _forgotten(self, counts: Counts) -> Counts:
        self.vectors.clear()  # a cached question may quote what was erased
        return counts

    def _exchange(self, tx: Transaction, scope: Scope, exchange_id: str) -> Counts:
        tx.lock(scope)
        exchange = tx.exchange(scope, exchange_id)
        if exchange is None:
            raise NotFound
        said = [read_message(dict(raw)) for raw in (*exchange.request, exchange.response) if raw is not None]
        direction = clustering.exchange_vector(tx.vectors_of(scope, exchange_id), self.dim)
        gone = clustering.gist(said, direction)
        counts = tx.erase_exchange(scope, exchange_id)
        topics = tx.topics(scope, [exchange.topic_key])
        for topic in topics:
            left = clustering.without(topic, exchange_id, gone, set(tx.topic_keys(scope)))
            if left.exchanges:
                tx.put_topic(scope, left)
                former = tx.former_keys(scope, topic.row)
                telling = [key for key in former if clustering.gives_away(key, gone.terms, left.terms)]
                tx.erase_former_keys(scope, telling)
            else:
                tx.erase_topic(scope, topic.row)
                counts = replace(counts, topics=counts.topics + 1)
        renew_summary(tx, scope)
        return counts

    def _topic(self, tx: Transaction, scope: Scope, key: str, *, include_raw: bool) -> Counts:
        tx.lock(scope)
        topic = next(iter(tx.topics(scope, [key])), None)
        if topic is None:
            raise NotFound
        counts = Counts(topics=1)
        if include_raw:
            for exchange_id in tx.exchanges_of_topic(scope, topic.row):
                erased = tx.erase_exchange(scope, exchange_id)
                counts = replace(
                    counts, exchanges=counts.exchanges + 1, messages=counts.messages + erased.messages
                )
        elif topic.exchanges:
            tx.move_exchanges(scope, from_row=topic.row, to_row=self._unsorted(tx, scope, topic))
        tx.erase_topic(scope, topic.row)
        renew_summary(tx, scope)
        return counts

    def _unsorted(self, tx: Transaction, scope: Scope, topic: Topic) -> int:
        """Return the row of the topic that keeps exchanges whose own topic was erased; it takes over this one's.

        What was hidden stays hidden: there is a place for each of the two.
        """
        for number in count(1):
            key = clustering.UNSORTED if number == 1 else f"{clustering.UNSORTED}_{number}"
            kept = next(iter(tx.topics(scope, [key])), None)
            if kept is None or kept.row == topic.row:
                break
            if kept.enabled == topic.enabled:
                return tx.put_topic(scope, clustering.merged(kept, topic))
        if kept:  # the topic being erased is itself called so
            tx.put_topic(scope, replace(topic, key=f"{clustering.UNSORTED}_{topic.id}"))
        unsorted = Topic(
            id=self.new_id(),
            key=key,
            label=clustering.UNSORTED,
            aliases=(),
            summary=(),
            enabled=topic.enabled,
            exchanges=topic.exchanges,
            vector_sum=topic.vector_sum,
            terms={},
            updated_at=self.clock(),
            pinned=topic.pinned & {"enabled"},
        )
        return tx.put_topic(scope, unsorted)
