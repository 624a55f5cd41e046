"""Tools for LangChain and LangGraph.

Source:
    `langchain-core` 1.8, `tools`: a tool whose schema is JSON Schema gets its arguments unvalidated, and an exception of the
    framework's own kind becomes a result with the status `error`. `langgraph` 1.2, `prebuilt.tool_node`: a parameter `runtime` is
    filled with the run's state, whatever a model wrote under that name.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException

from halo_sdk.adapters.base import BoundTool, told
from halo_sdk.types import Outcome

_Runtime = Annotated[Any, InjectedToolArg]


class _Tool(StructuredTool):  # type: ignore[misc]  # optional, so of no known type
    """A tool that a model cannot break by the name of an argument."""

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> Any:
        arguments, named = super()._to_args_and_kwargs(tool_input, tool_call_id)
        return arguments, {name: value for name, value in named.items() if name != "self"}


def tools(bound: Sequence[BoundTool]) -> list[StructuredTool]:
    """Return one tool a function. One of a memory that can only be awaited says so when it is invoked."""
    return [_tool(each) for each in bound]


def _tool(bound: BoundTool) -> StructuredTool:
    answer = bound.answer

    async def call_async(*, runtime: _Runtime = None, **arguments: Any) -> str:
        return _told(await bound.answer_async(arguments, _messages(runtime)))

    call = None
    if answer is not None:

        def call(*, runtime: _Runtime = None, **arguments: Any) -> str:
            return _told(answer(arguments, _messages(runtime)))

    return _Tool(
        name=bound.declaration.name,
        description=bound.declaration.description,
        args_schema=bound.declaration.parameters,
        func=call,
        coroutine=call_async,
        handle_tool_error=True,
    )


def _messages(runtime: object) -> object:
    """Return the conversation of the run, None outside of one. What a model wrote is never a runtime: JSON has no attributes."""
    state = getattr(runtime, "state", None)
    if isinstance(state, list):
        return state
    return state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)


def _told(outcome: Outcome) -> str:
    if not outcome.ok:
        raise ToolException(told(outcome))
    return told(outcome)
