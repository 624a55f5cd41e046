"""Failures out: every error becomes its door's envelope here, with its request id, and nothing of the input.

One of the two places where any exception may be caught; it is logged with its traceback and answered as INTERNAL.
"""

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from halo_server.api.edge import METHODS
from halo_server.errors import HaloError, Internal, InvalidRequest, MethodNotAllowed, NotFound
from halo_server.log import get_logger

__all__ = ["CatchAll", "install", "render"]

_log = get_logger()


def render(error: HaloError, request_id: str) -> Response:
    """Return the HALO door's envelope: `{"error", "code", "requestId"}`."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s is not None else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"error": str(error), "code": error.code, "requestId": request_id}
    return Response(orjson.dumps(body), error.status, headers, "application/json")


def install(app: FastAPI) -> None:
    """Make `app` answer every failure in the envelope."""
    app.add_exception_handler(HaloError, _halo_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)


def _request_id(request: Request) -> str:
    return str(request.scope["state"]["request_id"])


def _halo_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HaloError)  # noqa: S101 (registered for this class alone)
    if error.status >= 500:
        _log.error("request failed", code=error.code, request_id=_request_id(request), exc_info=error)
    return render(error, _request_id(request))


def _http_error(request: Request, error: Exception) -> Response:
    """The framework's own refusals: an unknown path, a method a path does not take."""
    if not isinstance(error, HTTPException) or error.status_code != 405:
        return render(NotFound(), _request_id(request))
    answer = render(MethodNotAllowed(), _request_id(request))
    answer.headers["Allow"] = ", ".join(_methods(request))  # RFC 9110, 15.5.6
    return answer


def _methods(request: Request) -> list[str]:
    """Return every method the path takes; the framework names those of the first route that has the path."""
    return [
        method
        for method in METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]


def _validation_error(request: Request, error: Exception) -> Response:
    """The framework's refusal of a path or query parameter; its own handler would repeat the input."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 (registered for this class alone)
    names = sorted({str(problem["loc"][-1]) for problem in error.errors()})
    return render(InvalidRequest(f"Not valid: {', '.join(names)}."), _request_id(request))


class CatchAll:
    """The last resort around the application: a fault of ours is logged and answered, never shown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; answer INTERNAL if it failed before its answer began."""
        begun = False

        async def watch(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:  # noqa: BLE001 (the one place; see the module's first line)
            _log.error("unexpected failure", request_id=scope["state"]["request_id"], exc_info=error)
            if not begun:
                await render(Internal(), scope["state"]["request_id"])(scope, receive, send)
