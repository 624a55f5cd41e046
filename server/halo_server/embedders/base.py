"""The Embedder port: text in, unit vectors out. One more embedder is one file here and one line in the registry."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from halo_server.domain import Vectors

__all__ = ["MAX_CHARS", "Embedder", "readable", "unit"]

MAX_CHARS = 2_000
"""Text beyond this adds nothing to a vector of one message, and costs: 100,000 Chinese characters took 7 s (measured)."""


class Embedder(Protocol):
    """Turns text into vectors whose inner product says how alike the meanings are.

    Implementations are safe to call from several threads, give the same vector for the same text in every process,
    never raise for any text (lone surrogates, NUL, 100,000 characters), and read at most `MAX_CHARS` characters.
    """

    @property
    def id(self) -> str:
        """What the vectors depend on: model, revision, dimension. Vectors of different ids are never compared."""
        ...

    @property
    def dim(self) -> int:
        """Width of every vector; the embedder is the one owner of this number."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it computes in this process. One that does not may be slow or away: no capture waits for it."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, float32, of unit length.

        Text without any feature (empty, only symbols) may give a zero row, which is near nothing.

        Raises:
            halo_server.errors.ProviderFailed: It is not local, and the service it asks failed.
        """
        ...


def readable(text: str) -> str:
    """Return what every tokenizer takes: at most `MAX_CHARS` characters, no lone surrogate, no NUL."""
    return text[:MAX_CHARS].encode("utf-8", "replace").decode().replace("\0", "")


def unit(rows: npt.NDArray[Any]) -> Vectors:
    """Return the rows at unit length, shape (n, dim), contiguous; a zero row stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
