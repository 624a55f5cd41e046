"""How a database is opened: where durability and safety are decided, once, for every connection.

SQLite runs in WAL mode with `synchronous=FULL`: a commit is on disk when it returns. `NORMAL` would be a hundred times
faster alone and can lose the newest commits at power loss (measured with the order of writes and fsyncs before an answer);
grouped commits (`writer.py`) give most of that speed back without the loss.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

__all__ = ["open_postgres", "open_sqlite"]

SYNCHRONOUS = "FULL"

_PRAGMAS = (
    "journal_mode=WAL",
    "busy_timeout=5000",  # milliseconds
    "foreign_keys=ON",
    "secure_delete=ON",  # erased bytes are overwritten, not only unlinked
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "mmap_size=0",
    "wal_autocheckpoint=1000",  # pages
    "journal_size_limit=67108864",  # bytes
)

BEGIN_OPTION = "halo_begin"
"""Execution option naming the statement that opens a transaction; writers ask for `BEGIN IMMEDIATE`."""


def open_sqlite(path: Path) -> Engine:
    """Return an engine over the SQLite file at `path`, made readable by its owner alone if it is new."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=True)
    engine = create_engine(f"sqlite:///{path}", pool_size=16, max_overflow=48)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def open_postgres(url: str) -> Engine:
    """Return an engine over the PostgreSQL database at `url` (`postgresql+psycopg://…`)."""
    return create_engine(url, pool_size=8, max_overflow=8, pool_pre_ping=True)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver's own transaction handling opens transactions late and only for writes; we say BEGIN ourselves.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(BEGIN_OPTION, "BEGIN"))
