"""Tools for LlamaIndex.

Source:
    `llama-index-core` 0.14, `tools`: what a model is told of a tool comes from its metadata, and arguments reach the function
    unvalidated.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.tools import FunctionTool, ToolMetadata

from halo_sdk.adapters.base import BoundTool, told


@dataclass
class _Metadata(ToolMetadata):  # type: ignore[misc]  # optional, so of no known type
    """Metadata whose schema is JSON Schema already."""

    schema: dict[str, Any] = field(default_factory=dict)

    def get_parameters_dict(self) -> dict[str, Any]:
        """Return the schema of the arguments."""
        return deepcopy(self.schema)


def tools(bound: Sequence[BoundTool]) -> list[FunctionTool]:
    """Return one tool a function."""
    return [_tool(each) for each in bound]


def _tool(bound: BoundTool) -> FunctionTool:
    answer = bound.answer

    async def call_async(**arguments: Any) -> str:
        return told(await bound.answer_async(arguments, None))

    declared = bound.declaration
    metadata = _Metadata(declared.description, declared.name, schema=declared.parameters)
    call = None if answer is None else lambda **arguments: told(answer(arguments, None))
    return FunctionTool(call, metadata, call_async)
