"""A provider that says what a test has written down, and remembers what it was asked."""

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class Events:
    """A streamed reply: the name of each event where the provider's stream has names, and its data."""

    events: Sequence[tuple[str | None, Json]]
    ends_with_done: bool = False

    def body(self) -> bytes:
        """Return the stream as it goes over the wire."""
        lines = [
            (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"
            for name, data in self.events
        ]
        return ("".join(lines) + ("data: [DONE]\n\n" if self.ends_with_done else "")).encode()


class Stub:
    """Answers each request with the next reply, on loopback."""

    def __init__(self) -> None:
        self.replies: deque[Json | Events] = deque()
        self.requests: list[tuple[str, Json]] = []
        self.unexpected: list[str] = []
        handler = type("Handler", (_Handler,), {"stub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def bodies(self) -> list[Json]:
        """The bodies of the requests, in order."""
        return [body for _, body in self.requests]

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: Stub

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        self.stub.requests.append((self.path, body))
        if not self.stub.replies:
            self.stub.unexpected.append(self.path)
            self._answer(500, "application/json", b'{"error":{"message":"nothing more to say"}}')
            return
        reply = self.stub.replies.popleft()
        if isinstance(reply, Events):
            self._answer(200, "text/event-stream", reply.body())
        else:
            self._answer(200, "application/json", json.dumps(reply).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
