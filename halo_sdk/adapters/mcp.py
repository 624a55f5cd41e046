"""A server of the Model Context Protocol for one end user.

Who the end user is belongs to the connection: make one server for each, after you know who connects.

Source:
    https://github.com/modelcontextprotocol/python-sdk (read in `mcp` 2.3, `server.lowlevel`): the low-level server validates no
    arguments, and takes results as they are.
"""

from collections.abc import Sequence
from typing import Any

from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)

from halo_sdk import dialects
from halo_sdk.adapters.base import BoundTool
from halo_sdk.types import Outcome, ToolCall


def tools(bound: Sequence[BoundTool]) -> Server[Any]:
    """Return a server that lists and calls the functions."""
    spoken = dialects.named("mcp")
    by_name = {each.declaration.name: each for each in bound}

    async def list_tools(_context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        declared = spoken.declare([each.declaration for each in bound], strict=False)
        return ListToolsResult(tools=[Tool.model_validate(tool) for tool in declared])

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        if params.name in by_name:
            outcome = await by_name[params.name].answer_async(params.arguments, None)
        else:
            known = f"there is no such function; available: {', '.join(by_name)}"
            outcome = Outcome(ToolCall(params.name, params.arguments), ok=False, body=known)
        (result,) = spoken.write([outcome])
        return CallToolResult.model_validate(result)

    return Server("halo", on_list_tools=list_tools, on_call_tool=call_tool)
