"""The LLM port: a conversation in, one JSON object out. Optional judgement: nothing of the memory waits for it or needs it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from halo_server.domain import JSON

__all__ = ["LLM", "Turn"]

Turn = Mapping[str, str]
"""`role` (system, user, assistant) and `content`."""


class LLM(Protocol):
    """Asks a model once. Implementations are safe to call from several threads."""

    def complete(self, messages: Sequence[Turn], schema: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the JSON object the model answered.

        Whether it keeps to `schema`, a JSON Schema, is the caller's to check, and the caller's prompt holds it too: not every
        model is held to it.

        Raises:
            halo_server.errors.ProviderFailed: It did not answer in time, or failed; `invalid` if the answer holds no object.
        """
        ...
