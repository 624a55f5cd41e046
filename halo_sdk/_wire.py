"""The wire, without a network: verb → request, reply → value or error, and when a second attempt may help.

Pure, and shared by both clients. The service's routes, words, statuses and headers change this file.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import ValidationError

from halo_sdk._plain import dumps, loads, plain
from halo_sdk.errors import (
    HaloConfigError,
    HaloConnectionError,
    HaloError,
    HaloResponseError,
    HaloStatusError,
    status_error,
)
from halo_sdk.types import CaptureResult, Reply, RetrieveResult, Scope, Value

__version__ = "0.1.0"

_ROOT = "/api/v1/memory"
_RETRYABLE = frozenset({408, 409, 425, 429})
_BEARER = re.compile(r"(?i)bearer\s+\S+")
_MAX_MESSAGE_CHARS = 500


@dataclass(frozen=True, slots=True)
class Request:
    """One POST to the service, without address and credential."""

    path: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def same(self) -> tuple[str, bytes]:
        """What two requests that ask for the same have in common."""
        return self.path, self.body


_Result = TypeVar("_Result")
Outcomes = Sequence[Reply | HaloError]
Flow = Generator[Sequence[Request], Outcomes, _Result]
"""One verb of a client: yields the requests to send side by side, is sent an outcome for each, and returns the result.

A flow decides and never waits, so a client of either colour can drive it.
"""


def started(flow: Flow[_Result]) -> Flow[_Result]:
    """Plan a flow now and return it to be driven later: what it was given may change in between.

    Raises:
        HaloError: The plan cannot be made.
    """
    requests = next(flow)

    def rest() -> Flow[_Result]:
        planned = requests
        try:
            while True:
                planned = flow.send((yield planned))
        except StopIteration as end:
            result: _Result = end.value
            return result

    return rest()


def function_request(scope: Scope, name: str, arguments: Mapping[str, Any]) -> Request:
    """Return the request that carries out a model's call."""
    body = {"projectKey": scope.project, "endUserKey": scope.end_user, "arguments": arguments}
    return _post(f"{_ROOT}/functions/{quote(name, safe='')}", body)


def capture_request(
    scope: Scope,
    session_data: Mapping[str, Any],
    response: Mapping[str, Any] | None,
    *,
    idempotency_key: str | None = None,
    occurred_at: str | None = None,
    truncated: bool = False,
) -> Request:
    """Return the request that stores an exchange.

    The key makes every attempt the same capture; without one, the service tells a repetition by its content.
    """
    body: dict[str, Any] = {
        "projectKey": scope.project,
        "endUserKey": scope.end_user,
        "sessionData": session_data,
        "response": response,
    }
    if occurred_at is not None:
        body["occurredAt"] = occurred_at
    if truncated:
        body["truncatedHistory"] = True
    return _post(f"{_ROOT}/capture", body, {"Idempotency-Key": idempotency_key} if idempotency_key else None)


def _post(path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Request:
    return Request(
        path,
        dumps(body).encode(),
        {
            "Accept": "application/json",
            # A compressed answer could unfold far beyond the size we accept.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": f"halo-memory-python/{__version__}",
            **(headers or {}),
        },
    )


def instant(value: datetime | str | None) -> str | None:
    """Return an instant as the wire writes it.

    Raises:
        HaloConfigError: A datetime has no time zone.
    """
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise HaloConfigError("occurred_at needs a time zone")
    return value.isoformat()


def retrieved(reply: Reply) -> RetrieveResult:
    """Read the answer of a retrieval. Its compact part is made from the rest when a service leaves it out.

    Raises:
        HaloResponseError: The body is not what was promised.
    """
    body = _object(reply)
    if not isinstance(body.get("functionResponse"), dict):
        compact = ("requestId", "overallSummary", "rawEntries")
        body["functionResponse"] = {key: body[key] for key in compact if key in body}
    _name_request(body, body["functionResponse"].get("requestId"), reply)
    return _value(RetrieveResult, body, reply)


def captured(reply: Reply, *, truncated: bool = False) -> CaptureResult:
    """Read a receipt. Any success means the exchange is stored, whatever else the body says.

    Raises:
        HaloResponseError: The body is not what was promised.
    """
    body = _object(reply)
    _name_request(body, None, reply)
    if truncated:
        body["truncatedHistory"] = True
    return _value(CaptureResult, body, reply)


def _name_request(body: dict[str, Any], other: object, reply: Reply) -> None:
    request_id = body.get("requestId") or other or reply.headers.get("x-request-id")
    if request_id:
        body["requestId"] = request_id


def _object(reply: Reply) -> dict[str, Any]:
    try:
        body = plain(loads(reply.body))
    except ValueError as error:
        raise _unreadable(reply, "is not JSON") from error
    if not isinstance(body, dict):
        raise _unreadable(reply, "is not a JSON object")
    return body


_Value = TypeVar("_Value", bound=Value)


def _value(kind: type[_Value], body: dict[str, Any], reply: Reply) -> _Value:
    try:
        return kind.model_validate(body).from_reply(reply)
    except ValidationError as error:
        fields = ", ".join(sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}))
        # Without the cause: pydantic's message quotes memory.
        raise _unreadable(reply, f"has unexpected values in {fields}") from None


def _unreadable(reply: Reply, why: str) -> HaloResponseError:
    return HaloResponseError(
        f"the service answered {reply.status_code}, but its body {why}",
        request_id=reply.headers.get("x-request-id"),
    )


def failure(reply: Reply, *, secret: str | None, now: datetime) -> HaloStatusError:
    """Return the error a failing answer stands for.

    Args:
        reply: An answer whose status is not 2xx.
        secret: The key in use. A gateway that echoes it does not get it into a message.
        now: The current instant, for a `Retry-After` that names a date.
    """
    body = _lenient(reply.body)
    envelope = body if isinstance(body, dict) else {}
    message = envelope.get("error")
    request_id = envelope.get("requestId") or reply.headers.get("x-request-id")
    code = envelope.get("code")
    return status_error(reply.status_code)(
        _masked(message if isinstance(message, str) else "the service gave no reason", secret),
        status_code=reply.status_code,
        request_id=_masked(str(request_id), secret) if request_id else None,
        code=_masked(code, secret) if isinstance(code, str) else None,
        body=body,
        retry_after_s=retry_after_s(reply.headers, now),
    )


def _lenient(body: bytes) -> Any:
    try:
        return plain(loads(body))
    except ValueError:
        return plain(body.decode(errors="replace"))


def _masked(text: str, secret: str | None) -> str:
    text = _BEARER.sub("Bearer ***", text)
    return (text.replace(secret, "***") if secret else text)[:_MAX_MESSAGE_CHARS]


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how long to wait before asking again, in seconds, if the service said so.

    Reads `retry-after-ms`, and `Retry-After` in seconds or as a date.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        when = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def may_retry(error: BaseException) -> bool:
    """Tell whether the same request may succeed when sent again."""
    if isinstance(error, HaloStatusError):
        return error.status_code in _RETRYABLE or error.status_code >= 500
    return isinstance(error, HaloConnectionError)


def is_outage(error: HaloError) -> bool:
    """Tell whether memory as a whole is out of reach, rather than this one request refused."""
    return may_retry(error) or isinstance(error, HaloResponseError)
