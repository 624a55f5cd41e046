"""What a person says of a topic: what it is called, whether it is retrieved, and which two are one.

A person's word outranks everything derived: the fields they set are noted in `Topic.pinned`, and only a person changes them
again. A key stays through all of this, and that of a merged topic leads to the topic that took it in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from halo_server import clustering
from halo_server.domain import Clock, Scope, Topic
from halo_server.errors import InvalidRequest, NotFound
from halo_server.services.overview import renew_summary
from halo_server.store.store import Store, Transaction

__all__ = ["Topics"]


@dataclass(frozen=True, slots=True)
class Topics:
    """Changes topics as a person wishes; each call is one transaction, and made twice it changes nothing more."""

    store: Store
    clock: Clock

    def edit(
        self,
        scope: Scope,
        key: str,
        *,
        enabled: bool | None = None,
        label: str | None = None,
        aliases: Sequence[str] | None = None,
    ) -> Topic:
        """Set what is given, and return the topic.

        Raises:
            NotFound: The scope has no such topic.
        """
        wished = {"enabled": enabled, "label": label, "aliases": None if aliases is None else tuple(aliases)}
        given = {name: value for name, value in wished.items() if value is not None}
        return self.store.write(lambda tx: self._edit(tx, scope, key, given))

    def merge(self, scope: Scope, key: str, into: str) -> Topic:
        """Move everything of the topic `key` into the topic `into`, and return that.

        It keeps its own name and whether it is enabled; what the other was called becomes an alias.

        Raises:
            NotFound: The scope has no such topic.
            InvalidRequest: Both are one topic, and were before any merge.
        """
        return self.store.write(lambda tx: self._merge(tx, scope, key, into))

    def _edit(self, tx: Transaction, scope: Scope, key: str, given: Mapping[str, Any]) -> Topic:
        tx.lock(scope)
        topic = _present(tx, scope, key)
        as_wished = all(getattr(topic, name) == value for name, value in given.items())
        if as_wished and topic.pinned >= given.keys():
            return topic
        now = max(self.clock(), topic.updated_at)
        edited = replace(topic, **given, pinned=topic.pinned | given.keys(), updated_at=now)
        if "aliases" in given:  # whoever writes the list has seen the names that came by merging
            edited = replace(edited, former_labels=())
        tx.put_topic(scope, edited)
        renew_summary(tx, scope)
        return edited

    def _merge(self, tx: Transaction, scope: Scope, key: str, into: str) -> Topic:
        tx.lock(scope)
        topic, target = _present(tx, scope, key), _present(tx, scope, into)
        if topic.row == target.row:
            if key in (into, topic.key):
                raise InvalidRequest("A topic cannot be merged into itself.")
            return target  # it was merged before
        tx.move_exchanges(scope, from_row=topic.row, to_row=target.row)
        tx.succeed(scope, topic, target)
        tx.erase_topic(scope, topic.row)
        united = clustering.united(target, topic, self.clock())
        tx.put_topic(scope, united)
        renew_summary(tx, scope)
        return united


def _present(tx: Transaction, scope: Scope, key: str) -> Topic:
    found = next(iter(tx.topics(scope, [key])), None)
    if found is None:
        raise NotFound
    return found
