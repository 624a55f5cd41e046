"""Vectors where they may fail to come: memory then works by words alone, and says so.

Vectors of questions are kept for a while: the same question is asked again in every step of a tool loop.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from halo_server.domain import Vectors
from halo_server.embedders.base import MAX_CHARS, Embedder
from halo_server.errors import ProviderFailed
from halo_server.log import get_logger

__all__ = ["QueryVectors", "encoded"]

_log = get_logger()


def encoded(embedder: Embedder, texts: Sequence[str]) -> Vectors | None:
    """Return one row per text, or None if the embedder failed, whatever it raised."""
    try:
        return embedder.encode(texts)
    except ProviderFailed as error:
        if error.code != "resting":  # that it failed was said when it did
            _log.warning("no vectors", embedder=embedder.id, code=error.code)
    except Exception as error:  # noqa: BLE001 (somebody else's model; what was said is worth more than its vector)
        _log.error("no vectors", embedder=embedder.id, error=type(error).__name__)
    return None


class QueryVectors:
    """A bounded cache in front of an embedder.

    Args:
        size: Most questions kept; 0 keeps none.
    """

    def __init__(self, embedder: Embedder, size: int) -> None:
        self._embedder = embedder
        self._size = size
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._failing = False

    @property
    def degraded(self) -> tuple[str, ...]:
        """What works below its best: `embedder` since it failed to embed a question, until it embeds one."""
        return ("embedder",) if self._failing else ()

    def __call__(self, text: str) -> Vectors:
        """Return the vector of `text`, shape (1, dim); zeros when the embedder gave nothing usable."""
        text = text[:MAX_CHARS]  # the embedder reads no further
        with self._lock:
            kept = self._kept.get(text)
            if kept is not None:
                self._kept.move_to_end(text)
                return kept
        vector = encoded(self._embedder, [text])
        self._failing = vector is None
        if vector is None:
            return np.zeros((1, self._embedder.dim), dtype=np.float32)
        if not np.isfinite(vector).all():
            vector = np.zeros_like(vector)
        with self._lock:
            self._kept[text] = vector
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return vector

    def clear(self) -> None:
        """Forget every question."""
        with self._lock:
            self._kept.clear()
