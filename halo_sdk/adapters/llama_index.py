"""Tools for LlamaIndex.

Source:
    `llama-index-core` 0.14, `tools`: what a model is told of a tool comes from its metadata, arguments reach the function
    unvalidated, and what a callback returns is the output. A tool without a waiting function would run the awaited one in a loop
    of its own, and wait for it even inside another loop.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, create_model
from llama_index.core.tools import FunctionTool, ToolMetadata, ToolOutput

from halo_sdk.adapters.base import BoundTool, told
from halo_sdk.errors import HaloConfigError
from halo_sdk.types import Outcome


def tools(bound: Sequence[BoundTool]) -> list[FunctionTool]:
    """Return one tool a function. One of a memory that can only be awaited says so when it is called."""
    return [_tool(each) for each in bound]


def _tool(bound: BoundTool) -> FunctionTool:
    declared = bound.declaration

    def call(**arguments: Any) -> Outcome:
        if bound.answer is None:
            raise HaloConfigError("an AsyncMemory is awaited: use acall, or the tools of a Memory")
        return bound.answer(arguments, None)

    async def call_async(**arguments: Any) -> Outcome:
        return await bound.answer_async(arguments, None)

    async def written_async(outcome: Outcome) -> ToolOutput:
        return _written(outcome)

    return FunctionTool(
        call,
        ToolMetadata(declared.description, declared.name, _arguments(declared.parameters)),
        call_async,
        callback=_written,
        async_callback=written_async,
    )


def _written(outcome: Outcome) -> ToolOutput:
    return ToolOutput(
        tool_name=outcome.call.name,
        content=told(outcome),
        raw_input={"args": (), "kwargs": outcome.call.arguments},
        raw_output=outcome.body,
        is_error=not outcome.ok,
    )


def _arguments(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return a model that is described by a JSON Schema and takes anything."""

    def describe(described: dict[str, Any]) -> None:
        described.clear()
        described.update(deepcopy(dict(schema)))

    settings = ConfigDict(extra="allow", json_schema_extra=describe)
    return create_model("Arguments", __config__=settings)  # type: ignore[no-any-return]
