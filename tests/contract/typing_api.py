"""The types promised to users. Checked by mypy, never run: a change that breaks a user's annotations breaks this file."""

from concurrent.futures import Future
from typing import Any, assert_type

import httpx

from halo_sdk import (
    AsyncHalo,
    AsyncMemory,
    CaptureResult,
    Fault,
    FunctionResponse,
    Halo,
    HaloError,
    HaloStatusError,
    Memory,
    Outcome,
    RawEntry,
    Reply,
    RetrieveResult,
    ToolCall,
    ToolResults,
    Topic,
    lint,
    lint_history,
)


def a_client_is_configured_by_name(http_client: httpx.Client) -> None:
    assert_type(Halo(), Halo)
    with Halo("key", project_key="p", base_url="https://memory.example", timeout=3, max_retries=0) as client:
        assert_type(client, Halo)
        assert_type(client.for_user("u"), Memory)
    Halo(http_client=http_client, default_headers={"X-App": "a"}, on_error="raise", max_result_chars=9_000)


def the_loop_of_a_model_and_its_memory(memory: Memory, reply: object, messages: list[dict[str, Any]]) -> None:
    assert_type(memory.tools("openai"), list[Any])
    results = memory.handle(reply, session=messages)
    assert_type(results, ToolResults)
    for call in results.pending:
        assert_type(call, ToolCall)
        results.add(call, {"any": "thing"}, is_error=False)
    assert_type(results.outcomes, tuple[Outcome, ...])
    assert_type(results.problem, str | None)
    assert_type(results.complete, bool)
    messages += results


def the_verbs(memory: Memory) -> None:
    found = memory.retrieve([{"role": "user", "content": "hi"}], "tea", limit=5)
    assert_type(found, RetrieveResult)
    assert_type(found.selected_topic_keys, tuple[str, ...])
    assert_type(found.topics, tuple[Topic, ...])
    assert_type(found.raw_entries, tuple[RawEntry, ...])
    assert_type(found.function_response, FunctionResponse)
    assert_type(found.function_response.to_json(), str)
    assert_type(found.request_id, str | None)
    assert_type(memory.call("halo_retrieve_end_user_memory", "{}"), RetrieveResult)
    assert_type(memory.call("halo_capture_end_user_memory", {}, session="hi"), CaptureResult)
    assert_type(memory.capture("hi", "hello", idempotency_key="k"), CaptureResult)
    assert_type(memory.capture_later("hi", occurred_at="2026-01-01T00:00:00Z"), Future[CaptureResult])
    assert_type(memory.with_options(timeout=2, on_error="raise"), Memory)
    assert_type(memory.accumulator("openai").feed({}).turn, list[dict[str, Any]])
    assert_type(found.reply, Reply | None)


def the_client(client: Halo) -> None:
    assert_type(client.with_options(max_retries=0), Halo)
    assert_type(client.flush(timeout=1), tuple[HaloError, ...])


def faults(tool: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    assert_type(lint(tool, "openai"), list[Fault])
    assert_type(lint_history(messages, "openai"), list[Fault])


async def the_same_awaited(http_client: httpx.AsyncClient) -> None:
    async with AsyncHalo("key", project_key="p", http_client=http_client) as client:
        memory = client.for_user("u", tools=["retrieve"], session="app", max_calls_per_turn=2)
        assert_type(memory, AsyncMemory)
        assert_type(memory.tools("openai", strict=True), list[Any])
        assert_type(await memory.handle({}), ToolResults)
        assert_type(await memory.retrieve("hi"), RetrieveResult)
        assert_type(await memory.capture("hi"), CaptureResult)
        assert_type(await (await memory.capture_later("hi")), CaptureResult)
        assert_type(client.with_options(timeout=1), AsyncHalo)
        assert_type(await client.flush(), tuple[HaloError, ...])
        assert_type(await memory.call("halo_retrieve_end_user_memory", {}), RetrieveResult)
        assert_type(await memory.call("halo_capture_end_user_memory", {}), CaptureResult)


def what_failed(error: HaloError) -> str | None:
    if isinstance(error, HaloStatusError):
        assert_type(error.status_code, int)
        assert_type(error.code, str | None)
        return error.request_id
    return None
