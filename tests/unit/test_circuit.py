"""A service that is down is left alone for a while, longer each time, and then tried by one caller."""

import pytest

from halo_server.embedders.circuit import Circuit


class _Seconds:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> _Seconds:
    return _Seconds()


def _rest(circuit: Circuit, seconds: _Seconds) -> float:
    """Let the service fail once more; return how long it is left alone."""
    circuit.failed()
    failed_at = seconds.now
    while not circuit.admits():
        seconds.now += 0.5
    return seconds.now - failed_at


def test_who_failed_is_left_alone_twice_as_long_each_time_up_to_a_minute(seconds: _Seconds) -> None:
    circuit = Circuit(seconds)

    assert [circuit.admits() for _ in range(3)] == [True] * 3
    assert [_rest(circuit, seconds) for _ in range(9)] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_after_a_rest_one_tries_for_all(seconds: _Seconds) -> None:
    circuit = Circuit(seconds)
    circuit.failed()
    seconds.now += 1

    assert [circuit.admits() for _ in range(3)] == [True, False, False]
    circuit.succeeded()
    assert [circuit.admits() for _ in range(3)] == [True] * 3
    assert _rest(circuit, seconds) == 1


def test_who_tries_and_never_comes_back_is_waited_for_a_minute(seconds: _Seconds) -> None:
    circuit = Circuit(seconds)
    circuit.failed()
    seconds.now += 1
    assert circuit.admits()

    seconds.now += 59
    assert not circuit.admits()
    seconds.now += 1
    assert circuit.admits()
