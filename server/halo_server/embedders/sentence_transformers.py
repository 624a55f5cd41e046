"""Vectors from a local PyTorch model of `sentence-transformers`: `pip install 'halo-memory[sentence-transformers]'`.

The model is fetched at the first start and kept where Hugging Face keeps its models. This changes when sentence-transformers
does.
"""

import threading
from collections.abc import Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from halo_server.domain import Vectors
from halo_server.embedders.base import readable, unit

__all__ = ["SentenceTransformersEmbedder"]


class SentenceTransformersEmbedder:
    """The model of that name.

    Source:
        One caller at a time: its tokenizer raises "Already borrowed" when two threads use it (huggingface/tokenizers#537).
    """

    is_local = True

    def __init__(self, model: str) -> None:
        self._model = SentenceTransformer(model)
        self._lock = threading.Lock()
        self.dim = self._rows([" "]).shape[1]
        self.id = f"sentence-transformers-{model}-{self.dim}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text; see the port."""
        if not texts:
            return np.zeros((0, self.dim), dtype=np.float32)
        return unit(self._rows([readable(text) or " " for text in texts]))

    def _rows(self, texts: list[str]) -> Vectors:
        with self._lock:
            rows = self._model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(rows, dtype=np.float32)
