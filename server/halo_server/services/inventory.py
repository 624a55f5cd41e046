"""Lists for people and programs: projects, topics, exchanges, each page by page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from halo_server.domain import JSON, Clock, Counts, Exchange, Project, Scope, Topic
from halo_server.errors import NotFound, ProjectNotFound
from halo_server.store.store import Store, Transaction

__all__ = ["Inventory"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inventory:
    """Reads what there is; what belongs to a disabled topic only where `include_disabled` asks for it.

    A page holds at most `limit` values and one more tells whether another page follows.
    """

    store: Store
    clock: Clock

    def add_project(self, key: str) -> tuple[Project, bool]:
        """Make the project; return it and whether it is new."""

        def add(tx: Transaction) -> tuple[Project, bool]:
            new = tx.add_project(key, self.clock())
            return self._present(tx, key), new

        return self.store.write(add)

    def projects(self, *, after: str, limit: int) -> list[Project]:
        """Return at most `limit` projects whose key comes after `after`, in order."""
        return self.store.read(lambda tx: tx.projects(after=after, limit=limit))

    def find_project(self, key: str) -> Project | None:
        """Return the project, or None if there is none of that key."""
        return self.store.read(lambda tx: tx.project(key))

    def project(self, key: str) -> tuple[Project, Counts]:
        """Return the project and how much it holds.

        Raises:
            ProjectNotFound: There is none of that key.
        """
        return self.store.read(lambda tx: (self._present(tx, key), tx.count_project(key)))

    def topics(self, scope: Scope, *, after: int, limit: int, include_disabled: bool = False) -> list[Topic]:
        """Return at most `limit` topics whose row comes after `after`; none for an unknown scope."""
        return self.store.read(
            lambda tx: tx.topic_page(scope, after=after, limit=limit, include_disabled=include_disabled)
        )

    def exchanges(
        self, scope: Scope, *, before: int | None, limit: int, include_disabled: bool = False
    ) -> list[Exchange]:
        """Return at most `limit` exchanges, newest first, older than `before`."""
        return self.store.read(
            lambda tx: tx.latest(scope, before=before, limit=limit, include_disabled=include_disabled)
        )

    def find_exchange(self, project: str, exchange_id: str) -> Scope:
        """Return the scope that holds the exchange.

        Raises:
            NotFound: The project has no such exchange.
        """
        return self._found(lambda tx: tx.scope_of(project, exchange_id))

    def find_topic(self, project: str, topic_id: str) -> tuple[Scope, str]:
        """Return the scope that holds the topic, and the topic's key.

        Raises:
            NotFound: The project has no such topic.
        """
        return self._found(lambda tx: tx.scope_of_topic(project, topic_id))

    def exchange(self, scope: Scope, exchange_id: str, *, include_disabled: bool = False) -> Exchange:
        """Return the exchange.

        Raises:
            NotFound: The scope has no such exchange, or its topic is disabled.
        """
        return self._found(lambda tx: tx.exchange(scope, exchange_id, include_disabled=include_disabled))

    def sent_messages(
        self, scope: Scope, exchange_id: str, *, include_disabled: bool = False
    ) -> list[Mapping[str, JSON]]:
        """Return the request's messages as they were sent, the earlier ones of the thread included.

        Raises:
            NotFound: The scope has no such exchange.
        """
        return self._found(lambda tx: tx.sent_messages(scope, exchange_id, include_disabled=include_disabled))

    def _found(self, look: Callable[[Transaction], T | None]) -> T:
        found = self.store.read(look)
        if found is None:
            raise NotFound
        return found

    def _present(self, tx: Transaction, key: str) -> Project:
        found = tx.project(key)
        if found is None:
            raise ProjectNotFound
        return found
