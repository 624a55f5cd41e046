"""Vectors from any service that speaks OpenAI's `/embeddings`; nothing it says is believed before it is checked.

A message's vector is computed by a job, a question's while somebody waits: once, within one deadline, and not at all for a
while after the service failed. This changes when that API does.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
from pydantic import BaseModel, ValidationError

from halo_server import provider
from halo_server.config import Endpoint
from halo_server.domain import Vectors
from halo_server.embedders.base import readable, unit
from halo_server.embedders.circuit import Circuit
from halo_server.errors import EmbedderSilent, ProviderFailed

__all__ = ["RemoteEmbedder"]

_BATCH = 32  # the most texts every service takes in one request
_MOST_WAIT_S = 60.0
_LARGEST = 1e9  # no model means such a number, and its square is still finite
_OURS = "rejected"  # one text that is refused is no sign that the service is down


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Row]


class RemoteEmbedder:
    """The model behind an endpoint.

    Args:
        dim: Width of its vectors; None asks the service once.
        timeout_s: Longest wait for the vector of one text; a batch has as long for each of its texts, up to a minute.
        monotonic: Seconds on a clock that never goes back.

    Raises:
        EmbedderSilent: `dim` is None and the service does not answer.
    """

    is_local = False

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        dim: int | None,
        timeout_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = provider.connect(endpoint)
        self._model = endpoint.model
        self._timeout_s = timeout_s
        self._circuit = Circuit(monotonic)
        self.dim = dim or self._measured()
        self.id = f"remote-{endpoint.model}-{self.dim}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row per text; see the port. Text that nobody could read is not sent and gives a zero row.

        Raises:
            ProviderFailed: As `provider.answer_of`; `invalid` when the vectors are not what was asked for; `resting` when
                the service failed just now and is not asked again yet.
        """
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        clean = [readable(text) for text in texts]
        places = [place for place, text in enumerate(clean) if text.strip()]
        for start in range(0, len(places), _BATCH):
            batch = places[start : start + _BATCH]
            rows[batch] = self._guarded([clean[place] for place in batch])
        return rows

    def _guarded(self, texts: Sequence[str]) -> Vectors:
        if not self._circuit.admits():
            raise ProviderFailed("resting")
        try:
            rows = self._checked(self._asked(texts))
        except ProviderFailed as error:
            if error.code == _OURS:
                self._circuit.succeeded()
            else:
                self._circuit.failed()
            raise
        self._circuit.succeeded()
        return rows

    def _asked(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the rows in the order of `texts`."""
        deadline_s = min(self._timeout_s * len(texts), _MOST_WAIT_S)
        body = provider.answer_of(
            lambda: self._client.embeddings.with_raw_response.create(
                input=list(texts), model=self._model, encoding_format="float", timeout=deadline_s
            )
        )
        try:
            found = sorted(_Answer.model_validate_json(body).data, key=lambda row: row.index)
        except ValidationError:
            raise ProviderFailed("invalid") from None
        if [row.index for row in found] != list(range(len(texts))):
            raise ProviderFailed("invalid")
        return [row.embedding for row in found]

    def _checked(self, asked: Sequence[Sequence[float]]) -> Vectors:
        if any(len(row) != self.dim for row in asked):
            raise ProviderFailed("invalid")
        rows = np.array(asked, dtype=np.float64)
        if not ((np.abs(rows) < _LARGEST).all() and rows.any(axis=1).all()):  # NaN is not below it either
            raise ProviderFailed("invalid")
        return unit(rows)

    def _measured(self) -> int:
        try:
            [row] = self._asked(["How wide is a vector?"])
        except ProviderFailed as error:
            raise EmbedderSilent from error
        if not row:
            raise EmbedderSilent
        return len(row)
