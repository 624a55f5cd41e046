"""A memory without doors: the use cases over any store, with a clock and ids the test decides."""

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from halo_server.api.intake import submission
from halo_server.config import Settings
from halo_server.domain import Exchange, NewId, Question, Receipt, Retrieved, Scope
from halo_server.embedders.base import Embedder
from halo_server.embedders.hashing import HashingEmbedder
from halo_server.index.hot import HotIndexes
from halo_server.services.capture import Capture
from halo_server.services.inventory import Inventory
from halo_server.services.lifecycle import Forget
from halo_server.services.retrieve import Retrieve
from halo_server.services.topics import Topics
from halo_server.services.vectors import QueryVectors
from halo_server.store.store import Store

__all__ = ["NOW", "FrozenClock", "Memory", "Said", "assistant", "user"]

NOW = 1_750_000_000_000
WINDOW_MS = 600_000

Said = Mapping[str, Any]


def user(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


@dataclass
class FrozenClock:
    """Stands still until it is told."""

    now: int = NOW

    def __call__(self) -> int:
        return self.now


class Ids:
    """id-1, id-2, …"""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            return f"id-{next(self._numbers)}"


@dataclass
class Memory:
    """One store with everything that uses it; its projects `p` and `q` exist."""

    store: Store
    embedder: Embedder = field(default_factory=HashingEmbedder)
    clock: FrozenClock = field(default_factory=FrozenClock)
    settings: Settings = field(default_factory=Settings)
    new_id: NewId = field(default_factory=Ids)

    def __post_init__(self) -> None:
        vectors = QueryVectors(self.embedder, 8)
        self.indexes = HotIndexes(self.embedder.dim, 1 << 30)
        self.captures = Capture(self.store, self.embedder, b"secret", self.clock, self.new_id, WINDOW_MS)
        self.retrieves = Retrieve(self.store, self.indexes, vectors)
        self.forget = Forget(self.store, self.embedder.dim, vectors, self.clock, self.new_id)
        self.topics = Topics(self.store, self.clock)
        self.inventory = Inventory(self.store, self.clock)
        for project in ("p", "q"):
            self.inventory.add_project(project)

    def capture(
        self, scope: Scope, *messages: Any, response: Any = None, key: str | None = None, **state: Any
    ) -> Receipt:
        """Capture a conversation: `messages` as an application holds them, then its answer."""
        taken = submission(self.settings, {"messages": list(messages), **state}, response)
        return self.captures(scope, taken, key)

    def find(self, scope: Scope, text: str, limit: int = 50) -> Retrieved:
        return self.retrieves(scope, Question(text, limit))

    def found(self, scope: Scope, text: str = "") -> set[str]:
        """Return the ids a retrieval finds; without a text, of all there is."""
        return {exchange.id for exchange in self.find(scope, text).exchanges}

    def exchanges(self, scope: Scope) -> list[Exchange]:
        """Return what is stored, oldest first."""
        return self.inventory.exchanges(scope, before=None, limit=1000, include_disabled=True)[::-1]

    def said(self, scope: Scope) -> list[list[Said]]:
        """Return the messages each exchange added, oldest first."""
        return [
            [*exchange.request, *([] if exchange.response is None else [exchange.response])]
            for exchange in self.exchanges(scope)
        ]
