"""A model that names another end user reads its own all the same: in both clients, and over plain HTTP."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import halo_server
from halo_sdk import AsyncHalo, Halo
from halo_server.config import Settings
from halo_server.inprocess import EmbeddedClient
from tests.providers.conftest import PREFERENCE, PROJECT

HOSTILE: dict[str, Any] = {
    "top level": {
        "endUserKey": "victim",
        "projectKey": "other",
        "sessionData": {},
        "query": "weekly reports",
    },
    "nested": {"sessionData": {"endUserKey": "victim", "projectKey": "other"}, "query": "weekly reports"},
    "nested arguments": {"arguments": {"endUserKey": "victim"}, "sessionData": {}, "query": "weekly reports"},
    "stringified": json.dumps({"endUserKey": "victim", "sessionData": {}, "query": "weekly reports"}),
    "stringified session": {"sessionData": json.dumps({"endUserKey": "victim"}), "query": "weekly reports"},
    "snake case": {
        "end_user_key": "victim",
        "project_key": "other",
        "sessionData": {},
        "query": "weekly reports",
    },
}


def _reply(arguments: Any) -> dict[str, Any]:
    function = {"name": "halo_retrieve_end_user_memory", "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_the_client_reads_the_bound_user_only(server: EmbeddedClient, arguments: Any) -> None:
    results = Halo(http_client=server).for_user("user_123").handle(_reply(arguments))
    assert PREFERENCE in results[0]["content"]
    assert "canary-4711" not in json.dumps(results)


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_the_awaited_client_reads_the_bound_user_only(
    server: EmbeddedClient, tmp_path: Path, arguments: Any
) -> None:
    async def ask() -> str:
        settings = Settings(embedder="hashing")
        async with halo_server.embedded_async(tmp_path, project=PROJECT, settings=settings) as http:
            return json.dumps(
                await AsyncHalo(http_client=http).for_user("user_123").handle(_reply(arguments))
            )

    found = asyncio.run(ask())
    assert PREFERENCE in found
    assert "canary-4711" not in found


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_plain_http_reads_the_bound_user_only(server: EmbeddedClient, arguments: Any) -> None:
    sent = {"projectKey": PROJECT, "endUserKey": "user_123", "arguments": arguments}
    answer = server.post("/api/v1/memory/functions/halo_retrieve_end_user_memory", json=sent)
    assert "canary-4711" not in answer.text
    assert answer.status_code == 200 or answer.json()["code"] == "INVALID_REQUEST"
