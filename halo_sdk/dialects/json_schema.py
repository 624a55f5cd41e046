"""No provider: neutral declarations, calls and results, for models that are driven by hand.

Source:
    The declaration HALO publishes. A call is `{"name", "arguments", "id"?}`, or a list of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk.dialects.base import (
    Answered,
    Called,
    Dialect,
    ModelReply,
    Part,
    declaration,
    mappings,
    tool_call,
)
from halo_sdk.types import Declaration, Outcome


class JsonSchema(Dialect):
    """Neutral JSON."""

    name: ClassVar[str] = "json-schema"

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return name, description and parameters of each."""
        return [each.to_dict() for each in declarations]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read name, description and parameters."""
        return [declaration(tool, "parameters")]

    def recognises(self, reply: object) -> bool:
        """Tell by a name beside arguments, alone or in a list."""
        calls = _calls(reply)
        return bool(calls) and all(
            isinstance(call.get("name"), str) and "arguments" in call for call in calls
        )

    def read(self, reply: object) -> ModelReply:
        """Read one call, or a list of them."""
        return ModelReply(
            calls=tuple(
                tool_call(call.get("name"), call.get("arguments"), call.get("id"), index)
                for index, call in enumerate(_calls(reply))
            )
        )

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one `{"name", "output" | "error"}` a call, with the id of a call that had one."""
        return [_result(outcome) for outcome in outcomes]

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read what `read` and `write` know; anything with a role or a type is another's."""
        if "role" in value or "type" in value or "name" not in value:
            return None
        if "arguments" in value:
            return Called(value["name"], value.get("id"))
        answered = "output" in value or "error" in value
        return Answered(value["name"], value.get("id")) if answered else None


def _calls(reply: object) -> list[dict[str, Any]]:
    return mappings(reply if isinstance(reply, list) else [reply])


def _result(outcome: Outcome) -> dict[str, Any]:
    result = {"name": outcome.call.name, "output" if outcome.ok else "error": outcome.body}
    return result if outcome.call.id is None else {"id": outcome.call.id, **result}
