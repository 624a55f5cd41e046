"""The whole loop with every provider's official client: waiting and awaited, streamed and not, one call and several."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import halo_server
from halo_sdk import AsyncHalo, Halo, Memory
from halo_server.config import Settings
from tests.compat.conftest import PREFERENCE, PROJECT, SECRET
from tests.compat.stub import Json, Stub
from tests.compat.wires import (
    SIGNATURE,
    THOUGHT,
    WIRES,
    Anthropic,
    Interactions,
    OpenAIChat,
    Responses,
    Wire,
)
from tests.sdk.fakes import RETRIEVE
from tests.sdk.replies import Call

pytestmark = [pytest.mark.providers]

QUESTION = "What format do I prefer for weekly reports?"
ANSWER = "You like them short, on grey paper."
ARGUMENTS = {
    "sessionData": {"messages": [{"role": "user", "content": "invented"}], "endUserKey": "victim"},
    "query": "weekly reports",
    "limit": 5,
    "endUserKey": "victim",
    "projectKey": "other",
}
CALLS = {
    "one": [Call("call_1", RETRIEVE, ARGUMENTS)],
    "parallel": [
        Call("call_1", "weather", {"city": "Oslo"}),
        Call("call_2", RETRIEVE, ARGUMENTS),
        Call("call_3", "halo_retrieve_end_user_memories", {}),
    ],
}
RAIN = "rain in Oslo"
NO_JSON = "{'query': weekly reports}"

wires = pytest.mark.parametrize("wire", WIRES, ids=[wire.dialect for wire in WIRES])
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
several = pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)


def script(stub: Stub, wire: Wire, calls: list[Call], *, stream: bool) -> None:
    """Let the model call, then answer. Argument text is written as it is, be it JSON or not."""
    made = json.dumps(wire.calls(calls)).replace(json.dumps(json.dumps(NO_JSON)), json.dumps(NO_JSON))
    replies = [json.loads(made), wire.answer(ANSWER)]
    stub.replies.extend(wire.streamed(reply) if stream else reply for reply in replies)


def converse(
    memory: Memory, wire: Wire, tools: list[Any], ask: Callable[[list[Any], list[Any]], Any], *, stream: bool
) -> None:
    """Be an application until the model has answered, and capture the exchange."""
    history: list[Any] = [wire.opening(QUESTION)]
    while True:
        reply = ask(history, tools)
        if stream:
            accumulator = memory.accumulator(wire.dialect)
            for chunk in reply:
                accumulator.feed(chunk)
            reply, turn = accumulator, accumulator.turn
        else:
            turn = wire.turn(reply)
        history += turn
        results = memory.handle(reply, session=history)
        for call in results.pending:
            results.add(call, RAIN)
        if not results:
            break
        history += results
    memory.capture(history)


def private(value: Any) -> Iterator[Json]:
    """Yield what a provider wants back as it was: the objects that hold a thought or a signature."""
    if isinstance(value, dict) and {THOUGHT, SIGNATURE} & {
        part for part in value.values() if isinstance(part, str)
    }:
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from private(part)


def check_requests(stub: Stub, wire: Wire, tools: list[Any], calls: list[Call]) -> None:
    """Check what the provider was sent."""
    asked, answered = stub.bodies
    assert wire.tools(asked) == tools
    results = wire.results(answered)
    assert [id_ for id_, _ in results] == [call.id for call in calls]
    said = {call.name: json.dumps(content) for call, (_, content) in zip(calls, results, strict=True)}
    assert "weekly reports short" in said[RETRIEVE]
    if len(calls) > 1:
        assert RAIN in said["weather"]
        assert "no such function" in said["halo_retrieve_end_user_memories"]
    assert "canary" not in json.dumps(stub.bodies)
    assert list(private(answered)) == list(private(wire.calls(calls)))
    if wire.dialect != "openai":  # its models keep their thoughts to themselves
        assert SIGNATURE in wire.echoed(answered)
        assert THOUGHT in wire.echoed(answered)


def check_memory(entries: list[Json]) -> None:
    """Check what became of the conversation."""
    stored = next(entry for entry in entries if QUESTION in json.dumps(entry))
    assert ANSWER in json.dumps(stored["responseRaw"])
    for secret in (THOUGHT, SIGNATURE, PREFERENCE, "invented", RETRIEVE):
        assert secret not in json.dumps(stored)


@wires
@streams
@several
def test_a_program_that_waits(stub, server, wire, calls, stream):
    memory = Halo(http_client=server).for_user("user_123")
    script(stub, wire, calls, stream=stream)
    client, tools = wire.client(stub.url, awaited=False), memory.tools(wire.dialect)
    converse(memory, wire, tools, lambda *asked: wire.ask(client, *asked, stream=stream), stream=stream)
    wire.close(client)
    check_requests(stub, wire, memory.tools(wire.dialect), calls)
    check_memory([entry.to_dict() for entry in memory.retrieve(query=QUESTION).raw_entries])


@wires
@streams
@several
def test_a_program_that_awaits(stub, tmp_path, wire, calls, stream):
    asyncio.run(_awaited(stub, tmp_path, wire, calls, stream=stream))


async def _awaited(stub: Stub, directory: Path, wire: Wire, calls: list[Call], *, stream: bool) -> None:
    settings = Settings(embedder="hashing")
    async with halo_server.embedded_async(directory, project=PROJECT, settings=settings) as server:
        halo = AsyncHalo(http_client=server)
        await halo.for_user("victim").capture(SECRET, "Noted.")
        memory = halo.for_user("user_123")
        await memory.capture(PREFERENCE, "I will keep them concise.")
        script(stub, wire, calls, stream=stream)
        client = wire.client(stub.url, awaited=True)
        history: list[Any] = [wire.opening(QUESTION)]
        while True:
            reply = await wire.ask(client, history, memory.tools(wire.dialect), stream=stream)
            if stream:
                accumulator = memory.accumulator(wire.dialect)
                async for chunk in reply:
                    accumulator.feed(chunk)
                reply, turn = accumulator, accumulator.turn
            else:
                turn = wire.turn(reply)
            history += turn
            results = await memory.handle(reply, session=history)
            for call in results.pending:
                results.add(call, RAIN)
            if not results:
                break
            history += results
        await memory.capture(history)
        await wire.close(client)
        check_requests(stub, wire, memory.tools(wire.dialect), calls)
        found = await memory.retrieve(query=QUESTION)
        check_memory([entry.to_dict() for entry in found.raw_entries])


@pytest.mark.parametrize(
    ("wire", "stream"),
    [
        (OpenAIChat(), False),
        (OpenAIChat(), True),
        (Responses(), False),
        (Responses(), True),
        (Anthropic(), True),
        (Interactions(), True),
    ],
    ids=lambda value: value.dialect if isinstance(value, Wire) else "streamed" if value else "whole",
)
def test_arguments_that_are_no_json_fail_alone_wherever_arguments_are_text(stub, server, wire, stream):
    memory = Halo(http_client=server).for_user("user_123")
    script(
        stub, wire, [Call("call_1", RETRIEVE, NO_JSON), Call("call_2", RETRIEVE, ARGUMENTS)], stream=stream
    )
    client, tools = wire.client(stub.url, awaited=False), memory.tools(wire.dialect)
    converse(memory, wire, tools, lambda *asked: wire.ask(client, *asked, stream=stream), stream=stream)
    wire.close(client)
    (_, failed), (_, found) = results = wire.results(stub.bodies[1])
    assert [id_ for id_, _ in results] == ["call_1", "call_2"]
    assert "not valid JSON" in json.dumps(failed)
    assert "weekly reports short" in json.dumps(found)
    check_memory([entry.to_dict() for entry in memory.retrieve(query=QUESTION).raw_entries])


def _chat_parsed(client: Any, history: list[Any], tools: list[Any]) -> Any:
    return client.chat.completions.parse(model="m", messages=history, tools=tools)


def _chat_streamed(client: Any, history: list[Any], tools: list[Any]) -> Any:
    with client.chat.completions.stream(model="m", messages=history, tools=tools) as events:
        return events.get_final_completion()


def _responses_parsed(client: Any, history: list[Any], tools: list[Any]) -> Any:
    return client.responses.parse(model="m", input=history, tools=tools, store=False)


def _responses_streamed(client: Any, history: list[Any], tools: list[Any]) -> Any:
    with client.responses.stream(model="m", input=history, tools=tools, store=False) as events:
        return events.get_final_response()


@pytest.mark.parametrize(
    ("wire", "ask", "stream"),
    [
        (OpenAIChat(), _chat_parsed, False),
        (OpenAIChat(), _chat_streamed, True),
        (Responses(), _responses_parsed, False),
        (Responses(), _responses_streamed, True),
    ],
    ids=["chat-parse", "chat-stream", "responses-parse", "responses-stream"],
)
def test_the_helpers_of_openai_that_parse_take_strict_declarations_and_their_replies_go_on(
    stub, server, wire, ask, stream
):
    memory = Halo(http_client=server).for_user("user_123", session="app")
    calls = [Call("call_1", RETRIEVE, {"query": "weekly reports", "limit": None})]
    script(stub, wire, calls, stream=stream)
    client, tools = wire.client(stub.url, awaited=False), memory.tools(wire.dialect, strict=True)
    converse(memory, wire, tools, lambda *asked: ask(client, *asked), stream=False)
    wire.close(client)
    check_requests(stub, wire, tools, calls)
    check_memory([entry.to_dict() for entry in memory.retrieve(query=QUESTION).raw_entries])
