"""OpenAI Chat Completions, and the many services that speak it.

Source:
    https://platform.openai.com/docs/api-reference/chat (read in `openai` 3.57): tools are `{"type": "function", "function": …}`,
    arguments are JSON text, each call is answered by one message of role `tool` that repeats its id.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import dumps
from halo_sdk.dialects.base import Dialect, ModelReply, mapping, mappings, tool_call
from halo_sdk.functions import is_own
from halo_sdk.types import Outcome, ToolCall


class OpenAI(Dialect):
    """Chat Completions."""

    name: ClassVar[str] = "openai"

    def declare(self, declarations: Sequence[dict[str, Any]], *, strict: bool) -> list[dict[str, Any]]:
        """Return one tool a declaration. `strict` is always said: its absence means different things in different places."""
        return [{"type": "function", "function": {**each, "strict": strict}} for each in declarations]

    def recognises(self, reply: object) -> bool:
        """Tell by `choices`, or by a bare assistant message."""
        fields = mapping(reply)
        # A `type` beside the role is another provider's message.
        return "choices" in fields or (fields.get("role") == "assistant" and "type" not in fields)

    def read(self, reply: object) -> ModelReply:
        """Read the first choice only; a finish reason is believed when it says the output was cut."""
        fields = mapping(reply)
        if "choices" not in fields:
            return _read_message(fields, fields, None)
        choices = mappings(fields["choices"])
        if not choices:
            return ModelReply(problem="empty_choices")
        problem = "truncated" if choices[0].get("finish_reason") == "length" else None
        return _read_message(mapping(choices[0].get("message")), fields, problem)

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one message of role `tool` a call. The format has no error flag, so the content says it."""
        return [
            {"role": "tool", "tool_call_id": outcome.call.id, "content": _content(outcome)}
            for outcome in outcomes
        ]

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `assistant`."""
        return message.get("role") == "assistant"

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `user`."""
        return message.get("role") == "user" and "parts" not in message

    def own_calls(self, message: Mapping[str, Any]) -> int:
        """Count the tool calls with our prefix."""
        return sum(is_own(_name(call)) for call in mappings(message.get("tool_calls")))

    def without_own_calls(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Pair results with calls by id, reading forward: some services use an id again in a later turn."""
        ours: dict[Any, bool] = {}
        kept = []
        for message in messages:
            calls = mappings(message.get("tool_calls"))
            ours.update({call.get("id"): is_own(_name(call)) for call in calls})
            if any(is_own(_name(call)) for call in calls):
                kept += _with_calls(message, [call for call in calls if not is_own(_name(call))])
            elif not _is_own_or_orphan(message, ours):
                kept.append(message)
        return kept


def _read_message(message: Mapping[str, Any], reply: Mapping[str, Any], problem: str | None) -> ModelReply:
    raw_calls = [
        {**call, "id": call.get("id") or _made_id(reply, index)}
        for index, call in enumerate(mappings(message.get("tool_calls")))
    ]
    echo = {"role": "assistant", **message} if message else None
    if echo and raw_calls:
        echo["tool_calls"] = raw_calls
    calls = tuple(_read_call(call, index) for index, call in enumerate(raw_calls))
    return ModelReply(calls=calls, message=echo, problem=problem)


def _read_call(call: Mapping[str, Any], index: int) -> ToolCall:
    custom = mapping(call.get("custom"))
    function = mapping(call.get("function"))
    raw = custom.get("input") if custom else function.get("arguments")
    return tool_call(_name(call), raw, call["id"], index)


def _name(call: Mapping[str, Any]) -> object:
    return mapping(call.get("function") or call.get("custom")).get("name")


def _made_id(reply: Mapping[str, Any], index: int) -> str:
    """Return an id for a call that came without: the same for the echo and the result, and not empty."""
    return "call_" + hashlib.sha256(f"{index}:{dumps(reply)}".encode()).hexdigest()[:24]


def _content(outcome: Outcome) -> str:
    if not outcome.ok:
        return dumps({"error": outcome.body})
    return outcome.body if isinstance(outcome.body, str) else dumps(outcome.body)


def _with_calls(message: dict[str, Any], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the message with these calls only, or nothing when it then says nothing."""
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    if calls:
        return [{**rest, "tool_calls": calls}]
    return [rest] if any(value for key, value in rest.items() if key not in {"role", "name", "id"}) else []


def _is_own_or_orphan(message: Mapping[str, Any], ours: Mapping[Any, bool]) -> bool:
    if message.get("role") not in {"tool", "function"}:
        return False
    if "tool_call_id" not in message:
        return is_own(message.get("name"))
    return ours.get(message["tool_call_id"], True)
