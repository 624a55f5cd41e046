"""OpenAI Responses.

Source:
    https://platform.openai.com/docs/api-reference/responses (read in `openai` 3.57): tools are flat, a conversation is a list of
    items, a call is answered by an item that repeats its `call_id` (never its `id`), and without stored state the whole output is
    sent back, reasoning included. `strict` left out means strict, which would close `sessionData`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import dumps
from halo_sdk.dialects.base import (
    Accumulator,
    Answered,
    Called,
    Dialect,
    ModelReply,
    Part,
    Settled,
    declaration,
    from_user,
    id_of,
    mapping,
    mappings,
    tool_call,
    without,
)
from halo_sdk.types import Declaration, Outcome

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Type of an item that calls -> the field that holds what is passed."""

_UNFINISHED = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


class OpenAIResponses(Dialect):
    """Items."""

    name: ClassVar[str] = "openai-responses"

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:
        """Return one flat tool a declaration; `strict` is always said."""
        return [{"type": "function", **each.to_dict(), "strict": strict} for each in declarations]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read a function. Those of a namespace are tools of their own."""
        function = tool.get("type") == "function"
        return [declaration(tool, "parameters", strict=tool.get("strict"))] if function else []

    def recognises(self, reply: object) -> bool:
        """Tell by what the object says it is."""
        return mapping(reply).get("object") == "response"

    def read(self, reply: object) -> ModelReply:
        """Read the items; the status is believed when it says that the output was cut or failed."""
        fields = mapping(reply)
        items = [
            {**item, "call_id": id_of(item.get("call_id"), fields, index)} if _kind(item) in _CALLS else item
            for index, item in enumerate(mappings(fields.get("output")))
        ]
        calls = [item for item in items if _kind(item) in _CALLS]
        return ModelReply(
            calls=tuple(_read_call(item, index) for index, item in enumerate(calls)),
            turn=tuple(_echo(item) for item in items),
            problem=_problem(fields, calls),
        )

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one item a call. The format has no error flag, so the output says it."""
        return [_result(outcome) for outcome in outcomes]

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read an item."""
        kind = _kind(value)
        if kind == "mcp_call":  # of a server the service calls itself, which may be ours
            return Settled(value.get("name"))
        if kind in _CALLS and "call_id" in value:
            return Called(value.get("name"), value["call_id"])
        answers = kind.endswith("_call_output") and kind.removesuffix("_output") in _CALLS
        return Answered(value.get("name"), value.get("call_id")) if answers else None

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role, or by an item only a model produces."""
        by_model = _kind(message) == "reasoning" or (_kind(message) in _CALLS and "call_id" in message)
        return message.get("role") == "assistant" or by_model

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `user`."""
        return from_user(message)

    def accumulator(self) -> Accumulator:
        """Return what puts a stream of response events together."""
        return _Stream(self)


def _kind(item: Mapping[str, Any]) -> str:
    return str(item.get("type"))


def _read_call(item: Mapping[str, Any], index: int) -> Any:
    kind = _kind(item)
    spelled = "function" if kind == "function_call" else kind
    return tool_call(item.get("name"), item.get(_CALLS[kind]), item["call_id"], index, spelled)


def _echo(item: Mapping[str, Any]) -> dict[str, Any]:
    echo = without(item, "parsed_arguments")
    if isinstance(echo.get("content"), list):
        echo["content"] = [
            without(part, "parsed") if isinstance(part, dict) else part for part in echo["content"]
        ]
    return echo


def _problem(fields: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the most telling word. A call that says itself that it was cut is believed whatever the reply says."""
    reason = mapping(fields.get("incomplete_details")).get("reason")
    if reason == "max_output_tokens" or any(call.get("status") == "incomplete" for call in calls):
        return "truncated"
    status = fields.get("status")
    if not isinstance(status, str) or status == "completed":
        return None
    return str(reason or mapping(fields.get("error")).get("code") or status)


def _result(outcome: Outcome) -> dict[str, Any]:
    said = outcome.body if outcome.ok else {"error": outcome.body}
    kind = "function_call" if outcome.call.kind == "function" else outcome.call.kind
    return {
        "type": f"{kind}_output",
        "call_id": outcome.call.id,
        "output": said if isinstance(said, str) else dumps(said),
    }


class _Stream(Accumulator):
    """Complete items only: what is added first may still lack its name, its id or its secrets."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._items: dict[int, dict[str, Any]] = {}
        self._open: set[int] = set()
        self._response: dict[str, Any] = {"object": "response"}
        self._ended = False

    @property
    def reply(self) -> dict[str, Any]:
        """The response so far; one whose stream broke off, or that lost an item on the way, is incomplete."""
        said = mappings(self._response.get("output"))
        reply = {**self._response, "output": said or [self._items[index] for index in sorted(self._items)]}
        lost = self._open and not said and reply.get("status") == "completed"
        return {**reply, **_UNFINISHED} if lost or not self._ended else reply

    def _take(self, chunk: Mapping[str, Any]) -> None:
        given = chunk.get("output_index")
        index = given if isinstance(given, int) else len(self._items)
        match _kind(chunk):
            case "response.output_item.added":
                self._open.add(index)
            case "response.output_item.done":
                self._items[index] = dict(mapping(chunk.get("item")))
                self._open.discard(index)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._response = {**mapping(chunk.get("response")), "object": "response"}
                self._ended = True
            case "error":  # some services nest what went wrong
                error = mapping(chunk.get("error")) or chunk
                self._response |= {"status": "failed", "error": {"code": error.get("code")}}
                self._ended = True
