"""HTTP clients of an application's own, from the two libraries that are around."""

import asyncio

import httpx
import pytest

from halo_sdk import AsyncHalo, Halo, HaloConnectionError, HaloTimeoutError
from tests.compat.stub import Stub
from tests.compat.wires import sdk
from tests.sdk.fakes import FOUND, RECEIPT

NOWHERE = "http://127.0.0.1:9"

libraries = pytest.mark.parametrize("name", ["httpx", "httpx2"])


@libraries
def test_a_client_of_either_library_carries_requests_and_stays_open(stub: Stub, name: str) -> None:
    stub.replies += [FOUND, RECEIPT, FOUND]
    with sdk(name).Client(trust_env=False) as client:
        halo = Halo("k", project_key="p", base_url=stub.url, http_client=client)
        memory = halo.for_user("u")
        assert memory.retrieve("hi").request_id == "req_1"
        assert memory.capture("hi", "hello").captured
        halo.close()
        assert memory.retrieve("hi").request_id == "req_1"
        assert not client.is_closed


@libraries
def test_failures_of_either_library_are_ours(name: str) -> None:
    library = sdk(name)

    def slow(request: object) -> None:
        raise library.ReadTimeout("slow")

    with library.Client(trust_env=False) as client:
        halo = Halo("k", project_key="p", base_url=NOWHERE, max_retries=0, http_client=client)
        with pytest.raises(HaloConnectionError):
            halo.for_user("u").retrieve("hi")
    with library.Client(transport=library.MockTransport(slow)) as client:
        halo = Halo("k", project_key="p", base_url=NOWHERE, max_retries=0, http_client=client)
        with pytest.raises(HaloTimeoutError):
            halo.for_user("u").retrieve("hi")


@libraries
def test_an_awaited_client_of_either_library_does_too(stub: Stub, name: str) -> None:
    stub.replies += [FOUND, FOUND]

    async def run() -> None:
        async with sdk(name).AsyncClient(trust_env=False) as client:
            async with AsyncHalo("k", project_key="p", base_url=stub.url, http_client=client) as halo:
                found = await asyncio.gather(*(halo.for_user("u").retrieve("hi") for _ in range(2)))
            assert [each.request_id for each in found] == ["req_1", "req_1"]
            assert not client.is_closed

    asyncio.run(run())


def test_the_libraries_are_strangers_to_each_other() -> None:
    assert not issubclass(sdk("httpx2").TimeoutException, httpx.TimeoutException)
