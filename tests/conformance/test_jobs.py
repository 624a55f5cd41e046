"""What the queue promises, asked of every store: once a wish, one taker a job, nothing by who lost it, an end to failing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from halo_server.domain import Job, Scope
from halo_server.errors import Unavailable
from halo_server.store import jobs, tables
from halo_server.store.store import Store, Transaction
from tests.memory import NOW, Memory, user

ANA = Scope("p", "ana")
BEN = Scope("p", "ben")
ONE = {"exchange": "id-1"}
KINDS = ("embed", "name")


@pytest.fixture(autouse=True)
def _known(memory: Memory) -> None:
    """Both end users have said something."""
    for scope in (ANA, BEN):
        memory.capture(scope, user("Hi."))


def _add(
    store: Store, kind: str = "embed", scope: Scope = ANA, *, at: int = NOW, delay_ms: int = 0, **payload: str
) -> None:
    store.write(lambda tx: jobs.add(tx, scope, kind, payload or ONE, at, delay_ms=delay_ms))


def _take(store: Store, lease: str = "a", at: int = NOW, kinds: tuple[str, ...] = KINDS) -> Job | None:
    return store.write(lambda tx: jobs.take(tx, kinds, lease, at))


def _taken(store: Store, lease: str = "a", at: int = NOW) -> Job:
    job = _take(store, lease, at)
    assert job
    return job


def _fail(
    store: Store, job: Job, code: str = "timeout", at: int = NOW, *, jitter: float = 0.5, final: bool = False
) -> None:
    store.write(lambda tx: jobs.fail(tx, job, code, at, jitter=jitter, final=final))


def _rows(store: Store) -> list[tuple[bool, int, str | None]]:
    """Return of each job whether it is dead, its attempts, and why it last failed."""
    columns = (tables.jobs.c.dead, tables.jobs.c.attempts, tables.jobs.c.failure)
    asked = select(*columns).order_by(tables.jobs.c.id)
    return [
        (bool(row.dead), row.attempts, row.failure)
        for row in store.read(lambda tx: tx.connection.execute(asked).all())
    ]


# -- adding and taking -----------------------------------------------------------------------------------------------


def test_a_job_is_handed_out_once_with_all_it_is_about(store: Store) -> None:
    _add(store, exchange="id-1", more="x")

    assert _taken(store) == Job(1, "embed", ANA, {"exchange": "id-1", "more": "x"}, 1, "a")
    assert _take(store, "b") is None


def test_the_longest_due_comes_first_and_none_before_its_time(store: Store) -> None:
    _add(store, exchange="late", delay_ms=20)
    _add(store, exchange="soon", delay_ms=10)
    _add(store, exchange="sooner", delay_ms=10)

    assert _take(store, at=NOW + 9) is None
    assert not store.read(lambda tx: jobs.is_due(tx, KINDS, NOW + 9))
    assert store.read(lambda tx: jobs.is_due(tx, KINDS, NOW + 10))
    assert [_taken(store, at=NOW + 20).payload["exchange"] for _ in range(3)] == ["soon", "sooner", "late"]


def test_a_worker_takes_only_what_it_can_do(store: Store) -> None:
    _add(store, "name")

    assert _take(store, kinds=("embed",)) is None
    assert not store.read(lambda tx: jobs.is_due(tx, ("embed",), NOW))
    assert _taken(store).kind == "name"


def test_the_same_wish_is_one_job_while_it_waits(store: Store) -> None:
    for delay_ms in (10, 0, 99):
        _add(store, delay_ms=delay_ms)
    _add(store, "name")
    _add(store, scope=BEN)
    _add(store, exchange="id-2")

    assert len(_rows(store)) == 4
    assert [_taken(store, at=NOW + 9).scope for _ in range(3)].count(ANA) == 2  # the first is not due yet


def test_a_wish_while_its_job_runs_is_another_job(store: Store) -> None:
    _add(store)
    running = _taken(store)
    _add(store)
    _add(store)

    assert len(_rows(store)) == 2
    assert _taken(store, "b").id != running.id


def test_a_job_and_what_makes_it_necessary_are_there_together_or_not_at_all(store: Store) -> None:
    def undone(tx: Transaction) -> None:
        jobs.add(tx, ANA, "embed", ONE, NOW)
        raise Unavailable

    with pytest.raises(Unavailable):
        store.write(undone)
    assert _rows(store) == []


def test_takers_at_the_same_time_never_take_the_same(store: Store) -> None:
    for n in range(12):
        _add(store, exchange=f"id-{n}")

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda n: _take(store, f"taker-{n}"), range(18)))

    found = [job.id for job in taken if job]
    assert len(found) == len(set(found)) == 12


def test_a_job_under_way_is_owed_and_one_that_is_done_or_dead_is_not(store: Store) -> None:
    def owed() -> bool:
        return store.read(lambda tx: jobs.owes(tx, ANA, "embed", ONE))

    assert not owed()
    _add(store)
    assert owed()
    job = _taken(store)
    assert owed()
    assert store.write(lambda tx: jobs.finish(tx, job))
    assert not owed()
    _add(store)
    _fail(store, _taken(store), final=True)
    assert not owed()


# -- the lease -------------------------------------------------------------------------------------------------------


def test_a_lease_that_ran_out_is_anothers_and_its_former_holder_changes_nothing(store: Store) -> None:
    _add(store)
    lost = _taken(store, "a")
    assert _take(store, "b", NOW + jobs.LEASE_MS - 1) is None
    held = _taken(store, "b", NOW + jobs.LEASE_MS)

    assert (held.id, held.attempts) == (lost.id, 2)
    assert not store.write(lambda tx: jobs.finish(tx, lost))
    assert not store.write(lambda tx: jobs.extend(tx, lost, NOW))
    store.write(lambda tx: jobs.let_go(tx, lost))
    _fail(store, lost, final=True)
    assert _rows(store) == [(False, 2, None)]
    assert store.write(lambda tx: jobs.finish(tx, held))
    assert _rows(store) == []


def test_a_lease_is_extended_from_now_on(store: Store) -> None:
    _add(store)
    job = _taken(store)

    assert store.write(lambda tx: jobs.extend(tx, job, NOW + 1000))
    assert _take(store, "b", NOW + jobs.LEASE_MS + 999) is None
    assert _take(store, "b", NOW + jobs.LEASE_MS + 1000)


def test_what_is_given_back_is_due_at_once_and_costs_no_attempt(store: Store) -> None:
    _add(store)
    job = _taken(store)
    store.write(lambda tx: jobs.let_go(tx, job))

    assert _taken(store, "b").attempts == 1


# -- failing ---------------------------------------------------------------------------------------------------------


def test_what_failed_waits_longer_each_time_up_to_an_hour(store: Store) -> None:
    _add(store)
    now, waits = NOW, []
    for attempt in range(1, 15):
        job = _taken(store, f"taker-{attempt}", now)
        _fail(store, job, at=now)
        due = now + jobs.backoff_ms(attempt, 0.5)
        assert _take(store, at=due - 1) is None
        waits.append(due - now)
        now = due

    assert waits[:4] == [1000, 2000, 4000, 8000]
    assert waits[-2:] == [1_800_000, 1_800_000]
    assert _rows(store) == [(False, 14, "timeout")]


@pytest.mark.parametrize("attempts", [1, 5, 12, 48, 10_000])
def test_a_wait_is_anything_up_to_its_bound(attempts: int) -> None:
    assert jobs.backoff_ms(attempts, 0.0) == 0
    assert 1900 < jobs.backoff_ms(attempts, 0.999) < 3_600_000


def test_after_its_last_attempt_a_job_is_dead_with_the_code_alone_until_it_is_wished_for_again(
    store: Store,
) -> None:
    _add(store)
    for attempt in range(jobs.MOST_ATTEMPTS):
        _fail(store, _taken(store, f"taker-{attempt}"), "rate_limited", jitter=0)

    assert _rows(store) == [(True, jobs.MOST_ATTEMPTS, "rate_limited")]
    assert _take(store, at=NOW * 2) is None
    assert store.read(jobs.count) == (0, 1)
    _add(store)
    assert _rows(store) == [(False, 0, None)]
    assert store.read(jobs.count) == (1, 0)


def test_what_cannot_succeed_is_dead_at_once(store: Store) -> None:
    _add(store)
    _fail(store, _taken(store), "invalid", final=True)

    assert _rows(store) == [(True, 1, "invalid")]


def test_a_job_that_ends_who_takes_it_is_dead_at_last(store: Store) -> None:
    _add(store)
    now = NOW
    for attempt in range(jobs.MOST_ATTEMPTS):
        assert _taken(store, f"taker-{attempt}", now)
        now += jobs.LEASE_MS

    assert _take(store, "z", now) is None
    assert _rows(store) == [(True, jobs.MOST_ATTEMPTS, "lost")]


def test_a_job_that_failed_while_it_was_wished_for_again_leaves_one(store: Store) -> None:
    _add(store)
    job = _taken(store)
    _add(store)
    _fail(store, job)

    assert _rows(store) == [(False, 0, None)]


# -- forgetting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forget", [lambda memory: memory.forget.end_user(ANA), lambda memory: memory.forget.project("p")]
)
def test_the_jobs_of_who_is_forgotten_are_gone(
    memory: Memory, store: Store, forget: Callable[[Memory], object]
) -> None:
    _add(store)
    job = _taken(store)
    _add(store, exchange="id-2")
    forget(memory)

    assert _rows(store) == []
    assert not store.write(lambda tx: jobs.finish(tx, job))
