"""Chat Completions with a memory: declare, dispatch, capture. Run: `python -m examples.openai_chat`.

Two conversations of the same end user. The second remembers the first, because its exchange was captured.
"""

from tempfile import TemporaryDirectory
from typing import Any

from openai import OpenAI

import halo_server
from examples._setting import openai_model
from halo_sdk import Halo, Memory


def converse(client: OpenAI, model: str, memory: Memory, text: str) -> str:
    """Answer one message in a conversation of its own, and remember the exchange."""
    tools = memory.tools("openai")
    messages: list[Any] = [{"role": "user", "content": text}]
    while True:
        response = client.chat.completions.create(model=model, messages=messages, tools=tools)
        messages.append(response.choices[0].message)
        results = memory.handle(response, session=messages)
        if not results:  # the model called nothing: this is its answer
            break
        messages += results
    memory.capture(messages)
    return response.choices[0].message.content or ""


with (
    TemporaryDirectory() as directory,
    halo_server.embedded(directory, project="default") as server,
    openai_model() as (client, model),
):
    memory = Halo(http_client=server).for_user("user_123")
    converse(client, model, memory, "Keep my weekly reports short and send them in the morning.")
    answer = converse(client, model, memory, "What format do I prefer for weekly reports?")
    print(answer)
    assert "short" in answer.lower()
