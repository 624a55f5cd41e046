"""README says what the code does: each setting, error and route is named there, and each fence runs."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

import halo_server
from examples.scripted_model import ScriptedModel
from halo_sdk import Halo
from halo_server.api import ROUTERS
from halo_server.config import Settings
from halo_server.errors import HaloError
from tests.compat.wires import sdk

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
BIN = Path(sys.executable).parent


def _errors(kind: type[HaloError]) -> Iterator[type[HaloError]]:
    for error in kind.__subclasses__():
        yield error
        yield from _errors(error)


@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_each_setting_has_its_row(name: str) -> None:
    field = Settings.model_fields[name]
    assert f"| `HALO_{name.upper()}` | `{field.default}` | {field.description} |" in README


@pytest.mark.parametrize("error", list(_errors(HaloError)), ids=lambda error: error.code)
def test_each_error_has_its_row(error: type[HaloError]) -> None:
    assert f"| `{error.code}` | {error.status} | {error.__doc__} |" in README


def test_each_route_is_named() -> None:
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            path = route.path_format.removeprefix("/api/v1/memory")
            path = re.sub(r"_(\w)", lambda found: found[1].upper(), path)
            for method in route.methods:
                if path.startswith("/functions/"):
                    path = "/functions/halo_retrieve_end_user_memory"
                assert f"{method} {path}`" in README or f"`{path}`" in README, (method, path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Run the README's server commands in an empty folder; yield the environment its readers then have."""
    [commands] = [body for kind, body in FENCES if kind == "sh" and "halo serve" in body]
    export, serve = commands.strip().splitlines()
    create = export.removeprefix("export HALO_API_KEY=$(").removesuffix(")")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HALO_EMBEDDER": "hashing"}
    key = subprocess.run(
        create.split(), cwd=tmp_path, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()
    with subprocess.Popen(
        [*serve.split(), "--port", str(port)], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True
    ) as run:
        try:
            assert run.stdout is not None
            assert "HALO serves" in run.stdout.readline()
            deadline = time.monotonic() + 20
            while not _answers(port) and time.monotonic() < deadline:
                pass
            yield {**env, "HALO_API_KEY": key, "PORT": str(port)}
        finally:
            run.terminate()
            run.wait(20)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.ConnectError:
        return False


@pytest.mark.process
def test_the_servers_commands_the_two_calls_and_the_client_run_as_printed(
    server: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    [calls] = [body for kind, body in FENCES if kind == "sh" and "curl" in body]
    here = calls.replace("curl -X", "curl -sS -X").replace(":8765", f":{server['PORT']}")
    answers = subprocess.run(
        ["bash", "-ec", here], env=server, check=True, capture_output=True, text=True
    ).stdout
    assert '"captured":true' in answers
    assert '"selectedTopicKeys":["' in answers

    [client] = [body for kind, body in FENCES if kind == "python" and "HALO_API_KEY" in body]
    monkeypatch.setenv("HALO_BASE_URL", f"http://127.0.0.1:{server['PORT']}")
    monkeypatch.setenv("HALO_API_KEY", server["HALO_API_KEY"])
    scope: dict[str, Any] = {}
    exec(compile(client, "README.md", "exec"), scope)  # noqa: S102 (our own README)
    scope["halo"].close()
    assert "Keep my weekly reports short" in capsys.readouterr().out


def test_the_loop_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [loop] = [body for kind, body in FENCES if kind == "python" and "halo_server.embedded" in body]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HALO_EMBEDDER", "hashing")
    monkeypatch.setattr(sys, "argv", ["program.py", "What format do I prefer for weekly reports?"])
    with halo_server.embedded(tmp_path / "halo-data", project="customer-product") as client:
        sent = {"projectKey": "customer-product", "endUserKey": "user_123"}
        said = {
            "messages": [
                {"role": "user", "content": "Keep my weekly reports short and send them in the morning."}
            ]
        }
        answer = {"role": "assistant", "content": "I will."}
        client.post("/api/v1/memory/capture", json={**sent, "sessionData": said, "response": answer})
    opened = halo_server.embedded("./halo-data", project="customer-product")
    monkeypatch.setattr(halo_server, "embedded", lambda *_, **__: opened, raising=False)
    scope: dict[str, Any] = {}
    with opened, ScriptedModel() as model:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{model.base_url}/v1")
        exec(compile(loop, "README.md", "exec"), scope)  # noqa: S102 (our own README)
        scope["client"].close()
    assert "weekly reports short" in capsys.readouterr().out


@pytest.fixture(scope="module")
def scripted() -> Iterator[dict[str, str]]:
    """Run the small model of the examples; yield the variables it says to set."""
    with subprocess.Popen(
        [sys.executable, "-m", "examples.scripted_model"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        lines = [run.stdout.readline() for _ in range(3)]
        yield dict(pair.split("=", 1) for line in lines for pair in line.split())
        run.terminate()


@pytest.mark.process
@pytest.mark.providers
@pytest.mark.parametrize(
    ("mark", "package", "client"),
    [
        ("# 1.", "openai", "OpenAI"),
        ("# 2.", "openai", "OpenAI"),
        ("# 3.", "google.genai", "Client"),
        ("# 3b.", "google.genai", "Client"),
        ("# 4.", "anthropic", "Anthropic"),
    ],
)
def test_a_program_finds_what_was_said_without_a_providers_key(
    scripted: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mark: str,
    package: str,
    client: str,
) -> None:
    [program] = [body for kind, body in FENCES if kind == "python" and mark in body]
    for name, value in scripted.items():
        monkeypatch.setenv(name, value)
    settings = Settings(embedder="hashing")
    with (
        halo_server.embedded(tmp_path, project="customer-product", settings=settings) as server,
        getattr(sdk(package), client)() as provider,
    ):
        memory = Halo(http_client=server).for_user("user_123")
        memory.capture("Keep my weekly reports short and send them in the morning.", "I will.")
        question = "What format do I prefer for weekly reports?"
        scope: dict[str, Any] = {"memory": memory, "client": provider, "question": question, "mine": []}
        exec(compile(program, "README.md", "exec"), scope)  # noqa: S102 (our own README)
    assert "weekly reports short" in scope["reply"].model_dump_json()


def test_the_first_commands_are_in_the_makefile() -> None:
    [commands] = [body for kind, body in FENCES if kind == "sh" and "make demo" in body]
    for command in commands.strip().splitlines():
        subprocess.run([*command.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_every_fence_is_run_by_one_of_these_tests() -> None:
    run = ("halo serve", "curl", "HALO_API_KEY", "halo_server.embedded", "make demo")
    programs = (
        "# 1.",
        "# 2.",
        "# 3.",
        "# 3b.",
        "# 4.",
        "# 5.",
        "memory.accumulator",
        "_tools()",
        "import lint",
    )
    run += programs  # by tests/compat/test_programs.py
    assert all(any(mark in body for mark in run) for kind, body in FENCES if kind in {"sh", "python"})
    assert {kind for kind, _ in FENCES} == {"sh", "python"}
