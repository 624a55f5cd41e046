"""What an application holds: a client for a service, and from it a memory for one end user.

Each verb is one line here; what it does is in `dispatch`, how it travels in `_transport`. This is the only file that reads the
environment. A new verb, or a new option of the client, changes it.
"""

import asyncio
import ipaddress
import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypedDict, TypeVar, Unpack, overload
from urllib.parse import urlsplit

from halo_sdk import adapters, dispatch
from halo_sdk._background import AsyncCaptures, Captures
from halo_sdk._transport import AsyncHttpClient, AsyncTransport, Carrier, HttpClient, Policy, Transport
from halo_sdk._wire import started
from halo_sdk.adapters.base import BoundTool
from halo_sdk.dialects import named
from halo_sdk.dialects.base import Accumulator
from halo_sdk.dispatch import Binding, OnError, ResultOptions, ToolResults
from halo_sdk.errors import HaloConfigError, HaloError
from halo_sdk.functions import enabled
from halo_sdk.functions.base import SessionSource
from halo_sdk.types import CaptureResult, Declaration, Outcome, RetrieveResult, Scope, Value

DEFAULT_BASE_URL = "http://127.0.0.1:8765"
"""A service on this machine. Memory never goes to somebody else's host because an option was forgotten."""

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

logger = logging.getLogger("halo_sdk")

_Http = TypeVar("_Http")
_Wire = TypeVar("_Wire", bound=Carrier)
_Later = TypeVar("_Later")


class CallOptions(TypedDict, total=False):
    """What may differ for one call; see `Halo`."""

    timeout: float | None
    max_retries: int | None
    on_error: OnError | None
    max_result_chars: int | None


class _Memory(Generic[_Wire, _Later]):
    """The part of a memory that needs no network."""

    __slots__ = ("_binding", "_captures", "_transport")

    def __init__(self, binding: Binding, transport: _Wire, captures: _Later) -> None:
        self._binding = binding
        self._transport = transport  # keeps the connections open for as long as a memory is in use
        self._captures = captures

    def __repr__(self) -> str:
        return f"{type(self).__name__}(project_key={self.project_key!r}, end_user_key={self.end_user_key!r})"

    @property
    def project_key(self) -> str:
        """The project this memory belongs to."""
        return self._binding.scope.project

    @property
    def end_user_key(self) -> str:
        """The end user whose memory this is."""
        return self._binding.scope.end_user

    def with_options(self, **options: Unpack[CallOptions]) -> Self:
        """Return the same memory with other options, over the same connections: `memory.with_options(timeout=2).handle(…)`.

        What is left out stays as it is.

        Raises:
            HaloConfigError: An option cannot work.
        """
        results, policy = _with_options(self._binding.results, self._transport.policy, options)
        return type(self)(
            replace(self._binding, results=results), self._transport.with_policy(policy), self._captures
        )

    def tools(self, dialect: str, *, strict: bool = False) -> list[Any]:
        """Return what to pass as a provider's `tools`: the same bytes each time, in objects of your own.

        Args:
            dialect: `anthropic`, `gemini`, `gemini-interactions`, `json-schema`, `mcp`, `openai` or `openai-responses`.
            strict: Let the provider enforce the schema. Only with `session="app"`.

        Raises:
            HaloConfigError: The dialect is unknown, or strictness is impossible.
        """
        return dispatch.tools(self._binding, dialect, strict=strict)

    def accumulator(self, dialect: str) -> Accumulator:
        """Return what puts a streamed reply together: feed it each chunk, then pass it to `handle`.

        Args:
            dialect: As for `tools`.

        Raises:
            HaloConfigError: The dialect is unknown, or its replies are not streamed.
        """
        return named(dialect).accumulator()

    def _bound_tools(self, session: object) -> list[BoundTool]:
        """Return the functions for a framework that runs the loop itself."""
        raise NotImplementedError

    def openai_agents_tools(self, *, session: object = None) -> list[Any]:
        """Return tools for an `agents.Agent` of the OpenAI Agents SDK.

        Args:
            session: The conversation, or a function that returns it when a call arrives: what replaces the model's `sessionData`.

        Raises:
            HaloConfigError: The framework is not installed; the message says how to install it.
        """
        return list(adapters.load("openai-agents").tools(self._bound_tools(session)))

    def langchain_tools(self, *, session: object = None) -> list[Any]:
        """Return tools for LangChain and LangGraph. See `openai_agents_tools`."""
        return list(adapters.load("langchain").tools(self._bound_tools(session)))

    def pydantic_ai_toolset(self, *, session: object = None) -> Any:
        """Return a toolset for a `pydantic_ai.Agent`; without `session`, its run's own messages are the conversation.

        See `openai_agents_tools`.
        """
        return adapters.load("pydantic-ai").tools(self._bound_tools(session))

    def llama_index_tools(self, *, session: object = None) -> list[Any]:
        """Return tools for LlamaIndex agents. See `openai_agents_tools`."""
        return list(adapters.load("llama-index").tools(self._bound_tools(session)))

    def anthropic_tools_runnable(self, *, session: object = None) -> list[Any]:
        """Return tools for the tool runner of the Anthropic SDK. See `openai_agents_tools`."""
        return list(adapters.load("anthropic").tools(self._bound_tools(session)))

    def gemini_callables(self, *, session: object = None) -> list[Any]:
        """Return functions for the automatic function calling of the Gemini SDK. See `openai_agents_tools`.

        `tools("gemini")` with `handle` carries more: automatic calling drops ids, and knows no schema but a signature.
        """
        return list(adapters.load("gemini").tools(self._bound_tools(session)))

    def mcp_server(self, *, session: object = None) -> Any:
        """Return an `mcp` low-level server with these functions, for one connection of this end user. See `openai_agents_tools`."""
        return adapters.load("mcp").tools(self._bound_tools(session))


class CaptureOptions(TypedDict, total=False):
    """What may be said beside an exchange.

    Attributes:
        idempotency_key: Makes captures with the same key one; made up for each call when absent.
        occurred_at: When it was said, if not now; a datetime needs a time zone.
    """

    idempotency_key: str | None
    occurred_at: datetime | str | None


_Mem = TypeVar("_Mem", bound=_Memory[Any, Any])
_Retrieve = Literal["halo_retrieve_end_user_memory"]
_Capture = Literal["halo_capture_end_user_memory"]


class Memory(_Memory[Transport, Captures]):
    """One end user's memory. Made by `Halo.for_user`; safe to share between threads."""

    __slots__ = ()

    def _bound_tools(self, session: object) -> list[BoundTool]:
        def bound(declaration: Declaration) -> BoundTool:
            def answer(arguments: object, said: object) -> Outcome:
                flow = dispatch.answer(self._binding, declaration.name, arguments, _spoken(session, said))
                return self._transport.run(flow)

            async def answer_async(arguments: object, said: object) -> Outcome:
                return await asyncio.to_thread(answer, arguments, said)

            return BoundTool(declaration, answer, answer_async)

        return [bound(declaration) for declaration in self._binding.declarations()]

    def handle(self, response: object, *, session: object = None, dialect: str | None = None) -> ToolResults:
        """Answer the model's calls of HALO's functions: exactly one result a call, in the order of the reply.

        Trouble with a call, or with the service, becomes a result the model can live with.

        Args:
            response: The provider's reply: its SDK's object, a dict, JSON text, or the accumulator of a stream.
            session: The conversation so far. It replaces what the model wrote as `sessionData`, and with it the calls of the
                whole turn count towards `max_calls_per_turn`; without it those of this reply.
            dialect: Name of the reply's dialect, if its shape does not tell.

        Returns:
            What to append to the history. False when the reply made no calls.

        Raises:
            HaloConfigError: The reply is of no known dialect.
            AuthenticationError: The key is missing or malformed.
            PermissionDeniedError: The key is not accepted.
            HaloError: Any failure of the service, with `on_error="raise"`.
        """
        return self._transport.run(dispatch.handle(self._binding, response, session, dialect))

    def retrieve(
        self, session_data: object = None, query: str | None = None, limit: int | None = None
    ) -> RetrieveResult:
        """Return what memory holds about a conversation. Writes nothing; empty for an end user never seen before.

        Args:
            session_data: Messages, session data with application state, or the end user's words.
            query: What to look for.
            limit: Most exchanges to return, 1 to 50.

        Raises:
            HaloError: See `halo_sdk.errors`.
        """
        return self._transport.run(dispatch.retrieve(self._binding, session_data, query, limit))

    def capture(
        self, messages: object, response: object = None, **options: Unpack[CaptureOptions]
    ) -> CaptureResult:
        """Store an exchange after the final answer.

        HALO's own calls and results, reasoning and binary content are left out. A conversation that ends with the end user's
        words is stored without an answer.

        Args:
            messages: The conversation: provider messages, SDK objects, session data with application state, or text.
            response: The answer: text, a message, the provider's whole reply, or the accumulator of a stream. Without it, the
                answer that ends `messages`.
            options: See `CaptureOptions`.

        Raises:
            EmptyAnswerError: The model said nothing.
            HaloError: See `halo_sdk.errors`. After a timeout the exchange may have been stored.
        """
        return self._transport.run(dispatch.capture(self._binding, messages, response, **options))

    def capture_later(
        self, messages: object, response: object = None, **options: Unpack[CaptureOptions]
    ) -> "Future[CaptureResult]":
        """Store an exchange without making the end user wait for it. The arguments are those of `capture`.

        What is stored is the conversation as it is now. Exchanges are stored in the order of the calls; the interpreter waits
        for them before it ends, and `Halo.flush` at any time. Waits only while many captures are still under way.

        Returns:
            The receipt to come. A failure is its exception; it is also logged, and returned by `Halo.flush`.

        Raises:
            EmptyAnswerError: The model said nothing.
            HaloConfigError: The conversation is none.
        """
        flow = dispatch.capture(self._binding, messages, response, **options)
        return self._captures.add(self._transport, started(flow))

    @overload
    def call(self, name: _Retrieve, arguments: object, *, session: object = None) -> RetrieveResult: ...

    @overload
    def call(self, name: _Capture, arguments: object, *, session: object = None) -> CaptureResult: ...

    @overload
    def call(self, name: str, arguments: object, *, session: object = None) -> Value: ...

    def call(self, name: str, arguments: object, *, session: object = None) -> Value:
        """Carry out one call by hand, for a model without a dialect. Arguments are repaired and checked as in `handle`.

        Args:
            name: The function's name as the model wrote it.
            arguments: What the model wrote: JSON text or an object.
            session: As for `handle`.

        Raises:
            UnknownToolError: There is no such function. The message is for the model, as are those of the next two.
            InvalidArgumentsError: The arguments cannot be understood.
            ToolCallError: The call needs what the application did not pass.
            HaloError: See `halo_sdk.errors`.
        """
        return self._transport.run(dispatch.call(self._binding, name, arguments, session))


class AsyncMemory(_Memory[AsyncTransport, AsyncCaptures]):
    """One end user's memory, awaited. Made by `AsyncHalo.for_user`; the methods are those of `Memory`."""

    __slots__ = ()

    def _bound_tools(self, session: object) -> list[BoundTool]:
        def bound(declaration: Declaration) -> BoundTool:
            async def answer_async(arguments: object, said: object) -> Outcome:
                flow = dispatch.answer(self._binding, declaration.name, arguments, _spoken(session, said))
                return await self._transport.run(flow)

            return BoundTool(declaration, None, answer_async)

        return [bound(declaration) for declaration in self._binding.declarations()]

    async def handle(
        self, response: object, *, session: object = None, dialect: str | None = None
    ) -> ToolResults:
        """Answer the model's calls of HALO's functions, side by side. See `Memory.handle`."""
        return await self._transport.run(dispatch.handle(self._binding, response, session, dialect))

    async def retrieve(
        self, session_data: object = None, query: str | None = None, limit: int | None = None
    ) -> RetrieveResult:
        """Return what memory holds about a conversation. See `Memory.retrieve`."""
        return await self._transport.run(dispatch.retrieve(self._binding, session_data, query, limit))

    async def capture(
        self, messages: object, response: object = None, **options: Unpack[CaptureOptions]
    ) -> CaptureResult:
        """Store an exchange after the final answer. See `Memory.capture`."""
        return await self._transport.run(dispatch.capture(self._binding, messages, response, **options))

    async def capture_later(
        self, messages: object, response: object = None, **options: Unpack[CaptureOptions]
    ) -> "asyncio.Future[CaptureResult]":
        """Store an exchange without making the end user wait for it. See `Memory.capture_later`.

        Captures belong to the running event loop, which does not wait for them before it ends: await `AsyncHalo.flush`, or use
        the client in `async with`. One that is cancelled is logged.
        """
        flow = dispatch.capture(self._binding, messages, response, **options)
        return await self._captures.add(self._transport, started(flow))

    @overload
    async def call(self, name: _Retrieve, arguments: object, *, session: object = None) -> RetrieveResult: ...

    @overload
    async def call(self, name: _Capture, arguments: object, *, session: object = None) -> CaptureResult: ...

    @overload
    async def call(self, name: str, arguments: object, *, session: object = None) -> Value: ...

    async def call(self, name: str, arguments: object, *, session: object = None) -> Value:
        """Carry out one call by hand. See `Memory.call`."""
        return await self._transport.run(dispatch.call(self._binding, name, arguments, session))


class _Client(Generic[_Http, _Wire, _Later, _Mem]):
    """The part of a client that needs no network."""

    _memory: type[_Mem]
    _transport: _Wire
    _captures: _Later

    def __init__(  # noqa: PLR0913 (each option is one thing a user may want to say)
        self,
        api_key: str | None = None,
        *,
        project_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 10.0,
        max_retries: int = 2,
        http_client: _Http | None = None,
        default_headers: Mapping[str, str] | None = None,
        on_error: OnError = "result",
        max_result_chars: int = 24_000,
        allow_insecure: bool = False,
    ) -> None:
        _set_up_log(_env("HALO_LOG"))
        self._project_key = (
            project_key or getattr(http_client, "halo_project", None) or _env("HALO_PROJECT_KEY")
        )
        self._results = ResultOptions(on_error, max_result_chars)
        key = _credential(api_key, http_client)
        address = _checked_url(base_url or _env("HALO_BASE_URL") or DEFAULT_BASE_URL, insecure=allow_insecure)
        authorization = {} if key is None else {"Authorization": f"Bearer {key}"}
        headers = {**(default_headers or {}), **authorization}
        self._connect(Policy(address, headers, key, timeout, max_retries), http_client)

    def _connect(self, policy: Policy, http_client: _Http | None) -> None:
        raise NotImplementedError

    def __repr__(self) -> str:
        address = self._transport.policy.base_url
        return f"{type(self).__name__}(base_url={address!r}, project_key={self._project_key!r})"

    def with_options(self, **options: Unpack[CallOptions]) -> Self:
        """Return a client with other options, over the same connections. What is left out stays as it is.

        Raises:
            HaloConfigError: An option cannot work.
        """
        client = copy(self)
        results, policy = _with_options(self._results, self._transport.policy, options)
        client._results = results  # noqa: SLF001 (one of us)
        client._transport = self._transport.with_policy(policy)  # noqa: SLF001
        return client

    def for_user(
        self,
        end_user_key: str,
        *,
        project_key: str | None = None,
        tools: Sequence[str] = ("retrieve",),
        session: SessionSource = "model",
        max_calls_per_turn: int = 4,
    ) -> _Mem:
        """Return the memory of one end user. Needs no network; the identity cannot change afterwards.

        Args:
            end_user_key: Your stable id of the person.
            project_key: Another project than the client's.
            tools: Which functions the model may call.
            session: Whether the model writes `sessionData`, or your application passes it to `handle`.
            max_calls_per_turn: Most calls carried out before the end user speaks again.

        Raises:
            HaloConfigError: A key is missing or cannot be one person's.
        """
        project = project_key if project_key is not None else self._project_key
        if project is None:
            raise HaloConfigError("no project: pass project_key=, or set HALO_PROJECT_KEY")
        if session not in {"model", "app"}:
            raise HaloConfigError(f'session must be "model" or "app", not {session!r}')
        binding = Binding(
            scope=Scope(project, end_user_key),
            functions=enabled(tools, session),
            session=session,
            max_calls_per_turn=max_calls_per_turn,
            results=self._results,
        )
        return self._memory(binding, self._transport, self._captures)


class Halo(_Client[HttpClient, Transport, Captures, Memory]):
    """A client for a HALO service. Opens connections when they are first needed; safe to share between threads.

    Args:
        api_key: The key; else `HALO_API_KEY`. Not needed when `http_client` authorises itself.
        project_key: Default project; else the `halo_project` of `http_client`, else `HALO_PROJECT_KEY`.
        base_url: Where the service is; else `HALO_BASE_URL`, else this machine.
        timeout: Most seconds one call may take, retries included.
        max_retries: Most attempts after the first.
        http_client: An `httpx.Client`, or one that works like it. Never closed by us.
        default_headers: Sent with every request.
        on_error: What `handle` does when the service fails: a `result` for the model, or `raise`.
        max_result_chars: Most characters of one result that goes to a model.
        allow_insecure: Let the key travel unencrypted to another machine.

    Raises:
        HaloConfigError: There is no key, or an option cannot work.
    """

    _memory = Memory

    def _connect(self, policy: Policy, http_client: HttpClient | None) -> None:
        _check_colour(http_client, "__enter__", "Halo waits: pass a client that waits, or use AsyncHalo")
        self._transport = Transport(policy, http_client)
        self._captures = Captures()

    def flush(self, timeout: float | None = None) -> tuple[HaloError, ...]:
        """Wait for every capture made later, and return what failed since the last time.

        Args:
            timeout: Most seconds to wait; None waits for as long as it takes.

        Raises:
            HaloTimeoutError: Some are still under way. They go on.
        """
        return self._captures.flush(timeout)

    def close(self) -> None:
        """Wait for captures made later, then close our own connections. A client handed in stays open."""
        self.flush()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncHalo(_Client[AsyncHttpClient, AsyncTransport, AsyncCaptures, AsyncMemory]):
    """A client for a HALO service, awaited. The arguments are those of `Halo`; `http_client` is an `httpx.AsyncClient`.

    Works from any event loop, with connections of its own in each.
    """

    _memory = AsyncMemory

    def _connect(self, policy: Policy, http_client: AsyncHttpClient | None) -> None:
        _check_colour(http_client, "__aenter__", "AsyncHalo awaits: pass an asynchronous client, or use Halo")
        self._transport = AsyncTransport(policy, http_client)
        self._captures = AsyncCaptures()

    async def flush(self, timeout: float | None = None) -> tuple[HaloError, ...]:  # noqa: ASYNC109 (the same as of Halo)
        """Wait for every capture made later in the running event loop. See `Halo.flush`."""
        return await self._captures.flush(timeout)

    async def aclose(self) -> None:
        """Wait for captures made later, then close our own connections of the running event loop."""
        await self.flush()
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _spoken(session: object, said: object) -> object:
    """Return the conversation an application passed, else the one its framework knows."""
    given = session() if callable(session) else session
    return said if given is None else given


def _check_colour(http_client: object, opens: str, hint: str) -> None:
    """Refuse a client of the other colour; one that is opened in neither way is trusted.

    Raises:
        HaloConfigError: It would fail at its first use.
    """
    ways = [way for way in ("__enter__", "__aenter__") if hasattr(type(http_client), way)]
    if ways and opens not in ways:
        raise HaloConfigError(hint)


def _env(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _with_options(
    results: ResultOptions, policy: Policy, options: CallOptions
) -> tuple[ResultOptions, Policy]:
    """Return what to tell and how to send, with those options that are not None."""
    if unknown := options.keys() - CallOptions.__annotations__.keys():
        known = ", ".join(CallOptions.__annotations__)
        raise TypeError(f"unexpected options: {', '.join(sorted(unknown))}; known are {known}")
    given = {name: value for name, value in options.items() if value is not None}
    return (
        replace(results, **_renamed(given, on_error="on_error", max_result_chars="max_chars")),
        replace(policy, **_renamed(given, timeout="timeout_s", max_retries="max_retries")),
    )


def _renamed(given: Mapping[str, Any], **names: str) -> dict[str, Any]:
    return {names[name]: value for name, value in given.items() if name in names}


def _set_up_log(level: str | None) -> None:
    """Show what this package logs, from a level on, where the application has not set up logging itself.

    Raises:
        HaloConfigError: There is no such level.
    """
    if level is None:
        return
    if level.upper() not in _LEVELS:
        raise HaloConfigError(f"HALO_LOG must be one of {', '.join(_LEVELS).lower()}")
    logger.setLevel(level.upper())
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())


def _credential(api_key: str | None, http_client: object) -> str | None:
    """Return the key to send, or None when the client handed in speaks for itself."""
    key = api_key.strip() if api_key else None
    if key is None and "authorization" not in {name.lower() for name in getattr(http_client, "headers", {})}:
        key = _env("HALO_API_KEY")
    if key is None and http_client is None:
        raise HaloConfigError("no key: pass api_key=, or set HALO_API_KEY")
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise HaloConfigError("api_key holds characters a key cannot have")
    return key


def _checked_url(url: str, *, insecure: bool) -> str:
    """Return the service's address without a slash at the end.

    Raises:
        HaloConfigError: It is no address, or a key sent there could be read on the way.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise HaloConfigError(
            "base_url must look like https://host or https://host/path; on this machine also like http://127.0.0.1:8765"
        )
    if parts.username is not None:
        raise HaloConfigError("base_url must not hold a credential; pass api_key=")
    if parts.scheme == "http" and not insecure and not _is_loopback(parts.hostname or ""):
        raise HaloConfigError("the key would travel unencrypted; use https, or pass allow_insecure=True")
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
