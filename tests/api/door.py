"""The whole server without a socket, and what each of its answers must keep."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson
from fastapi.routing import iter_route_contexts
from sqlalchemy import select
from starlette.types import Message

from halo_server.app import create_app, open_memory, system_clock
from halo_server.config import Settings
from halo_server.domain import Clock, Scope
from halo_server.store.tables import metadata

PROJECT = "customer-product"
USER = "user_123"
API = "/api/v1/memory"
FUNCTION = f"{API}/functions/halo_retrieve_end_user_memory"

_ENVELOPE = {"error": str, "code": str, "requestId": str}
_SENTENCE = re.compile(r"[^\n]*[^\s.][.]")


class Door:
    """A server over a directory, a key of `PROJECT`, and one way to send: `send`, which checks what always holds."""

    def __init__(self, data: Path, *, clock: Clock = system_clock, **settings: Any) -> None:
        settings = {"embedder": "hashing", **settings}
        self.memory = open_memory(Settings(data=data, **settings), clock=clock)
        self.app = create_app(self.memory)
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(self.app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://halo.local")
        self.key = self.new_key(PROJECT)

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()
        self.memory.close()

    def new_key(self, project: str | None = None, end_user: str | None = None, **more: Any) -> str:
        return self.memory.services.access.create(project=project, end_user=end_user, **more)[0]

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = "",
        headers: Mapping[str, str | bytes] | None = None,
        content: Any = None,
    ) -> httpx.Response:
        """Send with the door's own key unless another, or None, is given; `content` is a body as bytes."""
        sent: dict[str, str | bytes] = dict(headers or {})
        if key is not None:
            sent.setdefault("Authorization", f"Bearer {key or self.key}")
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        given = {"content": content} if content is not None else {} if body is None else {"json": body}
        answer = self._runner.run(self._client.request(method, path, headers=sent, **given))
        check(answer)
        return answer

    def capture(
        self,
        said: str | list[Any],
        answer: Any = "Noted.",
        *,
        user: str = USER,
        project: str = PROJECT,
        key: str = "",
        idempotency_key: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Capture one turn, or a whole list of messages, and return the receipt."""
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        body = {"projectKey": project, "endUserKey": user, "sessionData": {"messages": messages}, **more}
        body |= {} if answer is None else {"response": answer}
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        found = self.send("POST", f"{API}/capture", body, key=key, headers=headers)
        assert found.status_code in (200, 201), found.text
        return found.json()

    def call(
        self, query: str | None = None, *, user: str = USER, project: str = PROJECT, key: str = "", **more
    ):
        """Call the function as a model would and return its answer."""
        arguments = {"sessionData": {}, **({} if query is None else {"query": query}), **more}
        body = {"projectKey": project, "endUserKey": user, "arguments": arguments}
        found = self.send("POST", FUNCTION, body, key=key)
        assert found.status_code == 200, found.text
        return found.json()

    def retrieve(
        self, query: str | None = None, *, user: str = USER, project: str = PROJECT, key: str = "", **more
    ):
        """Search and return the answer."""
        body = {"projectKey": project, "endUserKey": user, "query": query, **more}
        found = self.send("POST", f"{API}/retrieve", body, key=key)
        assert found.status_code == 200, found.text
        return found.json()

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return every row of every table."""

        def rows(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
            tables = metadata.sorted_tables
            return {
                table.name: [tuple(row) for row in tx.connection.execute(select(table))] for table in tables
            }

        return self.memory.store.read(rows)

    def disable(self, topic_key: str, *, user: str = USER, project: str = PROJECT) -> None:
        """Hide a topic, as a person would."""
        scope = Scope(project, user)

        def hide(tx: Any) -> None:
            topic = tx.topics(scope, [topic_key])[0]
            tx.put_topic(scope, replace(topic, enabled=False))

        self.memory.store.write(hide)

    def from_address(
        self, address: str, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send without a key and a body from another machine."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        return self.run_asgi(method, path, receive, headers or {}, address)

    def run_asgi(
        self,
        method: str,
        path: str,
        receive: Callable[[], Awaitable[Message]],
        headers: Mapping[str, str],
        address: str = "127.0.0.1",
    ) -> httpx.Response:
        """Send a request whose body arrives as `receive` says."""
        parts: list[Message] = []

        async def send(message: Message) -> None:
            parts.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "scheme": "http",
            "client": (address, 1),
            "server": ("halo.local", 80),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        self._runner.run(self.app(scope, receive, send))
        answer = httpx.Response(
            parts[0]["status"],
            headers=parts[0]["headers"],
            content=b"".join(part.get("body", b"") for part in parts[1:]),
        )
        check(answer)
        return answer


def check(answer: httpx.Response) -> None:
    """Assert what holds of every answer: its id, its envelope if it failed, and that topics and entries agree."""
    assert answer.headers["X-Request-Id"]
    assert answer.headers["Cache-Control"] == "no-store"
    if answer.headers["Content-Type"] != "application/json":
        return
    body = orjson.loads(answer.content)
    if answer.status_code >= 400:
        assert {name: type(value) for name, value in body.items()} == _ENVELOPE
        assert body["requestId"] == answer.headers["X-Request-Id"]
        assert answer.status_code < 500 or body["code"] in ("INTERNAL", "UNAVAILABLE", "STORAGE_FULL")
    elif "selectedTopicKeys" in body:
        check_selection(body)


def check_selection(body: Mapping[str, Any]) -> None:
    """Assert that selected topics, listed topics and entries agree, and that the reason can be read."""
    selected = body["selectedTopicKeys"]
    assert [topic["topicKey"] for topic in body["topics"]] == selected
    assert len(set(selected)) == len(selected)
    assert {entry["topic"]["topicKey"] for entry in body["rawEntries"]} <= set(selected)
    ids = [entry["id"] for entry in body["rawEntries"]]
    assert len(set(ids)) == len(ids)
    assert bool(body["selectionReason"]) == bool(selected)
    assert not selected or _SENTENCE.fullmatch(body["selectionReason"])
    if "functionResponse" in body:
        assert [entry["id"] for entry in body["functionResponse"]["rawEntries"]] == ids
        assert body["functionResponse"]["requestId"] == body["requestId"]


def segment(key: str) -> str:
    """Return the key as one path segment; dots too, since clients resolve `..` by themselves."""
    return quote(key, safe="").replace(".", "%2E")


def served(app: Any) -> set[tuple[str, str]]:
    """Return every method and path pattern the application answers."""
    return {
        (method, route.path)
        for route in iter_route_contexts(app.routes)
        for method in (route.methods or ())
        if method != "HEAD"
    }
