"""What holds for every test: no settings from outside, no network, the same examples in every run."""

import ipaddress
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_COMMON: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("ci", derandomize=True, max_examples=50, database=None, **_COMMON)
settings.register_profile("dev", max_examples=50, database=None, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def _is_local(address: object) -> bool:
    if not isinstance(address, tuple):  # a path: a socket of this machine
        return True
    host = str(address[0])
    try:
        return host == "localhost" or ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def _no_network() -> Iterator[None]:
    """Nothing here needs another machine; what tries to reach one is a fault."""

    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            if not _is_local(address):
                raise AssertionError(f"A test tried to reach {address!r}.")
            return original(self, address)

        return connect

    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, guarded(name))
        yield


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HALO_"):
            monkeypatch.delenv(name)
