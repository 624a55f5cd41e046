"""The whole server inside an application's process: no port, no second terminal, one directory.

The SDK is handed an ordinary httpx client whose transport calls the application directly, so that nothing about a request
is different from one over a socket. Its key travels inside.
"""

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path

import httpx
from fastapi import FastAPI

from halo_server.app import Memory, create_app, open_memory
from halo_server.config import Settings

__all__ = ["AsyncEmbeddedClient", "EmbeddedClient", "embedded", "embedded_async"]

_URL = "http://halo.local"


@dataclass(slots=True)
class _Host:
    """One open directory and how many clients use it."""

    memory: Memory
    app: FastAPI
    clients: int = 0


_lock = threading.Lock()
_hosts: dict[Path, _Host] = {}


def embedded(
    path: str | Path, *, project: str = "default", settings: Settings | None = None
) -> "EmbeddedClient":
    """Return a client for `halo_sdk.Halo(http_client=…)` over a server in this process.

    Args:
        path: The directory of all data, made if absent. Clients of one process may share it.
        project: The project whose memory this is, made if absent.
        settings: Other settings than the environment's; their `data` is replaced by `path`.

    Raises:
        halo_server.errors.DataDirectoryInUse: Another process has the directory open.
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
        host, headers = _enter(path, project, settings)
        self.halo_project = project
        super().__init__(base_url=_URL, headers=headers, transport=_InProcess(host.app, path), timeout=60.0)


class AsyncEmbeddedClient(httpx.AsyncClient):
    """The same for asyncio."""

    def __init__(self, path: Path, project: str, settings: Settings | None = None) -> None:
        host, headers = _enter(path, project, settings)
        self.halo_project = project
        super().__init__(
            base_url=_URL, headers=headers, transport=_AsyncInProcess(host.app, path), timeout=60.0
        )


class _InProcess(httpx.BaseTransport):
    """Runs the asynchronous application on a thread of its own and waits for it.

    The thread is a daemon: a program that forgets to close its client still ends, and loses nothing, since whatever was
    answered is on disk.
    """

    def __init__(self, app: FastAPI, path: Path) -> None:
        self._path = path
        self._inner = httpx.ASGITransport(app)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="halo-embedded", daemon=True)
        self._thread.start()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._loop.is_closed():
            raise httpx.ConnectError("The embedded server was closed.")
        return asyncio.run_coroutine_threadsafe(self._handle(request), self._loop).result()

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        sent = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        response = await self._inner.handle_async_request(sent)
        body = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=body)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        _leave(self._path)


class _AsyncInProcess(httpx.ASGITransport):
    """Calls the application in the caller's event loop."""

    def __init__(self, app: FastAPI, path: Path) -> None:
        super().__init__(app)
        self._path: Path | None = path

    async def aclose(self) -> None:
        if self._path is not None:
            path, self._path = self._path, None
            _leave(path)


def _enter(path: Path, project: str, settings: Settings | None) -> tuple[_Host, dict[str, str]]:
    path = path.resolve()
    with _lock:
        if path not in _hosts:
            memory = open_memory((settings or Settings()).model_copy(update={"data": path}))
            _hosts[path] = _Host(memory, create_app(memory))
        host = _hosts[path]
        host.clients += 1
    return host, {"Authorization": f"Bearer {host.memory.services.access.embedded_key(project)}"}


def _leave(path: Path) -> None:
    with _lock:
        host = _hosts[path.resolve()]
        host.clients -= 1
        if not host.clients:
            del _hosts[path.resolve()]
            host.memory.close()
