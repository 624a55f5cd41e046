"""A toolset for pydantic-ai.

Source:
    https://ai.pydantic.dev/toolsets (read in `pydantic-ai-slim` 2.68): a tool made from a schema gets its arguments unvalidated; a
    failure that no retry mends is reported by raising; the run's messages are at hand. Strictness left open would close
    `sessionData`.
"""

from collections.abc import Sequence
from typing import Any

from pydantic_ai import FunctionToolset, RunContext, Tool, ToolFailed

from halo_sdk.adapters.base import BoundTool


def tools(bound: Sequence[BoundTool]) -> FunctionToolset[Any]:
    """Return a toolset with one tool a function."""
    return FunctionToolset(tools=[_tool(each) for each in bound], id="halo")


def _tool(bound: BoundTool) -> Tool[Any]:
    async def call(context: RunContext[Any], /, **arguments: Any) -> Any:
        outcome = await bound.answer_async(arguments, context.messages)
        if not outcome.ok:
            raise ToolFailed(str(outcome.body))
        return outcome.body

    declared = bound.declaration
    tool = Tool.from_schema(call, declared.name, declared.description, declared.parameters, takes_ctx=True)
    tool.strict = False
    return tool
