"""Everything that can go wrong, as one tree.

    HaloError
    ├── HaloConfigError            the application configured or called us wrongly (also a ValueError)
    ├── HaloConnectionError        no answer arrived
    │   └── HaloTimeoutError       ... within the time one call may take
    ├── HaloResponseError          an answer of success that cannot be read
    ├── HaloStatusError            an answer of failure
    │   ├── BadRequestError        400
    │   ├── AuthenticationError    401
    │   ├── PermissionDeniedError  403
    │   ├── NotFoundError          404
    │   ├── ConflictError          409
    │   ├── PayloadTooLargeError   413
    │   ├── IdempotencyError       422
    │   ├── RateLimitError         429
    │   └── ServerError            5xx
    ├── EmptyAnswerError           there is no answer to capture
    └── ToolCallError              a model's call cannot be carried out
        ├── UnknownToolError
        ├── InvalidArgumentsError
        └── TruncatedArgumentsError

A failure the *model* can act on becomes a result in its dialect; a failure of the *application* is raised. No message holds a
credential. A new kind of failure, or a status that deserves its own class, changes this file.
"""

from collections.abc import Mapping
from typing import Any


class HaloError(Exception):
    """Base of every error this package raises.

    Errors survive `pickle` and `copy`, so that a worker process can hand one to its parent.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from state alone: subclasses may take keyword-only arguments."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[HaloError], args: tuple[Any, ...], state: Mapping[str, Any]) -> HaloError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class HaloConfigError(HaloError, ValueError):
    """The application configured the client, or called it, in a way that cannot work."""


class HaloConnectionError(HaloError):
    """No answer arrived: refused, cut off, or not HTTP."""


class HaloTimeoutError(HaloConnectionError):
    """No complete answer arrived within the time one call may take."""


class HaloResponseError(HaloError):
    """The service reported success with a body that cannot be read; a capture may have been stored.

    Attributes:
        request_id: The service's name for the request, when it gave one.
    """

    def __init__(self, message: str, *, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


class HaloStatusError(HaloError):
    """The service answered with a failure.

    Attributes:
        status_code: The HTTP status.
        request_id: The service's name for the request, to quote when asking for help.
        code: The service's stable name of the failure, such as `PROJECT_NOT_FOUND`.
        body: The answer as received, parsed when it is JSON. Not for a model's eyes.
        retry_after_s: How long the service asked to be left alone, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        status_code: int,
        request_id: str | None = None,
        code: str | None = None,
        body: object = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.request_id = request_id
        self.code = code
        self.body = body
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        status = f"{self.status_code} {self.code}" if self.code else str(self.status_code)
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{status}: {super().__str__()}{request}"


class BadRequestError(HaloStatusError):
    """400: the request is malformed or invalid."""


class AuthenticationError(HaloStatusError):
    """401: the key is missing or malformed."""


class PermissionDeniedError(HaloStatusError):
    """403: the key is wrong, revoked or expired, or may not do this."""


class NotFoundError(HaloStatusError):
    """404: the project, function or record is unknown, or not this key's."""


class ConflictError(HaloStatusError):
    """409: the same request is still being carried out."""


class PayloadTooLargeError(HaloStatusError):
    """413: the request is larger than the service accepts."""


class IdempotencyError(HaloStatusError):
    """422: the idempotency key was used before with another body."""


class RateLimitError(HaloStatusError):
    """429: too many requests."""

    @property
    def retry_after(self) -> float | None:
        """How long to wait, in seconds, when the service said so."""
        return self.retry_after_s


class ServerError(HaloStatusError):
    """5xx: the service failed, or is not available."""


_BY_STATUS: Mapping[int, type[HaloStatusError]] = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    413: PayloadTooLargeError,
    422: IdempotencyError,
    429: RateLimitError,
}


def status_error(status_code: int) -> type[HaloStatusError]:
    """Return the class that speaks for an HTTP status."""
    if status_code >= 500:
        return ServerError
    return _BY_STATUS.get(status_code, HaloStatusError)


class EmptyAnswerError(HaloError):
    """There is no answer to capture: the model produced none, or only calls."""


class ToolCallError(HaloError):
    """A model's call cannot be carried out. The message is written for the model."""


class UnknownToolError(ToolCallError):
    """The model called a function of ours that was never declared to it."""


class InvalidArgumentsError(ToolCallError):
    """The model's arguments are not what the declaration asks for."""


class TruncatedArgumentsError(ToolCallError):
    """The model ran out of output tokens inside its call."""
