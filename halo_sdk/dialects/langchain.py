"""Histories of LangChain and LangGraph.

Source:
    `langchain-core` 1.8, `messages`: the kind of a message is its `type`, calls have `args`, a result names its call by
    `tool_call_id`. What a provider said stays in `content` beside them, in LangChain's spelling or the provider's own.
    `messages_to_dict` puts all but the kind under `data`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk.dialects.base import Answered, Called, History, Part, either

_CALLS = ("tool_call", "invalid_tool_call", "tool_call_chunk", "function_call", "tool_use")
_BY_MODEL = ("ai", "AIMessageChunk")
_KINDS = ("human", "system", "tool", *_BY_MODEL)


class LangChain(History):
    """Messages of kinds `human`, `ai` and `tool`."""

    fields: ClassVar[tuple[str, ...]] = ("content", "tool_calls", "invalid_tool_calls", "tool_call_chunks")

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a call, or a message that is a result."""
        if value.get("type") in _CALLS:
            return Called(value.get("name"), either(value, "call_id", "id"))
        is_result = value.get("type") == "tool" and "role" not in value
        return Answered(value.get("name"), value.get("tool_call_id")) if is_result else None

    def parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the calls and results of a message, whichever way it was dumped."""
        return super().parts(_flat(message))

    def without_own_calls(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a history without HALO's calls and their results, its messages without `data` around them."""
        return super().without_own_calls([_flat(message) for message in messages])

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the kind `ai`."""
        return message.get("type") in _BY_MODEL

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the kind `human`."""
        return message.get("type") == "human"


def _flat(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as its fields, with `messages_to_dict` undone."""
    data = message.get("data") if message.get("type") in _KINDS else None
    return {**data, "type": message["type"]} if isinstance(data, dict) else dict(message)
