"""The server inside your own process, sync and async: no port, no key. Run: `python -m examples.embedded`.

The same service as `halo serve`, over the same data directory, for scripts, tests and single-process programs.
"""

import asyncio
from tempfile import TemporaryDirectory
from typing import Any

import halo_server
from halo_sdk import AsyncHalo, Halo

TOLD: list[Any] = [{"role": "user", "content": "I am allergic to walnuts, other nuts are fine."}]
ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Which nuts must I avoid?"}]}


def remember(directory: str) -> None:
    with halo_server.embedded(directory, project="default") as server:
        memory = Halo(http_client=server).for_user("user_123")
        receipt = memory.capture(TOLD, {"role": "assistant", "content": "No walnuts, understood."})
        assert receipt.captured
        print("captured", receipt.raw_entry_id, "under", receipt.topic_keys)


async def recall(directory: str) -> None:
    async with halo_server.embedded_async(directory, project="default") as server:
        memory = AsyncHalo(http_client=server).for_user("user_123")
        found = await memory.retrieve(session_data=ASKED, limit=5)
        print(found.selection_reason)
        [entry] = found.raw_entries
        assert "walnuts" in str(entry)


with TemporaryDirectory() as data:
    remember(data)
    asyncio.run(recall(data))
