"""The whole loop with every provider's official client: waiting and awaited, streamed and not, one call and several."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import halo_server
from halo_sdk import AsyncHalo, Halo
from halo_server.config import Settings
from tests.compat.conftest import PREFERENCE, PROJECT, SECRET
from tests.compat.stub import Json, Stub
from tests.compat.wires import SIGNATURE, THOUGHT, WIRES, Wire
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

wires = pytest.mark.parametrize("wire", WIRES, ids=[wire.dialect for wire in WIRES])
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
several = pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)


def script(stub: Stub, wire: Wire, calls: list[Call], *, stream: bool) -> None:
    """Let the model call, then answer."""
    replies = [wire.calls(calls), wire.answer(ANSWER)]
    stub.replies.extend(wire.streamed(reply) if stream else reply for reply in replies)


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
    client = wire.client(stub.url, awaited=False)
    history: list[Any] = [wire.opening(QUESTION)]
    while True:
        reply = wire.ask(client, history, memory.tools(wire.dialect), stream=stream)
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
