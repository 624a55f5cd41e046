"""One step of the loop between a model and its memory: calls in, results out. Decides everything, waits for nothing.

Each verb is a flow: it yields requests and is sent what became of them, so that the two clients share every decision. Trusted
identity comes from the `Binding`, never from what a model wrote. What happens to a call changes this file.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from numbers import Real
from typing import Any, Literal

from halo_sdk import dialects
from halo_sdk._arguments import read_arguments
from halo_sdk._budget import fitted
from halo_sdk._plain import loads, plain
from halo_sdk._session import Session, exchange, opened
from halo_sdk._wire import (
    Flow,
    Request,
    capture_request,
    captured,
    function_request,
    instant,
    is_outage,
    retrieved,
)
from halo_sdk.dialects.base import Accumulator, Dialect, ModelReply, is_own
from halo_sdk.errors import (
    AuthenticationError,
    HaloConfigError,
    HaloError,
    PermissionDeniedError,
    ToolCallError,
    TruncatedArgumentsError,
    UnknownToolError,
)
from halo_sdk.functions.base import Function, Invocation, SessionSource
from halo_sdk.functions.retrieve import RETRIEVE
from halo_sdk.types import CaptureResult, Declaration, Outcome, Reply, RetrieveResult, Scope, ToolCall, Value

logger = logging.getLogger("halo_sdk")

OnError = Literal["result", "raise"]

SMALLEST_RESULT_CHARS = 200

UNAVAILABLE = "memory is unavailable; answer without it"
REFUSED = "memory could not answer this call; answer without it"
CONSULTED = "memory was already consulted for this turn; answer with what you have"
CUT_OFF = "arguments were cut off; call again with shorter arguments"


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """What a model is told.

    Attributes:
        on_error: Whether a failing service becomes a result the model can live with, or is raised.
        max_chars: Most characters of one result.

    Raises:
        HaloConfigError: They cannot work.
    """

    on_error: OnError
    max_chars: int

    def __post_init__(self) -> None:
        if self.on_error not in ("result", "raise"):
            raise HaloConfigError(f'on_error must be "result" or "raise", not {self.on_error!r}')
        if not (isinstance(self.max_chars, Real) and self.max_chars >= SMALLEST_RESULT_CHARS):
            raise HaloConfigError(
                f"max_result_chars must be a number from {SMALLEST_RESULT_CHARS} on, not {self.max_chars!r}"
            )


@dataclass(frozen=True, slots=True)
class Binding:
    """Everything about a memory that a model cannot change.

    Attributes:
        scope: Whose memory it is.
        functions: What the model may call.
        session: Who supplies `sessionData`.
        max_calls_per_turn: Most calls that are carried out before the end user speaks again.
        results: What the model is told.
    """

    scope: Scope
    functions: tuple[Function, ...]
    session: SessionSource
    max_calls_per_turn: int
    results: ResultOptions

    def declarations(self, *, strict: bool = False) -> list[Declaration]:
        """Return fresh declarations of what the model may call."""
        return [function.declaration(self.session, strict=strict) for function in self.functions]

    def function(self, name: str) -> Function:
        """Return the function of that name.

        Raises:
            UnknownToolError: It is not one the model may call. The message, for the model, names those it may.
        """
        named = {function.name: function for function in self.functions}
        if name not in named:
            closest = get_close_matches(name, named, n=1, cutoff=0.6)
            hint = f"; did you mean {closest[0]}?" if closest else ""
            raise UnknownToolError(f"there is no such function; available: {', '.join(named)}{hint}")
        return named[name]


class ToolResults(list[dict[str, Any]]):
    """What to append to the history after a model's reply: `messages += results`.

    The list holds the results of the calls answered so far, in the order of the reply, in its dialect. HALO's calls are answered
    from the start; calls of the application's own functions are `pending` until `add` answers them. It is false when the reply
    made no calls, so a loop can end on it.

    Attributes:
        calls: Every call of the reply, in order.
        turn: The model's turn as plain JSON, in the dialect's messages. Append it, before the results, when there is no SDK
            object to append, or when a provider left out the ids of its calls: these are made up, the same in both.
        problem: What is wrong with the reply as a whole, such as `truncated` or `malformed_function_call`; else None.
    """

    def __init__(self, dialect: Dialect, reply: ModelReply, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.calls = reply.calls
        self.turn = list(reply.turn)
        self.problem = reply.problem
        self._dialect = dialect
        self._by_index = {outcome.call.index: outcome for outcome in outcomes}
        self._render()

    def __bool__(self) -> bool:
        return bool(self.calls)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What became of each answered call, in the order of the reply."""
        return tuple(self._by_index[call.index] for call in self.calls if call.index in self._by_index)

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls still to be answered by the application, in the order of the reply."""
        return tuple(call for call in self.calls if call.index not in self._by_index)

    @property
    def complete(self) -> bool:
        """Whether every call is answered. A provider refuses a history in which one is not."""
        return not self.pending

    def add(self, call: ToolCall, output: object, *, is_error: bool = False) -> None:
        """Answer a call of one of the application's own functions; the list is filled in place.

        Args:
            call: One of `pending`.
            output: What the function returned: text, or anything JSON can say.
            is_error: Tell the model that the call failed.

        Raises:
            HaloConfigError: The call is not pending.
        """
        if call not in self.pending:
            raise HaloConfigError("that call is not pending in this reply")
        self._by_index[call.index] = Outcome(call, ok=not is_error, body=plain(output))
        self._render()

    @property
    def exhausted(self) -> bool:
        """Whether every call was refused because memory had been consulted often enough for one turn.

        A model that may stop calling will answer now. One whose `tool_choice` forces a call cannot: end the loop, or lift it.
        """
        refusals = [outcome.body == CONSULTED for outcome in self.outcomes]
        return self.complete and bool(refusals) and all(refusals)

    def _render(self) -> None:
        self[:] = self._dialect.write(self.outcomes)


def tools(binding: Binding, dialect: str, *, strict: bool) -> list[dict[str, Any]]:
    """Return a provider's `tools` argument, fresh and the same each time.

    Raises:
        HaloConfigError: The dialect is unknown, or a strict schema is asked for while the model writes `sessionData`.
    """
    if strict and binding.session != "app":
        raise HaloConfigError('strict=True needs session="app": no strict schema can hold sessionData')
    return dialects.named(dialect).declare(binding.declarations(strict=strict), strict=strict)


def retrieve(binding: Binding, session: object, query: str | None, limit: int | None) -> Flow[RetrieveResult]:
    """Ask for memory on the application's own behalf."""
    arguments: dict[str, Any] = {"sessionData": {} if session is None else opened(session).question}
    if query is not None:
        arguments["query"] = plain(query)
    if limit is not None:
        arguments["limit"] = limit
    outcomes = yield [function_request(binding.scope, RETRIEVE, arguments)]
    return retrieved(_reply(outcomes[0]))


def call(binding: Binding, name: str, arguments: object, session: object) -> Flow[Value]:
    """Carry out one call a model made, and raise whatever goes wrong."""
    function = binding.function(name)
    request = _request(binding, function, arguments, None if session is None else opened(session))
    outcomes = yield [request]
    return function.result(_reply(outcomes[0]))


def answer(binding: Binding, name: str, arguments: object, session: object) -> Flow[Outcome]:
    """Carry out one call a framework hands over by name, with the care of `handle`."""
    reply = ModelReply((ToolCall(name, arguments, raw=arguments),))
    outcomes = yield from _answered(binding, reply, session)
    return outcomes[0]


def capture(
    binding: Binding,
    messages: object,
    response: object,
    *,
    idempotency_key: str | None = None,
    occurred_at: datetime | str | None = None,
) -> Flow[CaptureResult]:
    """Store an exchange. The key is made here, before the first attempt, so that every attempt carries the same one."""
    conversation = exchange(opened(messages), response)
    if conversation.truncated:
        logger.warning("the history is too long for one capture; its oldest messages are left out")
    request = capture_request(
        binding.scope,
        conversation.session_data,
        conversation.response,
        idempotency_key=_checked_key(idempotency_key),
        occurred_at=instant(occurred_at),
        truncated=conversation.truncated,
    )
    outcomes = yield [request]
    return captured(_reply(outcomes[0]), truncated=conversation.truncated)


def _checked_key(key: str | None) -> str:
    if key is None:
        return uuid.uuid4().hex
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable()):
        raise HaloConfigError("idempotency_key must be 1 to 255 printable ASCII characters")
    return key


def handle(binding: Binding, response: object, session: object, dialect: str | None) -> Flow[ToolResults]:
    """Answer every call of HALO's functions in a model's reply."""
    spoken, reply = _understood(response, dialect)
    own = replace(reply, calls=tuple(made for made in reply.calls if is_own(made.name)))
    outcomes = yield from _answered(binding, own, session)
    return ToolResults(spoken, reply, outcomes)


def _understood(response: object, dialect: str | None) -> tuple[Dialect, ModelReply]:
    if isinstance(response, Accumulator):
        spoken, plain_reply = response.dialect, response.reply
    else:
        plain_reply = _plain_reply(response)
        spoken = dialects.detected(plain_reply) if dialect is None else dialects.named(dialect)
    reply = spoken.read(plain_reply)
    ids = [made.id for made in reply.calls if made.id is not None]
    if len(set(ids)) < len(ids):
        logger.warning("the reply uses an id for several calls; results are in the order of the calls")
    if reply.ignored_calls:
        logger.warning("the reply has several alternatives; the calls of all but the first are ignored")
    return spoken, reply


def _plain_reply(response: object) -> Any:
    if isinstance(response, str | bytes | bytearray):
        try:
            response = loads(response)
        except ValueError as error:
            raise HaloConfigError("a reply given as text must be the provider's JSON") from error
    return plain(response)


def _answered(binding: Binding, reply: ModelReply, session: object) -> Flow[list[Outcome]]:
    """Carry out the calls of a reply. Identical requests are sent once: models and gateways repeat themselves."""
    conversation = None if session is None or not reply.calls else opened(session)
    planned = list(_planned(binding, reply, conversation))
    requests = list({step.same: step for _, step in planned if isinstance(step, Request)}.values())
    replies = (yield requests) if requests else []
    arrived = {request.same: reply for request, reply in zip(requests, replies, strict=True)}
    return [
        _outcome(binding, made, arrived[step.same] if isinstance(step, Request) else step)
        for made, step in planned
    ]


def _planned(
    binding: Binding, reply: ModelReply, conversation: Session | None
) -> Iterator[tuple[ToolCall, Request | HaloError]]:
    """Yield what to do about each call: a request to send, or the reason not to."""
    left = binding.max_calls_per_turn - (conversation.calls_this_turn if conversation else 0)
    for made in reply.calls:
        try:
            if reply.problem == "truncated":
                raise TruncatedArgumentsError(CUT_OFF)
            request = _request(binding, binding.function(made.name), made.raw, conversation)
        except ToolCallError as error:
            yield made, error
            continue
        yield made, request if left > 0 else ToolCallError(CONSULTED)
        left -= 1


def _request(binding: Binding, function: Function, raw: object, conversation: Session | None) -> Request:
    """Return the request that carries out a call, about the application's conversation if one is given.

    Raises:
        ToolCallError: The call cannot be carried out.
    """
    arguments = read_arguments(raw, function.parameters(binding.session), function.repairs)
    return function.request(Invocation(binding.scope, arguments, conversation))


def _reply(outcome: Reply | HaloError) -> Reply:
    if isinstance(outcome, HaloError):
        raise outcome
    return outcome


def _outcome(binding: Binding, made: ToolCall, answer: Reply | HaloError) -> Outcome:
    """Return what the model is told. A failing service is described in our words, never in its own.

    Raises:
        HaloError: The key is not accepted, or the application wants failures raised.
    """
    if isinstance(answer, ToolCallError):
        return Outcome(made, ok=False, body=str(answer), error=answer)
    function = binding.function(made.name)
    try:
        result = function.result(_reply(answer))
    except (AuthenticationError, PermissionDeniedError):
        raise
    except HaloError as error:
        if binding.results.on_error == "raise":
            raise
        logger.warning("a call of %s failed: %s", made.name, type(error).__name__)
        return Outcome(made, ok=False, body=UNAVAILABLE if is_outage(error) else REFUSED, error=error)
    return Outcome(made, ok=True, body=fitted(function.body(result), binding.results.max_chars))
