"""Histories of LangChain and LangGraph.

Source:
    `langchain-core` 1.8, `messages`: the kind of a message is its `type`, calls have `args`, a result names its call by
    `tool_call_id`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from halo_sdk.dialects.base import Answered, Called, History

_CALLS = ("tool_call", "invalid_tool_call")
_BY_MODEL = ("ai", "AIMessageChunk")


class LangChain(History):
    """Messages of kinds `human`, `ai` and `tool`."""

    fields: ClassVar[tuple[str, ...]] = ("tool_calls", "invalid_tool_calls")

    def part(self, value: Mapping[str, Any]) -> Called | Answered | None:
        """Read a call, or a message that is a result."""
        if value.get("type") in _CALLS:
            return Called(value.get("name"), value.get("id"))
        return Answered(value.get("name"), value.get("tool_call_id")) if value.get("type") == "tool" else None

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the kind `ai`."""
        return message.get("type") in _BY_MODEL

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the kind `human`."""
        return message.get("type") == "human"
