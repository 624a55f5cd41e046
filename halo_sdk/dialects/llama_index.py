"""Histories of LlamaIndex. Who speaks is told as in OpenAI's, but for one more name of the model.

Source:
    `llama-index-core` 0.14, `base.llms.types`: a message is made of blocks, a result names its call in `additional_kwargs`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from halo_sdk.dialects.base import Answered, Called, History, Part, mapping, mappings


class LlamaIndex(History):
    """Messages made of blocks."""

    fields: ClassVar[tuple[str, ...]] = ("blocks",)

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a block that calls, or a message that is a result."""
        if value.get("block_type") == "tool_call":
            return Called(value.get("tool_name"), value.get("tool_call_id"))
        if value.get("role") not in ("tool", "function") or "blocks" not in value:
            return None
        named = mapping(value.get("additional_kwargs"))
        name, call_id = named.get("name"), named.get("tool_call_id")
        return None if name is None and call_id is None else Answered(name, call_id)

    def beside(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the calls that only `additional_kwargs` tells of, as the service it came from spelled them."""
        for call in mappings(mapping(message.get("additional_kwargs")).get("tool_calls")):
            yield Called((mapping(call.get("function")) or call).get("name"), call.get("id"))

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `chatbot`, which is what Cohere's models are called."""
        return message.get("role") == "chatbot" and "blocks" in message
