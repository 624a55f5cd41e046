"""What is derived from an exchange after it was taken: its vectors, and with them its place among the topics.

A job, for vectors that come from elsewhere or did not come at once. It may run twice and late, and does nothing to what was
forgotten meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from halo_server import clustering
from halo_server.domain import Clock, Exchange, Instant, Job, Message, NewId, Scope, Topic, Vectors
from halo_server.embedders.base import Embedder
from halo_server.services.naming import owe_name
from halo_server.services.overview import renew_summary
from halo_server.services.placing import find_topic, join_topic, leave_topic
from halo_server.store import jobs
from halo_server.store.store import Store, Transaction
from halo_server.transcript import read_message

__all__ = ["EMBED", "Embed", "owe_vectors", "owes_vectors"]

EMBED = "embed"

_BATCH = 64  # texts between two signs of life


def owe_vectors(tx: Transaction, scope: Scope, exchange_id: str, now: Instant) -> None:
    """Promise the exchange's vectors."""
    jobs.add(tx, scope, EMBED, {"exchange": exchange_id}, now)


def owes_vectors(tx: Transaction, scope: Scope, exchange_id: str) -> bool:
    """Return whether the exchange's vectors are still to come."""
    return jobs.owes(tx, scope, EMBED, {"exchange": exchange_id})


@dataclass(frozen=True, slots=True)
class Embed:
    """The handler of `EMBED`: embeds what an exchange added and places it anew."""

    store: Store
    embedder: Embedder
    clock: Clock
    new_id: NewId
    naming: bool = False

    def __call__(self, job: Job) -> None:
        """Do the job and finish it.

        Raises:
            ProviderFailed: As the embedder.
        """
        exchange_id = job.payload["exchange"]
        lacking = self.store.read(lambda tx: tx.without_vector(job.scope, exchange_id))
        texts = {message_id: read_message(dict(raw)).text for message_id, raw in lacking}
        vectors = self._encoded(job, texts)
        if vectors is not None:
            self.store.write(lambda tx: self._write(tx, job, exchange_id, vectors))

    def _encoded(self, job: Job, texts: Mapping[int, str]) -> dict[int, Vectors] | None:
        """Return the usable vectors by message, or None if the job became another's meanwhile."""
        ids = list(texts)
        found: dict[int, Vectors] = {}
        for start in range(0, len(ids), _BATCH):
            if start and not self.store.write(lambda tx: jobs.extend(tx, job, self.clock())):
                return None
            batch = ids[start : start + _BATCH]
            rows = self.embedder.encode([texts[message_id] for message_id in batch])
            found |= {
                message_id: row
                for message_id, row in zip(batch, rows, strict=True)
                if np.isfinite(row).all() and row.any()
            }
        return found

    def _write(self, tx: Transaction, job: Job, exchange_id: str, vectors: Mapping[int, Vectors]) -> None:
        tx.lock(job.scope)
        exchange = tx.exchange(job.scope, exchange_id)
        if not jobs.finish(tx, job) or exchange is None:
            return
        before = self._direction(tx, job.scope, exchange)
        tx.add_vectors(job.scope, exchange, vectors)
        after = self._direction(tx, job.scope, exchange)
        if after.any():
            self._place(tx, job.scope, exchange, before, after)
            renew_summary(tx, job.scope)

    def _direction(self, tx: Transaction, scope: Scope, exchange: Exchange) -> Vectors:
        return clustering.exchange_vector(tx.vectors_of(scope, exchange.id), self.embedder.dim)

    def _place(
        self, tx: Transaction, scope: Scope, exchange: Exchange, before: Vectors, after: Vectors
    ) -> None:
        """Move the exchange from where it waited to the topic its vectors show."""
        now = self.clock()
        row = find_topic(tx, scope, after, tx.topic_before(scope, exchange))
        for old in tx.topics(scope, [exchange.topic_key]):
            # A person may have put it where it is: a hidden topic keeps what it holds.
            if old.row == row or not old.enabled:
                row = tx.put_topic(scope, _turned(old, before, after))
            else:
                said = _said(exchange)
                leave_topic(tx, scope, old, exchange.id, clustering.gist(said, before))
                gist = clustering.gist(said, after)
                row = join_topic(tx, scope, row, exchange.id, gist, self.new_id, now)
                tx.move_exchange(scope, exchange, row)
            if self.naming:
                owe_name(tx, scope, row, now)


def _said(exchange: Exchange) -> list[Message]:
    raws = (*exchange.request, exchange.response)
    return [read_message(dict(raw)) for raw in raws if raw is not None]


def _turned(topic: Topic, before: Vectors, after: Vectors) -> Topic:
    """Return the topic with one exchange's new direction; the sum of another embedder's vectors stays theirs."""
    own = bool(topic.vector_sum.size)
    return replace(topic, vector_sum=topic.vector_sum - before + after) if own else topic
