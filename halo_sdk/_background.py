"""Captures made after the answer has been given, when nobody should wait for them.

They are carried out one by one in the order they were made, since each conversation builds on the one before. The queue is
bounded: when it is full the application waits, since losing memory is worse. What fails is logged, kept by its future and told
by `flush`, so that nothing is lost in silence. How captures wait for their turn changes this file.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Collection
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import cache
from weakref import WeakSet

from halo_sdk._transport import AsyncTransport, Transport
from halo_sdk._wire import Flow
from halo_sdk.errors import HaloConnectionError, HaloError, HaloTimeoutError
from halo_sdk.types import CaptureResult

logger = logging.getLogger("halo_sdk")

CAPACITY = 64
"""Most captures that wait; each holds one conversation."""


class Captures:
    """Captures under way in a thread of their own.

    The interpreter waits for them before it ends. Once it has begun to end, a service that gives no answer is tried only once:
    what was to be stored after that is given up. One that answers, whatever it says, is asked to store each.
    """

    def __init__(self) -> None:
        self.start()
        _watch_forks()
        _alive.add(self)

    def start(self) -> None:
        """Begin with nothing under way. Threads and locks belong to one process."""
        self._worker = ThreadPoolExecutor(1, "halo-capture")  # starts its thread when there is work
        self._slots = threading.BoundedSemaphore(CAPACITY)
        self._ended = threading.Condition()
        self._waiting: set[Future[CaptureResult]] = set()
        self._failed = _failures()
        self._is_given_up = False

    def add(self, transport: Transport, flow: Flow[CaptureResult]) -> Future[CaptureResult]:
        """Carry out a planned capture later. Waits only while the queue is full."""
        self._slots.acquire()
        future = self._worker.submit(self._carry_out, transport, flow)
        with self._ended:
            self._waiting.add(future)
        future.add_done_callback(self._done)
        return future

    def _carry_out(self, transport: Transport, flow: Flow[CaptureResult]) -> CaptureResult:
        if self._is_given_up:
            raise HaloConnectionError(
                "given up: the program is ending, and the service gave no answer before"
            )
        try:
            return transport.run(flow)
        except HaloConnectionError:
            self._is_given_up = self._is_last_chance()
            raise

    def _is_last_chance(self) -> bool:
        """Tell whether the interpreter has begun to end: of that, a pool that takes no more work is the public sign."""
        try:
            self._worker.submit(bool)
        except RuntimeError:
            return True
        return False

    def _done(self, future: Future[CaptureResult]) -> None:
        self._slots.release()
        error = CancelledError() if future.cancelled() else future.exception()
        _log(error)
        with self._ended:
            if isinstance(error, HaloError):
                self._failed.append(error)
            self._waiting.discard(future)
            self._ended.notify_all()

    def flush(self, timeout_s: float | None) -> tuple[HaloError, ...]:
        """Wait until everything is carried out and told of, and return what failed since the last time.

        Raises:
            HaloTimeoutError: Some captures are still under way. They go on.
        """
        with self._ended:
            mine = set(self._waiting)
            self._ended.wait_for(lambda: mine.isdisjoint(self._waiting), timeout_s)
            _check_late(mine & self._waiting)
            failed = tuple(self._failed)
            self._failed.clear()
        return failed


class AsyncCaptures:
    """Captures under way in tasks of the event loop that made them. A loop that ends first cancels them, which is logged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, _LoopCaptures] = {}
        self._failed = _failures()

    async def add(
        self, transport: AsyncTransport, flow: Flow[CaptureResult]
    ) -> "asyncio.Future[CaptureResult]":
        """Carry out a planned capture later. Waits only while the queue is full."""
        return await self._of_loop().add(transport, flow)

    def _of_loop(self) -> "_LoopCaptures":
        loop = asyncio.get_running_loop()
        with self._lock:  # loops run in threads of their own
            for closed in [each for each in self._loops if each.is_closed()]:
                del self._loops[closed]
            return self._loops.setdefault(loop, _LoopCaptures(self._failed))

    async def flush(self, timeout_s: float | None) -> tuple[HaloError, ...]:
        """Wait until everything of this event loop is carried out, and return what failed since the last time.

        Raises:
            HaloTimeoutError: Some captures are still under way. They go on.
        """
        waiting = tuple(self._of_loop().waiting)
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=timeout_s)
            _check_late(late)
        failed = tuple(self._failed)
        self._failed.clear()
        return failed


class _LoopCaptures:
    """What is under way in one event loop."""

    def __init__(self, failed: deque[HaloError]) -> None:
        self.waiting: set[asyncio.Task[CaptureResult]] = set()
        self._failed = failed
        self._slots = asyncio.BoundedSemaphore(CAPACITY)
        self._turn = asyncio.Lock()  # wakes those who wait in the order they came

    async def add(
        self, transport: AsyncTransport, flow: Flow[CaptureResult]
    ) -> "asyncio.Future[CaptureResult]":
        await self._slots.acquire()
        task = asyncio.create_task(self._carry_out(transport, flow))
        self.waiting.add(task)
        task.add_done_callback(self._done)
        return task

    async def _carry_out(self, transport: AsyncTransport, flow: Flow[CaptureResult]) -> CaptureResult:
        async with self._turn:
            return await transport.run(flow)

    def _done(self, task: "asyncio.Task[CaptureResult]") -> None:
        self._slots.release()
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        _log(error)
        if isinstance(error, HaloError):
            self._failed.append(error)
        self.waiting.discard(task)


_alive: WeakSet[Captures] = WeakSet()


@cache
def _watch_forks() -> None:
    """See to it that a child, which has no thread of ours, begins anew before any of its code runs."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    for captures in list(_alive):
        captures.start()


def _failures() -> deque[HaloError]:
    """Return where failures wait to be told. Each was logged; of those nobody asks for, the newest are kept."""
    return deque(maxlen=CAPACITY)


def _log(error: BaseException | None) -> None:
    if error is not None:
        logger.error("a capture made later was not stored: %s", type(error).__name__)


def _check_late(late: Collection[object]) -> None:
    if late:
        raise HaloTimeoutError(f"{len(late)} captures are still under way")
