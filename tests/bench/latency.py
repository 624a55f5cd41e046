"""Latency over loopback HTTP beside a floor of the same parts, server and client pinned to one core each.

`make bench` prints a table; `--sizes 100,1000` and `--queries N` make it smaller. Every query is new and the query cache is off.
"""

import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import floor

BIN = Path(sys.executable).parent
PROJECT, USER = "bench", "user"
SUBJECTS = "report garden invoice holiday kitchen piano contract hospital birthday train laptop mortgage recipe marathon".split()
VERBS = "moved finished cancelled planned painted ordered compared delayed repaired approved forgot rented".split()
PLACES = "Lisbon Osaka Nairobi Bergen Quito Leeds Tartu Hanoi Porto Bremen Adelaide Sapporo".split()
THINGS = (
    "blue window quarterly budget morning coffee slow ferry wooden table loud neighbour early meeting".split()
)


def sentence(chance: random.Random, number: int) -> str:
    """Return a sentence nobody else has."""
    pick = chance.choice
    what = f"the {pick(THINGS)} {pick(SUBJECTS)} in {pick(PLACES)} with {pick(THINGS)} {pick(SUBJECTS)}"
    return f"We {pick(VERBS)} {what} and {pick(VERBS)} number {number} before the {pick(THINGS)} {pick(SUBJECTS)}."


class Door:
    """One kept-alive connection."""

    def __init__(self, port: int, key: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    def post(self, path: str, value: dict) -> float:
        """Send, read the whole answer, return the milliseconds it took."""
        body = json.dumps(value)
        started = time.perf_counter()
        self._connection.request("POST", path, body, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        took = (time.perf_counter() - started) * 1000
        assert answer.status in (200, 201), answer.status
        return took


def retrieval(query: str) -> dict:
    """Return a model's call."""
    arguments = {"sessionData": {}, "query": query, "limit": 20}
    return {"projectKey": PROJECT, "endUserKey": USER, "arguments": arguments}


RETRIEVE = "/api/v1/memory/functions/halo_retrieve_end_user_memory"


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """Run a server on core 0 until the end; yield its process id."""
    env = {
        **os.environ,
        "HALO_QUERY_CACHE": "0",
        "HALO_LOG_LEVEL": "error",
        "HALO_MAX_RESULT_CHARS": "1000000",
    }
    with subprocess.Popen(["taskset", "-c", "0", *command], env=env, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while not _listens(port) and time.monotonic() < deadline:
                os.sched_yield()
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def resident_mib(pid: int) -> float:
    """Return the process's resident memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def quantiles(times: list[float]) -> str:
    """Return p50 and p99."""
    ordered = sorted(times)
    return f"{ordered[len(ordered) // 2]:7.2f} {ordered[int(len(ordered) * 0.99) - 1]:7.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--queries", type=int, default=2000)
    asked = parser.parse_args()
    os.sched_setaffinity(0, {1})
    chance = random.Random(11)
    texts: list[str] = []
    print(
        "exchanges |  retrieve p50 p99 |   capture p50 p99 |     floor p50 p99 | p50 ratio | cold open ms | hot MiB"
    )
    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / "data"
        create = [BIN / "halo", "keys", "create", "--data", data, "--project", PROJECT]
        key = subprocess.run(create, check=True, capture_output=True, text=True).stdout.strip()
        for size in map(int, asked.sizes.split(",")):
            queries = [sentence(chance, 1_000_000 * size + n).rstrip(".") + "?" for n in range(asked.queries)]
            port = _free_port()
            serve = [str(BIN / "halo"), "serve", "--data", str(data), "--port", str(port)]
            with running(serve, port):
                door, captures = Door(port, key), []
                while len(texts) < size:
                    texts.append(sentence(chance, len(texts)))
                    said = {"messages": [{"role": "user", "content": texts[-1]}]}
                    sent = {"projectKey": PROJECT, "endUserKey": USER, "sessionData": said}
                    sent["response"] = {
                        "role": "assistant",
                        "content": f"Noted: {sentence(chance, len(texts))}",
                    }
                    captures.append(door.post("/api/v1/memory/capture", sent))
            with running(serve, port) as pid:
                door = Door(port, key)
                nobody = {**retrieval("warm"), "endUserKey": "nobody"}
                door.post(RETRIEVE, nobody)
                before, cold = resident_mib(pid), door.post(RETRIEVE, retrieval("cold"))
                hot = resident_mib(pid) - before
                times = [door.post(RETRIEVE, retrieval(query)) for query in queries]
            least = _floor(Path(made) / f"floor-{size}", texts, queries)
            ratio = sorted(times)[len(times) // 2] / sorted(least)[len(least) // 2]
            row = f"{quantiles(times):>17} | {quantiles(captures[-1000:]):>17} | {quantiles(least):>17}"
            print(f"{size:9,} | {row} | {ratio:9.2f} | {cold:12.0f} | {hot:7.1f}", flush=True)


def _floor(directory: Path, texts: list[str], queries: list[str]) -> list[float]:
    directory.mkdir()
    floor.build(directory, texts * 2)  # two messages an exchange
    port = _free_port()
    with running([sys.executable, "-m", "tests.bench.floor", str(directory), str(port)], port):
        door = Door(port)
        door.post("/search", {"query": "warm"})
        return [door.post("/search", {"query": query}) for query in queries]


if __name__ == "__main__":
    main()
