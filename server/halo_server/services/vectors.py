"""Vectors of questions, kept for a while: the same question is asked again in every step of a tool loop."""

import threading
from collections import OrderedDict

import numpy as np

from halo_server.domain import Vectors
from halo_server.embedders.base import MAX_CHARS, Embedder

__all__ = ["QueryVectors"]


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

    def __call__(self, text: str) -> Vectors:
        """Return the vector of `text`, shape (1, dim); zeros when the embedder gave nothing usable."""
        text = text[:MAX_CHARS]  # the embedder reads no further
        with self._lock:
            kept = self._kept.get(text)
            if kept is not None:
                self._kept.move_to_end(text)
                return kept
        vector = self._embedder.encode([text])
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
