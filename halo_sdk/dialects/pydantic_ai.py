"""Histories of pydantic-ai.

Source:
    `pydantic-ai-slim` 2.68, `messages`: a message is a `request` or a `response`, and what its parts are is their `part_kind`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from halo_sdk.dialects.base import Answered, Called, History, Part, mappings


class PydanticAI(History):
    """Requests and responses made of parts."""

    fields: ClassVar[tuple[str, ...]] = ("parts",)

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a part; a prompt to try a call again answers it too."""
        kind, name, call_id = (value.get(field) for field in ("part_kind", "tool_name", "tool_call_id"))
        if kind == "tool-call":
            return Called(name, call_id)
        return Answered(name, call_id) if kind in ("tool-return", "retry-prompt") and name else None

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the kind `response`."""
        return message.get("kind") == "response"

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by a request with a user's prompt."""
        prompts = [part.get("part_kind") == "user-prompt" for part in mappings(message.get("parts"))]
        return message.get("kind") == "request" and any(prompts)
