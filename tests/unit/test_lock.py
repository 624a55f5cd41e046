"""Many readers or one writer."""

import threading
from collections.abc import Callable

import pytest

from halo_server.index.lock import ReadWriteLock

SOON = 5.0  # seconds after which a test gives up; never waited for when all is well


def spawn(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_readers_run_beside_each_other() -> None:
    lock, together = ReadWriteLock(), threading.Barrier(3)

    def read() -> None:
        with lock.reading():
            together.wait(SOON)

    for thread in [spawn(read) for _ in range(3)]:
        thread.join(SOON)
    assert not together.broken


def test_a_writer_waits_for_readers_and_readers_that_come_later_wait_for_it() -> None:
    lock, order = ReadWriteLock(), []
    reading, finish = threading.Event(), threading.Event()

    def read_first() -> None:
        with lock.reading():
            reading.set()
            finish.wait(SOON)
            order.append("first reader")

    def write() -> None:
        with lock.writing():
            order.append("writer")

    def read_later() -> None:
        with lock.reading():
            order.append("later reader")

    first = spawn(read_first)
    reading.wait(SOON)
    writer = spawn(write)
    with lock._condition:
        assert lock._condition.wait_for(lambda: lock._writers_waiting, SOON) or lock._writers_waiting
    later = spawn(read_later)
    finish.set()
    for thread in (first, writer, later):
        thread.join(SOON)

    assert order == ["first reader", "writer", "later reader"]


def test_only_one_writes_at_a_time() -> None:
    lock, seen, inside = ReadWriteLock(), [], []

    def write(n: int) -> None:
        for _ in range(50):
            with lock.writing():
                inside.append(n)
                seen.append(len(inside))
                inside.pop()
            with lock.reading():
                seen.append(len(inside) + 1)

    for thread in [spawn(lambda n=n: write(n)) for n in range(4)]:
        thread.join(SOON)
    assert seen == 400 * [1]


def test_an_error_inside_lets_go() -> None:
    lock = ReadWriteLock()
    for hold in (lock.reading, lock.writing):
        with pytest.raises(LookupError), hold():
            raise LookupError

    with lock.writing():
        pass
    with lock.reading():
        pass
