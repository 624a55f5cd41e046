"""Captures nobody waits for."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import httpx
import pytest

from halo_sdk import (
    EmptyAnswerError,
    Halo,
    HaloConfigError,
    HaloConnectionError,
    HaloTimeoutError,
    ToolCallError,
    _background,
)
from tests.sdk.fakes import CAPTURE_URL, KEY, RECEIPT, async_memory, sent

USER = {"role": "user", "content": "I like tea."}
ANSWER = {"role": "assistant", "content": "Noted."}


class Gate:
    """A service that answers when it is told to."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.entered = threading.Event()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.entered.set()
        assert self.opened.wait(30)
        return httpx.Response(201, json=RECEIPT)


@pytest.fixture
def gate(service) -> Iterator[Gate]:
    made = Gate()
    service["capture"].mock(side_effect=made)
    yield made
    made.opened.set()


def test_a_later_capture_returns_before_the_service_answers(memory, gate):
    future = memory.capture_later([USER, ANSWER])
    assert gate.entered.wait(30)
    assert not future.done()
    gate.opened.set()
    assert future.result(30).raw_entry_id == "raw_2"


def test_what_is_stored_is_the_conversation_as_it_was(service, memory, gate):
    messages: list[Any] = [USER, ANSWER]
    future = memory.capture_later(messages)
    messages.append({"role": "user", "content": "something else"})
    gate.opened.set()
    future.result(30)
    assert sent(service["capture"])["sessionData"]["messages"] == [USER]


def test_later_captures_are_stored_in_the_order_they_were_made(service, make):
    with make() as halo:
        memory = halo.for_user("user_123")
        for number in range(20):
            memory.capture_later(f"message {number}", "yes")
    told = [json.loads(call.request.content) for call in service["capture"].calls]
    assert [body["sessionData"]["messages"][0]["content"] for body in told] == [
        f"message {number}" for number in range(20)
    ]


def test_what_is_no_exchange_is_refused_at_once(service, memory):
    with pytest.raises(EmptyAnswerError):
        memory.capture_later([USER], "")
    assert not service["capture"].called


def test_a_later_capture_that_fails_is_told_three_times(service, make, caplog):
    service["capture"].respond(403, json={"error": "no", "code": "FORBIDDEN"})
    halo = make()
    with caplog.at_level(logging.ERROR, "halo_sdk"):
        future = halo.for_user("user_123").capture_later([USER, ANSWER])
        (error,) = halo.flush(30)
    assert future.exception() is error
    assert "not stored: PermissionDeniedError" in caplog.text
    assert "tea" not in caplog.text
    assert halo.flush() == ()


def test_a_later_capture_that_ends_in_the_application_s_own_failure_is_told_too(service, make, caplog):
    service["capture"].mock(side_effect=ZeroDivisionError)
    halo = make()
    with caplog.at_level(logging.ERROR, "halo_sdk"):
        future = halo.for_user("user_123").capture_later([USER, ANSWER])
        assert isinstance(future.exception(30), ZeroDivisionError)
        halo.close()
    assert "not stored: ZeroDivisionError" in caplog.text


def test_a_full_queue_makes_the_application_wait_and_loses_nothing(service, make, gate, monkeypatch):
    monkeypatch.setattr(_background, "CAPACITY", 1)
    halo = make()
    memory = halo.for_user("user_123")
    memory.capture_later("one", "yes")
    waiting = threading.Thread(target=memory.capture_later, args=("two", "yes"))
    waiting.start()
    assert gate.entered.wait(30)
    assert waiting.is_alive()
    gate.opened.set()
    waiting.join(30)
    assert halo.flush(30) == ()
    assert service["capture"].call_count == 2


def test_flushing_gives_up_when_told_and_the_captures_go_on(make, gate):
    halo = make()
    future = halo.for_user("user_123").capture_later([USER, ANSWER])
    with pytest.raises(HaloTimeoutError, match="1 captures are still under way"):
        halo.flush(0)
    gate.opened.set()
    assert future.result(30).captured


def test_awaited_later_captures_keep_order_and_snapshot_and_are_flushed_on_closing(service, time):
    async def run() -> None:
        client, memory = async_memory(time)
        async with client:
            for number in range(5):
                messages = [{"role": "user", "content": f"message {number}"}, ANSWER]
                receipt = await memory.capture_later(messages)
                messages.clear()
            assert not receipt.done()
        assert (await receipt).captured

    asyncio.run(run())
    told = [json.loads(call.request.content)["sessionData"] for call in service["capture"].calls]
    assert [body["messages"][0]["content"] for body in told] == [f"message {number}" for number in range(5)]


def test_an_awaited_later_capture_that_fails_or_is_cancelled_is_told(service, time, caplog):
    service["capture"].respond(403, json={"error": "no"})

    async def run() -> None:
        client, memory = async_memory(time)
        await memory.capture_later([USER, ANSWER])
        (error,) = await client.flush()
        assert error.status_code == 403
        (await memory.capture_later([USER, ANSWER])).cancel()
        assert await client.flush() == ()

    with caplog.at_level(logging.ERROR, "halo_sdk"):
        asyncio.run(run())
    assert "not stored: PermissionDeniedError" in caplog.text
    assert "not stored: CancelledError" in caplog.text


def test_an_awaited_full_queue_makes_the_application_wait(service, time, monkeypatch):
    monkeypatch.setattr(_background, "CAPACITY", 1)

    async def run() -> None:
        client, memory = async_memory(time)
        first = await memory.capture_later("one", "yes")
        second = await memory.capture_later("two", "yes")
        assert first.done()
        await client.flush()
        assert second.done()

    asyncio.run(run())
    asyncio.run(run())  # another loop has a queue of its own
    assert service["capture"].call_count == 4


def test_an_awaited_flush_gives_up_when_told(service, time):
    async def run() -> None:
        client, memory = async_memory(time)
        await memory.capture_later("one", "yes")
        with pytest.raises(HaloTimeoutError):
            await client.flush(0)
        await client.aclose()

    asyncio.run(run())


PROGRAM = """
import logging, sys
logging.basicConfig()
from halo_sdk import Halo
memory = Halo("k", project_key="p", base_url=sys.argv[1], max_retries=0).for_user("u")
for number in range(3):
    memory.capture_later(f"message {number}", "yes")
"""


class Stored(BaseHTTPRequestHandler):
    told: list[str]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append(body["sessionData"]["messages"][0]["content"])
        answer = json.dumps(RECEIPT).encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def ended(url: str, program: str = PROGRAM, *more: str) -> str:
    """Run a program that captures later and ends; return what it said."""
    done = subprocess.run(
        [sys.executable, "-c", program, url, *more], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr


def test_a_process_does_not_end_before_its_captures_are_stored():
    handler = type("Handler", (Stored,), {"told": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert ended(f"http://127.0.0.1:{server.server_address[1]}") == ""
        server.shutdown()
    assert handler.told == ["message 0", "message 1", "message 2"]


def test_a_process_that_ends_without_a_service_says_what_was_not_stored():
    assert ended("http://127.0.0.1:9").count("was not stored: HaloConnectionError") == 3


AT_THE_END = """
import logging, sys
from concurrent.futures import ThreadPoolExecutor
import httpx
logging.basicConfig()
from halo_sdk import Halo
pool = ThreadPoolExecutor(1)
first = True
def answer(request):
    global first
    try:
        while True:
            pool.submit(int).result()  # until the interpreter has begun to end
    except RuntimeError:
        logging.error("tried")
    if not first:
        return httpx.Response(201, json={"captured": True})
    first = False
    if sys.argv[2].isdigit():
        return httpx.Response(int(sys.argv[2]), text="no")
    raise getattr(httpx, sys.argv[2])("no")
client = httpx.Client(transport=httpx.MockTransport(answer))
memory = Halo("k", project_key="p", base_url=sys.argv[1], max_retries=0, http_client=client).for_user("u")
for number in range(9):
    memory.capture_later(f"message {number}", "yes")
"""


@pytest.mark.parametrize("failure", ["ConnectError", "ReadTimeout"])
def test_a_process_that_ends_tries_a_service_out_of_reach_once_and_says_of_each_capture_that_it_was_not_stored(
    failure,
):
    said = ended("http://127.0.0.1:9", AT_THE_END, failure)
    assert (said.count("tried"), said.count("was not stored: Halo")) == (1, 9)


@pytest.mark.parametrize("status", ["500", "503", "409", "429", "422", "200"])
def test_a_process_that_ends_stores_the_rest_when_the_service_refuses_one(status):
    said = ended("http://127.0.0.1:9", AT_THE_END, status)
    assert (said.count("tried"), said.count("was not stored")) == (9, 1)


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        {},
        {"plan": "pro"},
        object(),
        b"hi",
        date(2026, 1, 2),
        [object()],
        [b"hi"],
        [UUID(int=1)],
        [("user", object())],
        {"messages": [object()]},
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": object()}],
        [{"role": "user", "parts": [{"text": " "}]}],
        [{"role": "tool", "tool_call_id": "a", "content": "rain"}],
        [
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {}}}]},
        ],
    ],
    ids=str,
)
def test_what_holds_no_exchange_is_refused_at_once(service, memory, make, nothing):
    for capture in (memory.capture, memory.capture_later):
        with pytest.raises(HaloConfigError, match=r"nothing to capture|a conversation is"):
            capture(nothing)
    capturing = make().for_user("user_123", tools=("capture",))
    with pytest.raises((ToolCallError, HaloConfigError), match=r"no conversation|a conversation is"):
        capturing.call("halo_capture_end_user_memory", {}, session=nothing)
    assert not service["capture"].called


@pytest.mark.parametrize("answer", [object(), b"hi", date(2026, 1, 2), UUID(int=1), {"message": object()}])
def test_what_is_no_answer_is_refused_at_once(service, memory, answer):
    for capture in (memory.capture, memory.capture_later):
        with pytest.raises((HaloConfigError, EmptyAnswerError)):
            capture("hi", answer)
    assert not service["capture"].called


def test_a_picture_alone_is_something_to_capture(service, memory):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "aGk=" * 50}}
    assert memory.capture([{"role": "user", "content": [picture]}]).captured


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_captures_in_a_thread_of_its_own(service):
    halo = Halo(KEY, project_key="p")
    memory = halo.for_user("u")
    memory.capture_later("parent", "yes").result(30)
    child = os.fork()
    if child == 0:
        stored = memory.capture_later("child", "yes").result(30).captured
        os._exit(0 if stored and halo.flush(30) == () else 1)
    assert os.waitpid(child, 0)[1] == 0
    halo.close()


def test_an_outage_while_the_process_goes_on_does_not_keep_the_next_capture_from_being_tried(service, make):
    service.post(CAPTURE_URL, name="capture").mock(
        side_effect=[httpx.ConnectError("refused"), httpx.Response(201, json=RECEIPT)]
    )
    halo = make(max_retries=0)
    memory = halo.for_user("u")
    first, second = memory.capture_later("one", "yes"), memory.capture_later("two", "yes")
    assert isinstance(first.exception(30), HaloConnectionError)
    assert second.result(30).captured
