"""Every failure of the server, once: a stable code, an HTTP status, and whether a retry can help.

    HaloError
    ├── InvalidJSON            400  the body is not the JSON we accept
    ├── InvalidRequest         400  the JSON is not a request we accept
    ├── Unauthenticated        401  no usable credential
    ├── Forbidden              403  the credential is wrong, revoked, expired or lacks the right
    ├── ProjectNotFound        404  unknown project, or not this key's
    ├── FunctionNotFound       404  no function of that name
    ├── NotFound               404  unknown id, or not this key's
    ├── MethodNotAllowed       405
    ├── RequestTimeout         408  the body did not arrive in time        (retry)
    ├── TooLarge               413
    ├── UnsupportedMediaType   415
    ├── IdempotencyKeyReused   422  the key was used for another body
    ├── Internal               500
    ├── Unavailable            503  the store cannot answer now            (retry)
    └── StorageFull            507  no space left; reads and deletes go on

Each door renders these in its own envelope (`api/errors.py`). A message never holds input or exception text.
"""

from typing import ClassVar

__all__ = [
    "DataDirectoryInUse",
    "EmbedderSilent",
    "EmbedderUnnamed",
    "Forbidden",
    "FunctionNotFound",
    "HaloError",
    "IdempotencyKeyReused",
    "Internal",
    "InvalidJSON",
    "InvalidRequest",
    "MethodNotAllowed",
    "NotFound",
    "ProjectNotFound",
    "ProviderFailed",
    "RequestTimeout",
    "SchemaTooNew",
    "StartError",
    "StorageFull",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
    "UnsupportedMediaType",
]


class HaloError(Exception):
    """The request failed."""

    code: ClassVar[str] = "INTERNAL"
    status: ClassVar[int] = 500
    retry_after_s: ClassVar[int | None] = None

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class InvalidJSON(HaloError):
    """The body is not valid JSON."""

    code = "INVALID_JSON"
    status = 400


class InvalidRequest(HaloError):
    """The request is not valid."""

    code = "INVALID_REQUEST"
    status = 400


class Unauthenticated(HaloError):
    """Expected the header Authorization: Bearer <key>."""

    code = "UNAUTHENTICATED"
    status = 401


class Forbidden(HaloError):
    """The key is unknown, revoked or expired, or may not do that."""

    code = "FORBIDDEN"
    status = 403


class ProjectNotFound(HaloError):
    """No such project."""

    code = "PROJECT_NOT_FOUND"
    status = 404


class FunctionNotFound(HaloError):
    """No such function."""

    code = "FUNCTION_NOT_FOUND"
    status = 404


class NotFound(HaloError):
    """Not found."""

    code = "NOT_FOUND"
    status = 404


class MethodNotAllowed(HaloError):
    """This path does not take that method."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class RequestTimeout(HaloError):
    """The body did not arrive in time."""

    code = "REQUEST_TIMEOUT"
    status = 408


class TooLarge(HaloError):
    """The body is larger than this route accepts."""

    code = "TOO_LARGE"
    status = 413


class UnsupportedMediaType(HaloError):
    """Send the body as application/json in UTF-8, without Content-Encoding."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    status = 415


class IdempotencyKeyReused(HaloError):
    """This Idempotency-Key was used for another body."""

    code = "IDEMPOTENCY_KEY_REUSED"
    status = 422


class Internal(HaloError):
    """The server failed; the request id finds it in the log."""

    code = "INTERNAL"
    status = 500


class Unavailable(HaloError):
    """The store cannot answer now; try again."""

    code = "UNAVAILABLE"
    status = 503
    retry_after_s = 1


class StorageFull(HaloError):
    """No space is left for new memory; reading and deleting still work."""

    code = "STORAGE_FULL"
    status = 507


class ProviderFailed(Exception):
    """A model's provider did not do what it was asked; no request fails by that alone.

    Attributes:
        code: How, in one of our words; never a word of the provider's, which may repeat what somebody said.
        final: Whether asking again is of no use.
    """

    def __init__(self, code: str, *, final: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.final = final


class StartError(Exception):
    """The server cannot start; the message is one line with the cure."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class DataDirectoryInUse(StartError):
    """Another process serves this data directory; one process a directory, stop it first."""


class EmbedderSilent(StartError):
    """The embedding service does not answer; start it, or set HALO_EMBEDDER_DIM to start without it."""


class EmbedderUnnamed(StartError):
    """HALO_EMBEDDER=remote also needs HALO_EMBEDDER_MODEL."""


class SchemaTooNew(StartError):
    """The data directory was written by a newer HALO; install that version or a newer one."""
