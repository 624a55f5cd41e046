"""Histories of LlamaIndex. Who speaks is told as in OpenAI's, but for one more name of the model.

Source:
    `llama-index-core` 0.14, `base.llms.types`: a message is made of blocks, a result names its call in `additional_kwargs`. Calls
    are blocks too; older packages of services leave them in `additional_kwargs` alone, as the service spelled them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import size_bytes
from halo_sdk.dialects.base import Answered, Called, History, Part, either, is_own, mapping, mappings, without


class LlamaIndex(History):
    """Messages made of blocks."""

    fields: ClassVar[tuple[str, ...]] = ("blocks",)

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a block that calls, or a message that is a result."""
        if _is_call(value):
            return Called(value.get("tool_name"), value.get("tool_call_id"))
        if value.get("role") not in ("tool", "function") or "blocks" not in value:
            return None
        named = mapping(value.get("additional_kwargs"))
        name, call_id = named.get("name"), named.get("tool_call_id")
        return None if name is None and call_id is None else Answered(name, call_id)

    def parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the calls and results of a message, wherever its calls stand."""
        return super().parts(_lifted(message))

    def without_own_calls(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a history without HALO's calls and their results, the calls of all its messages among their blocks."""
        return super().without_own_calls([_lifted(message) for message in messages])

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `chatbot`, which is what Cohere's models are called."""
        return message.get("role") == "chatbot" and "blocks" in message


def _is_call(block: Mapping[str, Any]) -> bool:
    return block.get("block_type") == "tool_call"


def _lifted(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with the calls that only `additional_kwargs` tells of among its blocks.

    Their arguments come along where that makes the message no longer than it was. Where even their names and ids would, as with
    many calls that have no arguments, it stays as it is: nothing of such calls is known, so their results go too.
    """
    beside, blocks = mapping(message.get("additional_kwargs")), message.get("blocks")
    calls = [block for call in mappings(beside.get("tool_calls")) if len(block := _block(call)) > 1]
    if not calls or not isinstance(blocks, list) or any(map(_is_call, mappings(blocks))):
        return dict(message)
    others = without(beside, "tool_calls")
    rest = {**without(message, "additional_kwargs"), **({"additional_kwargs": others} if others else {})}
    for made in (calls, [without(call, "tool_kwargs") for call in calls]):
        lifted = {**rest, "blocks": [*blocks, *made]}
        if size_bytes(lifted) <= size_bytes(message):
            return lifted
    return dict(message)


def _block(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as a block, whichever service spelled it. The arguments of HALO's own are not kept anyway."""
    spelled = mapping(call.get("function")) or call
    name = spelled.get("name")
    block = {
        "block_type": "tool_call",
        "tool_call_id": call.get("id"),
        "tool_name": name,
        "tool_kwargs": None if is_own(name) else either(spelled, "arguments", "input", "args"),
    }
    return {field: value for field, value in block.items() if value is not None}
