"""The truth: opens the database a server was told to use, with the schema of this version."""

from contextlib import ExitStack
from pathlib import Path

from sqlalchemy import Engine

from halo_server.store.engine import open_postgres, open_sqlite
from halo_server.store.migrate import migrate
from halo_server.store.store import Store

__all__ = ["open_store", "open_store_at"]


def open_store(directory: Path, embedder: str) -> Store:
    """Return the store in `directory`, made there if absent, brought to the schema of this version.

    Raises:
        halo_server.errors.SchemaTooNew: A newer HALO wrote it.
    """
    return _migrated(open_sqlite(directory / "halo.db"), embedder)


def open_store_at(url: str, embedder: str) -> Store:
    """Return the store in the PostgreSQL database at `url`; otherwise as `open_store`."""
    return _migrated(open_postgres(url), embedder)


def _migrated(engine: Engine, embedder: str) -> Store:
    with ExitStack() as undo:
        undo.callback(engine.dispose)
        migrate(engine)
        store = Store(engine, embedder)
        undo.pop_all()
    return store
