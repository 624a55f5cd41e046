"""The indexes of recently used scopes, kept within a bound of bytes; the others wait in the store."""

import threading
from collections import OrderedDict

from halo_server.domain import Scope
from halo_server.index.base import Source
from halo_server.index.scope import ScopeIndex

__all__ = ["HotIndexes"]


class HotIndexes:
    """Opens a scope's index on demand and forgets the longest unused when memory runs over.

    Args:
        dim: Width of the vectors.
        max_bytes: Most bytes held, except that the index in use always stays.
    """

    def __init__(self, dim: int, max_bytes: int) -> None:
        self._dim = dim
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._open: OrderedDict[bytes, ScopeIndex] = OrderedDict()
        self._sizes: dict[bytes, int] = {}
        self._total = 0

    @property
    def nbytes(self) -> int:
        """About how much memory the open indexes hold."""
        return self._total

    def __len__(self) -> int:
        return len(self._open)

    def open(self, scope: Scope, source: Source) -> ScopeIndex:
        """Return the scope's index, showing at least the moment `source` shows."""
        with self._lock:
            index = self._open.get(scope.id) or self._open.setdefault(scope.id, ScopeIndex(self._dim))
            self._open.move_to_end(scope.id)
        if index.catch_up(scope, source) or scope.id not in self._sizes:
            with self._lock:
                self._resize(scope.id, index)
        return index

    def _resize(self, scope_id: bytes, index: ScopeIndex) -> None:
        if self._open.get(scope_id) is not index:  # evicted meanwhile
            return
        size = index.nbytes  # read once: another request may be adding to it
        self._total += size - self._sizes.get(scope_id, 0)
        self._sizes[scope_id] = size
        while self._total > self._max_bytes and len(self._open) > 1:
            oldest = next(other for other in self._open if other != scope_id)
            del self._open[oldest]
            self._total -= self._sizes.pop(oldest, 0)
