"""The client that waits and the one that is awaited are one client in two colours."""

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import httpx
import pytest

from halo_sdk import AsyncHalo, AsyncMemory, EmptyAnswerError, Halo, HaloError, Memory
from tests.sdk.fakes import FOUND, RETRIEVE, Time, async_memory, contents, gemini_reply, openai_reply

COLOURS = {"close": "aclose", "__enter__": "__aenter__", "__exit__": "__aexit__"}


def surface(kind: type) -> dict[str, list[Any]]:
    """Return name -> parameters of everything a user may call or read."""
    found = {}
    for name, value in inspect.getmembers(kind):
        if name.startswith("_") and name not in {*COLOURS, *COLOURS.values(), "__init__", "__repr__"}:
            continue
        if callable(value):
            found[name] = [
                (each.name, each.kind, each.default) for each in inspect.signature(value).parameters.values()
            ]
        else:
            found[name] = ["property"]
    return found


@pytest.mark.parametrize(("waiting", "awaited"), [(Halo, AsyncHalo), (Memory, AsyncMemory)])
def test_both_colours_offer_the_same_names_with_the_same_parameters(waiting, awaited):
    expected = {COLOURS.get(name, name): value for name, value in surface(waiting).items()}
    assert surface(awaited) == expected


HISTORY = [{"role": "user", "content": "What do I drink?"}]
VERBS: dict[str, Callable[[Any], Any]] = {
    "retrieve": lambda memory: memory.retrieve(HISTORY, "tea", limit=3),
    "capture": lambda memory: memory.capture(HISTORY, "Tea.", idempotency_key="k"),
    "an empty answer": lambda memory: memory.capture(HISTORY, ""),
    "capture later": lambda memory: memory.capture_later(HISTORY, "Tea.", idempotency_key="k"),
    "call": lambda memory: memory.call(RETRIEVE, {"query": "tea"}, session=HISTORY),
    "a call of nothing": lambda memory: memory.call("halo_nothing", {}),
    "handle": lambda memory: memory.handle(
        openai_reply((RETRIEVE, "{}"), (RETRIEVE, "[]"), ("weather", "{}"), (RETRIEVE, '{"limit":2}')),
        session=HISTORY,
    ),
    "handle without a dialect": lambda memory: memory.handle({}),
    "handle another dialect": lambda memory: memory.handle(gemini_reply({"name": RETRIEVE, "args": {}})),
    "other options": lambda memory: memory.with_options(on_error="raise", max_retries=0).handle(
        openai_reply((RETRIEVE, "{}"))
    ),
    "tools": lambda memory: memory.tools("openai"),
    "repr": lambda memory: repr(memory).removeprefix("Async"),
}
SERVICES = {
    "a good one": [httpx.Response(200, json=FOUND)],
    "one that fails once": [httpx.Response(503), httpx.Response(200, json=FOUND)],
    "one that is out of reach": [httpx.ConnectError("refused")],
    "one that refuses": [httpx.Response(404, json={"error": "no", "code": "PROJECT_NOT_FOUND"})],
    "one that does not know the key": [httpx.Response(403, json={"error": "no"})],
}


def said(value: Any) -> Any:
    """Return a result in a form that can be compared."""
    return value.to_dict() if hasattr(value, "to_dict") else value


def answers(service: Any, replies: list[Any]) -> None:
    """Make the service give these replies, the last one again and again."""
    for route in ("function", "capture"):
        left = list(replies)

        def reply(request: httpx.Request, left: list[Any] = left) -> httpx.Response:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)

        service[route].mock(side_effect=reply)


def asked(service: Any) -> list[tuple[str, bytes]]:
    """Return what the service was asked, in order."""
    return [(call.request.url.path, call.request.content) for call in service.calls]


@pytest.mark.parametrize("replies", SERVICES.values(), ids=SERVICES)
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_both_colours_ask_the_same_and_answer_the_same(service, make, verb, replies):
    def wait() -> Any:
        with make() as halo:
            result = verb(halo.for_user("user_123"))
            return result.result(30) if isinstance(result, Future) else result

    def await_() -> Any:
        async def run() -> Any:
            client, memory = async_memory(Time())
            async with client:
                result = verb(memory)
                while inspect.isawaitable(result):
                    result = await result
            return result

        return asyncio.run(run())

    outcomes = []
    for colour in (wait, await_):
        before = len(service.calls)
        answers(service, replies)
        try:
            outcome = said(colour())
        except HaloError as error:
            outcome = (type(error), str(error))
        outcomes.append((outcome, sorted(asked(service)[before:])))
    assert outcomes[0] == outcomes[1]


def test_the_comparison_sees_results_and_errors(service, memory):
    assert contents(VERBS["handle"](memory))[0] == FOUND["functionResponse"]
    with pytest.raises(EmptyAnswerError):
        VERBS["an empty answer"](memory)
