"""For the people and machines that run the server: is it alive, is it ready, what did it do."""

import orjson
from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from halo_server.api.deps import Use, admin, caller_of
from halo_server.api.wire import ErrorAnswer
from halo_server.domain import JSON

__all__ = ["PUBLIC", "router"]

PUBLIC = ("/healthz", "/readyz", "/openapi.json")
"""The only paths that answer without a key; a test compares them with what the application serves."""

_LOOPBACK = ("127.0.0.1", "::1")

router = APIRouter()


@router.get("/healthz")
async def healthz() -> Response:
    """The process answers."""
    return _json({"ok": True})


@router.get("/readyz", responses={503: {"model": ErrorAnswer}})
def readyz(use: Use) -> Response:
    """The store answers; `degraded` names what works below its best.

    An unanswering store is a 503 in the usual envelope.
    """
    use.access.ping()
    return _json({"ready": True, "embedder": use.capture.embedder.id, "degraded": list(use.degraded)})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={
        status: {"content": {"application/json": {"schema": ErrorAnswer.model_json_schema(by_alias=True)}}}
        for status in (401, 403, 500, 503)
    },
)
async def metrics(request: Request, use: Use) -> Response:
    """Counters and timings in Prometheus's text format: admin key, or loopback when the setting allows it."""
    local = request.client is not None and request.client.host in _LOOPBACK
    if not (use.settings.metrics_open and local):
        admin(await caller_of(request))
    return Response(generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_LATEST)


def _json(value: JSON) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
