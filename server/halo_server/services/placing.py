"""Which topic an exchange belongs to: decided when it is taken, and again when its vectors came later."""

from halo_server import clustering
from halo_server.domain import Instant, NewId, Scope, Topic, Vectors
from halo_server.store.store import Transaction

__all__ = ["find_topic", "join_topic", "leave_topic"]


def find_topic(tx: Transaction, scope: Scope, vector: Vectors, current: int | None) -> int | None:
    """Return the row of the topic an exchange of this direction joins, or None when it opens its own.

    `current` is the row of the topic the conversation was on, if any.
    """
    rows, sums, sizes = tx.topic_vectors(scope)
    here = rows.index(current) if current in rows else None
    place = clustering.nearest(vector, sums, sizes, here)
    return None if place is None else rows[place]


def join_topic(
    tx: Transaction,
    scope: Scope,
    row: int | None,
    exchange_id: str,
    gist: clustering.Gist,
    new_id: NewId,
    now: Instant,
) -> int:
    """Write the topic of that row with one more exchange, or a new one; return its row."""
    existing = tx.topics_by_row(scope, [row]) if row else []
    if not existing and not gist.vector.any():  # nothing was said that could name or place it
        existing = tx.topics(scope, [clustering.UNNAMED])
    if existing:
        return tx.put_topic(scope, clustering.joined(existing[0], exchange_id, gist, now))
    topic = clustering.opened(new_id(), exchange_id, gist, set(tx.topic_keys(scope)), now)
    return tx.put_topic(scope, topic)


def leave_topic(tx: Transaction, scope: Scope, topic: Topic, exchange_id: str, gone: clustering.Gist) -> None:
    """Write the topic without the exchange; erase it if that was its last."""
    left = clustering.without(topic, exchange_id, gone, set(tx.topic_keys(scope)))
    if left.exchanges:
        tx.put_topic(scope, left)
    else:
        tx.erase_topic(scope, topic.row)
