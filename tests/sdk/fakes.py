"""Time that passes only when told, replies of providers and of the service, and a function of a test's own."""

import json
from typing import Any, ClassVar

import httpx
import respx

from halo_sdk import AsyncHalo, AsyncMemory
from halo_sdk.functions.base import Function, SessionSource
from halo_sdk.types import Effects, Reply, Value

BASE = "http://127.0.0.1:8765"
FUNCTION_URL = f"{BASE}/api/v1/memory/functions/halo_retrieve_end_user_memory"
CAPTURE_URL = f"{BASE}/api/v1/memory/capture"
RETRIEVE = "halo_retrieve_end_user_memory"
KEY = "halo_key_that_must_never_be_shown"

FOUND = {
    "requestId": "req_1",
    "name": RETRIEVE,
    "projectKey": "customer-product",
    "endUserKey": "user_123",
    "selectedTopicKeys": ["report_preferences"],
    "selectionReason": "The user is asking about report format.",
    "overallSummary": "The user prefers concise weekly reports.",
    "topics": [{"topicId": "t1", "topicKey": "report_preferences", "confidence": 0.9, "rawCount": 1}],
    "rawEntries": [{"id": "raw_1"}],
    "functionResponse": {
        "requestId": "req_1",
        "note": "untrusted notes",
        "overallSummary": "The user prefers concise weekly reports.",
        "rawEntries": [{"id": "raw_1", "topic": {"topicKey": "report_preferences"}, "score": 0.5}],
    },
}
RECEIPT = {
    "captured": True,
    "requestId": "req_2",
    "rawEntryId": "raw_2",
    "topicKeys": ["a"],
    "index": "ready",
}


class Count(Function):
    """A function of a test's own: all that a new one needs."""

    key: ClassVar[str] = "count"
    name: ClassVar[str] = "halo_count_end_user_memory"
    description: ClassVar[str] = "Count what is remembered."
    effects: ClassVar[Effects] = Effects(read_only=True)

    def parameters(self, session: SessionSource) -> dict[str, Any]:
        return {"type": "object", "properties": {"since": {"type": "string", "description": "A date."}}}

    def result(self, reply: Reply) -> Value:
        return Value.model_validate_json(reply.body)


class Time:
    """A clock that moves when somebody sleeps, and remembers how long they did."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def async_sleep(self, seconds: float) -> None:
        self.sleep(seconds)


def with_time(client: Any, time: Time) -> Any:
    """Return the client, told the time by a test."""
    for name, value in {
        "clock": time.clock,
        "sleep": time.sleep,
        "async_sleep": time.async_sleep,
        "chance": lambda: 1.0,
    }.items():
        object.__setattr__(client._transport.policy, name, value)
    return client


def async_memory(time: Time, **options: Any) -> tuple[AsyncHalo, AsyncMemory]:
    client = with_time(AsyncHalo(KEY, project_key="customer-product", **options), time)
    return client, client.for_user("user_123")


def sent(route: respx.Route, index: int = -1) -> dict[str, Any]:
    """Return the JSON body of a request the service received."""
    return json.loads(route.calls[index].request.content)


def openai_reply(*calls: tuple[str, Any], finish: str = "tool_calls", **message: Any) -> dict[str, Any]:
    """Return a chat completion that makes these calls, arguments exactly as given."""
    tool_calls = [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(calls)
    ]
    body = {"role": "assistant", "content": None, **({"tool_calls": tool_calls} if calls else {}), **message}
    return {"id": "chatcmpl_1", "choices": [{"index": 0, "message": body, "finish_reason": finish}]}


def gemini_reply(*calls: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    content = {"role": "model", "parts": [{"functionCall": call} for call in calls]}
    return {"candidates": [{"content": content, "finishReason": finish}]}


def contents(results: list[dict[str, Any]]) -> list[Any]:
    """Return what OpenAI results say, decoded."""
    return [json.loads(result["content"]) for result in results]


def json_response(status: int, body: Any = None, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)
