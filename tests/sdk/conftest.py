"""A service that is never reached over a network, and clients that talk to it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import respx

from halo_sdk import Halo, Memory
from tests.sdk.fakes import CAPTURE_URL, FOUND, FUNCTION_URL, KEY, RECEIPT, Time, with_time


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HALO_API_KEY", "HALO_PROJECT_KEY", "HALO_BASE_URL", "HALO_LOG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.post(FUNCTION_URL, name="function").respond(json=FOUND)
        router.post(CAPTURE_URL, name="capture").respond(201, json=RECEIPT)
        yield router


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def make(time: Time) -> Iterator[Callable[..., Halo]]:
    made: list[Halo] = []

    def build(**options: Any) -> Halo:
        made.append(with_time(Halo(KEY, project_key="customer-product", **options), time))
        return made[-1]

    yield build
    for client in made:
        client.close()


@pytest.fixture
def memory(make: Callable[..., Halo]) -> Memory:
    return make().for_user("user_123")
