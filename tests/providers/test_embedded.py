"""The server inside the application's process: the SDK's clients over it, and how it begins and ends."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import halo_server
from halo_sdk import AsyncHalo, Halo, HaloConnectionError
from halo_server.config import Settings

WORDS = Settings(embedder="hashing")


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


def test_a_program_that_forgets_to_close_ends_all_the_same_and_loses_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, halo_server; from halo_sdk import Halo\n"
        "memory = Halo(http_client=halo_server.embedded(sys.argv[1], project='p')).for_user('u')\n"
        "memory.capture('I drink my tea without sugar.', 'Noted.')\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
    with halo_server.embedded(tmp_path, project="p") as client:
        assert len(Halo(http_client=client).for_user("u").retrieve(query="tea").raw_entries) == 1
