"""What each provider says on the wire when a model calls functions or answers, whole and streamed, and how its client asks."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from tests.compat.stub import Events, Json
from tests.parts import require
from tests.sdk.replies import Call

THOUGHT, SIGNATURE = "a secret thought", "c2lnbmF0dXJl"


def sdk(name: str) -> Any:
    """Return a provider's package."""
    try:
        module = import_module(name)
    except ModuleNotFoundError:
        module = None
    require(name, module, "pip install 'halo-memory[compat]'")
    return module


def _pieces(value: Any) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value)
    return [text[at : at + 7] for at in range(0, len(text), 7)]


class Wire(ABC):
    """One provider."""

    dialect: ClassVar[str]

    @abstractmethod
    def calls(self, calls: Sequence[Call]) -> Json:
        """Return a reply in which the model thinks and calls."""

    @abstractmethod
    def answer(self, text: str) -> Json:
        """Return a reply in which the model answers."""

    @abstractmethod
    def streamed(self, reply: Json) -> Events:
        """Return a reply as a stream of small pieces."""

    @abstractmethod
    def client(self, url: str, *, awaited: bool) -> Any:
        """Return the official client, waiting or awaited."""

    def close(self, client: Any) -> Any:
        """Close the client, or return what is to be awaited for that."""
        return client.close()

    @abstractmethod
    def ask(self, client: Any, history: list[Any], tools: list[Any], *, stream: bool) -> Any:
        """Return what the client returns: a reply, a stream, or what is to be awaited for one."""

    @abstractmethod
    def turn(self, reply: Any) -> list[Any]:
        """Return what an application appends to its history."""

    def opening(self, text: str) -> Json:
        """Return the end user's message."""
        return {"role": "user", "content": text}

    @abstractmethod
    def results(self, body: Json) -> list[tuple[str, Any]]:
        """Return id and content of every result in a request, in order; fails if they are not where they must be."""

    @abstractmethod
    def echoed(self, body: Json) -> str:
        """Return as text the model's turn as it was sent back."""

    def tools(self, body: Json) -> list[Json]:
        """Return the tools of a request."""
        return list(body["tools"])


class OpenAIChat(Wire):
    dialect = "openai"

    def _reply(self, finish: str, **message: Any) -> Json:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": None, **message},
            "finish_reason": finish,
        }
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def calls(self, calls: Sequence[Call]) -> Json:
        made = [
            {
                "id": each.id,
                "type": "function",
                "function": {"name": each.name, "arguments": json.dumps(each.arguments)},
            }
            for each in calls
        ]
        return self._reply("tool_calls", tool_calls=made)

    def answer(self, text: str) -> Json:
        return self._reply("stop", content=text)

    def streamed(self, reply: Json) -> Events:
        message = reply["choices"][0]["message"]
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(message["content"] or "")]
        for at, call in enumerate(message.get("tool_calls", [])):
            opening = {**call, "index": at, "function": {"name": call["function"]["name"], "arguments": ""}}
            deltas.append({"tool_calls": [opening]})
            deltas += [
                {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}
                for piece in _pieces(call["function"]["arguments"])
            ]
        chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        chunks.append({"index": 0, "delta": {}, "finish_reason": reply["choices"][0]["finish_reason"]})
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        usage = {
            **base,
            "choices": [],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        return Events(
            [*((None, {**base, "choices": [chunk]}) for chunk in chunks), (None, usage)], ends_with_done=True
        )

    def client(self, url: str, *, awaited: bool) -> Any:
        openai = sdk("openai")
        made, http = (
            (openai.AsyncOpenAI, openai.DefaultAsyncHttpxClient)
            if awaited
            else (openai.OpenAI, openai.DefaultHttpxClient)
        )
        return made(api_key="k", base_url=f"{url}/v1", max_retries=0, http_client=http(trust_env=False))

    def ask(self, client: Any, history: list[Any], tools: list[Any], *, stream: bool) -> Any:
        return client.chat.completions.create(model="m", messages=history, tools=tools, stream=stream)

    def turn(self, reply: Any) -> list[Any]:
        return [reply.choices[0].message]

    def results(self, body: Json) -> list[tuple[str, Any]]:
        return [
            (each["tool_call_id"], each["content"]) for each in body["messages"][2:] if each["role"] == "tool"
        ]

    def echoed(self, body: Json) -> str:
        return json.dumps(body["messages"][1])


class Responses(Wire):
    dialect = "openai-responses"

    def _reply(self, *items: Json) -> Json:
        return {
            "id": "r",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "completed",
            "output": list(items),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def calls(self, calls: Sequence[Call]) -> Json:
        thought = [{"type": "summary_text", "text": THOUGHT}]
        reasoning = {"type": "reasoning", "id": "rs", "summary": thought, "encrypted_content": SIGNATURE}
        made = [
            {
                "type": "function_call",
                "id": f"fc_{each.id}",
                "call_id": each.id,
                "name": each.name,
                "arguments": json.dumps(each.arguments),
                "status": "completed",
            }
            for each in calls
        ]
        return self._reply(reasoning, *made)

    def answer(self, text: str) -> Json:
        said = {"type": "output_text", "text": text, "annotations": []}
        return self._reply(
            {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [said]}
        )

    def streamed(self, reply: Json) -> Events:
        created = {"type": "response.created", "response": {**reply, "status": "in_progress", "output": []}}
        events: list[Json] = [created]
        for at, item in enumerate(reply["output"]):
            started = {**item, "status": "in_progress"}
            if item["type"] == "function_call":
                started |= {"arguments": ""}
            events.append({"type": "response.output_item.added", "output_index": at, "item": started})
            if item["type"] == "function_call":
                events += [
                    {
                        "type": "response.function_call_arguments.delta",
                        "output_index": at,
                        "item_id": item["id"],
                        "delta": piece,
                    }
                    for piece in _pieces(item["arguments"])
                ]
            events.append({"type": "response.output_item.done", "output_index": at, "item": item})
        events.append({"type": "response.completed", "response": reply})
        return Events([(event["type"], {**event, "sequence_number": at}) for at, event in enumerate(events)])

    client = OpenAIChat.client

    def ask(self, client: Any, history: list[Any], tools: list[Any], *, stream: bool) -> Any:
        return client.responses.create(model="m", input=history, tools=tools, store=False, stream=stream)

    def turn(self, reply: Any) -> list[Any]:
        return list(reply.output)

    def results(self, body: Json) -> list[tuple[str, Any]]:
        outputs = [each for each in body["input"] if each.get("type") == "function_call_output"]
        return [(each["call_id"], each["output"]) for each in outputs]

    def echoed(self, body: Json) -> str:
        assert [each.get("type") for each in body["input"][1:3]] == ["reasoning", "function_call"]
        return json.dumps(body["input"][1:])


class Gemini(Wire):
    dialect = "gemini"

    def _reply(self, *parts: Json) -> Json:
        content = {"role": "model", "parts": list(parts)}
        return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "modelVersion": "m"}

    def calls(self, calls: Sequence[Call]) -> Json:
        made: list[Json] = [
            {"functionCall": {"id": each.id, "name": each.name, "args": each.arguments}} for each in calls
        ]
        made[0]["thoughtSignature"] = SIGNATURE
        return self._reply({"text": THOUGHT, "thought": True}, *made)

    def answer(self, text: str) -> Json:
        return self._reply({"text": text})

    def streamed(self, reply: Json) -> Events:
        parts: list[Json] = []
        for part in reply["candidates"][0]["content"]["parts"]:
            words = _pieces(part["text"]) if "text" in part else []
            parts += [{**part, "text": piece} for piece in words] or [part]
        chunks: list[Json] = [
            {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts
        ]
        chunks[-1]["candidates"][0]["finishReason"] = "STOP"
        return Events([(None, chunk) for chunk in chunks])

    def client(self, url: str, *, awaited: bool) -> Any:
        genai, types = sdk("google.genai"), sdk("google.genai.types")
        direct = {"trust_env": False}
        options = types.HttpOptions(
            base_url=url,
            retry_options=types.HttpRetryOptions(attempts=1),
            client_args=direct,
            async_client_args=direct,
        )
        made = genai.Client(api_key="k", http_options=options)
        return made.aio if awaited else made

    def close(self, client: Any) -> Any:
        return client.aclose() if hasattr(client, "aclose") else client.close()

    def ask(self, client: Any, history: list[Any], tools: list[Any], *, stream: bool) -> Any:
        asked = client.models.generate_content_stream if stream else client.models.generate_content
        config = {"tools": tools, "automatic_function_calling": {"disable": True}}
        return asked(model="m", contents=history, config=config)

    def turn(self, reply: Any) -> list[Any]:
        return [reply.candidates[0].content]

    def opening(self, text: str) -> Json:
        return {"role": "user", "parts": [{"text": text}]}

    def results(self, body: Json) -> list[tuple[str, Any]]:
        (content,) = body["contents"][2:]
        responses = [part["functionResponse"] for part in content["parts"]]
        return [(each["id"], next(iter(each["response"].values()))) for each in responses]

    def echoed(self, body: Json) -> str:
        assert "thoughtSignature" in next(
            part for part in body["contents"][1]["parts"] if "functionCall" in part
        )
        return json.dumps(body["contents"][1])

    def tools(self, body: Json) -> list[Json]:
        (tool,) = body["tools"]
        declared = [
            {
                "name": each["name"],
                "description": each["description"],
                "parameters_json_schema": each.get(
                    "parametersJsonSchema", each.get("parameters_json_schema")
                ),
            }
            for each in tool["functionDeclarations"]
        ]
        return [{"function_declarations": declared}]


class Interactions(Wire):
    dialect = "gemini-interactions"

    def _reply(self, status: str, *steps: Json) -> Json:
        return {"id": "i", "object": "interaction", "model": "m", "status": status, "steps": list(steps)}

    def calls(self, calls: Sequence[Call]) -> Json:
        thought = {"type": "thought", "signature": SIGNATURE, "summary": [{"type": "text", "text": THOUGHT}]}
        made = [
            {"type": "function_call", "id": each.id, "name": each.name, "arguments": each.arguments}
            for each in calls
        ]
        return self._reply("requires_action", thought, *made)

    def answer(self, text: str) -> Json:
        return self._reply("completed", {"type": "model_output", "content": [{"type": "text", "text": text}]})

    def streamed(self, reply: Json) -> Events:
        created = {"id": "i", "status": "in_progress"}
        events: list[Json] = [{"event_type": "interaction.created", "interaction": created}]
        for at, step in enumerate(reply["steps"]):
            started = {"type": step["type"]}
            deltas: list[Json] = []
            if step["type"] == "function_call":
                started = {**step, "arguments": {}}
                deltas = [
                    {"type": "arguments_delta", "arguments": piece} for piece in _pieces(step["arguments"])
                ]
            elif step["type"] == "thought":
                deltas = [
                    *({"type": "thought_summary", "content": each} for each in step["summary"]),
                    {"type": "thought_signature", "signature": step["signature"]},
                ]
            else:
                deltas = [{"type": "text", "text": piece} for piece in _pieces(step["content"][0]["text"])]
            events.append({"event_type": "step.start", "index": at, "step": started})
            events += [{"event_type": "step.delta", "index": at, "delta": delta} for delta in deltas]
            events.append({"event_type": "step.stop", "index": at})
        end = {key: value for key, value in reply.items() if key != "steps"}
        events.append({"event_type": "interaction.completed", "interaction": end})
        return Events([(None, event) for event in events])

    client, close = Gemini.client, Gemini.close

    def ask(self, client: Any, history: list[Any], tools: list[Any], *, stream: bool) -> Any:
        return client.interactions.create(model="m", input=history, tools=tools, store=False, stream=stream)

    def turn(self, reply: Any) -> list[Any]:
        return list(reply.steps)

    def opening(self, text: str) -> Json:
        return {"type": "user_input", "content": [{"type": "text", "text": text}]}

    def results(self, body: Json) -> list[tuple[str, Any]]:
        steps = [each for each in body["input"] if each["type"] == "function_result"]
        return [(each["call_id"], each["result"]) for each in steps]

    def echoed(self, body: Json) -> str:
        assert [each["type"] for each in body["input"][1:3]] == ["thought", "function_call"]
        return json.dumps(body["input"][1:])


class Anthropic(Wire):
    dialect = "anthropic"

    def _reply(self, stop: str, *blocks: Json) -> Json:
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": list(blocks),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def calls(self, calls: Sequence[Call]) -> Json:
        thinking = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
        made = [
            {"type": "tool_use", "id": each.id, "name": each.name, "input": each.arguments} for each in calls
        ]
        return self._reply("tool_use", thinking, *made)

    def answer(self, text: str) -> Json:
        return self._reply("end_turn", {"type": "text", "text": text})

    def streamed(self, reply: Json) -> Events:
        start = {**reply, "content": [], "stop_reason": None}
        events: list[Json] = [{"type": "message_start", "message": start}]
        for at, block in enumerate(reply["content"]):
            opening, deltas = self._deltas(block)
            events.append({"type": "content_block_start", "index": at, "content_block": opening})
            events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": at})
        stop = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}})
        events.append({"type": "message_stop"})
        return Events([(event["type"], event) for event in events])

    def _deltas(self, block: Json) -> tuple[Json, list[Json]]:
        if block["type"] == "tool_use":
            pieces = ["", *_pieces(block["input"])]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces
            ]
        if block["type"] == "thinking":
            opening = {"type": "thinking", "thinking": "", "signature": ""}
            deltas: list[Json] = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(THOUGHT)]
            return opening, [*deltas, {"type": "signature_delta", "signature": SIGNATURE}]
        return {"type": "text", "text": ""}, [
            {"type": "text_delta", "text": piece} for piece in _pieces(block["text"])
        ]

    def client(self, url: str, *, awaited: bool) -> Any:
        anthropic = sdk("anthropic")
        made, http = (
            (anthropic.AsyncAnthropic, anthropic.DefaultAsyncHttpxClient)
            if awaited
            else (anthropic.Anthropic, anthropic.DefaultHttpxClient)
        )
        return made(api_key="k", base_url=url, max_retries=0, http_client=http(trust_env=False))

    def ask(self, client: Any, history: list[Any], tools: list[Any], *, stream: bool) -> Any:
        return client.messages.create(model="m", max_tokens=99, messages=history, tools=tools, stream=stream)

    def turn(self, reply: Any) -> list[Any]:
        return [{"role": "assistant", "content": reply.content}]

    def results(self, body: Json) -> list[tuple[str, Any]]:
        # The service may keep the thread, and be sent what is new only.
        (message,) = body["messages"][2:] if len(body["messages"]) > 1 else body["messages"]
        assert message["role"] == "user"
        return [(block["tool_use_id"], block["content"]) for block in message["content"]]

    def echoed(self, body: Json) -> str:
        assert [block["type"] for block in body["messages"][1]["content"][:2]] == ["thinking", "tool_use"]
        return json.dumps(body["messages"][1])


WIRES = [Anthropic(), Gemini(), Interactions(), OpenAIChat(), Responses()]
