"""One step of the loop between a model and its memory: calls in, results out. Decides everything, waits for nothing.

Each verb is a flow: it yields requests and is sent what became of them, so that the two clients share every decision. Trusted
identity comes from the `Binding`, never from what a model wrote. What happens to a call changes this file.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal

from halo_sdk import dialects
from halo_sdk._arguments import read_arguments
from halo_sdk._budget import fitted
from halo_sdk._plain import loads, plain
from halo_sdk._session import calls_this_turn, exchange, opened, session_data
from halo_sdk._wire import (
    Flow,
    Reply,
    Request,
    capture_request,
    captured,
    function_request,
    instant,
    is_outage,
    retrieved,
)
from halo_sdk.dialects.base import Dialect, ModelReply
from halo_sdk.errors import (
    AuthenticationError,
    HaloConfigError,
    HaloError,
    PermissionDeniedError,
    ToolCallError,
    TruncatedArgumentsError,
    UnknownToolError,
)
from halo_sdk.functions import (
    CONSULTED,
    CUT_OFF,
    REFUSED,
    RETRIEVE,
    UNAVAILABLE,
    Function,
    SessionSource,
    is_own,
)
from halo_sdk.types import CaptureResult, Outcome, RetrieveResult, Scope, ToolCall

logger = logging.getLogger("halo_sdk")

OnError = Literal["result", "raise"]


@dataclass(frozen=True, slots=True)
class Binding:
    """Everything about a memory that a model cannot change.

    Attributes:
        scope: Whose memory it is.
        functions: What the model may call.
        session: Who supplies `sessionData`.
        max_calls_per_turn: Most calls that are carried out before the end user speaks again.
        on_error: Whether a failing service becomes a result the model can live with, or is raised.
        max_result_chars: Most characters of one result.
    """

    scope: Scope
    functions: tuple[Function, ...]
    session: SessionSource
    max_calls_per_turn: int
    on_error: OnError
    max_result_chars: int

    def declarations(self, *, strict: bool = False) -> list[dict[str, Any]]:
        """Return fresh neutral declarations of what the model may call."""
        return [function.declaration(self.session, strict=strict) for function in self.functions]

    def parameters(self, name: str) -> dict[str, Any]:
        """Return what the function of that name accepts.

        Raises:
            UnknownToolError: It is not one the model may call. The message, for the model, names those it may.
        """
        names = [function.name for function in self.functions]
        if name not in names:
            closest = get_close_matches(name, names, n=1, cutoff=0.6)
            hint = f"; did you mean {closest[0]}?" if closest else ""
            raise UnknownToolError(f"there is no such function; available: {', '.join(names)}{hint}")
        return self.functions[names.index(name)].parameters(self.session)


class ToolResults(list[dict[str, Any]]):
    """What to append to the history after a model's reply: `messages += results`.

    The list holds the results of the calls answered so far, in the order of the reply, in its dialect. HALO's calls are answered
    from the start; calls of the application's own functions are `pending` until `add` answers them. It is false when the reply
    made no calls, so a loop can end on it.

    Attributes:
        calls: Every call of the reply, in order.
        problem: What is wrong with the reply as a whole, such as `truncated` or `malformed_function_call`; else None.
        message: The model's turn as plain JSON. Append this one when a provider left out the ids of its calls.
    """

    def __init__(self, dialect: Dialect, reply: ModelReply, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.calls = reply.calls
        self.problem = reply.problem
        self.message = reply.message
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
    arguments: dict[str, Any] = {"sessionData": {} if session is None else session_data(opened(session))}
    if query is not None:
        arguments["query"] = plain(query)
    if limit is not None:
        arguments["limit"] = limit
    outcomes = yield [function_request(binding.scope, RETRIEVE, arguments)]
    return retrieved(_reply(outcomes[0]))


def call(binding: Binding, name: str, arguments: object, session: object) -> Flow[RetrieveResult]:
    """Carry out one call a model made, and raise whatever goes wrong."""
    given = None if session is None else session_data(opened(session))
    outcomes = yield [_request(binding, name, arguments, given)]
    return retrieved(_reply(outcomes[0]))


def capture(
    binding: Binding,
    messages: object,
    response: object,
    idempotency_key: str | None,
    occurred_at: datetime | str | None,
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
    planned = list(_planned(binding, reply, session))
    requests = [step for _, step in planned if isinstance(step, Request)]
    replies = iter((yield requests) if requests else [])
    outcomes = [
        _outcome(binding, made, next(replies) if isinstance(step, Request) else step)
        for made, step in planned
    ]
    return ToolResults(spoken, reply, outcomes)


def _understood(response: object, dialect: str | None) -> tuple[Dialect, ModelReply]:
    if isinstance(response, str | bytes | bytearray):
        try:
            response = loads(response)
        except ValueError as error:
            raise HaloConfigError("a reply given as text must be the provider's JSON") from error
    plain_reply = plain(response)
    spoken = dialects.detected(plain_reply) if dialect is None else dialects.named(dialect)
    return spoken, spoken.read(plain_reply)


def _planned(
    binding: Binding, reply: ModelReply, session: object
) -> Iterator[tuple[ToolCall, Request | HaloError]]:
    """Yield what to do about each of HALO's calls: a request to send, or the reason not to."""
    conversation = None if session is None else opened(session)
    own = [made for made in reply.calls if is_own(made.name)]
    given = session_data(conversation) if conversation and own else None
    left = binding.max_calls_per_turn - (calls_this_turn(conversation) if conversation else 0)
    for made in own:
        try:
            if reply.problem == "truncated":
                raise TruncatedArgumentsError(CUT_OFF)
            request = _request(binding, made.name, made.raw, given)
        except ToolCallError as error:
            yield made, error
            continue
        yield made, request if left > 0 else ToolCallError(CONSULTED)
        left -= 1


def _request(binding: Binding, name: str, raw: object, given: dict[str, Any] | None) -> Request:
    """Return the request that carries out a call, about the application's conversation if one is given.

    Raises:
        ToolCallError: The call cannot be carried out.
    """
    arguments = read_arguments(raw, binding.parameters(name))
    if given is not None:
        arguments["sessionData"] = given
    arguments.setdefault("sessionData", {})
    return function_request(binding.scope, name, arguments)


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
    try:
        found = retrieved(_reply(answer))
    except (AuthenticationError, PermissionDeniedError):
        raise
    except HaloError as error:
        if binding.on_error == "raise":
            raise
        logger.warning("a call of %s failed: %s", made.name, type(error).__name__)
        return Outcome(made, ok=False, body=UNAVAILABLE if is_outage(error) else REFUSED, error=error)
    body = fitted(found.function_response.to_dict(), binding.max_result_chars)
    return Outcome(made, ok=True, body=body)
