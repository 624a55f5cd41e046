"""The composition root: the only caller of the registries. Opens what the settings name and wires it together."""

import fcntl
import os
import random
import threading
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, cast

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Gauge

from halo_server.api import ROUTERS
from halo_server.api.deps import Services
from halo_server.api.description import describe
from halo_server.api.edge import Edge
from halo_server.api.errors import CatchAll, install
from halo_server.config import Settings
from halo_server.domain import Clock, Instant
from halo_server.embedders import open_embedder
from halo_server.embedders.base import Embedder
from halo_server.errors import DataDirectoryInUse
from halo_server.index.hot import HotIndexes
from halo_server.llms import open_llm
from halo_server.llms.base import LLM
from halo_server.log import get_logger
from halo_server.services.access import Access
from halo_server.services.capture import Capture
from halo_server.services.derive import EMBED, Embed
from halo_server.services.inventory import Inventory
from halo_server.services.lifecycle import Forget
from halo_server.services.naming import NAME_TOPIC, NameTopic
from halo_server.services.retrieve import Retrieve
from halo_server.services.topics import Topics
from halo_server.services.vectors import QueryVectors
from halo_server.store import open_store
from halo_server.store.store import Store
from halo_server.worker import Handler, Worker

__all__ = ["Memory", "create_app", "open_access", "open_memory", "system_clock"]

_log = get_logger()
_building = threading.Lock()


def system_clock() -> Instant:
    """Return the present."""
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Memory:
    """Everything one process holds open over one data directory."""

    services: Services
    store: Store
    lock: IO[str]
    worker: Worker

    def start(self) -> None:
        """Begin to do what requests leave for later."""
        self.worker.start()

    def close(self) -> None:
        """Let go of the jobs, the database and the directory."""
        with self.lock:
            try:
                self.worker.stop()
            finally:
                self.store.close()


def open_memory(settings: Settings, *, clock: Clock = system_clock) -> Memory:
    """Open the data directory, made if absent.

    Raises:
        DataDirectoryInUse: Another process has it open.
        SchemaTooNew: A newer HALO wrote it.
    """
    with ExitStack() as undo:  # whatever fails, the directory is let go of
        lock = undo.enter_context(_lock(settings.data))
        embedder, degraded = _embedder(settings)
        store = open_store(settings.data, embedder.id)
        undo.callback(store.close)
        if store.write(lambda tx: tx.first_embedder()) != embedder.id:
            degraded = (*degraded, "vectors")  # what another embedder wrote is found by its words alone
        llm = _llm(settings)
        if settings.llm and not llm:
            degraded = (*degraded, "llm")
        worker = _worker(store, embedder, llm, clock)
        services = _services(settings, store, embedder, worker, degraded, clock, naming=llm is not None)
        undo.pop_all()
    return Memory(services, store, lock, worker)


def _worker(store: Store, embedder: Embedder, llm: LLM | None, clock: Clock) -> Worker:
    """The table of jobs: each kind and who does it."""
    handlers: dict[str, Handler] = {EMBED: Embed(store, embedder, clock, _new_id, naming=llm is not None)}
    if llm:
        handlers[NAME_TOPIC] = NameTopic(store, llm, clock, _new_id)
    return Worker(store, handlers, clock, _new_id, random.random)


def _services(
    settings: Settings,
    store: Store,
    embedder: Embedder,
    worker: Worker,
    degraded: tuple[str, ...],
    clock: Clock,
    *,
    naming: bool,
) -> Services:
    vectors = QueryVectors(embedder, settings.query_cache)
    indexes = HotIndexes(embedder.dim, settings.index_max_bytes)
    return Services(
        settings=settings,
        access=Access(store, clock, _new_id),
        capture=Capture(
            store=store,
            embedder=embedder,
            secret=store.secret("digests"),
            clock=clock,
            new_id=_new_id,
            duplicate_window_ms=settings.duplicate_window_s * 1000,
            naming=naming,
            wake=worker.wake,
        ),
        retrieve=Retrieve(store, indexes, vectors),
        forget=Forget(store, embedder.dim, vectors, clock, _new_id),
        topics=Topics(store, clock),
        inventory=Inventory(store, clock),
        indexes=indexes,
        degraded_since_start=degraded,
    )


def open_access(data: Path) -> tuple[Access, Store]:
    """Open only what keys need, beside a running server or without one."""
    store = open_store(data, "")
    return Access(store, system_clock, _new_id), store


def create_app(memory: Memory) -> FastAPI:
    """Return the application over an open memory; it closes the memory when it stops."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        memory.start()
        yield
        memory.close()

    app = FastAPI(
        title="HALO",
        version=version("halo-memory"),
        description="Long-term memory of end users for LLM applications.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would answer without a key, and name a host the client chose
        lifespan=lifespan,
    )
    registry = CollectorRegistry()
    Gauge("halo_index_bytes", "Memory of open indexes.", registry=registry).set_function(
        lambda: memory.services.indexes.nbytes
    )
    Gauge("halo_index_scopes", "Open indexes.", registry=registry).set_function(
        lambda: len(memory.services.indexes)
    )
    Gauge("halo_jobs", "Jobs that wait or run.", registry=registry).set_function(
        lambda: memory.worker.count()[0]
    )
    Gauge("halo_jobs_dead", "Jobs given up.", registry=registry).set_function(
        lambda: memory.worker.count()[1]
    )
    registry.register(memory.worker.failures)
    app.state.services = memory.services
    app.state.registry = registry
    for router in ROUTERS:
        app.include_router(router)
    install(app)
    describe(app)
    app.add_middleware(CatchAll)
    app.add_middleware(Edge, new_id=_new_id, registry=registry)
    return app


def _lock(data: Path) -> IO[str]:
    """Hold the directory for this process; the lock goes with the process, however it ends."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = (data / "halo.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise DataDirectoryInUse from None
    handle.truncate(0)
    handle.write(f"{os.getpid()}\n")
    handle.flush()
    return handle


def _embedder(settings: Settings) -> tuple[Embedder, tuple[str, ...]]:
    """Return the embedder asked for; if its wheel is missing or changed, the one that always works, and say so."""
    try:
        return open_embedder(settings.embedder, settings), ()
    except ImportError as error:
        _log.error(
            "embedder missing, falling back to words alone", embedder=settings.embedder, exc_info=error
        )
        return open_embedder("hashing"), ("embedder",)


def _llm(settings: Settings) -> LLM | None:
    """Return the LLM asked for, or None; if its package is missing, say so and do without."""
    if not settings.llm:
        return None
    try:
        return open_llm(settings.llm, settings.llm_timeout_s)
    except ImportError as error:
        _log.error("LLM missing, topics are named without", exc_info=error)
        return None


def __getattr__(name: str) -> FastAPI:
    """Build the application for `uvicorn halo_server.app:app` from settings alone, when it is asked for."""
    if name != "app":
        raise AttributeError(name)
    with _building:  # asked for again, or by two at once, it is the same one: the directory is ours already
        if "app" not in globals():
            globals()["app"] = create_app(open_memory(Settings()))
        return cast(FastAPI, globals()["app"])
