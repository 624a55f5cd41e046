"""Tools for LangChain and LangGraph.

Source:
    `langchain-core` 1.8, `tools.structured`: a tool whose schema is JSON Schema gets its arguments unvalidated, and an exception of
    the framework's own kind becomes a result with the status `error`.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import StructuredTool, ToolException

from halo_sdk.adapters.base import BoundTool, told
from halo_sdk.types import Outcome


def tools(bound: Sequence[BoundTool]) -> list[StructuredTool]:
    """Return one tool a function. One of a memory that can only be awaited says so when it is invoked."""
    return [_tool(each) for each in bound]


def _tool(bound: BoundTool) -> StructuredTool:
    answer = bound.answer

    async def call_async(**arguments: Any) -> str:
        return _told(await bound.answer_async(arguments, None))

    return StructuredTool(
        name=bound.declaration.name,
        description=bound.declaration.description,
        args_schema=bound.declaration.parameters,
        func=None if answer is None else lambda **arguments: _told(answer(arguments, None)),
        coroutine=call_async,
        handle_tool_error=True,
    )


def _told(outcome: Outcome) -> str:
    if not outcome.ok:
        raise ToolException(told(outcome))
    return told(outcome)
