"""Writers: one transaction a call, or one for all who wait; never half of anybody's work."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from halo_server.domain import Scope
from halo_server.errors import StorageFull, Unavailable
from halo_server.store import open_store
from halo_server.store.engine import open_sqlite
from halo_server.store.store import Store
from halo_server.store.writer import DirectWriter, GroupWriter, LostTransactionError, Writer
from tests.memory import Memory, assistant, user

ANA = Scope("p", "ana")


def put(name: str) -> Callable[[Connection], str]:
    def work(connection: Connection) -> str:
        connection.execute(text("INSERT INTO names VALUES (:name)"), {"name": name})
        return name

    return work


def failing(name: str) -> Callable[[Connection], str]:
    def work(connection: Connection) -> str:
        put(name)(connection)
        raise LookupError(name)

    return work


@pytest.fixture
def names(engine: Engine) -> Callable[[], list[str]]:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE names (name TEXT)"))

    def read() -> list[str]:
        with engine.connect() as connection:
            return sorted(connection.scalars(text("SELECT name FROM names")))

    return read


@pytest.fixture
def writer(engine: Engine, names: object) -> Iterator[Writer]:
    made = GroupWriter(engine) if engine.dialect.name == "sqlite" else DirectWriter(engine)
    yield made
    made.close()


Names = Callable[[], list[str]]


def test_what_work_returns_is_returned_and_what_it_wrote_is_seen_by_others(
    writer: Writer, names: Names
) -> None:
    assert writer.run(put("ana")) == "ana"
    assert names() == ["ana"]


def test_work_that_raises_keeps_nothing_and_the_writer_goes_on(writer: Writer, names: Names) -> None:
    with pytest.raises(LookupError, match="ben"):
        writer.run(failing("ben"))
    writer.run(put("cleo"))

    assert names() == ["cleo"]


def test_every_one_of_many_is_written_once(writer: Writer, names: Names) -> None:
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda n: writer.run(put(f"{n:03}")), range(200))) == [
            f"{n:03}" for n in range(200)
        ]

    assert names() == [f"{n:03}" for n in range(200)]


# -- one commit for those who wait -----------------------------------------------------------------------------------


class Group:
    """A first caller who holds the transaction open until all the others wait for their turn in it."""

    def __init__(self, engine: Engine) -> None:
        self.writer = GroupWriter(engine)

    def run(self, first: Callable[[Connection], Any], *others: Callable[[Connection], Any]) -> list[Any]:
        """Run all as one group; return what each returned or raised, the first first."""
        inside, go = threading.Event(), threading.Event()

        def held(connection: Connection) -> Any:
            inside.set()
            go.wait()
            return first(connection)

        def outcome(work: Callable[[Connection], Any]) -> Any:
            try:
                return self.writer.run(work)
            except Exception as error:  # noqa: BLE001 (it is what the test looks at)
                return type(error)

        with ThreadPoolExecutor(len(others) + 1) as pool:
            leading = pool.submit(outcome, held)
            inside.wait()
            following = [pool.submit(outcome, work) for work in others]
            while self.writer._waiting < len(others):
                threading.Event().wait(0.001)
            go.set()
            return [leading.result(), *(each.result() for each in following)]


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Engine]:
    engine = open_sqlite(tmp_path / "group.db")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE names (name TEXT)"))
    yield engine
    engine.dispose()


@pytest.fixture
def group(lite: Engine) -> Iterator[Group]:
    made = Group(lite)
    yield made
    made.writer.close()


def _names(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return sorted(connection.scalars(text("SELECT name FROM names")))


def test_those_who_wait_share_one_commit(group: Group, lite: Engine) -> None:
    def look(_: Connection) -> list[str]:
        return _names(lite)  # another connection: it sees what is committed

    outcomes = group.run(put("a"), put("b"), look, put("c"))

    assert outcomes == ["a", "b", [], "c"]
    assert _names(lite) == ["a", "b", "c"]


def test_a_neighbour_that_fails_takes_nobody_with_it(group: Group, lite: Engine) -> None:
    assert group.run(failing("first"), put("b"), failing("c"), put("d")) == [
        LookupError,
        "b",
        LookupError,
        "d",
    ]
    assert _names(lite) == ["b", "d"]


def test_a_last_one_that_fails_still_commits_the_others(group: Group, lite: Engine) -> None:
    assert group.run(put("a"), failing("b")) == ["a", LookupError]
    assert _names(lite) == ["a"]


def test_a_group_has_an_end_however_many_wait(group: Group, lite: Engine) -> None:
    names = [f"{n:03}" for n in range(70)]
    seen: list[int] = []

    def work(name: str) -> Callable[[Connection], str]:
        def run(connection: Connection) -> str:
            seen.append(len(_names(lite)))
            return put(name)(connection)

        return run

    assert group.run(*map(work, names)) == names
    assert sorted(set(seen)) == [0, 64]
    assert _names(lite) == names


def losing(connection: Connection) -> None:
    connection.connection.driver_connection.rollback()  # type: ignore[union-attr]


def test_when_the_database_gives_up_the_transaction_nobody_is_told_it_was_kept(
    group: Group, lite: Engine
) -> None:
    outcomes = group.run(put("a"), put("b"), losing)

    assert outcomes[:2] == [LostTransactionError, LostTransactionError]
    assert issubclass(outcomes[2], OperationalError | LostTransactionError)
    assert _names(lite) == []
    assert group.writer.run(put("later")) == "later"
    assert _names(lite) == ["later"]


def test_what_comes_after_the_loss_is_told_the_truth_too(group: Group, lite: Engine) -> None:
    outcomes = group.run(losing, put("a"), put("b"))

    assert issubclass(outcomes[0], OperationalError | LostTransactionError)
    assert outcomes[1:] == [LostTransactionError, LostTransactionError]
    assert _names(lite) == []
    assert group.writer.run(put("later")) == "later"
    assert _names(lite) == ["later"]


def test_a_commit_that_fails_is_told_to_all_of_the_group(group: Group, lite: Engine) -> None:
    with lite.begin() as connection:
        connection.execute(text("CREATE TABLE parents (id INTEGER PRIMARY KEY)"))
        connection.execute(
            text("CREATE TABLE children (p INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)")
        )

    def orphan(connection: Connection) -> None:
        connection.execute(text("INSERT INTO children VALUES (1)"))  # refused only at the commit

    outcomes = group.run(put("a"), orphan)

    assert [outcome.__name__ for outcome in outcomes] == ["IntegrityError", "IntegrityError"]
    assert _names(lite) == []
    assert group.writer.run(put("later")) == "later"


# -- failures as the store tells them --------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Store]:
    """A store that no longer grows, as on a full disk."""
    store = open_store(tmp_path, "hashing-v1-512")
    yield store
    store.close()


def _pages(store: Store, most: int | None) -> None:
    connection = store._writer._connection  # type: ignore[attr-defined]
    now = connection.exec_driver_sql("PRAGMA page_count").scalar()
    connection.exec_driver_sql(f"PRAGMA max_page_count={most or now}")
    connection.rollback()


def test_a_full_disk_takes_no_more_but_shows_and_forgets(small: Store) -> None:
    memory = Memory(small)
    memory.capture(ANA, user("peanuts"), response=assistant("noted"))
    _pages(small, None)

    with pytest.raises(StorageFull):
        memory.capture(ANA, user(100_000 * "x"))

    assert len(memory.find(ANA, "peanuts").exchanges) == 1
    assert memory.forget.end_user(ANA).exchanges == 1
    _pages(small, 1_000_000)
    assert memory.capture(ANA, user(100_000 * "x")).index == "ready"


def test_a_transaction_lost_by_the_database_is_a_full_disk_to_callers(small: Store) -> None:
    def lose(tx: Any) -> None:
        tx.connection.connection.driver_connection.rollback()
        tx.connection.exec_driver_sql(
            "SAVEPOINT sa_savepoint_1"
        )  # what a work without further writes would not notice
        tx.connection.connection.driver_connection.rollback()

    with pytest.raises((StorageFull, Unavailable)):
        small.write(lose)
    assert small.write(lambda tx: tx.add_project("later", 1))


def test_another_writer_makes_the_store_unavailable_and_not_broken(tmp_path: Path) -> None:
    store = open_store(tmp_path, "hashing-v1-512")
    connection = store._writer._connection  # type: ignore[attr-defined]
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    connection.rollback()
    other = open_sqlite(tmp_path / "halo.db")
    with other.connect().execution_options(halo_begin="BEGIN IMMEDIATE") as blocking:
        blocking.begin()
        with pytest.raises(Unavailable):
            store.write(lambda tx: tx.add_project("p", 1))
    assert store.write(lambda tx: tx.add_project("p", 1))
    store.close()
    other.dispose()


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    store = open_store(tmp_path, "hashing-v1-512")
    store.close()
    (tmp_path / "halo.db-wal").unlink(missing_ok=True)
    (tmp_path / "halo.db").write_bytes(b"not a database" * 1000)

    with pytest.raises(Unavailable):
        store.read(lambda tx: tx.ping() or tx.projects())
    store.engine.dispose()


def test_a_database_is_its_owners_alone_and_commits_reach_the_disk(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", "hashing-v1-512")

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "halo.db").stat().st_mode & 0o777 == 0o600
    with store.engine.connect() as connection:
        pragmas = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in _PRAGMAS}
    assert pragmas == _PRAGMAS
    store.close()


_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "secure_delete": 1,
    "trusted_schema": 0,
}
