"""What the index needs of the store: a view of one scope to catch up from. The store's transaction is one."""

from collections.abc import Sequence
from typing import Protocol

from halo_server.domain import Change, Document, Scope, Topic

__all__ = ["Source"]


class Source(Protocol):
    """One moment of the store, as far as an index looks."""

    def position(self, scope: Scope) -> int:
        """Return the number of the scope's newest change; 0 before the first."""
        ...

    def changes_since(self, scope: Scope, position: int, *, limit: int = 1000) -> list[Change]:
        """Return the scope's changes after `position`, oldest first."""
        ...

    def documents(self, scope: Scope, seqs: Sequence[int] | None = None) -> list[Document]:
        """Return the searchable messages of these exchanges (of all, when None), in the order they were written."""
        ...

    def topics(self, scope: Scope) -> list[Topic]:
        """Return all topics of the scope."""
        ...

    def topics_by_row(self, scope: Scope, rows: Sequence[int]) -> list[Topic]:
        """Return those of the topics that exist."""
        ...
