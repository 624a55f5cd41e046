"""Vectors from words alone: needs no weights, so it always works. The fallback, and the embedder of fast tests."""

import zlib
from collections.abc import Sequence

import numpy as np

from halo_server.domain import Vectors
from halo_server.embedders.base import readable, unit
from halo_server.text import tokens

__all__ = ["HashingEmbedder"]


class HashingEmbedder:
    """Signed feature hashing of search terms.

    Source:
        Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009: one checksum chooses the
        place and the sign, so that collisions cancel in expectation.
    """

    is_local = True
    dim = 512
    id = "hashing-v1-512"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text; see the port."""
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for token in tokens(readable(text)):
                digest = zlib.crc32(b"v" + token.encode())
                row[digest % self.dim] += 1.0 if digest & 0x8000_0000 else -1.0
        return unit(rows)
