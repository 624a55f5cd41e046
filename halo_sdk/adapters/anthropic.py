"""Tools for the tool runner of the Anthropic SDK.

Source:
    https://github.com/anthropics/anthropic-sdk-python (read in 2.14, `lib.tools`): a tool may bring its schema, and an error of the
    runner's own kind becomes a result marked `is_error`. The runner that waits takes functions, the awaited one coroutines.
"""

from collections.abc import Sequence
from typing import Any

from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import ToolError

from halo_sdk.adapters.base import BoundTool, told
from halo_sdk.types import Outcome


def tools(bound: Sequence[BoundTool]) -> list[Any]:
    """Return one runnable tool a function, of the colour of the memory."""
    return [_tool(each) for each in bound]


def _tool(bound: BoundTool) -> Any:
    answer = bound.answer

    async def call_async(**arguments: Any) -> str:
        return _told(await bound.answer_async(arguments, None))

    declared = bound.declaration
    spelled: dict[str, Any] = {
        "name": declared.name,
        "description": declared.description,
        "input_schema": declared.parameters,
    }
    if answer is None:
        return beta_async_tool(call_async, **spelled)
    return beta_tool(lambda **arguments: _told(answer(arguments, None)), **spelled)


def _told(outcome: Outcome) -> str:
    if not outcome.ok:
        raise ToolError(told(outcome))
    return told(outcome)
