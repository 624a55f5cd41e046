"""The reference server of HALO: `halo serve`, or `halo_server.embedded(path)` inside an application's process."""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halo_server.inprocess import embedded, embedded_async

__all__ = ["embedded", "embedded_async"]

_NEEDED = (
    "alembic",
    "faiss",
    "fastapi",
    "numpy",
    "orjson",
    "pydantic_settings",
    "sqlalchemy",
    "typer",
    "uvicorn",
)

if any(find_spec(name) is None for name in _NEEDED):
    _CURE = "The HALO server needs its extra: pip install 'halo-memory[server]'"
    # The command ends with this line alone; a program that imports us gets an error it can catch.
    raise SystemExit(_CURE) if Path(sys.argv[0]).stem in ("halo", "-m") else ImportError(_CURE)


def __getattr__(name: str) -> Any:
    """Load the server when it is first asked for: importing the package alone stays cheap."""
    if name in __all__:
        return getattr(import_module("halo_server.inprocess"), name)
    raise AttributeError(name)
