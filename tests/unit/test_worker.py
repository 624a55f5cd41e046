"""A thread that begins with the first job, outlives every fault, and ends in time."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from halo_server import worker as module
from halo_server.domain import Job, Scope
from halo_server.errors import ProviderFailed, StorageFull
from halo_server.store import jobs, open_store
from halo_server.store.store import Store
from halo_server.worker import Handler, Worker
from tests.memory import FrozenClock, Ids

ANA = Scope("p", "ana")
SOON_S = 30.0


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def store(tmp_path: Path, clock: FrozenClock) -> Iterator[Store]:
    opened = open_store(tmp_path, "")

    def known(tx):
        tx.add_project("p", clock())
        tx.open_scope(ANA, clock())

    opened.write(known)
    yield opened
    opened.close()


@pytest.fixture
def work(store: Store, clock: FrozenClock) -> Iterator[Callable[[Handler], Worker]]:
    """Return a worker that does what it is told with jobs of the kind `work`."""
    made: list[Worker] = []

    def build(handler: Handler) -> Worker:
        made.append(Worker(store, {"work": handler}, clock, Ids(), lambda: 0.5))
        return made[-1]

    yield build
    for worker in made:
        worker.stop()


def _add(store: Store, clock: FrozenClock, *names: str) -> None:
    for name in names:
        store.write(lambda tx, name=name: jobs.add(tx, ANA, "work", {"name": name}, clock()))


class Done:
    """A handler that does its work, and remembers of which jobs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.names: list[str] = []
        self.all = Event()

    def __call__(self, job: Job) -> None:
        self.store.write(lambda tx: jobs.finish(tx, job))
        self.names.append(job.payload["name"])
        if job.payload["name"] == "last":
            self.all.set()


def test_a_started_worker_does_what_comes_and_what_was_left(store: Store, clock: FrozenClock, work) -> None:
    done = Done(store)
    worker = work(done)
    _add(store, clock, "left")
    worker.start()
    _add(store, clock, "came", "last")
    worker.wake()

    assert done.all.wait(SOON_S)
    worker.stop()
    assert done.names == ["left", "came", "last"]
    assert worker.count() == (0, 0)


def test_what_was_put_off_is_done_without_a_sign(
    store: Store, clock: FrozenClock, work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IDLE_S", 0.01)
    done = Done(store)
    worker = work(done)
    store.write(lambda tx: jobs.add(tx, ANA, "work", {"name": "last"}, clock(), delay_ms=1000))
    worker.start()
    clock.now += 1000

    assert done.all.wait(SOON_S)


def test_a_worker_without_a_job_needs_no_thread_and_one_that_is_not_started_or_stopped_begins_none(
    store: Store, clock: FrozenClock, work
) -> None:
    worker = work(Done(store))
    worker.wake()
    assert worker._thread is None
    worker.start()
    assert worker._thread is None
    worker.stop()
    _add(store, clock, "later")
    worker.wake()
    worker.start()
    assert worker._thread is None
    assert worker.count() == (1, 0)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderFailed("rate_limited"), "rate_limited"),
        (StorageFull(), "storage_full"),
        (ValueError("My sister Ada plays the cello."), "internal"),
        (RecursionError(), "internal"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_job_that_fails_in_any_way_is_put_off_by_a_code_and_the_others_are_done(
    store: Store, clock: FrozenClock, work, error: Exception, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    done = Done(store)

    def failing(job: Job) -> None:
        if job.payload["name"] == "bad" and job.attempts == 1:
            raise error
        done(job)

    worker = work(failing)
    _add(store, clock, "bad", "good")
    assert worker.drain() == 2
    assert (done.names, worker.count()) == (["good"], (1, 0))
    assert worker.failures.labels("work", code)._value.get() == 1
    assert "Ada" not in caplog.text

    clock.now += 1000
    assert worker.drain() == 1
    assert (done.names, worker.count()) == (["good", "bad"], (0, 0))


def test_a_failure_that_is_final_is_not_tried_again(store: Store, clock: FrozenClock, work) -> None:
    def useless(_: Job) -> None:
        raise ProviderFailed("invalid", final=True)

    worker = work(useless)
    _add(store, clock, "bad")

    assert (worker.drain(), worker.count()) == (1, (0, 1))


def test_a_store_that_does_not_answer_for_a_while_ends_no_worker(
    store: Store, clock: FrozenClock, work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IDLE_S", 0.01)
    done = Done(store)
    worker = work(done)
    _add(store, clock, "last")
    away = iter([True] * 3)

    def take(*arguments):
        if next(away, False):
            raise StorageFull
        return original(*arguments)

    original = jobs.take
    monkeypatch.setattr(jobs, "take", take)
    worker.start()

    assert done.all.wait(SOON_S)


def test_stopping_waits_for_the_job_under_way(store: Store, clock: FrozenClock, work) -> None:
    begun, go_on = Event(), Event()
    done = Done(store)

    def slow(job: Job) -> None:
        begun.set()
        assert go_on.wait(SOON_S)
        done(job)

    worker = work(slow)
    _add(store, clock, "first", "second")
    worker.start()
    assert begun.wait(SOON_S)
    worker._stopping.set()
    go_on.set()
    worker.stop()

    assert (done.names, worker.count()) == (["first"], (1, 0))


def test_a_job_that_takes_too_long_is_given_back_and_its_worker_changes_nothing_any_more(
    store: Store, clock: FrozenClock, work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.01)
    begun, go_on, ended = Event(), Event(), Event()
    finished: list[bool] = []

    def endless(job: Job) -> None:
        begun.set()
        assert go_on.wait(SOON_S)
        finished.append(store.write(lambda tx: jobs.finish(tx, job)))
        ended.set()

    worker = work(endless)
    _add(store, clock, "last")
    worker.start()
    assert begun.wait(SOON_S)
    worker.stop()

    done = Done(store)
    assert (work(done).drain(), done.names) == (1, ["last"])  # as the next process would, at once
    go_on.set()
    assert ended.wait(SOON_S)
    worker._thread.join(SOON_S)
    assert (finished, worker.count()) == ([False], (0, 0))


def test_a_worker_whose_store_is_closed_ends_without_a_word(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.01)
    begun, go_on = Event(), Event()
    opened = open_store(tmp_path / "other", "")

    def known(tx):
        tx.add_project("p", clock())
        tx.open_scope(ANA, clock())

    opened.write(known)
    _add(opened, clock, "last")

    def endless(job: Job) -> None:
        begun.set()
        assert go_on.wait(SOON_S)
        opened.write(lambda tx: jobs.finish(tx, job))

    worker = Worker(opened, {"work": endless}, clock, Ids(), lambda: 0.5)
    worker.start()
    assert begun.wait(SOON_S)
    worker.stop()
    opened.close()
    go_on.set()
    worker._thread.join(SOON_S)
    assert not worker._thread.is_alive()
