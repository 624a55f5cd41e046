"""`/openapi.json` as it is: the framework's own additions replaced by what this server answers.

It changes when the framework learns to leave out its answer 422 or to name a credential that is read by hand.
"""

from fastapi import FastAPI

from halo_server.api.operations import PUBLIC
from halo_server.domain import JSON

__all__ = ["describe"]

_INVENTED = (
    "HTTPValidationError",
    "ValidationError",
)  # schemas of the framework's 422, which we answer as 400


def describe(app: FastAPI) -> None:
    """Make `app` describe its credential, and no answer that it never gives."""
    original = app.openapi

    def openapi() -> dict[str, JSON]:
        if app.openapi_schema is None:
            _correct(original())
        return original()

    app.openapi = openapi  # type: ignore[method-assign]


def _correct(document: dict[str, JSON]) -> None:
    parts = document.setdefault("components", {})
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for name in _INVENTED:
        parts.get("schemas", {}).pop(name, None)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if path not in PUBLIC:
                operation["security"] = [{"key": []}]
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
