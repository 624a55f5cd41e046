"""Every store the server can open, each empty: what the suites here say is promised by all of them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from halo_server.store import open_store, open_store_at
from halo_server.store.engine import open_postgres, open_sqlite
from halo_server.store.store import Store
from tests.memory import Memory
from tests.postgres import Postgres, running

_schemas = itertools.count(1)

EMBEDDER = "hashing-v1-512"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    """Where an empty database is: a directory for SQLite, a URL for PostgreSQL."""
    if request.param == "sqlite":
        yield tmp_path
    else:
        server: Postgres = request.getfixturevalue("postgres")
        with server.schema(f"test_{next(_schemas)}") as url:
            yield url


@pytest.fixture
def open_again(place: Path | str) -> Iterator[Callable[..., Store]]:
    """Open the test's database, as often as it is called; all are closed in the end."""
    opened: list[Store] = []

    def open_it(embedder: str = EMBEDDER) -> Store:
        store = open_store_at(place, embedder) if isinstance(place, str) else open_store(place, embedder)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_again: Callable[[], Store]) -> Store:
    return open_again()


@pytest.fixture
def memory(store: Store) -> Memory:
    return Memory(store)


@pytest.fixture
def engine(place: Path | str) -> Iterator[Engine]:
    """The empty database, without a schema."""
    opened = open_postgres(place) if isinstance(place, str) else open_sqlite(place / "halo.db")
    yield opened
    opened.dispose()
