"""A tiny rule-based chat model behind the wires of OpenAI, Gemini and Anthropic, for when no real model is reachable.

It lets every example run offline with the official clients, and it cannot cheat: it knows rules, no facts.
Whatever it says about an end user it read in a function result of the same request, so an exchange that
was deleted from the memory is missing from its answer. Change it when a provider's wire changes.
"""

import argparse
import json
import re
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

RETRIEVE = "retrieve_end_user_memory"
QUOTE_CHARACTERS = 240
KEPT_INTERACTIONS = 1000

_ASKS = re.compile(
    r"[?\uff1f]|[吗呢][。.!]*$|(?<![静確])か(?:な|ね)?[。.!]*$|请问|告诉我|推荐|提醒|教えて|勧めて|思い出させて"
    # "When I fly, I sit in front." tells something: with a comma it is no question.
    r"|^(?:what|when|where|which|who|whose|why|how)\b[^,]*$"
    r"|^(?:please\s+)?(?:do(?!n't| not)|does|did|am|is|are|can|could|should|would|will"
    r"|recommend|suggest|plan|remind|tell|show|list|find|help|draft)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^。.!?\uff01\uff1f\n]+(?:[.](?=\S)[^。.!?\uff01\uff1f\n]+)*[。.!?\uff01\uff1f]*\s*")
_LATIN = re.compile(r"[a-z0-9à-ÿ]+(?:'[a-z]+)?")
# One script a run: katakana, Han or hiragana.
_CJK = re.compile(r"[\u30a1-\u30fa\u30fc]+|[\u3005\u3400-\u9fff]+|[\u3041-\u309f]+")
_KANA = re.compile(r"[\u3041-\u30fa]")
_HAN = re.compile(r"[\u3400-\u9fff]")
# Words that say that something is asked, never what: they would make every memory look related.
_STOP = frozenset(
    re.split(
        r"\s+",
        """a about again all am an and any are as at be been before but by can could did do does for from get give had
        has have how i i'd i'm if in is it list me my of on or our please recommend remind should show so some
        suggest tell than that the them then there these they this to us want was we were what what's when where
        which who whose why will with would you your 何 私 教 我 什么""",
    )
)
_CHINESE_STOP = re.compile("我的|我们|什么|怎么|请问|哪些|哪个|[我你您他她的了吗呢吧是在]")

_PHRASES = {
    "en": {
        "noted": "Noted.",
        "told": "You told me on {date}: “{quote}”",
        "undated": "You told me: “{quote}”",
        "nothing": "I have no memory of that.",
        "failed": "I could not reach my memory just now.",
        "blind": "I do not know: no memory was offered to me.",
    },
    "ja": {
        "noted": "承知しました。",
        "told": "{date}にこう伺いました：「{quote}」",  # noqa: RUF001  a Japanese colon in a Japanese sentence
        "undated": "こう伺いました：「{quote}」",  # noqa: RUF001
        "nothing": "それについての記憶はありません。",
        "failed": "今は記憶を参照できませんでした。",
        "blind": "わかりません。参照できる記憶がありません。",
    },
    "zh": {
        "noted": "好的，知道了。",  # noqa: RUF001  a Chinese comma in a Chinese sentence
        "told": "您在{date}告诉过我：“{quote}”",  # noqa: RUF001
        "undated": "您告诉过我：“{quote}”",  # noqa: RUF001
        "nothing": "我没有相关的记忆。",
        "failed": "我现在无法读取记忆。",
        "blind": "我不知道：没有可用的记忆。",  # noqa: RUF001
    },
}


# --- What the model thinks: pure functions ------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """One request, whatever wire it came over."""

    text: str  # the last user message
    function: str | None = None  # the declared retrieve function the model may call
    parameters: frozenset[str] = frozenset()
    results: list[Any] = field(default_factory=list)  # function results after the last user message


@dataclass(frozen=True)
class Reply:
    """What the model says, or the one function it calls instead."""

    text: str | None = None
    function: str | None = None
    arguments: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """A user message of a returned exchange: what may be quoted, and when it was said."""

    rank: int  # in the memory's order, counted over what may be quoted
    date: str
    sentences: list[str]


def decide(turn: Turn) -> Reply:
    """Return the model's next move: a call, an answer from the returned memory, or an acknowledgement."""
    phrases = _PHRASES[language(turn.text)]
    if turn.results:
        return Reply(text=_answer(turn, phrases))
    if not asks(turn.text):
        return Reply(text=phrases["noted"])
    if turn.function is None:
        return Reply(text=phrases["blind"])
    arguments = {
        "sessionData": {"messages": [{"role": "user", "content": turn.text}]},
        "query": content_words(turn.text),
        "limit": 5,
    }
    declared = {name: value for name, value in arguments.items() if name in turn.parameters}
    return Reply(function=turn.function, arguments=declared)


def language(text: str) -> str:
    """Return "ja", "zh" or "en": kana make a text Japanese, Han characters alone Chinese."""
    if _KANA.search(text):
        return "ja"
    return "zh" if _HAN.search(text) else "en"


def asks(text: str) -> bool:
    """Return whether any sentence of the text is a question or a request."""
    return any(_ASKS.search(sentence) for sentence in _sentences(text))


def content_words(text: str) -> str:
    """Return the words that say what a question is about; the whole text when nothing else is left."""
    lowered = text.lower()
    words = [word for word in _LATIN.findall(lowered) if word not in _STOP]
    for run in _CJK.findall(lowered):
        parts = _CHINESE_STOP.split(run) if language(text) == "zh" else [run]
        # Hiragana runs are mostly particles and endings; Japanese content is written in the other scripts.
        words += [part for part in parts if part and part not in _STOP and not _is_hiragana(part)]
    return " ".join(words) or text


def _answer(turn: Turn, phrases: dict[str, str]) -> str:
    returned = [entries for result in turn.results if (entries := _raw_entries(result)) is not None]
    if not returned:
        return phrases["failed"]
    told = list(_told([entry for entries in returned for entry in entries], set(_sentences(turn.text))))
    if not told:
        return phrases["nothing"]
    quotes = [
        phrases["told" if one.date else "undated"].format(date=one.date, quote=one.sentences[0])
        for one in _closest(turn.text, told)
    ]
    return " ".join(quotes)


def _raw_entries(result: Any) -> list[Json] | None:
    """Find `rawEntries` in a function result, in the envelopes it travels in; None when it is an error."""
    if isinstance(result, str):
        try:
            result = json.loads(result)
        except ValueError:
            return None
    if not isinstance(result, dict):
        return None
    entries = result.get("rawEntries")
    if isinstance(entries, list):
        return [entry for entry in entries if isinstance(entry, dict)]
    envelopes = ("functionResponse", "output", "result")
    return _raw_entries(next((result[name] for name in envelopes if result.get(name)), None))


def _told(entries: list[Json], asking: set[str]) -> Iterator[Told]:
    rank = 0
    for entry in entries:
        date = str(entry.get("occurredAt") or entry.get("recordedAt") or "")[:10]
        for message in (entry.get("requestRaw") or {}).get("messages") or []:
            # A question of the past tells nothing, and neither does what is being said right now.
            pieces = _SENTENCE.findall(_text(message))
            told = [
                s for s in pieces if s.strip() and s.strip() not in asking and not _ASKS.search(s.strip())
            ]
            if message.get("role") == "user" and told:
                yield Told(rank, date, told)
                rank += 1


def _closest(question: str, told: list[Told]) -> list[Told]:
    """Return one or two quotes: what shares the rarest words with the question and was ranked first.

    A short message is quoted whole, a long one by its closest sentence.
    """
    asked = _terms(question)
    common = Counter(term for one in told for term in set().union(*map(_terms, one.sentences)))

    def shared(sentence: str) -> float:
        return sum(1 / common[term] for term in asked & _terms(sentence))

    def value(one: Told) -> float:
        # Words can only meet in one language and one wording; the memory has ranked by meaning.
        return max(map(shared, one.sentences)) + 1 / (1 + one.rank)

    best, *others = sorted(told, key=value, reverse=True)
    near = [one for one in others if any(map(shared, one.sentences)) and value(one) >= value(best) / 2]
    return [_quoted(one, shared) for one in [best, *near[:1]]]


def _quoted(one: Told, shared: Callable[[str], float]) -> Told:
    whole = "".join(one.sentences).strip()
    quote = whole if len(whole) <= QUOTE_CHARACTERS else max(one.sentences, key=shared).strip()
    return Told(one.rank, one.date, [quote[:QUOTE_CHARACTERS]])


def _terms(text: str) -> set[str]:
    """Return word beginnings (a crude stem), katakana words, and single Han characters and their pairs."""
    lowered = text.lower()
    terms = {word[:5] for word in _LATIN.findall(lowered) if word not in _STOP}
    for run in _CJK.findall(lowered):
        if _HAN.match(run):
            terms.update(run, (run[i : i + 2] for i in range(len(run) - 1)))
        elif not _is_hiragana(run):
            terms.add(run)
    return terms


def _sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE.findall(text) if sentence.strip()]


def _is_hiragana(run: str) -> bool:
    return all("\u3041" <= character <= "\u309f" for character in run)


def _text(message: Json) -> str:
    """Return the text of a message of any wire: a string, content parts or Gemini parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content or message.get("parts") or []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


# --- How it is asked: one reader and one writer for each wire ------------------------------------------------


def read_openai(body: Json) -> Turn:
    """Read a Chat Completions request."""
    text = ""
    results: list[Any] = []
    for message in body["messages"]:
        if message["role"] == "user":
            text, results = _text(message), []
        elif message["role"] == "tool":
            results.append(_text(message))
    offered = [] if body.get("tool_choice") == "none" else body.get("tools") or []
    declared = [tool["function"] for tool in offered if tool.get("type") == "function"]
    return _turn(text, results, [(one["name"], one.get("parameters")) for one in declared])


def read_gemini(body: Json) -> Turn:
    """Read a generateContent request; the official client sends some keys in snake case."""
    text = ""
    results: list[Any] = []
    for content in body["contents"]:
        answers = [
            part for part in content["parts"] if _either(part, "functionResponse", "function_response")
        ]
        if answers:
            results += [
                (_either(part, "functionResponse", "function_response"))["response"] for part in answers
            ]
        elif content.get("role", "user") == "user":
            text, results = _text(content), []
    declared = [one for tool in body.get("tools") or [] for one in _declarations(tool)]
    if "NONE" in json.dumps(_either(body, "toolConfig", "tool_config")):
        declared = []
    schemas = [_either(one, "parametersJsonSchema", "parameters_json_schema") for one in declared]
    named = zip(declared, schemas, strict=True)
    return _turn(text, results, [(one["name"], schema or one.get("parameters")) for one, schema in named])


def read_responses(body: Json) -> Turn:
    """Read a Responses request."""
    text = ""
    results: list[Any] = []
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("type") == "function_call_output":
            results.append(_text({"content": item["output"]}))
        elif item.get("role") == "user":
            text, results = _text(item), []
    offered = [] if body.get("tool_choice") == "none" else body.get("tools") or []
    declared = [tool for tool in offered if tool["type"] == "function"]
    return _turn(text, results, [(one["name"], one.get("parameters")) for one in declared])


def read_interaction(steps: list[Json], body: Json) -> Turn:
    """Read an Interactions request, and the steps before it that the service has kept."""
    text = ""
    results: list[Any] = []
    for step in steps:
        if step["type"] == "function_result":
            result = step["result"]
            results.append(_text({"content": result}) if isinstance(result, list) else result)
        elif step["type"] == "user_input":
            text, results = _text(step), []
    declared = [tool for tool in body.get("tools") or [] if tool["type"] == "function"]
    if (body.get("generation_config") or {}).get("tool_choice") == "none":
        declared = []
    return _turn(text, results, [(one["name"], one.get("parameters")) for one in declared])


def read_anthropic(body: Json) -> Turn:
    """Read a Messages request."""
    text = ""
    results: list[Any] = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [] if isinstance(content, str) else content
        answers = [_text(block) for block in blocks if block["type"] == "tool_result"]
        if answers:
            results += answers
        elif message["role"] == "user":
            text, results = _text(message), []
    quiet = (body.get("tool_choice") or {}).get("type") == "none"
    declared = [] if quiet else body.get("tools") or []
    return _turn(text, results, [(one["name"], one.get("input_schema")) for one in declared])


def write_openai(reply: Reply, body: Json) -> Json:
    """Write a Chat Completions response."""
    message: Json = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.function:
        arguments = json.dumps(reply.arguments, ensure_ascii=False)
        called = {"name": reply.function, "arguments": arguments}
        message["tool_calls"] = [{"id": _id("call"), "type": "function", "function": called}]
    finish = "tool_calls" if reply.function else "stop"
    read, written = _tokens(body["messages"]), _tokens(message)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }


def write_gemini(reply: Reply, body: Json, model: str) -> Json:
    """Write a generateContent response."""
    part: Json = {"text": reply.text}
    if reply.function:
        part = {"functionCall": {"id": _id("call"), "name": reply.function, "args": reply.arguments}}
    read, written = _tokens(body["contents"]), _tokens(part)
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": read,
            "candidatesTokenCount": written,
            "totalTokenCount": read + written,
        },
        "modelVersion": model,
        "responseId": uuid.uuid4().hex,
    }


def write_responses(reply: Reply, body: Json) -> Json:
    """Write a Responses response."""
    item: Json = {
        "type": "message",
        "id": _id("msg"),
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": reply.text, "annotations": []}],
    }
    if reply.function:
        item = {
            "type": "function_call",
            "id": _id("fc"),
            "call_id": _id("call"),
            "name": reply.function,
            "arguments": json.dumps(reply.arguments, ensure_ascii=False),
            "status": "completed",
        }
    read, written = _tokens(body["input"]), _tokens(item)
    return {
        "id": _id("resp"),
        "object": "response",
        "created_at": 0,
        "model": body.get("model", "scripted"),
        "status": "completed",
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        },
    }


def write_interaction(reply: Reply, steps: list[Json], body: Json) -> Json:
    """Write an interaction."""
    step: Json = {"type": "model_output", "content": [{"type": "text", "text": reply.text}]}
    if reply.function:
        step = {
            "type": "function_call",
            "id": _id("call"),
            "name": reply.function,
            "arguments": reply.arguments,
        }
    read, written = _tokens(steps), _tokens(step)
    return {
        "id": _id("int"),
        "object": "interaction",
        "created": "1970-01-01T00:00:00Z",
        "updated": "1970-01-01T00:00:00Z",
        "model": body.get("model", "scripted"),
        "status": "requires_action" if reply.function else "completed",
        "steps": [step],
        "usage": {
            "total_input_tokens": read,
            "total_output_tokens": written,
            "total_tokens": read + written,
        },
    }


def write_anthropic(reply: Reply, body: Json) -> Json:
    """Write a Messages response."""
    block: Json = {"type": "text", "text": reply.text}
    if reply.function:
        block = {
            "type": "tool_use",
            "id": _id("toolu"),
            "name": reply.function,
            "input": reply.arguments,
        }
    return {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": [block],
        "stop_reason": "tool_use" if reply.function else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": _tokens(body["messages"]), "output_tokens": _tokens(block)},
    }


def stream_openai(response: Json) -> Iterator[str]:
    """Yield the response as the events a streaming client reads."""
    choice = response["choices"][0]
    delta = {name: value for name, value in choice["message"].items() if name != "refusal"}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": i, **call} for i, call in enumerate(delta["tool_calls"])]
    shared = {name: response[name] for name in ("id", "created", "model")}
    for step, finish in ((delta, None), ({}, choice["finish_reason"])):
        choices = [{"index": 0, "delta": step, "finish_reason": finish}]
        yield json.dumps({**shared, "object": "chat.completion.chunk", "choices": choices})
    yield "[DONE]"


def _turn(text: str, results: list[Any], declared: list[tuple[str, Json | None]]) -> Turn:
    for name, schema in declared:
        if name.endswith(RETRIEVE):
            return Turn(text, name, frozenset((schema or {}).get("properties", ())), results)
    return Turn(text, results=results)


def _declarations(tool: Json) -> list[Json]:
    return _either(tool, "functionDeclarations", "function_declarations") or []


def _either(values: Json, camel: str, snake: str) -> Any:
    return values.get(camel, values.get(snake))


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"


def _tokens(value: Any) -> int:
    return 1 + len(json.dumps(value, ensure_ascii=False)) // 4  # close enough for a usage field


# --- Where it listens ----------------------------------------------------------------------------------------


class Interactions:
    """The conversations the Interactions service keeps, the newest ones; all others send theirs each time."""

    def __init__(self) -> None:
        self._steps: dict[str, list[Json]] = {}  # interaction -> its conversation up to there
        self._lock = Lock()

    def answer(self, body: Json) -> Json:
        """Answer a request, which may continue an interaction that is kept."""
        previous = body.get("previous_interaction_id")
        given = body["input"]
        opened = [{"type": "user_input", "content": given}] if isinstance(given, str) else given
        with self._lock:
            steps = [*self._steps[previous], *opened] if previous else opened
        response = write_interaction(decide(read_interaction(steps, body)), steps, body)
        if body.get("store", True):
            self._keep(response["id"], [*steps, *response["steps"]])
        return response

    def _keep(self, interaction: str, steps: list[Json]) -> None:
        with self._lock:
            self._steps[interaction] = steps
            if len(self._steps) > KEPT_INTERACTIONS:
                del self._steps[next(iter(self._steps))]


class ScriptedModel:
    """A model server on a free loopback port while the `with` block runs.

    `base_url` is for Gemini and Anthropic clients; OpenAI clients take `base_url + "/v1"`.
    """

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Endpoint)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.base_url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Threads for connections; all of them end with the server, also those a client keeps alive."""

    def __init__(self, address: tuple[str, int], endpoint: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, endpoint)
        self._open: set[socket.socket] = set()
        self.interactions = Interactions()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._open):
            self.shutdown_request(connection)


class _Endpoint(BaseHTTPRequestHandler):
    """Routes: `/v1/chat/completions` and `…/models/{model}:generateContent`, both also streamed.

    Only whole replies have `/v1/responses`, `/v1/messages` and `…/interactions`.
    """

    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body leave in one packet,
    disable_nagle_algorithm = True  # at once: a client must not wait for a delayed ACK

    def do_POST(self) -> None:
        try:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(self.path.partition("?")[0], json.loads(sent))
        except (ValueError, KeyError, TypeError, AttributeError):
            self._error(400, "The request is not one this model understands.")

    def _answer(self, path: str, body: Json) -> None:
        model, _, method = path.rpartition("/models/")[2].partition(":")
        if path == "/v1/chat/completions":
            response = write_openai(decide(read_openai(body)), body)
            if body.get("stream"):
                self._send(200, "text/event-stream", _events(stream_openai(response)))
            else:
                self._send_json(200, response)
        elif method == "generateContent":
            self._send_json(200, write_gemini(decide(read_gemini(body)), body, model))
        elif method == "streamGenerateContent":
            response = write_gemini(decide(read_gemini(body)), body, model)
            self._send(200, "text/event-stream", _events([json.dumps(response)]))
        elif body.get("stream"):
            self._error(400, "This route answers in one piece only: leave out `stream`.")
        elif path == "/v1/responses":
            self._send_json(200, write_responses(decide(read_responses(body)), body))
        elif path == "/v1/messages":
            self._send_json(200, write_anthropic(decide(read_anthropic(body)), body))
        elif path.endswith("/interactions"):
            self._send_json(200, self.server.interactions.answer(body))
        else:
            self._error(404, "There is no such route.")

    def _error(self, status: int, message: str) -> None:
        # Every wire reads this envelope.
        error = {
            "code": status,
            "message": message,
            "type": "invalid_request_error",
            "status": "INVALID_ARGUMENT",
        }
        self._send_json(status, {"type": "error", "error": error})

    def _send_json(self, status: int, value: Json) -> None:
        self._send(status, "application/json", json.dumps(value, ensure_ascii=False).encode())

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Stay silent: the example's own output is what the reader came for."""


def _events(lines: Any) -> bytes:
    return "".join(f"data: {line}\n\n" for line in lines).encode()


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    with ScriptedModel() as server:
        print(f"OPENAI_BASE_URL={server.base_url}/v1 OPENAI_API_KEY=none")
        print(f"ANTHROPIC_BASE_URL={server.base_url} ANTHROPIC_API_KEY=none")
        print(f"GOOGLE_GEMINI_BASE_URL={server.base_url} GEMINI_API_KEY=none")
        print("export OPENAI_BASE_URL ANTHROPIC_BASE_URL GOOGLE_GEMINI_BASE_URL", end=" ")
        print("OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY", flush=True)
        Event().wait()  # until interrupted
