"""No provider: neutral declarations, calls and results, for models that are driven by hand.

Source:
    The declaration HALO publishes. A call is `{"name", "arguments", "id"?}`, or a list of them.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from halo_sdk.dialects.base import Dialect, ModelReply, mappings, tool_call
from halo_sdk.types import Outcome


class JsonSchema(Dialect):
    """Neutral JSON."""

    name: ClassVar[str] = "json-schema"

    def declare(self, declarations: Sequence[dict[str, Any]], *, strict: bool) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return the neutral declarations themselves."""
        return list(declarations)

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


def _calls(reply: object) -> list[dict[str, Any]]:
    return mappings(reply if isinstance(reply, list) else [reply])


def _result(outcome: Outcome) -> dict[str, Any]:
    result = {"name": outcome.call.name, "output" if outcome.ok else "error": outcome.body}
    return result if outcome.call.id is None else {"id": outcome.call.id, **result}
