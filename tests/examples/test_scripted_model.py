"""The examples rest on this model: it must speak every wire to the official clients, and know nothing itself."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google import genai
from google.genai.types import HttpOptions, HttpRetryOptions
from openai import AsyncOpenAI, NotFoundError, OpenAI

import halo_server
from examples.scripted_model import (
    KEPT_INTERACTIONS,
    Interactions,
    Reply,
    ScriptedModel,
    Turn,
    asks,
    content_words,
    decide,
    language,
)
from halo_sdk import Halo
from halo_server.config import Settings
from tests.compat import wires

NAME = "halo_retrieve_end_user_memory"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sessionData": {"type": "object", "additionalProperties": True},
        "query": {"type": "string"},
        "limit": {"type": "number"},
    },
    "required": ["sessionData"],
}
OPENAI_TOOLS: Any = [{"type": "function", "function": {"name": NAME, "parameters": SCHEMA, "strict": False}}]
GEMINI_TOOLS: Any = [{"function_declarations": [{"name": NAME, "parameters_json_schema": SCHEMA}]}]
QUESTION = "Which colour did I choose for the fence?"


def entry(*told: str, at: str = "2026-03-02T08:00:00Z") -> dict[str, Any]:
    messages = [{"role": "user", "content": one} for one in told]
    return {"id": told[0], "occurredAt": at, "requestRaw": {"messages": messages}, "responseRaw": None}


FENCE = entry("The fence will be dark green.")
SHED = entry("The shed gets a tin roof.")
FOUND = {"rawEntries": [SHED, FENCE]}

WHOLE: list[wires.Wire] = [wires.Anthropic(), wires.Interactions(), wires.Responses()]
whole = pytest.mark.parametrize("wire", WHOLE, ids=[wire.dialect for wire in WHOLE])
TOOLS: dict[str, Any] = {
    "anthropic": [{"name": NAME, "input_schema": SCHEMA}],
    "gemini-interactions": [{"type": "function", "name": NAME, "parameters": SCHEMA}],
    "openai-responses": [{"type": "function", "name": NAME, "parameters": SCHEMA, "strict": False}],
}
CALLED: dict[str, Callable[[Any], tuple[str, str, Any]]] = {
    "anthropic": lambda block: (block.id, block.name, block.input),
    "gemini-interactions": lambda step: (step.id, step.name, step.arguments),
    "openai-responses": lambda item: (item.call_id, item.name, json.loads(item.arguments)),
}
RETURNED: dict[str, Callable[[str], Any]] = {
    "anthropic": lambda call: {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call, "content": json.dumps(FOUND)}],
    },
    "gemini-interactions": lambda call: {"type": "function_result", "call_id": call, "result": FOUND},
    "openai-responses": lambda call: {
        "type": "function_call_output",
        "call_id": call,
        "output": json.dumps(FOUND),
    },
}
NO_CALLS: dict[str, Any] = {
    "anthropic": {"tool_choice": {"type": "none"}},
    "gemini-interactions": {"generation_config": {"tool_choice": "none"}},
    "openai-responses": {"tool_choice": "none"},
}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def openai(model: ScriptedModel) -> Iterator[OpenAI]:
    with OpenAI(api_key="k", base_url=model.base_url + "/v1", max_retries=0) as client:
        yield client


def gemini_options(model: ScriptedModel) -> HttpOptions:
    return HttpOptions(base_url=model.base_url, retry_options=HttpRetryOptions(attempts=1))


def answer(question: str, *results: Any) -> str | None:
    return decide(Turn(question, NAME, results=list(results))).text


def after_call(client: OpenAI, entries: list[dict[str, Any]]) -> list[Any]:
    first = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": QUESTION}], tools=OPENAI_TOOLS
    )
    message = first.choices[0].message
    assert message.tool_calls is not None
    result = {
        "role": "tool",
        "tool_call_id": message.tool_calls[0].id,
        "content": json.dumps({"rawEntries": entries}),
    }
    return [{"role": "user", "content": QUESTION}, message, result]


@pytest.mark.providers
def test_the_openai_client_gets_one_tool_call_for_a_question(openai: OpenAI) -> None:
    response = openai.chat.completions.create(
        model="gpt-x", messages=[{"role": "user", "content": QUESTION}], tools=OPENAI_TOOLS
    )
    choice = response.choices[0]
    assert choice.message.tool_calls is not None
    [call] = choice.message.tool_calls
    assert call.type == "function"
    assert (choice.finish_reason, response.model, call.function.name) == ("tool_calls", "gpt-x", NAME)
    assert call.id.startswith("call_")
    assert json.loads(call.function.arguments) == {
        "sessionData": {"messages": [{"role": "user", "content": QUESTION}]},
        "query": "colour choose fence",
        "limit": 5,
    }
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.prompt_tokens + response.usage.completion_tokens


@pytest.mark.providers
def test_every_call_has_an_id_of_its_own(openai: OpenAI) -> None:
    ids = {after_call(openai, [])[2]["tool_call_id"] for _ in range(3)}
    assert len(ids) == 3


@pytest.mark.providers
def test_the_openai_client_gets_an_answer_that_quotes_the_returned_memory(openai: OpenAI) -> None:
    response = openai.chat.completions.create(
        model="m", messages=after_call(openai, [SHED, FENCE]), tools=OPENAI_TOOLS
    )
    choice = response.choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.tool_calls is None
    assert choice.message.content is not None
    assert "You told me on 2026-03-02: “The fence will be dark green.”" in choice.message.content


@pytest.mark.providers
def test_a_new_question_after_an_answer_is_looked_up_again(openai: OpenAI) -> None:
    history = [
        *after_call(openai, [FENCE]),
        {"role": "assistant", "content": "Green."},
        {"role": "user", "content": "And the roof?"},
    ]
    response = openai.chat.completions.create(model="m", messages=history, tools=OPENAI_TOOLS)
    assert response.choices[0].finish_reason == "tool_calls"


@pytest.mark.providers
def test_the_openai_client_streams_calls_and_answers(openai: OpenAI) -> None:
    asked: Any = [{"role": "user", "content": QUESTION}]
    with openai.chat.completions.stream(model="m", messages=asked, tools=OPENAI_TOOLS) as stream:
        called = stream.get_final_completion().choices[0]
    assert called.message.tool_calls is not None
    assert called.message.tool_calls[0].function.name == NAME
    told: Any = after_call(openai, [FENCE])
    chunks = openai.chat.completions.create(model="m", messages=told, tools=OPENAI_TOOLS, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert "dark green" in text


@pytest.mark.providers
def test_the_async_openai_client_is_answered_alike(model: ScriptedModel) -> None:
    async def ask() -> str | None:
        async with AsyncOpenAI(api_key="k", base_url=model.base_url + "/v1", max_retries=0) as client:
            response = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": QUESTION}], tools=OPENAI_TOOLS
            )
        return response.choices[0].finish_reason

    assert asyncio.run(ask()) == "tool_calls"


def gemini_history(call: Any, entries: list[dict[str, Any]]) -> list[Any]:
    result = {"id": call.id, "name": call.name, "response": {"output": {"rawEntries": entries}}}
    return [
        {"role": "user", "parts": [{"text": QUESTION}]},
        {"role": "model", "parts": [{"function_call": call.model_dump(exclude_none=True)}]},
        {"role": "user", "parts": [{"function_response": result}]},
    ]


@pytest.mark.providers
def test_the_gemini_client_gets_a_call_and_then_an_answer(model: ScriptedModel) -> None:
    config: Any = {"tools": GEMINI_TOOLS}
    with genai.Client(api_key="k", http_options=gemini_options(model)) as client:
        first = client.models.generate_content(model="gemini-x", contents=QUESTION, config=config)
        assert first.function_calls is not None
        [call] = first.function_calls
        second = client.models.generate_content(
            model="gemini-x", contents=gemini_history(call, [FENCE]), config=config
        )
    assert call.name == NAME
    assert call.args == {
        "sessionData": {"messages": [{"role": "user", "content": QUESTION}]},
        "query": "colour choose fence",
        "limit": 5,
    }
    assert first.candidates is not None
    assert first.candidates[0].finish_reason == "STOP"
    assert first.model_version == "gemini-x"
    assert second.text is not None
    assert "dark green" in second.text


@pytest.mark.providers
def test_the_gemini_client_streams_an_answer(model: ScriptedModel) -> None:
    with genai.Client(api_key="k", http_options=gemini_options(model)) as client:
        parts = list(client.models.generate_content_stream(model="m", contents="I like tea."))
    assert "".join(part.text or "" for part in parts) == "Noted."


@pytest.mark.providers
def test_the_async_gemini_client_is_answered_alike(model: ScriptedModel) -> None:
    async def ask() -> list[Any] | None:
        config: Any = {"tools": GEMINI_TOOLS}
        async with genai.Client(api_key="k", http_options=gemini_options(model)).aio as client:
            response = await client.models.generate_content(model="m", contents=QUESTION, config=config)
        return response.function_calls

    calls = asyncio.run(ask())
    assert calls is not None
    assert calls[0].name == NAME


@pytest.mark.providers
def test_under_the_gemini_client_s_automatic_calling_an_answer_quotes_the_memory(
    model: ScriptedModel, tmp_path: Path
) -> None:
    with (
        halo_server.embedded(tmp_path, project="p", settings=Settings(embedder="hashing")) as server,
        genai.Client(api_key="k", http_options=gemini_options(model)) as client,
    ):
        memory = Halo(http_client=server).for_user("u")
        memory.capture("The fence will be dark green.", "Noted.")
        config: Any = {"tools": memory.gemini_callables()}
        told = client.models.generate_content(model="m", contents=QUESTION, config=config)
    assert told.text is not None
    assert "“The fence will be dark green.”" in told.text


@pytest.mark.process
def test_what_the_model_prints_sets_its_variables_when_it_is_pasted_into_a_shell() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "examples.scripted_model"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        printed = "".join(run.stdout.readline() for _ in range(4))
        run.terminate()
    shown = subprocess.run(["sh", "-ec", printed + "env"], check=True, capture_output=True, text=True).stdout
    variables = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    names = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
    assert len({variables[name].removesuffix("/v1") for name in names}) == 1
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
    assert {variables[name] for name in keys} == {"none"}


def moves(wire: wires.Wire, reply: Any) -> list[Any]:
    """Return what the model said: blocks, steps or items."""
    return list(reply.content if wire.dialect == "anthropic" else wire.turn(reply))


@pytest.mark.providers
@whole
def test_every_question_of_a_conversation_is_looked_up_and_answered(
    model: ScriptedModel, wire: wires.Wire
) -> None:
    client = wire.client(model.base_url, awaited=False)
    history: list[Any] = []
    ids = set()
    for question in (QUESTION, "Which roof does the shed get?"):
        history.append(wire.opening(question))
        called = wire.ask(client, history, TOOLS[wire.dialect], stream=False)
        [move] = moves(wire, called)
        call, name, arguments = CALLED[wire.dialect](move)
        history += [*wire.turn(called), RETURNED[wire.dialect](call)]
        answered = wire.ask(client, history, TOOLS[wire.dialect], stream=False)
        history += wire.turn(answered)
        ids.add(call)
        assert (name, arguments["query"], arguments["limit"]) == (NAME, content_words(question), 5)
    wire.close(client)
    assert len(ids) == 2
    assert "tin roof" in answered.model_dump_json()
    assert "dark green" not in answered.model_dump_json()


@pytest.mark.providers
@whole
def test_on_every_wire_a_statement_or_a_model_told_not_to_call_leads_to_no_call(
    model: ScriptedModel, wire: wires.Wire
) -> None:
    client = wire.client(model.base_url, awaited=False)
    told = wire.ask(client, [wire.opening("I like tea.")], TOOLS[wire.dialect], stream=False)
    asked: dict[str, Any] = {"model": "m", "tools": TOOLS[wire.dialect], **NO_CALLS[wire.dialect]}
    history: Any = [wire.opening(QUESTION)]
    quiet = {
        "anthropic": lambda: client.messages.create(max_tokens=9, messages=history, **asked),
        "gemini-interactions": lambda: client.interactions.create(input=history, **asked),
        "openai-responses": lambda: client.responses.create(input=history, **asked),
    }[wire.dialect]()
    wire.close(client)
    assert "Noted." in told.model_dump_json()
    assert "no memory was offered to me" in quiet.model_dump_json()


@pytest.mark.providers
@whole
def test_what_is_not_spoken_is_an_error_the_client_understands(
    model: ScriptedModel, wire: wires.Wire
) -> None:
    client = wire.client(model.base_url, awaited=False)
    with pytest.raises(Exception, match="leave out `stream`") as caught:
        wire.ask(client, [wire.opening(QUESTION)], TOOLS[wire.dialect], stream=True)
    wire.close(client)
    assert getattr(caught.value, "status_code", None) == 400


def test_an_interaction_goes_on_where_the_one_it_names_ended() -> None:
    service = Interactions()
    asked: dict[str, Any] = {"tools": TOOLS["gemini-interactions"]}
    first = service.answer({**asked, "input": QUESTION})
    result = RETURNED["gemini-interactions"](first["steps"][0]["id"])
    second = service.answer({**asked, "input": [result], "previous_interaction_id": first["id"]})
    assert (first["status"], second["status"]) == ("requires_action", "completed")
    assert "dark green" in json.dumps(second["steps"])


@pytest.mark.parametrize(("store", "later"), [(False, 0), (True, KEPT_INTERACTIONS)])
def test_an_interaction_that_is_not_kept_cannot_go_on(store: bool, later: int) -> None:
    service = Interactions()
    first = service.answer({"input": "I like tea.", "store": store})
    for _ in range(later):
        service.answer({"input": "I like coffee."})
    with pytest.raises(KeyError):
        service.answer({"input": "And milk.", "previous_interaction_id": first["id"]})


@pytest.mark.providers
def test_a_model_told_not_to_call_does_not_call(openai: OpenAI, model: ScriptedModel) -> None:
    asked: Any = [{"role": "user", "content": QUESTION}]
    response = openai.chat.completions.create(
        model="m", messages=asked, tools=OPENAI_TOOLS, tool_choice="none"
    )
    assert response.choices[0].message.tool_calls is None
    config: Any = {"tools": GEMINI_TOOLS, "tool_config": {"function_calling_config": {"mode": "NONE"}}}
    with genai.Client(api_key="k", http_options=gemini_options(model)) as client:
        quiet = client.models.generate_content(model="m", contents=QUESTION, config=config)
    assert quiet.function_calls is None


@pytest.mark.providers
def test_an_unknown_route_is_an_error_the_client_understands(openai: OpenAI) -> None:
    with pytest.raises(NotFoundError):
        openai.embeddings.create(model="m", input="x", encoding_format="float")


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/interactions"]
)
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"{",
        b"[]",
        b'{"messages": 3, "input": 3}',
        b'{"messages": ["x"], "input": ["x"]}',
        b'{"input": "I like tea.", "previous_interaction_id": "int_unknown", "tools": [{}]}',
        b"{}",
    ],
)
def test_a_malformed_request_is_a_400_and_the_connection_stays_usable(
    model: ScriptedModel, path: str, sent: bytes
) -> None:
    with httpx.Client(base_url=model.base_url, trust_env=False) as client:
        assert client.post(path, content=sent).status_code == 400
        good = {"messages": [{"role": "user", "content": "I like tea."}]}
        assert client.post("/v1/chat/completions", json=good).status_code == 200


def test_a_stopped_model_closes_the_connections_clients_keep_alive() -> None:
    good = {"messages": [{"role": "user", "content": "I like tea."}]}
    with httpx.Client(trust_env=False) as client:
        with ScriptedModel() as model:
            assert client.post(model.base_url + "/v1/chat/completions", json=good).status_code == 200
        with pytest.raises(httpx.TransportError):
            client.post(model.base_url + "/v1/chat/completions", json=good)


@pytest.mark.parametrize(
    ("told", "reply"),
    [
        ("I moved the meeting to four.", "Noted."),
        ("When I travel, I take the train.", "Noted."),
        ("Do not call me before ten.", "Noted."),
        ("会議は四時に変わりました。", "承知しました。"),
        ("週報は短くしてください。駅前より静か。", "承知しました。"),
        ("请把周报写短一点。", "好的，知道了。"),
        ("我把会议改到四点了。", "好的，知道了。"),
    ],
)
def test_a_statement_is_acknowledged_in_its_language_without_a_call(told: str, reply: str) -> None:
    assert decide(Turn(told, NAME)) == Reply(text=reply)


@pytest.mark.parametrize(
    "asked",
    [
        "What do I like",
        "Recommend a book",
        "please remind me of the date",
        "I forgot. Which day was it?",
        "会議は何時ですか。",
        "会議の時間を教えてください",
        "会议是几点吗",
        "我喜欢什么？",
        "请提醒我开会的时间",
    ],
)
def test_a_question_or_request_calls_the_memory(asked: str) -> None:
    assert asks(asked)
    assert decide(Turn(asked, NAME)).function == NAME


def test_only_declared_parameters_are_written() -> None:
    reply = decide(Turn(QUESTION, NAME, frozenset({"query", "limit"})))
    assert reply.arguments == {"query": "colour choose fence", "limit": 5}


def test_a_question_without_a_memory_to_call_is_not_answered_from_nowhere() -> None:
    assert decide(Turn(QUESTION)).text == "I do not know: no memory was offered to me."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did I say about the fence?", "say fence"),
        ("柵の色は何でしたか?", "柵 色"),
        ("我的猫是什么颜色吗", "猫 颜色"),
        ("What is it?", "What is it?"),
    ],
)
def test_the_query_holds_the_content_words(text: str, words: str) -> None:
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("text", "code"), [("Tea, please.", "en"), ("お茶", "ja"), ("喝茶", "zh"), ("", "en")]
)
def test_kana_is_japanese_and_han_alone_is_chinese(text: str, code: str) -> None:
    assert language(text) == code


def test_taking_the_shown_exchange_away_changes_the_answer() -> None:
    with_fence = answer(QUESTION, {"rawEntries": [FENCE, SHED]})
    without = answer(QUESTION, {"rawEntries": [SHED]})
    assert with_fence is not None
    assert without is not None
    assert "green" in with_fence
    assert "green" not in without


def test_an_empty_memory_is_admitted() -> None:
    assert answer(QUESTION, {"rawEntries": []}) == "I have no memory of that."
    assert answer("柵の色は何でしたか?", {"rawEntries": []}) == "それについての記憶はありません。"
    assert answer("我的猫是什么颜色？", {"rawEntries": []}) == "我没有相关的记忆。"


def test_what_was_only_asked_before_is_not_quoted_as_told() -> None:
    assert answer(QUESTION, {"rawEntries": [entry(QUESTION)]}) == "I have no memory of that."
    asked = "I am at the paint shop. " + QUESTION
    assert answer(asked, {"rawEntries": [entry(asked)]}) == "I have no memory of that."


def test_a_failed_call_is_not_taken_for_an_empty_memory() -> None:
    assert answer(QUESTION, '{"error": "memory is unavailable"}') == "I could not reach my memory just now."
    assert answer(QUESTION, "no JSON") == "I could not reach my memory just now."


def test_a_result_is_understood_in_every_envelope() -> None:
    found = {"rawEntries": [FENCE]}
    answers = {
        answer(QUESTION, found),
        answer(QUESTION, json.dumps(found)),
        answer(QUESTION, {"output": found}),
        answer(QUESTION, {"output": json.dumps(found)}),
        answer(QUESTION, {"functionResponse": found, "topics": []}),
        answer(QUESTION, {"result": found}),
    }
    assert answers == {"You told me on 2026-03-02: “The fence will be dark green.”"}


def test_words_of_the_question_outweigh_the_order_of_the_memory() -> None:
    told = answer("柵の色は何でしたか?", {"rawEntries": [entry("屋根は赤です。"), entry("柵は緑の色です。")]})
    assert told is not None
    assert told.startswith("2026-03-02にこう伺いました：「柵は緑の色です。」")


def test_without_common_words_the_order_of_the_memory_decides() -> None:
    told = answer(
        "Which colour?", {"rawEntries": [entry("Crimson it is."), entry("Tea at five."), entry("It rains.")]}
    )
    assert told is not None
    assert told.startswith("You told me on 2026-03-02: “Crimson it is.”")
    assert "rains" not in told


def test_of_a_long_message_the_closest_sentence_is_quoted() -> None:
    told = answer(QUESTION, {"rawEntries": [entry("It rains here. " * 30 + "The fence is green.")]})
    assert told == "You told me on 2026-03-02: “The fence is green.”"


def test_parts_of_a_message_are_read_like_its_string() -> None:
    parts = {"role": "user", "parts": [{"text": "The fence is green."}]}
    content = {"role": "user", "content": [{"type": "text", "text": "The fence is green."}]}
    for message in (parts, content):
        found = {"rawEntries": [{"requestRaw": {"messages": [message]}}]}
        assert answer(QUESTION, found) == "You told me: “The fence is green.”"


def sample() -> dict[str, Any]:
    path = Path(__file__).parents[2] / "examples" / "sample_conversation.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def test_the_sample_is_a_long_bilingual_conversation_in_order_of_time() -> None:
    messages = [message for session in sample()["sessions"] for message in session["messages"]]
    assert len(messages) >= 64
    assert [one["role"] for one in messages] == ["user", "assistant"] * (len(messages) // 2)
    assert [one["at"] for one in messages] == sorted(one["at"] for one in messages)
    assert {language(one["content"]) for one in messages} == {"en", "ja"}


def test_each_sample_question_has_its_answer_in_what_the_user_said_there() -> None:
    data = sample()
    for question in data["questions"]:
        [session] = [one for one in data["sessions"] if one["id"] == question["session"]]
        told = [one["content"] for one in session["messages"] if one["role"] == "user"]
        assert any(question["expects"].lower() in one.lower() for one in told), question
        assert question["text"] not in told
        assert asks(question["text"])


def test_the_model_holds_no_text_of_the_sample() -> None:
    rules = (Path(__file__).parents[2] / "examples" / "scripted_model.py").read_text(encoding="utf-8")
    assert not [one["expects"] for one in sample()["questions"] if one["expects"] in rules]
