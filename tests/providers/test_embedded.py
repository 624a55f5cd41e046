"""The server inside the application's process: the SDK's clients over it, and how it begins and ends."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import halo_server
from halo_sdk import AsyncHalo, Halo, HaloConnectionError
from halo_server.app import open_memory
from halo_server.config import Settings
from halo_server.errors import InvalidRequest, SchemaTooNew
from halo_server.store.migrate import head

WORDS = Settings(embedder="hashing")
CAPTURE = {
    "projectKey": "p",
    "endUserKey": "u",
    "sessionData": {"messages": [{"role": "user", "content": "I drink my tea without sugar."}]},
    "response": "Noted.",
}
AS_JSON = {"Content-Type": "application/json"}


@contextmanager
def busy(directory: Path) -> Iterator[Callable[[], None]]:
    """Keep every write to the directory waiting until told to go on."""
    with closing(sqlite3.connect(directory / "halo.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield lambda: connection.execute("COMMIT")


def is_free(directory: Path) -> bool:
    """Open the directory as another process would, or fail."""
    open_memory(WORDS.model_copy(update={"data": directory})).close()
    return True


def test_what_one_client_captures_the_awaited_one_finds_in_the_same_directory(tmp_path: Path) -> None:
    async def ask() -> list[str]:
        async with halo_server.embedded_async(tmp_path, project="p", settings=WORDS) as http:
            found = await AsyncHalo(http_client=http).for_user("u").retrieve(query="tea")
            return [entry.request_raw["messages"][0]["content"] for entry in found.raw_entries]

    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        Halo(http_client=client).for_user("u").capture("I drink my tea without sugar.", "Noted.")
        assert asyncio.run(ask()) == ["I drink my tea without sugar."]


def test_two_projects_of_one_directory_do_not_see_each_other(tmp_path: Path) -> None:
    with (
        halo_server.embedded(tmp_path, project="one", settings=WORDS) as one,
        halo_server.embedded(tmp_path, project="two", settings=WORDS) as two,
    ):
        Halo(http_client=one).for_user("u").capture("The door code is 4711.", "Noted.")
        assert Halo(http_client=two).for_user("u").retrieve(query="door code").raw_entries == ()


def test_memory_is_there_after_the_client_was_closed_and_opened_again(tmp_path: Path) -> None:
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        Halo(http_client=client).for_user("u").capture("I drink my tea without sugar.", "Noted.")
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        assert len(Halo(http_client=client).for_user("u").retrieve(query="tea").raw_entries) == 1


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    client = halo_server.embedded(tmp_path, project="p", settings=WORDS)
    memory = Halo(http_client=client, max_retries=0).for_user("u")
    client.close()
    with pytest.raises((HaloConnectionError, RuntimeError)):
        memory.retrieve(query="tea")


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    client = halo_server.embedded(tmp_path, project="p", settings=WORDS)
    client.close()
    client.close()
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as again:
        assert again.get("/healthz").json() == {"ok": True}


def test_closing_lets_the_requests_of_other_threads_end_first(tmp_path: Path) -> None:
    client = halo_server.embedded(tmp_path, project="p", settings=WORDS)
    sending = threading.Event()

    def content() -> Iterator[bytes]:
        sending.set()
        yield json.dumps(CAPTURE).encode()

    def send() -> int:
        return client.post("/api/v1/memory/capture", content=content(), headers=AS_JSON).status_code

    with busy(tmp_path) as go_on, ThreadPoolExecutor() as threads:
        status = threads.submit(send)
        assert sending.wait(timeout=30)
        closed = threads.submit(client.close)
        while not (client.is_closed or closed.done()):
            pass
        go_on()
        closed.result(timeout=30)
        assert status.result(timeout=30) == 201
    assert is_free(tmp_path)


def test_closing_lets_the_requests_of_other_tasks_end_first(tmp_path: Path) -> None:
    async def run() -> int:
        http = halo_server.embedded_async(tmp_path, project="p", settings=WORDS)
        sending = asyncio.Event()

        async def content() -> AsyncIterator[bytes]:
            sending.set()
            yield json.dumps(CAPTURE).encode()

        with busy(tmp_path) as go_on:
            request = http.post("/api/v1/memory/capture", content=content(), headers=AS_JSON)
            answer = asyncio.create_task(request)
            async with asyncio.timeout(30):
                await sending.wait()
                closed = asyncio.create_task(http.aclose())
                await asyncio.sleep(0)
                assert http.is_closed
                go_on()
                await closed
                return (await answer).status_code

    assert asyncio.run(run()) == 201
    assert is_free(tmp_path)


def test_a_request_that_comes_while_the_server_closes_is_refused(tmp_path: Path) -> None:
    client = halo_server.embedded(tmp_path, project="p", settings=WORDS)
    client.close()
    with pytest.raises(httpx.ConnectError, match="closed"):
        client._transport.handle_request(client.build_request("GET", "/healthz"))

    async def run() -> None:
        http = halo_server.embedded_async(tmp_path, project="p", settings=WORDS)
        await http.aclose()
        with pytest.raises(httpx.ConnectError, match="closed"):
            await http._transport.handle_async_request(http.build_request("GET", "/healthz"))

    asyncio.run(run())


def test_a_forked_child_is_told_whose_server_it_is_and_does_not_keep_the_directory(tmp_path: Path) -> None:
    program = """
import asyncio, os, sys, httpx, halo_server
from halo_server.config import Settings
def opened(make=halo_server.embedded):
    return make(sys.argv[1], project="p", settings=Settings(embedder="hashing"))
def refused(ask):
    try:
        ask()
    except (httpx.ConnectError, halo_server.errors.DataDirectoryInUse) as error:
        return type(error).__name__ + ": " + str(error)
client, awaited = opened(), opened(halo_server.embedded_async)
client.get("/healthz")
heard, told = os.pipe()
stay, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(go)
    asked = [
        refused(lambda: client.get("/healthz")),
        refused(lambda: asyncio.run(awaited.get("/healthz"))),
        refused(opened),
    ]
    client.close()
    asyncio.run(awaited.aclose())
    os.write(told, repr(asked).encode())
    os.read(stay, 1)  # alive until the parent is done
    os._exit(0)
answers = os.read(heard, 10_000).decode()
status = client.get("/healthz").status_code
client.close()
asyncio.run(awaited.aclose())
opened().close()
os.close(go)
os.waitpid(child, 0)
print("\\n", answers, status)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60, text=True, capture_output=True
    )
    theirs = "ConnectError: The embedded server belongs to the parent process."
    in_use = "DataDirectoryInUse: Another process serves this data directory; one process a directory, stop it first."
    assert done.stdout.splitlines()[-1].strip() == f"{[theirs, theirs, in_use]} 200"


def test_a_relative_directory_is_the_same_wherever_the_program_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    client = halo_server.embedded("data", project="p", settings=WORDS)
    monkeypatch.chdir("/")
    client.close()
    assert is_free(tmp_path / "data")


@pytest.mark.parametrize("project", ["a\ud800", "null", "", " p", "sk-live", None], ids=ascii)
@pytest.mark.parametrize("opened", [halo_server.embedded, halo_server.embedded_async])
def test_a_project_no_request_could_name_is_refused_before_anything_is_opened(
    tmp_path: Path, opened: Callable[..., Any], project: Any
) -> None:
    with pytest.raises(InvalidRequest, match="projectKey"):
        opened(tmp_path / "data", project=project, settings=WORDS)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "step", ["inprocess.create_app", "inprocess._InProcess", "services.access.Access.embedded_key"]
)
def test_a_client_that_cannot_be_made_lets_go_of_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no")

    with monkeypatch.context() as patched:
        patched.setattr(f"halo_server.{step}", fail)
        with pytest.raises(OSError, match="no"):
            halo_server.embedded(tmp_path, project="p", settings=WORDS)
    assert is_free(tmp_path)


def test_a_conversation_of_any_length_and_depth_can_be_asked_about(tmp_path: Path) -> None:
    deep: Any = "leaf"
    for _ in range(200):
        deep = [deep]
    history = [{"role": "user", "content": f"{number} {'x' * 2_000}"} for number in range(3_000)]
    history.append({"role": "user", "content": "How do I drink my tea?", "deep": deep})
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        memory = Halo(http_client=client, on_error="raise").for_user("u")
        memory.capture([{"role": "user", "content": "I drink my tea without sugar.", "deep": deep}], "Noted.")
        assert len(memory.retrieve(history).raw_entries) == 1
        call = {"name": "halo_retrieve_end_user_memory", "arguments": {}}
        (result,) = memory.handle(call, session=history)
    assert "without sugar" in str(result["output"])


PLAIN = {"role": "assistant", "content": "Noted, no sugar."}
OF_AN_SDK = {**PLAIN, "refusal": None, "annotations": [], "audio": None, "function_call": None}
OF_PARTS = {"role": "assistant", "content": [{"type": "text", "text": "Noted, no sugar."}]}
OF_GEMINI = {"role": "model", "parts": [{"text": "Noted, no sugar."}]}


@pytest.mark.parametrize("response", ["Noted, no sugar.", PLAIN, OF_AN_SDK, OF_PARTS, OF_GEMINI])
@pytest.mark.parametrize("appended", [PLAIN, OF_AN_SDK, OF_PARTS, OF_GEMINI])
def test_an_answer_that_is_in_the_history_in_another_shape_is_stored_once(
    tmp_path: Path, appended: dict[str, Any], response: Any
) -> None:
    asked = {"role": "user", "content": "I drink my tea without sugar."}
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        memory = Halo(http_client=client).for_user("u")
        memory.capture([asked, appended], response)
        (entry,) = memory.retrieve(query="tea").raw_entries
    assert entry.request_raw == {"messages": [asked]}
    assert "no sugar" in str(entry.response_raw)


@pytest.mark.parametrize("earlier", [[], [{"role": "user", "content": "Hello."}, PLAIN]])
def test_a_capture_the_model_triggers_again_and_again_is_one(
    tmp_path: Path, earlier: list[dict[str, Any]]
) -> None:
    history = [*earlier, {"role": "user", "content": "I drink my tea without sugar."}]
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        memory = Halo(http_client=client).for_user("u", tools=("capture",))
        receipts = [
            memory.call("halo_capture_end_user_memory", {"asked": "true"}, session=history) for _ in range(3)
        ]
        entries = memory.retrieve(query="tea").raw_entries
    assert (len(entries), len({receipt.to_dict()["rawEntryId"] for receipt in receipts})) == (1, 1)


@pytest.mark.parametrize(("window_s", "entries"), [(600, 1), (0, 2)])
def test_the_first_words_of_a_conversation_are_stored_anew_once_the_duplicate_window_is_over(
    tmp_path: Path, window_s: int, entries: int
) -> None:
    opening = [{"role": "user", "content": "I drink my tea without sugar."}]
    settings = WORDS.model_copy(update={"duplicate_window_s": window_s})
    with halo_server.embedded(tmp_path, project="p", settings=settings) as client:
        memory = Halo(http_client=client).for_user("u", tools=("capture",))
        receipts = [
            memory.call("halo_capture_end_user_memory", {}, session=opening).raw_entry_id for _ in range(2)
        ]
        assert len(memory.retrieve(query="tea").raw_entries) == len(set(receipts)) == entries


@pytest.mark.parametrize(
    ("earlier", "entries"), [([], 2), ([{"role": "user", "content": "Hello."}, PLAIN], 1)]
)
def test_only_a_history_of_several_messages_is_known_after_something_else_was_captured(
    tmp_path: Path, earlier: list[dict[str, Any]], entries: int
) -> None:
    history = [*earlier, {"role": "user", "content": "I drink my tea without sugar."}]
    with halo_server.embedded(tmp_path, project="p", settings=WORDS) as client:
        memory = Halo(http_client=client).for_user("u", tools=("capture",))
        for session in (history, [{"role": "user", "content": "The fence is green."}], history):
            memory.call("halo_capture_end_user_memory", {}, session=session)
        told = [entry.to_dict() for entry in memory.retrieve(query="tea sugar").raw_entries]
    assert sum("without sugar" in json.dumps(entry["requestRaw"]) for entry in told) == entries


def test_a_program_that_forgets_to_close_ends_all_the_same_and_loses_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, halo_server; from halo_sdk import Halo\n"
        "memory = Halo(http_client=halo_server.embedded(sys.argv[1], project='p')).for_user('u')\n"
        "memory.capture('I drink my tea without sugar.', 'Noted.')\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    with halo_server.embedded(tmp_path, project="p") as client:
        assert len(Halo(http_client=client).for_user("u").retrieve(query="tea").raw_entries) == 1


def test_a_directory_that_could_not_be_opened_is_let_go_of_at_once(tmp_path: Path) -> None:
    def number(step: str) -> None:
        with closing(sqlite3.connect(tmp_path / "halo.db")) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = ?", (step,))

    halo_server.embedded(tmp_path, project="p", settings=WORDS).close()
    number("of a newer HALO")
    kept = []  # as a program that logs the error keeps it, and with it whatever was open
    for _ in range(2):
        with pytest.raises(SchemaTooNew) as refused:
            halo_server.embedded(tmp_path, project="p", settings=WORDS)
        kept.append(refused.value)
    number(head())
    halo_server.embedded(tmp_path, project="p", settings=WORDS).close()
