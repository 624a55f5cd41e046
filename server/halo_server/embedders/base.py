"""The Embedder port: text in, unit vectors out. One more embedder is one file here and one line in the registry."""

from collections.abc import Sequence
from typing import Protocol

from halo_server.domain import Vectors

__all__ = ["MAX_CHARS", "Embedder"]

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

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, float32, of unit length.

        Text without any feature (empty, only symbols) may give a zero row, which is near nothing.
        """
        ...
