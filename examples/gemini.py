"""Gemini's generateContent with a memory, through the official client. Run: `python -m examples.gemini`.

The same three lines as with OpenAI: `memory.tools("gemini")`, `memory.handle(…)`, `memory.capture(…)`.
"""

from tempfile import TemporaryDirectory
from typing import Any

from google import genai

import halo_server
from examples._setting import gemini_model
from halo_sdk import Halo, Memory


def converse(client: genai.Client, model: str, memory: Memory, text: str) -> str:
    """Answer one message in a conversation of its own, and remember the exchange."""
    contents: list[Any] = [{"role": "user", "parts": [{"text": text}]}]
    config: Any = {"tools": memory.tools("gemini")}
    while True:
        response = client.models.generate_content(model=model, contents=contents, config=config)
        assert response.candidates
        contents.append(response.candidates[0].content)  # unchanged: it carries the thought signatures
        results = memory.handle(response, session=contents)
        if not results:
            break
        contents += results
    memory.capture(contents)
    return response.text or ""


with (
    TemporaryDirectory() as directory,
    halo_server.embedded(directory, project="default") as server,
    gemini_model() as (client, model),
):
    memory = Halo(http_client=server).for_user("user_123")
    converse(client, model, memory, "Keep my weekly reports short and send them in the morning.")
    answer = converse(client, model, memory, "What format do I prefer for weekly reports?")
    print(answer)
    assert "short" in answer.lower()
