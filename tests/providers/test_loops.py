"""The loop of the README, with the official clients of both providers, in both colours, against a local model server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai.types import HttpOptions, HttpRetryOptions
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

import halo_server
from examples.scripted_model import ScriptedModel
from halo_sdk import AsyncHalo, Halo
from halo_server.config import Settings
from halo_server.inprocess import EmbeddedClient
from tests.providers.conftest import PROJECT, QUESTION

pytestmark = [pytest.mark.providers]


def _gemini(model: ScriptedModel) -> genai.Client:
    retry = HttpRetryOptions(attempts=1)
    direct = {"trust_env": False}
    options = HttpOptions(
        base_url=model.base_url, retry_options=retry, client_args=direct, async_client_args=direct
    )
    return genai.Client(api_key="none", http_options=options)


def test_openai_finds_the_preference_and_captures_the_answer(
    server: EmbeddedClient, model: ScriptedModel
) -> None:
    memory = Halo(http_client=server).for_user("user_123")
    direct = DefaultHttpxClient(trust_env=False)
    with OpenAI(api_key="none", base_url=f"{model.base_url}/v1", max_retries=0, http_client=direct) as client:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            response = client.chat.completions.create(
                model="m", messages=messages, tools=memory.tools("openai")
            )
            messages.append(response.choices[0].message)
            results = memory.handle(response, session=messages)
            if not results:
                break
            messages += results
        receipt = memory.capture(messages)
    assert "weekly reports short" in (response.choices[0].message.content or "")
    assert [type(message).__name__ for message in messages] == [
        "dict",
        "ChatCompletionMessage",
        "dict",
        "ChatCompletionMessage",
    ]
    assert _stored(server, receipt.raw_entry_id) == [QUESTION]


async def _ask_openai(tmp_path: Path, model: ScriptedModel) -> str:
    direct = DefaultAsyncHttpxClient(trust_env=False)
    async with (
        halo_server.embedded_async(tmp_path, project=PROJECT, settings=Settings(embedder="hashing")) as http,
        AsyncOpenAI(
            api_key="none", base_url=f"{model.base_url}/v1", max_retries=0, http_client=direct
        ) as client,
    ):
        memory = AsyncHalo(http_client=http).for_user("user_123")
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        while True:
            response = await client.chat.completions.create(
                model="m", messages=messages, tools=memory.tools("openai")
            )
            messages.append(response.choices[0].message)
            results = await memory.handle(response, session=messages)
            if not results:
                break
            messages += results
        receipt = await memory.capture(messages)
        assert receipt.captured
    return response.choices[0].message.content or ""


def test_openai_awaited_finds_the_preference_and_captures_the_answer(
    server: EmbeddedClient, model: ScriptedModel, tmp_path: Path
) -> None:
    assert "weekly reports short" in asyncio.run(_ask_openai(tmp_path, model))


def test_gemini_finds_the_preference_and_captures_the_answer(
    server: EmbeddedClient, model: ScriptedModel
) -> None:
    memory = Halo(http_client=server).for_user("user_123")
    with _gemini(model) as client:
        contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
        while True:
            config = {"tools": memory.tools("gemini")}
            response = client.models.generate_content(model="m", contents=contents, config=config)
            contents.append(response.candidates[0].content)
            results = memory.handle(response, session=contents)
            if not results:
                break
            contents += results
        receipt = memory.capture(contents)
    assert "weekly reports short" in (response.text or "")
    assert _stored(server, receipt.raw_entry_id) == [QUESTION]


async def _ask_gemini(tmp_path: Path, model: ScriptedModel) -> str:
    client = _gemini(model)
    async with (
        halo_server.embedded_async(tmp_path, project=PROJECT, settings=Settings(embedder="hashing")) as http,
        client.aio as gemini,
    ):
        memory = AsyncHalo(http_client=http).for_user("user_123")
        contents: list[Any] = [{"role": "user", "parts": [{"text": QUESTION}]}]
        while True:
            config = {"tools": memory.tools("gemini")}
            response = await gemini.models.generate_content(model="m", contents=contents, config=config)
            contents.append(response.candidates[0].content)
            results = await memory.handle(response, session=contents)
            if not results:
                break
            contents += results
        receipt = await memory.capture(contents)
        assert receipt.captured
    client.close()
    return response.text or ""


def test_gemini_awaited_finds_the_preference_and_captures_the_answer(
    server: EmbeddedClient, model: ScriptedModel, tmp_path: Path
) -> None:
    assert "weekly reports short" in asyncio.run(_ask_gemini(tmp_path, model))


def _stored(server: EmbeddedClient, entry_id: str) -> list[str]:
    """Return the texts of the request as stored: no call of ours, no result of ours."""
    entry = server.get(f"/api/v1/memory/projects/{PROJECT}/raw/{entry_id}").json()
    return [
        message.get("content") or message["parts"][0]["text"] for message in entry["requestRaw"]["messages"]
    ]
