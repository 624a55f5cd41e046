"""The doors: parse, call one use case, serialise. `ROUTERS` is the only registry of them."""

from halo_server.api import halo, operations

__all__ = ["ROUTERS"]

ROUTERS = (halo.router, operations.router)
