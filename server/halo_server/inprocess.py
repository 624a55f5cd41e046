"""The whole server inside an application's process: no port, no second terminal, one directory.

The SDK is handed an ordinary httpx client whose transport calls the application directly, so that nothing about a request
is different from one over a socket. Its key travels inside.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from fastapi import FastAPI

from halo_server.api.body import identifier
from halo_server.app import Memory, create_app, open_memory
from halo_server.config import Settings

__all__ = ["AsyncEmbeddedClient", "EmbeddedClient", "embedded", "embedded_async"]

_URL = "http://halo.local"


@dataclass(slots=True)
class _Host:
    """One open directory and how many clients use it."""

    path: Path
    memory: Memory
    app: FastAPI
    clients: int = 0


_lock = threading.Lock()
_hosts: dict[Path, _Host] = {}
_inherited: list[_Host] = []
"""What a parent process had open. Out of sight, its databases would be closed in this process: they stay, unused."""


def _disown() -> None:
    """Begin afresh in a forked child: threads, locks and connections stayed with the parent."""
    global _lock  # noqa: PLW0603 (a lock some thread of the parent held would never be free)
    _lock = threading.Lock()
    for host in _hosts.values():
        host.memory.lock.close()  # our copy alone would keep the directory after the parent let go of it
    _inherited.extend(_hosts.values())
    _hosts.clear()


os.register_at_fork(after_in_child=_disown)


def embedded(
    path: str | Path, *, project: str = "default", settings: Settings | None = None
) -> "EmbeddedClient":
    """Return a client for `halo_sdk.Halo(http_client=…)` over a server in this process.

    Args:
        path: The directory of all data, made if absent. Clients of one process may share it.
        project: The project whose memory this is, made if absent.
        settings: Other settings than the environment's; their `data` is replaced by `path`. While a directory is open, those
            it was opened with hold.

    Closing the client lets requests under way end first. It belongs to the process that made it: a forked child gets
    `httpx.ConnectError`.

    Raises:
        halo_server.errors.DataDirectoryInUse: Another process has the directory open.
        halo_server.errors.InvalidRequest: `project` is no key a request could name.
    """
    return EmbeddedClient(Path(path), project, settings)


def embedded_async(
    path: str | Path, *, project: str = "default", settings: Settings | None = None
) -> "AsyncEmbeddedClient":
    """Return a client for `halo_sdk.AsyncHalo(http_client=…)`; otherwise as `embedded`."""
    return AsyncEmbeddedClient(Path(path), project, settings)


class EmbeddedClient(httpx.Client):
    """An httpx client whose server is in this process.

    Attributes:
        halo_project: The project its key is for.
    """

    def __init__(self, path: Path, project: str, settings: Settings | None = None) -> None:
        with _entered(path, project, settings) as host:
            headers = _authorized(host, project)
            super().__init__(base_url=_URL, headers=headers, transport=_InProcess(host), timeout=60.0)
        self.halo_project = project


class AsyncEmbeddedClient(httpx.AsyncClient):
    """The same for asyncio."""

    def __init__(self, path: Path, project: str, settings: Settings | None = None) -> None:
        with _entered(path, project, settings) as host:
            headers = _authorized(host, project)
            super().__init__(base_url=_URL, headers=headers, transport=_AsyncInProcess(host), timeout=60.0)
        self.halo_project = project


class _Gate:
    """Counts the requests under way, so that nothing is closed beneath one."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._left = threading.Condition()
        self._under_way = 0
        self._closed = False

    def enter(self) -> None:
        """Begin a request.

        Raises:
            httpx.ConnectError: The server was closed, or is not of this process.
        """
        if self._pid != os.getpid():  # before the lock: a thread of the parent may have held it
            raise httpx.ConnectError("The embedded server belongs to the parent process.")
        with self._left:
            if self._closed:
                raise httpx.ConnectError("The embedded server was closed.")
            self._under_way += 1

    def leave(self) -> None:
        """End a request."""
        with self._left:
            self._under_way -= 1
            self._left.notify_all()

    def close(self) -> bool:
        """Let nobody in and wait until the last is out; return whether there is something to close, and it is for the caller."""
        if self._pid != os.getpid():
            return False
        with self._left:
            first, self._closed = not self._closed, True
            self._left.wait_for(lambda: not self._under_way)
        return first


class _InProcess(httpx.BaseTransport):
    """Runs the asynchronous application on a thread of its own and waits for it.

    The thread is a daemon: a program that forgets to close its client still ends, and loses nothing, since whatever was
    answered is on disk.
    """

    def __init__(self, host: _Host) -> None:
        self._host = host
        self._gate = _Gate()
        self._inner = httpx.ASGITransport(host.app)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="halo-embedded", daemon=True)
        self._thread.start()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._gate.enter()
        answer = asyncio.run_coroutine_threadsafe(self._handle(request), self._loop)
        # When the work ends, not the wait for it: an interrupt ends only the wait.
        answer.add_done_callback(lambda _: self._gate.leave())
        return answer.result()

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        response = await self._inner.handle_async_request(sent)
        body = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=body)

    def close(self) -> None:
        if not self._gate.close():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        _leave(self._host)


class _AsyncInProcess(httpx.ASGITransport):
    """Calls the application in the caller's event loop."""

    def __init__(self, host: _Host) -> None:
        super().__init__(host.app)
        self._host = host
        self._gate = _Gate()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._gate.enter()
        try:
            return await super().handle_async_request(request)
        finally:
            self._gate.leave()

    async def aclose(self) -> None:
        # On a thread: the requests waited for may need this loop to end.
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._gate.close():
            _leave(self._host)


@contextmanager
def _entered(path: Path, project: str, settings: Settings | None) -> Iterator[_Host]:
    """Give a client its place in a directory, opened if it is not yet, and take it back if the client cannot be made."""
    identifier(project, "projectKey")
    path = path.resolve()
    with _lock:
        host = _hosts.get(path) or _opened(path, settings)
        host.clients += 1
    try:
        yield host
    except BaseException:
        _leave(host)
        raise


def _opened(path: Path, settings: Settings | None) -> _Host:
    memory = open_memory((settings or Settings()).model_copy(update={"data": path}))
    try:
        host = _hosts[path] = _Host(path, memory, create_app(memory))
        memory.start()
    except BaseException:
        memory.close()
        raise
    return host


def _authorized(host: _Host, project: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {host.memory.services.access.embedded_key(project)}"}


def _leave(host: _Host) -> None:
    with _lock:
        host.clients -= 1
        if not host.clients:
            del _hosts[host.path]
            host.memory.close()
