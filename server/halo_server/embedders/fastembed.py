"""Vectors from a local ONNX model of `fastembed`'s list: `pip install 'halo-memory[fastembed]'`.

The model is fetched at the first start and kept where fastembed keeps its models. This changes when fastembed does.
"""

from collections.abc import Sequence

import numpy as np
from fastembed import TextEmbedding

from halo_server.domain import Vectors
from halo_server.embedders.base import readable, unit

__all__ = ["FastEmbedEmbedder"]


class FastEmbedEmbedder:
    """The model of that name, one thread a call: requests already run beside each other."""

    is_local = True

    def __init__(self, model: str) -> None:
        self._model = TextEmbedding(model_name=model, threads=1)
        self.dim = self._rows([" "]).shape[1]
        self.id = f"fastembed-{model}-{self.dim}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text; see the port."""
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return unit(self._rows([readable(text) or " " for text in texts]))

    def _rows(self, texts: list[str]) -> Vectors:
        return np.stack(list(self._model.embed(texts, batch_size=32))).astype(np.float32)
