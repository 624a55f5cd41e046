"""Replies of every dialect that make the same calls, and what results of every dialect answer."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call a model makes: its id if it has one, and its arguments exactly as they arrive."""

    id: str | None
    name: str
    arguments: Any


def _text(arguments: Any) -> Any:
    return json.dumps(arguments) if isinstance(arguments, dict) else arguments


def _openai(calls: Sequence[Call]) -> Json:
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _text(call.arguments)},
        }
        for call in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


def _responses(calls: Sequence[Call]) -> Json:
    made = [
        {
            "type": "function_call",
            "id": f"fc_{at}",
            "call_id": call.id,
            "name": call.name,
            "arguments": _text(call.arguments),
            "status": "completed",
        }
        for at, call in enumerate(calls)
    ]
    return {"object": "response", "status": "completed", "output": made}


def _gemini(calls: Sequence[Call]) -> Json:
    made = [
        {
            "functionCall": {
                **({} if call.id is None else {"id": call.id}),
                "name": call.name,
                "args": call.arguments,
            }
        }
        for call in calls
    ]
    return {"candidates": [{"content": {"role": "model", "parts": made}, "finishReason": "STOP"}]}


def _interactions(calls: Sequence[Call]) -> Json:
    made = [
        {"type": "function_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in calls
    ]
    return {"id": "i", "status": "requires_action", "steps": made}


def _anthropic(calls: Sequence[Call]) -> Json:
    made = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]
    return {"type": "message", "role": "assistant", "content": made, "stop_reason": "tool_use"}


def _by_hand(calls: Sequence[Call]) -> Any:
    return [
        {**({} if call.id is None else {"id": call.id}), "name": call.name, "arguments": call.arguments}
        for call in calls
    ]


REPLY: dict[str, Callable[[Sequence[Call]], Any]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "gemini-interactions": _interactions,
    "json-schema": _by_hand,
    "openai": _openai,
    "openai-responses": _responses,
}
"""Dialect -> a reply that makes these calls. An MCP request carries one call, so that dialect is tried on its own."""


def answered(dialect: str, results: Sequence[Json]) -> list[tuple[str | None, Any, bool]]:
    """Return the id each result answers, what it says, and whether it says that the call worked."""
    if dialect in {"anthropic", "gemini"}:
        results = [part for message in results for part in (message.get("content") or message.get("parts"))]
    return [_ANSWER[dialect](result) for result in results]


def _said(text: str) -> tuple[Any, bool]:
    value = json.loads(text)
    failed = isinstance(value, dict) and set(value) == {"error"}
    return (value["error"], False) if failed else (value, True)


def _of_gemini(part: Json) -> tuple[str | None, Any, bool]:
    response = part["function_response"]
    ((key, said),) = response["response"].items()
    return response.get("id"), said, key == "output"


def _of_hand(result: Json) -> tuple[str | None, Any, bool]:
    return result.get("id"), result.get("output", result.get("error")), "output" in result


def _of_anthropic(block: Json) -> tuple[str | None, Any, bool]:
    return block["tool_use_id"], block["content"], not block.get("is_error")


def _of_interactions(step: Json) -> tuple[str | None, Any, bool]:
    return step["call_id"], step["result"], not step.get("is_error")


_ANSWER: dict[str, Callable[[Json], tuple[str | None, Any, bool]]] = {
    "anthropic": _of_anthropic,
    "gemini": _of_gemini,
    "gemini-interactions": _of_interactions,
    "json-schema": _of_hand,
    "openai": lambda message: (message["tool_call_id"], *_said(message["content"])),
    "openai-responses": lambda item: (item["call_id"], *_said(item["output"])),
}
