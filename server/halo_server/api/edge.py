"""What happens to every request before and after its route: an id, the path as sent, headers, a log line, a measurement."""

import re
import time
from urllib.parse import unquote_to_bytes

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halo_server.domain import NewId
from halo_server.errors import InvalidRequest
from halo_server.log import get_logger

__all__ = ["METHODS", "Edge", "path_key"]

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
"""The methods there are. Source: RFC 9110, section 9; RFC 5789."""

_log = get_logger()
_OWN_ID = re.compile(r"[\x21-\x7e]{1,128}")
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class _Segment(Convertor[str]):
    """One path segment as it was sent, percent-encoding and all; `path_key` decodes it."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("key", _Segment())


def path_key(segment: str) -> str:
    """Return the key in a path segment, decoded once: `a%2Fb` is the key `a/b`, `a%252Fb` the key `a%2Fb`.

    Raises:
        InvalidRequest: The bytes are not UTF-8.
    """
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise InvalidRequest("The path is not UTF-8.") from None


class Edge:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, new_id: NewId, registry: CollectorRegistry) -> None:
        self._app = app
        self._new_id = new_id
        labels = ("route", "method", "status")
        self._requests = Counter("halo_requests", "Requests answered.", labels, registry=registry)
        self._seconds = Histogram("halo_request_seconds", "Time to answer.", ("route",), registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = self._request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        # Routes are matched on the path as sent: decoded, a key holding "/" would be two segments.
        scope["path"] = (
            scope.get("raw_path", scope["path"].encode()).partition(b"?")[0].decode("ascii", "replace")
        )
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            self._record(scope, status, time.perf_counter() - started)

    def _request_id(self, scope: Scope) -> str:
        own = next(
            (value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), ""
        )
        return own if _OWN_ID.fullmatch(own) else self._new_id()

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "(none)")
        # A client may write any word as its method; each would be a series that is kept for good.
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._requests.labels(route, method, status).inc()
        self._seconds.labels(route).observe(seconds)
        # The route's pattern, never the path or query: keys and questions are what users said.
        _log.info(
            "answered",
            route=route,
            method=method,
            status=status,
            ms=round(seconds * 1000, 1),
            request_id=scope["state"]["request_id"],
        )
