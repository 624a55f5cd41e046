"""Who calls, what they send, and which services they get: the parts every route asks for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from halo_server.api.body import Body, Limits, identifier, parse, read
from halo_server.config import Settings
from halo_server.domain import Grant, Scope
from halo_server.errors import Forbidden, NotFound, ProjectNotFound, Unauthenticated
from halo_server.index.hot import HotIndexes
from halo_server.services.access import Access
from halo_server.services.capture import Capture
from halo_server.services.inventory import Inventory
from halo_server.services.lifecycle import Forget
from halo_server.services.retrieve import Retrieve
from halo_server.services.topics import Topics

__all__ = [
    "Caller",
    "CaptureBody",
    "RequestId",
    "Services",
    "SmallBody",
    "Use",
    "admin",
    "caller_of",
    "own_project",
    "own_scope",
]


_LONG = (
    64 * 1024
)  # bytes of a body from which it is parsed beside the event loop: 8 MiB take most of a second


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases, built once by the composition root."""

    settings: Settings
    access: Access
    capture: Capture
    retrieve: Retrieve
    forget: Forget
    topics: Topics
    inventory: Inventory
    indexes: HotIndexes
    degraded_since_start: tuple[str, ...]

    @property
    def degraded(self) -> tuple[str, ...]:
        """What works below its best now."""
        return tuple(dict.fromkeys((*self.degraded_since_start, *self.retrieve.vectors.degraded)))


def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


def _request_id(request: Request) -> str:
    return cast(str, request.scope["state"]["request_id"])


async def caller_of(request: Request) -> Grant:
    """Return what the request's key allows.

    Raises:
        Unauthenticated: There is no `Authorization: Bearer` header.
        Forbidden: The key is unknown, revoked or expired.
    """
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated
    return await run_in_threadpool(_services(request).access.grant, key.strip())


def _small(settings: Settings) -> Limits:
    nodes = settings.max_json_nodes
    return Limits(settings.max_body_bytes, settings.max_json_depth, nodes, settings.body_deadline_s)


def _capture(settings: Settings) -> Limits:
    nodes = settings.max_capture_nodes
    return Limits(settings.max_capture_bytes, settings.max_json_depth, nodes, settings.body_deadline_s)


def _body(limits_of: Callable[[Settings], Limits]) -> Callable[..., Awaitable[Body]]:
    async def body(request: Request, _grant: Annotated[Grant, Depends(caller_of)]) -> Body:
        # The caller comes first: a body from nobody is not read.
        limits = limits_of(_services(request).settings)
        data = await read(request, limits)
        if len(data) < _LONG:
            return parse(data, limits)
        return await run_in_threadpool(parse, data, limits)

    return body


Caller = Annotated[Grant, Depends(caller_of)]
Use = Annotated[Services, Depends(_services)]
RequestId = Annotated[str, Depends(_request_id)]
SmallBody = Annotated[Body, Depends(_body(_small))]
CaptureBody = Annotated[Body, Depends(_body(_capture))]


def admin(caller: Grant) -> None:
    """Require an admin key.

    Raises:
        Forbidden: It is none.
    """
    if not caller.admin:
        raise Forbidden


def own_project(caller: Grant, project: str, *, whole: bool = False) -> str:
    """Return `project` if it is this key's.

    With `whole` the request concerns more than one end user, so a key bound to one is refused.

    Raises:
        Forbidden: The key is for other things: an admin key for memory, an end user's key for a whole project.
        ProjectNotFound: It is another's, or does not exist; which one is not told.
    """
    if caller.admin:
        raise Forbidden
    if caller.project != project:
        raise ProjectNotFound
    if whole and caller.end_user is not None:
        raise Forbidden
    return project


def own_scope(caller: Grant, project: str, end_user: str) -> Scope:
    """Return the scope if it is this key's.

    Raises:
        Forbidden, ProjectNotFound: As `own_project`.
        NotFound: The key is bound to another end user.
    """
    project = own_project(caller, identifier(project, "projectKey"))
    scope = Scope(project, identifier(end_user, "endUserKey"))
    if caller.end_user is not None and caller.end_user != end_user:
        raise NotFound
    return scope
