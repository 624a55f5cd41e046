"""The Model Context Protocol, seen from a server: a call arrives as a request, its result is the answer.

Source:
    https://modelcontextprotocol.io/specification (2026-07-28, read in `mcp` 2.3): tools carry `inputSchema` and annotations;
    a result says the same as text and as structured content, and `isError` when the call failed. A request carries one call.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import dumps
from halo_sdk.dialects.base import (
    Dialect,
    ModelReply,
    Part,
    declaration,
    either,
    mapping,
    tool_call,
)
from halo_sdk.types import Declaration, Effects, Outcome

_CALL = "tools/call"


class Mcp(Dialect):
    """Tools of a server."""

    name: ClassVar[str] = "mcp"

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return one tool a declaration, with what calling it does."""
        return [
            {
                "name": each.name,
                "description": each.description,
                "inputSchema": each.parameters,
                **({"annotations": _annotations(each.effects)} if each.effects else {}),
            }
            for each in declarations
        ]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read name, description and schema."""
        schema = either(tool, "inputSchema", "input_schema")
        return [declaration({**tool, "inputSchema": schema}, "inputSchema")]

    def recognises(self, reply: object) -> bool:
        """Tell by the method of the request."""
        return mapping(reply).get("method") == _CALL

    def read(self, reply: object) -> ModelReply:
        """Read the one call of a request, or of its bare parameters."""
        fields = mapping(reply)
        params = mapping(fields.get("params")) if "params" in fields else fields
        if not isinstance(params.get("name"), str):
            return ModelReply()
        call_id = fields.get("id")
        known = str(call_id) if isinstance(call_id, str | int) and "params" in fields else None
        return ModelReply(calls=(tool_call(params["name"], params.get("arguments"), known, 0),))

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return the result of the call. Its envelope, and with it the id, is the protocol library's."""
        return [_result(outcome) for outcome in outcomes]

    def part(self, value: Mapping[str, Any]) -> Part | None:  # noqa: ARG002
        """Read nothing: a server sees calls, not conversations."""
        return None


def _annotations(effects: Effects) -> dict[str, bool]:
    return {
        "readOnlyHint": effects.read_only,
        "destructiveHint": effects.destructive,
        "idempotentHint": effects.idempotent,
        "openWorldHint": False,  # memory is a closed world
    }


def _result(outcome: Outcome) -> dict[str, Any]:
    said = outcome.body if outcome.ok else {"error": outcome.body}
    text = said if isinstance(said, str) else dumps(said)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": not outcome.ok}
    return {**result, "structuredContent": said} if isinstance(said, dict) and outcome.ok else result
