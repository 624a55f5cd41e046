"""The only file that does network I/O: deadlines, retries, size bounds, and one HTTP client where it is safe to share one.

Both colours drive the same flows with the same policy; what differs is how a byte is waited for. How requests reach the service
changes this file; what they say does not.

One call has one deadline, retries and all. Each phase of an attempt may wait at most for what is left of it, and the body is
checked against it as it arrives. A synchronous read cannot be interrupted, so a service that trickles its answer is given up
after at most twice the deadline.
"""

import asyncio
import logging
import math
import os
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Real
from typing import Any, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import httpx
from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from halo_sdk._wire import Flow, Outcomes, Request, failure, may_retry
from halo_sdk.errors import (
    HaloConfigError,
    HaloConnectionError,
    HaloError,
    HaloResponseError,
    HaloStatusError,
    HaloTimeoutError,
)
from halo_sdk.types import Reply

logger = logging.getLogger("halo_sdk")

MAX_REPLY_BYTES = 8 * 1024 * 1024

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_LIMITS = httpx.Limits(
    max_connections=100,
    max_keepalive_connections=20,
    keepalive_expiry=4.0,  # below a server's usual 5 s, so that it is not the one to hang up first
)

_Result = TypeVar("_Result")
_Loops = WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient]


class HttpClient(Protocol):
    """What a client handed in must offer; `httpx.Client` and its successors do. A send returns a streaming response."""

    def build_request(
        self, method: str, url: str, *, content: bytes, headers: Mapping[str, str], timeout: float
    ) -> Any:
        """Return a request object of the client's own kind."""

    def send(self, request: Any, *, stream: bool, follow_redirects: bool) -> Any:
        """Send it and return the response, its body unread."""


class AsyncHttpClient(Protocol):
    """What an asynchronous client handed in must offer; `httpx.AsyncClient` and its successors do."""

    def build_request(
        self, method: str, url: str, *, content: bytes, headers: Mapping[str, str], timeout: float
    ) -> Any:
        """Return a request object of the client's own kind."""

    def send(self, request: Any, *, stream: bool, follow_redirects: bool) -> Awaitable[Any]:
        """Send it and return the response, its body unread."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How requests are sent. Clock and chance come in as arguments, so that tests need not wait.

    Attributes:
        base_url: Address of the service, without a slash at the end.
        headers: Sent with every request.
        secret: The key, to keep it out of messages.
        timeout_s: Most time one call may take, retries included.
        max_retries: Most attempts after the first.

    Raises:
        HaloConfigError: They cannot work.
    """

    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(repr=False)
    timeout_s: float
    max_retries: int
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep  # noqa: TID251 (the default of what tests inject)
    async_sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        if not (isinstance(self.timeout_s, Real) and math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise HaloConfigError(f"timeout must be a positive number of seconds, not {self.timeout_s!r}")
        if not (isinstance(self.max_retries, Real) and self.max_retries >= 0):
            raise HaloConfigError(f"max_retries must be a number from 0 on, not {self.max_retries!r}")

    def retrying(self, deadline: float) -> dict[str, Any]:
        """Return the arguments that make tenacity, of either colour, retry within the deadline."""
        enough = stop_after_attempt(self.max_retries + 1)
        return {
            "retry": retry_if_exception(may_retry),
            "wait": self._wait_s,
            "stop": lambda state: enough(state) or self.clock() + state.upcoming_sleep >= deadline,
            "reraise": True,
        }

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, HaloStatusError) and error.retry_after_s is not None:
            return error.retry_after_s
        return self.chance() * min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** (state.attempt_number - 1))

    def remaining_s(self, deadline: float) -> float:
        """Return what is left of a call's time.

        Raises:
            HaloTimeoutError: Nothing is.
        """
        remaining = deadline - self.clock()
        if remaining <= 0:
            raise HaloTimeoutError(f"no complete answer within {self.timeout_s:g} s")
        return remaining

    def build(self, client: HttpClient | AsyncHttpClient, request: Request, deadline: float) -> Any:
        """Return a request of the client's own kind."""
        return client.build_request(
            "POST",
            self.base_url + request.path,
            content=request.body,
            headers={**request.headers, **self.headers},
            timeout=self.remaining_s(deadline),
        )

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn the HTTP client's failures into ours."""
        try:
            yield
        except _exceptions("TimeoutError", "TimeoutException") as error:
            raise HaloTimeoutError(f"no complete answer within {self.timeout_s:g} s") from error
        except _exceptions("RequestError", "StreamError") as error:
            why = type(error).__name__
            raise HaloConnectionError(
                f"no answer from {self.base_url} ({why}): is a service running there, such as `halo serve`?"
            ) from error

    def settled(self, request: Request, response: Any, body: bytes) -> Reply:
        """Return a successful reply.

        Raises:
            HaloStatusError: The reply is a failure.
        """
        headers = {name.lower(): value for name, value in response.headers.items()}
        reply = Reply(response.status_code, headers, body)
        logger.debug("POST %s: %d (%s)", request.path, reply.status_code, headers.get("x-request-id"))
        if 200 <= reply.status_code < 300:
            return reply
        raise failure(reply, secret=self.secret, now=datetime.now(UTC))


def _exceptions(*names: str) -> tuple[type[Exception], ...]:
    """Return exception classes of Python and of every HTTP library in use: a client handed in may be of one we do not import."""
    modules = [sys.modules[name] for name in ("builtins", "httpx", "httpx2") if name in sys.modules]
    return tuple(getattr(module, name) for module in modules for name in names if hasattr(module, name))


class _Body:
    """Collects a reply's body within its bounds."""

    def __init__(self, policy: Policy, deadline: float) -> None:
        self._policy = policy
        self._deadline = deadline
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        self._policy.remaining_s(self._deadline)
        self._size += len(chunk)
        if self._size > MAX_REPLY_BYTES:
            raise HaloResponseError(f"the service's answer is larger than {MAX_REPLY_BYTES} bytes")
        self._chunks.append(chunk)

    def content(self) -> bytes:
        return b"".join(self._chunks)


class Carrier(Protocol):
    """What the two transports have in common."""

    policy: Policy

    def with_policy(self, policy: Policy) -> Self:
        """Return a transport that sends over the same connections by other rules."""


class _Connections:
    """The HTTP client behind one or more transports: the one handed in, or our own, opened when it is first needed."""

    def __init__(self, given: HttpClient | None) -> None:
        self._given = given
        self._inherited: httpx.Client | None = None
        self._own: httpx.Client | None
        self._start()

    def _start(self) -> None:
        """Begin without connections of our own. They belong to one process, and so does the lock."""
        self._own, self._lock, self._pid = None, threading.Lock(), os.getpid()

    def client(self) -> HttpClient:
        """Return the client to send with."""
        if self._given is not None:
            return self._given
        if self._pid != os.getpid():
            self._inherited = self._own  # the parent's: not ours to use, nor to close by losing sight of it
            self._start()
        with self._lock:
            if self._own is None:
                self._own = httpx.Client(trust_env=False, follow_redirects=False, limits=_LIMITS)
            return self._own

    def close(self) -> None:
        """Close our own client; one handed in stays open."""
        if self._own is not None and self._pid == os.getpid():
            self._own.close()
        self._start()


class Transport:
    """Sends requests and waits for their answers."""

    def __init__(
        self,
        policy: Policy,
        http_client: HttpClient | None = None,
        *,
        connections: _Connections | None = None,
    ) -> None:
        self.policy = policy
        self._connections = connections or _Connections(http_client)

    def with_policy(self, policy: Policy) -> Self:
        """Return a transport that sends over the same connections by other rules."""
        return type(self)(policy, connections=self._connections)

    def run(self, flow: Flow[_Result]) -> _Result:
        """Drive a flow to its result. Its requests of one round go out one after another."""
        deadline = self.policy.clock() + self.policy.timeout_s
        try:
            requests = next(flow)
            while True:
                requests = flow.send([self._outcome(request, deadline) for request in requests])
        except StopIteration as end:
            result: _Result = end.value
            return result

    def _outcome(self, request: Request, deadline: float) -> Reply | HaloError:
        try:
            retrying = Retrying(sleep=self.policy.sleep, **self.policy.retrying(deadline))
            return retrying(self._attempt, request, deadline)
        except HaloError as error:
            return error

    def _attempt(self, request: Request, deadline: float) -> Reply:
        client = self._connections.client()
        body = _Body(self.policy, deadline)
        with self.policy.translating():
            outgoing = self.policy.build(client, request, deadline)
            response = client.send(outgoing, stream=True, follow_redirects=False)
            try:
                for chunk in response.iter_bytes():
                    body.add(chunk)
            finally:
                response.close()
        return self.policy.settled(request, response, body.content())

    def close(self) -> None:
        """Close our own connections. A client handed in stays open. The next call opens new ones."""
        self._connections.close()


class _AsyncConnections:
    """The HTTP client behind one or more asynchronous transports: the one handed in, or our own, one in each event loop."""

    def __init__(self, given: AsyncHttpClient | None) -> None:
        self._given = given
        self._inherited: _Loops | None = None
        self._start()

    def _start(self) -> None:
        """Begin without connections of our own. They belong to one process, and each to one event loop."""
        self._own: _Loops = WeakKeyDictionary()
        self._pid = os.getpid()

    def client(self) -> AsyncHttpClient:
        """Return the client to send with in the running loop."""
        if self._given is not None:
            return self._given
        if self._pid != os.getpid():
            self._inherited = self._own  # see _Connections
            self._start()
        # A client holds its loop, so its entry would outlive a loop that was closed.
        for loop in [loop for loop in self._own if loop.is_closed()]:
            del self._own[loop]
        loop = asyncio.get_running_loop()
        if loop not in self._own:
            self._own[loop] = httpx.AsyncClient(trust_env=False, follow_redirects=False, limits=_LIMITS)
        return self._own[loop]

    async def aclose(self) -> None:
        """Close our own client of the running loop; one handed in stays open."""
        own = self._own.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.aclose()


class AsyncTransport:
    """Sends requests side by side and awaits their answers."""

    def __init__(
        self,
        policy: Policy,
        http_client: AsyncHttpClient | None = None,
        *,
        connections: _AsyncConnections | None = None,
    ) -> None:
        self.policy = policy
        self._connections = connections or _AsyncConnections(http_client)

    def with_policy(self, policy: Policy) -> Self:
        """Return a transport that sends over the same connections by other rules."""
        return type(self)(policy, connections=self._connections)

    async def run(self, flow: Flow[_Result]) -> _Result:
        """Drive a flow to its result. Its requests of one round go out side by side."""
        deadline = self.policy.clock() + self.policy.timeout_s
        try:
            requests = next(flow)
            while True:
                outcomes: Outcomes = await asyncio.gather(
                    *(self._outcome(request, deadline) for request in requests)
                )
                requests = flow.send(outcomes)
        except StopIteration as end:
            result: _Result = end.value
            return result

    async def _outcome(self, request: Request, deadline: float) -> Reply | HaloError:
        try:
            retrying = AsyncRetrying(sleep=self.policy.async_sleep, **self.policy.retrying(deadline))
            return await retrying(self._attempt, request, deadline)
        except HaloError as error:
            return error

    async def _attempt(self, request: Request, deadline: float) -> Reply:
        client = self._connections.client()
        body = _Body(self.policy, deadline)
        with self.policy.translating():
            async with asyncio.timeout(self.policy.remaining_s(deadline)):
                outgoing = self.policy.build(client, request, deadline)
                response = await client.send(outgoing, stream=True, follow_redirects=False)
                try:
                    async for chunk in response.aiter_bytes():
                        body.add(chunk)
                finally:
                    await response.aclose()
        return self.policy.settled(request, response, body.content())

    async def aclose(self) -> None:
        """Close our own connections of the running loop. A client handed in stays open. The next call opens new ones."""
        await self._connections.aclose()
