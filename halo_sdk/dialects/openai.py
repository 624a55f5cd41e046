"""OpenAI Chat Completions, and the many services that speak it.

Source:
    https://platform.openai.com/docs/api-reference/chat (read in `openai` 3.57): tools are `{"type": "function", "function": …}`,
    arguments are JSON text, each call is answered by one message of role `tool` that repeats its id.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import dumps
from halo_sdk.dialects.base import (
    Answered,
    Called,
    Dialect,
    ModelReply,
    declaration,
    either,
    from_user,
    made_id,
    mapping,
    mappings,
    tool_call,
)
from halo_sdk.types import Declaration, Outcome, ToolCall

_KINDS = frozenset({"function", "custom"})


class OpenAI(Dialect):
    """Chat Completions."""

    name: ClassVar[str] = "openai"
    fields: ClassVar[tuple[str, ...]] = ("tool_calls", "function_call")

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:
        """Return one tool a declaration. `strict` is always said: its absence means different things in different places."""
        return [
            {"type": "function", "function": {**each.to_dict(), "strict": strict}} for each in declarations
        ]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read what is under `function`."""
        function = mapping(tool.get("function"))
        return [declaration(function, "parameters", strict=function.get("strict"))] if function else []

    def recognises(self, reply: object) -> bool:
        """Tell by `choices`, or by a bare assistant message."""
        fields = mapping(reply)
        # A `type` beside the role, or in a block a call, is another provider's message.
        return "choices" in fields or (
            fields.get("role") == "assistant"
            and "type" not in fields
            and all(block.get("type") != "tool_use" for block in mappings(fields.get("content")))
        )

    def read(self, reply: object) -> ModelReply:
        """Read the first choice only; a finish reason is believed when it says the output was cut."""
        fields = mapping(reply)
        if "choices" not in fields:
            return _read_message(fields, fields)
        choices = mappings(fields["choices"])
        if not choices:
            return ModelReply(problem="empty_choices")
        return _read_message(
            mapping(choices[0].get("message")),
            fields,
            problem="truncated" if choices[0].get("finish_reason") == "length" else None,
            ignored_calls=sum(len(_calls(mapping(each.get("message")))) for each in choices[1:]),
        )

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one message a call. The format has no error flag, so the content says it."""
        return [_result(outcome) for outcome in outcomes]

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `assistant`."""
        return message.get("role") == "assistant"

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `user`."""
        return from_user(message)

    def part(self, value: Mapping[str, Any]) -> Called | Answered | None:
        """Read a message of role `tool`, or a call. Some services pair the two by name and know no ids."""
        if value.get("role") in {"tool", "function"}:
            named = either(value, "name", "tool_name")
            call_id = value.get("tool_call_id")
            return Answered(named, call_id) if named is not None or call_id is not None else None
        is_call = not _KINDS.isdisjoint(value) or {"name", "arguments"} <= value.keys()
        return (
            Called(_name(value), value.get("id"))
            if is_call and value.get("type", "function") in _KINDS
            else None
        )


def _read_message(
    message: Mapping[str, Any], reply: Mapping[str, Any], problem: str | None = None, ignored_calls: int = 0
) -> ModelReply:
    raw_calls = [
        call
        if call is message.get("function_call")
        else {**call, "id": call.get("id") or made_id(reply, index)}
        for index, call in enumerate(_calls(message))
    ]
    turn = {"role": "assistant", **message}
    if mappings(message.get("tool_calls")):
        turn["tool_calls"] = raw_calls
    calls = tuple(_read_call(call, index) for index, call in enumerate(raw_calls))
    return ModelReply(calls, (turn,) if message else (), problem, ignored_calls)


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message, or the one call of the days before there were several."""
    legacy = message.get("function_call")
    return mappings(message.get("tool_calls")) or ([legacy] if isinstance(legacy, dict) else [])


def _read_call(call: Mapping[str, Any], index: int) -> ToolCall:
    spelled = mapping(call.get("function") or call.get("custom")) or call
    return tool_call(_name(call), either(spelled, "arguments", "input"), call.get("id"), index)


def _name(call: Mapping[str, Any]) -> object:
    return (mapping(call.get("function") or call.get("custom")) or call).get("name")


def _result(outcome: Outcome) -> dict[str, Any]:
    """Return a message of role `tool`, or of role `function` for a call of the days before calls had ids."""
    content = outcome.body if outcome.ok else {"error": outcome.body}
    text = content if isinstance(content, str) else dumps(content)
    if outcome.call.id is None:
        return {"role": "function", "name": outcome.call.name, "content": text}
    return {"role": "tool", "tool_call_id": outcome.call.id, "content": text}
