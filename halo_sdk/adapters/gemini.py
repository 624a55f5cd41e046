"""Functions for the automatic function calling of the Gemini SDK.

Source:
    https://ai.google.dev/gemini-api/docs/function-calling (read in `google-genai` 3.6): a function is declared by its signature and
    docstring, and its arguments are checked against the annotations. A whole number arrives as 5 where a union with `float` alone
    would refuse it, so both are named.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halo_sdk.adapters.base import BoundTool
from halo_sdk.types import Outcome

_ANNOTATIONS: Mapping[str, Any] = {
    "boolean": bool,
    "number": int | float,
    "object": dict[str, object],  # `Any` cannot be checked
    "string": str,
}


def tools(bound: Sequence[BoundTool]) -> list[Callable[..., Any]]:
    """Return one function a function, of the colour of the memory."""
    return [_function(each) for each in bound]


def _function(bound: BoundTool) -> Callable[..., Any]:
    answer = bound.answer

    async def call_async(**arguments: Any) -> Any:
        return _told(await bound.answer_async(arguments, None))

    function: Any = call_async if answer is None else lambda **arguments: _told(answer(arguments, None))
    function.__name__ = bound.declaration.name
    function.__doc__ = bound.declaration.description
    function.__signature__ = inspect.Signature(_parameters(bound.declaration.parameters))
    function.__annotations__ = {
        name: parameter.annotation for name, parameter in function.__signature__.parameters.items()
    }
    return function  # type: ignore[no-any-return]


def _told(outcome: Outcome) -> Any:
    """Return what the model is told. An exception's words would be told between others of the SDK's."""
    return outcome.body if outcome.ok else {"error": outcome.body}


def _parameters(schema: Mapping[str, Any]) -> list[inspect.Parameter]:
    required = schema.get("required", [])
    named = {name: _annotation(each) for name, each in schema["properties"].items()}
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kind if name in required else kind | None,
            default=inspect.Parameter.empty if name in required else None,
        )
        for name, kind in named.items()
    ]


def _annotation(schema: Mapping[str, Any]) -> Any:
    kinds = [each.get("type") for each in (schema, *schema.get("anyOf", []))]
    return next(_ANNOTATIONS[kind] for kind in kinds if kind in _ANNOTATIONS)
