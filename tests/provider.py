"""A model's provider on this machine, as OpenAI's API has it: it answers, fails, hangs or lies as a test says."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

from halo_server.embedders.hashing import HashingEmbedder

__all__ = ["Fault", "Hang", "Provider", "completion", "embeddings"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """An answer that is none. By its nature a provider's error may repeat what it was sent."""

    status: int = 500
    body: bytes = b'{"error":{"message":"could not embed: My sister Ada plays the cello."}}'


@dataclass(frozen=True)
class Hang:
    """No answer, or one that comes in small pieces and never ends."""

    dripping: bool = False


Reply = Json | Fault | Hang


def embeddings(body: Json) -> Json:
    """Return vectors, as a service would that does not scale them."""
    rows = HashingEmbedder().encode(body["input"]) * 3
    rows[~rows.any(axis=1), 0] = 1  # a model has some vector for anything
    return {"data": [{"index": n, "embedding": row.tolist()} for n, row in enumerate(rows)]}


def completion(content: str | None) -> Json:
    """Return a chat model's answer."""
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}}]}


@dataclass
class Provider:
    """Serves while entered. `reply` makes the answer to each body; `asked` holds every body."""

    reply: Callable[[Json], Reply] = embeddings
    asked: list[Json] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.released = Event()
        kind = type("Handler", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def says(self, *replies: Reply | str) -> None:
        """Answer with these, one after another; a text is what a chat model writes."""
        rest: Iterator[Reply | str] = iter(replies)

        def next_of(_: Json) -> Reply:
            reply = next(rest)
            return completion(reply) if isinstance(reply, str) else reply

        self.reply = next_of


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.provider.asked.append(body)
        self.provider.keys.append(self.headers["Authorization"])
        reply = self.provider.reply(body)
        if isinstance(reply, Hang):
            self._hang(reply)
            return
        fault = reply if isinstance(reply, Fault) else Fault(200, json.dumps(reply).encode())
        self.send_response(fault.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(fault.body)))
        self.end_headers()
        self.wfile.write(fault.body)

    def _hang(self, reply: Hang) -> None:
        self.close_connection = True
        if reply.dripping:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
        while not self.provider.released.wait(0.02 if reply.dripping else None):
            try:
                self.wfile.write(b" ")
                self.wfile.flush()
            except OSError:  # nobody waits any more
                return

    def log_message(self, *_: object) -> None:
        """Say nothing."""
