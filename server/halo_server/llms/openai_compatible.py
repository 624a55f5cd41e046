"""Any model behind OpenAI's `/chat/completions`, asked for JSON. This changes when that API does."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from halo_server import provider
from halo_server.config import Endpoint
from halo_server.domain import JSON
from halo_server.errors import ProviderFailed
from halo_server.llms.base import Turn

__all__ = ["OpenAICompatible", "json_object"]

_MOST_STARTS = 64
_THOUGHT_ENDS = "</think>"


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice]


class OpenAICompatible:
    """The model behind an endpoint.

    Args:
        timeout_s: Longest wait for a whole answer.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._client = provider.connect(endpoint)
        self._model = endpoint.model
        self._timeout_s = timeout_s
        self._takes_schema = True

    def complete(self, messages: Sequence[Turn], schema: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the JSON object the model answered; see the port."""
        try:
            answer = _Completion.model_validate_json(self._asked(messages, schema))
        except ValidationError:
            raise ProviderFailed("invalid") from None
        found = json_object(answer.choices[0].message.content) if answer.choices else None
        if found is None:
            raise ProviderFailed("invalid")
        return found

    def _asked(self, messages: Sequence[Turn], schema: Mapping[str, JSON]) -> bytes:
        if self._takes_schema:
            named = {"name": "answer", "schema": schema}
            try:
                return self._sent(messages, response_format={"type": "json_schema", "json_schema": named})
            except ProviderFailed as error:
                if error.code != "rejected":
                    raise
        body = self._sent(messages)
        self._takes_schema = False  # it was the schema that it did not take
        return body

    def _sent(self, messages: Sequence[Turn], **more: Any) -> bytes:
        create: Any = self._client.chat.completions.with_raw_response.create
        asked = {"model": self._model, "messages": [dict(turn) for turn in messages], **more}
        return provider.answer_of(lambda: create(**asked, timeout=self._timeout_s))


def json_object(text: str) -> dict[str, JSON] | None:
    """Return the first JSON object in what a model wrote, prose and fences around it left aside, or None."""
    text = text.rpartition(_THOUGHT_ENDS)[2]
    decoder, at = json.JSONDecoder(), -1
    for _ in range(_MOST_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return None
        try:
            return decoder.raw_decode(text, at)[0]  # type: ignore[no-any-return]
        except ValueError:
            continue
        except RecursionError:
            return None
    return None
