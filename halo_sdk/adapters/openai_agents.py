"""Tools for the OpenAI Agents SDK.

Source:
    https://openai.github.io/openai-agents-python/tools (read in `openai-agents` 0.24): a tool gets its arguments as the model wrote
    them and answers with text; a strict schema would be closed, and with it `sessionData`. The run's items are its conversation.
"""

from collections.abc import Sequence
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from halo_sdk.adapters.base import BoundTool, told


def tools(bound: Sequence[BoundTool]) -> list[FunctionTool]:
    """Return one tool a function."""
    return [_tool(each) for each in bound]


def _tool(bound: BoundTool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return told(await bound.answer_async(arguments, list(context.turn_input) or None))

    return FunctionTool(
        name=bound.declaration.name,
        description=bound.declaration.description,
        params_json_schema=bound.declaration.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
