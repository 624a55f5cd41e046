"""Real server processes: started in a session of their own, waited for by their words, ended by their number."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from halo_server.app import open_access

PROJECT = "customer-product"
USER = "user_123"
HALO = (sys.executable, "-m", "halo_server")
_STARTED = re.compile(r"HALO serves .* on (http://\S+)")
_PATIENCE_S = 30


def environment(**more: str) -> dict[str, str]:
    """Return an environment without settings of the machine the tests run on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HALO_")}
    return {**kept, "HALO_EMBEDDER": "hashing", "PYTHONUNBUFFERED": "1", **more}


def run(*arguments: str, env: Mapping[str, str] | None = None, command: Sequence[str] = HALO) -> Any:
    """Run a command to its end."""
    return subprocess.run(
        [*command, *arguments],
        env=dict(env or environment()),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )


def new_key(data: Path, project: str = PROJECT) -> str:
    """Make a key beside the server."""
    access, store = open_access(data)
    key, _ = access.create(project=project)
    store.close()
    return key


@dataclass
class Server:
    """A process that serves, and a client of it."""

    process: subprocess.Popen[str]
    url: str
    key: str
    errors: list[str] = field(default_factory=list)

    def client(self, key: str | None = None) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {key or self.key}"}, timeout=20
        )

    def capture(self, client: httpx.Client, text: str, key: str | None = None) -> httpx.Response:
        body = {
            "projectKey": PROJECT,
            "endUserKey": USER,
            "sessionData": {"messages": [{"role": "user", "content": text}]},
            "response": {"role": "assistant", "content": "Noted."},
        }
        headers = {"Idempotency-Key": key} if key else {}
        return client.post("/api/v1/memory/capture", json=body, headers=headers)

    def call(self, client: httpx.Client, query: str, limit: int = 5) -> dict[str, Any]:
        body = {
            "projectKey": PROJECT,
            "endUserKey": USER,
            "arguments": {"sessionData": {}, "query": query, "limit": limit},
        }
        found = client.post("/api/v1/memory/functions/halo_retrieve_end_user_memory", json=body)
        assert found.status_code == 200, found.text
        return found.json()

    def kill(self) -> None:
        """End at once, as a loss of power would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(_PATIENCE_S)

    def stop(self) -> int:
        """Ask to end; return the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_PATIENCE_S)


@contextmanager
def serving(
    data: Path,
    key: str,
    *,
    command: Sequence[str] = (*HALO, "serve"),
    env: Mapping[str, str] | None = None,
    started: re.Pattern[str] = _STARTED,
    options: Sequence[str] | None = None,
) -> Iterator[Server]:
    """Start a server on a free port; it is gone when the block ends, however it ends."""
    chosen = ["--data", str(data), "--port", "0"] if options is None else options
    process = subprocess.Popen(
        [*command, *chosen],
        env=dict(env or environment()),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    lines: list[str] = []
    alarm = threading.Timer(_PATIENCE_S, process.kill)
    alarm.start()
    try:
        url = ""
        for line in process.stdout or ():
            lines.append(line)
            found = started.search(line)
            if found:
                url = found[1]
                break
        alarm.cancel()
        assert url, "".join(lines)
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
        reader.start()
        server = Server(process, url, key, lines)
        yield server
    finally:
        alarm.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_PATIENCE_S)
        if "reader" in locals():
            reader.join(_PATIENCE_S)
        if process.stdout:
            process.stdout.close()


def parsed(line: str) -> Any:
    """Return the JSON in a line of output."""
    return json.loads(line)
