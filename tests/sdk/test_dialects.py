"""What is particular to one provider's wire."""

import json
from typing import Any

import pytest

from halo_sdk import EmptyAnswerError, HaloConfigError, TruncatedArgumentsError, lint_history
from halo_sdk.dialects import DIALECTS, detected
from tests.sdk.fakes import FOUND, RETRIEVE, gemini_reply, openai_reply, sent
from tests.sdk.replies import REPLY, Call

Json = dict[str, Any]
ONE = [Call("a", RETRIEVE, {"query": "tea"})]
TWO = [*ONE, Call("b", "weather", {"city": "Rome"})]


def anthropic_reply(*blocks: Json, stop: str = "tool_use") -> Json:
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": stop, "id": "m"}


def responses_reply(*items: Json, status: str = "completed", **fields: Any) -> Json:
    return {"object": "response", "id": "r", "status": status, "output": list(items), **fields}


def tool_use(call_id: str | None = "a", name: str = RETRIEVE, **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def function_call(call_id: str = "a", name: str = RETRIEVE, arguments: str = "{}") -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


# -- shapes ----------------------------------------------------------------------------------------------------------

SHAPES = {
    "anthropic": [REPLY["anthropic"](ONE), {"role": "assistant", "content": [tool_use()]}],
    "gemini": [REPLY["gemini"](ONE), {"role": "model", "parts": []}, {"promptFeedback": {}}],
    "gemini-interactions": [REPLY["gemini-interactions"](ONE)],
    "json-schema": [REPLY["json-schema"](ONE), {"name": RETRIEVE, "arguments": {}}],
    "mcp": [{"method": "tools/call", "params": {"name": RETRIEVE, "arguments": {}}, "id": 1}],
    "openai": [REPLY["openai"](ONE), {"role": "assistant", "content": "hi"}, {"choices": []}],
    "openai-responses": [REPLY["openai-responses"](ONE), responses_reply()],
}


@pytest.mark.parametrize(
    ("dialect", "reply"), [(name, reply) for name, each in SHAPES.items() for reply in each]
)
def test_a_reply_is_recognised_by_its_shape_as_one_dialect_only(dialect, reply):
    assert detected(reply).name == dialect


def test_every_dialect_has_a_shape_here():
    assert set(SHAPES) == set(DIALECTS)


@pytest.mark.parametrize(
    "item", [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}]
)
def test_an_item_of_a_response_is_no_message_of_another_provider(item):
    with pytest.raises(HaloConfigError, match="dialect"):
        detected(item)


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        (
            "anthropic",
            [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "a",
                            "content": json.dumps(FOUND["functionResponse"], separators=(",", ":")),
                        },
                        {
                            "type": "tool_result",
                            "tool_use_id": "b",
                            "content": "no weather",
                            "is_error": True,
                        },
                    ],
                }
            ],
        ),
        (
            "gemini-interactions",
            [
                {
                    "type": "function_result",
                    "call_id": "a",
                    "name": RETRIEVE,
                    "result": FOUND["functionResponse"],
                },
                {
                    "type": "function_result",
                    "call_id": "b",
                    "name": "weather",
                    "result": "no weather",
                    "is_error": True,
                },
            ],
        ),
        (
            "openai-responses",
            [
                {
                    "type": "function_call_output",
                    "call_id": "a",
                    "output": json.dumps(FOUND["functionResponse"], separators=(",", ":")),
                },
                {"type": "function_call_output", "call_id": "b", "output": '{"error":"no weather"}'},
            ],
        ),
    ],
)
def test_results_are_spelled_as_the_provider_wants_them(service, memory, dialect, expected):
    results = memory.handle(REPLY[dialect](TWO))
    results.add(results.pending[0], "no weather", is_error=True)
    assert list(results) == expected


def test_an_answer_to_an_mcp_request_says_the_same_as_text_and_as_structure(service, memory):
    request = SHAPES["mcp"][0]
    (result,) = memory.handle(request)
    assert (
        result["structuredContent"] == FOUND["functionResponse"] == json.loads(result["content"][0]["text"])
    )
    assert result["isError"] is False
    (failed,) = memory.handle({"name": "halo_other", "arguments": None}, dialect="mcp")
    assert failed["isError"] is True
    assert "structuredContent" not in failed
    assert "no such function" in json.loads(failed["content"][0]["text"])["error"]
    assert not memory.handle({"method": "tools/call", "params": {}})


def test_mcp_tools_say_what_calling_them_does(make):
    retrieve, capture = make().for_user("u", tools=("retrieve", "capture")).tools("mcp")
    assert set(retrieve) == {"name", "description", "inputSchema", "annotations"}
    assert retrieve["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert (capture["annotations"]["readOnlyHint"], capture["annotations"]["idempotentHint"]) == (False, True)


def test_free_text_calls_of_responses_are_answered_in_their_own_kind(memory):
    item = {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls"}
    results = memory.handle(responses_reply(item))
    (call,) = results.pending
    assert (call.name, call.arguments, call.kind) == ("shell", "ls", "custom_tool_call")
    results.add(call, "a.txt")
    assert list(results) == [{"type": "custom_tool_call_output", "call_id": "c", "output": "a.txt"}]


def test_fc21_responses_are_paired_on_call_id_and_never_on_id(service, memory):
    (result,) = memory.handle(responses_reply(function_call("call_1")))
    assert result["call_id"] == "call_1"
    (made,) = (results := memory.handle(responses_reply({**function_call(), "call_id": ""}))).turn
    assert made["call_id"] == results[0]["call_id"] != "fc_a"


# -- turns -----------------------------------------------------------------------------------------------------------


def test_fc29_the_turn_of_a_thinking_model_is_echoed_whole(service, memory):
    blocks = [
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {"type": "text", "text": "Wait."},
        tool_use(),
    ]
    assert memory.handle(anthropic_reply(*blocks)).turn == [{"role": "assistant", "content": blocks}]


def test_fc30_reasoning_is_echoed_with_the_call_it_led_to_and_without_nulls(service, memory):
    openai = pytest.importorskip("openai.types.responses")
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2ln", "status": None}
    reply = openai.Response.construct(**responses_reply(reasoning, function_call()))
    turn = memory.handle(reply).turn
    assert turn == [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2ln"},
        function_call(),
    ]


@pytest.mark.parametrize(
    ("dialect", "field", "reply"),
    [
        ("anthropic", "input", lambda value: anthropic_reply({**tool_use(), "input": value})),
        (
            "gemini-interactions",
            "arguments",
            lambda value: {
                "steps": [{"type": "function_call", "id": "a", "name": RETRIEVE, "arguments": value}]
            },
        ),
    ],
)
@pytest.mark.parametrize("value", ['{"query":"tea"}', None, "nonsense", ["x"]])
def test_what_is_no_object_is_read_as_it_came_and_echoed_as_one(
    service, memory, dialect, field, reply, value
):
    results = memory.handle(reply(value))
    (turn,) = results.turn
    echoed = turn["content"][0] if dialect == "anthropic" else turn
    assert echoed[field] == {}
    assert results.outcomes[0].ok is (value in ('{"query":"tea"}', None))


@pytest.mark.parametrize(
    "reply",
    [
        responses_reply(
            {**function_call(), "parsed_arguments": {"query": "SDK"}},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "hi", "parsed": "SDK"}],
            },
        ),
        openai_reply(
            parsed="SDK",
            tool_calls=[
                {
                    "index": 0,
                    "id": "a",
                    "type": "function",
                    "function": {"name": RETRIEVE, "arguments": "{}", "parsed_arguments": "SDK"},
                }
            ],
        ),
    ],
    ids=["openai-responses", "openai"],
)
def test_what_an_sdk_parsed_for_the_application_is_not_sent_back(service, memory, reply):
    results = memory.handle(reply)
    assert results.outcomes[0].ok
    assert "SDK" not in json.dumps(results.turn)
    assert "index" not in json.dumps(results.turn)


# -- problems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (anthropic_reply(tool_use(), stop="max_tokens"), "truncated"),
        (anthropic_reply(tool_use(), stop="model_context_window_exceeded"), "truncated"),
        (anthropic_reply(stop="refusal"), "refusal"),
        (anthropic_reply(stop="pause_turn"), "pause_turn"),
        (anthropic_reply({"type": "text", "text": "hi"}, stop="end_turn"), None),
        (
            responses_reply(
                function_call(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            ),
            "truncated",
        ),
        (
            responses_reply(status="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
        ),
        (responses_reply(status="failed"), "failed"),
        (responses_reply(status="cancelled", incomplete_details=None), "cancelled"),
        (responses_reply(), None),
        ({"steps": [], "status": "incomplete"}, "truncated"),
        ({"steps": [], "status": "failed"}, "failed"),
        ({"steps": [], "status": "requires_action"}, None),
        ({"steps": []}, None),
    ],
)
def test_what_is_wrong_with_a_reply_is_named(service, memory, reply, problem):
    results = memory.handle(reply)
    assert results.problem == problem
    for outcome in results.outcomes:
        assert isinstance(outcome.error, TruncatedArgumentsError)
    assert not service["function"].called


# -- histories -------------------------------------------------------------------------------------------------------


def wire(*messages: Json) -> list[Json]:
    return list(messages)


RECALLED = "recalled words"
USER: Json = {"role": "user", "content": "What do I drink?"}
HISTORIES: dict[str, tuple[list[Json], Any, Any]] = {
    "anthropic": (
        wire(
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "secret", "signature": "secret"},
                    tool_use("a"),
                    tool_use("b", "weather"),
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": RECALLED},
                    {"type": "tool_result", "tool_use_id": "b", "content": "rain"},
                    {"type": "tool_result", "tool_use_id": "gone", "content": "an orphan"},
                ],
            },
            {"role": "assistant", "content": [tool_use("c")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": RECALLED}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Tea."}]},
        ),
        wire(
            USER,
            {"role": "assistant", "content": [tool_use("b", "weather")]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "rain"}]},
        ),
        {"role": "assistant", "content": [{"type": "text", "text": "Tea."}]},
    ),
    "openai-responses": (
        wire(
            USER,
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "secret"},
            function_call("a"),
            function_call("b", "weather"),
            {"type": "function_call_output", "call_id": "a", "output": RECALLED},
            {"type": "function_call_output", "call_id": "b", "output": "rain"},
            {"type": "function_call_output", "call_id": "gone", "output": "an orphan"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Tea."}]},
            {"type": "reasoning", "id": "rs2", "summary": [], "encrypted_content": "secret"},
        ),
        wire(
            USER,
            function_call("b", "weather"),
            {"type": "function_call_output", "call_id": "b", "output": "rain"},
        ),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Tea."}]},
    ),
    "gemini-interactions": (
        wire(
            {"type": "user_input", "content": [{"type": "text", "text": "What do I drink?"}]},
            {"type": "thought", "signature": "secret"},
            {"type": "function_call", "id": "a", "name": RETRIEVE, "arguments": {}},
            {"type": "function_call", "id": "b", "name": "weather", "arguments": {}},
            {"type": "function_result", "call_id": "a", "name": RETRIEVE, "result": RECALLED},
            {"type": "function_result", "call_id": "b", "result": "rain"},
            {"type": "function_result", "call_id": "gone", "name": "weather", "result": "an orphan"},
            {"type": "model_output", "content": [{"type": "text", "text": "Tea."}]},
        ),
        wire(
            {"type": "user_input", "content": [{"type": "text", "text": "What do I drink?"}]},
            {"type": "function_call", "id": "b", "name": "weather", "arguments": {}},
            {"type": "function_result", "call_id": "b", "result": "rain"},
        ),
        {"type": "model_output", "content": [{"type": "text", "text": "Tea."}]},
    ),
}
FRAMEWORKS: dict[str, tuple[list[Json], Any, Any]] = {
    "langchain": (
        wire(
            {"type": "human", "content": "What do I drink?", "response_metadata": {}},
            {
                "type": "ai",
                "content": [{"type": "tool_use", "id": "a", "name": RETRIEVE, "input": {}}],
                "additional_kwargs": {"tool_calls": ["secret"]},
                "tool_calls": [
                    {"type": "tool_call", "name": RETRIEVE, "args": {}, "id": "a"},
                    {"type": "tool_call", "name": "weather", "args": {}, "id": "b"},
                ],
                "invalid_tool_calls": [
                    {"type": "invalid_tool_call", "name": RETRIEVE, "args": "{", "id": "c"}
                ],
            },
            {"type": "tool", "content": RECALLED, "name": RETRIEVE, "tool_call_id": "a"},
            {"type": "tool", "content": "rain", "name": "weather", "tool_call_id": "b"},
            {"type": "tool", "content": RECALLED, "tool_call_id": "c"},
            {"type": "ai", "content": "Tea.", "tool_calls": [], "usage_metadata": {"total_tokens": 3}},
        ),
        wire(
            {"type": "human", "content": "What do I drink?"},
            {
                "type": "ai",
                "tool_calls": [{"type": "tool_call", "name": "weather", "args": {}, "id": "b"}],
            },
            {"type": "tool", "content": "rain", "name": "weather", "tool_call_id": "b"},
        ),
        {"type": "ai", "content": "Tea.", "tool_calls": []},
    ),
    "pydantic-ai": (
        wire(
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "What do I drink?"}]},
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "thinking", "content": "secret", "signature": "secret"},
                    {"part_kind": "tool-call", "tool_name": RETRIEVE, "args": "{}", "tool_call_id": "a"},
                    {"part_kind": "tool-call", "tool_name": "weather", "args": "{}", "tool_call_id": "b"},
                ],
            },
            {
                "kind": "request",
                "parts": [
                    {
                        "part_kind": "tool-return",
                        "tool_name": RETRIEVE,
                        "content": RECALLED,
                        "tool_call_id": "a",
                    },
                    {
                        "part_kind": "tool-return",
                        "tool_name": "weather",
                        "content": "rain",
                        "tool_call_id": "b",
                    },
                ],
            },
            {"kind": "response", "parts": [{"part_kind": "text", "content": "Tea."}]},
        ),
        wire(
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "What do I drink?"}]},
            {
                "kind": "response",
                "parts": [
                    {"part_kind": "tool-call", "tool_name": "weather", "args": "{}", "tool_call_id": "b"}
                ],
            },
            {
                "kind": "request",
                "parts": [
                    {
                        "part_kind": "tool-return",
                        "tool_name": "weather",
                        "content": "rain",
                        "tool_call_id": "b",
                    }
                ],
            },
        ),
        {"kind": "response", "parts": [{"part_kind": "text", "content": "Tea."}]},
    ),
    "llama-index": (
        wire(
            {"role": "user", "blocks": [{"block_type": "text", "text": "What do I drink?"}]},
            {
                "role": "assistant",
                "additional_kwargs": {"tool_calls": ["secret"]},
                "blocks": [
                    {"block_type": "thinking", "content": "secret"},
                    {
                        "block_type": "tool_call",
                        "tool_name": RETRIEVE,
                        "tool_kwargs": {},
                        "tool_call_id": "a",
                    },
                    {
                        "block_type": "tool_call",
                        "tool_name": "weather",
                        "tool_kwargs": {},
                        "tool_call_id": "b",
                    },
                ],
            },
            {
                "role": "tool",
                "additional_kwargs": {"tool_call_id": "a"},
                "blocks": [{"block_type": "text", "text": RECALLED}],
            },
            {
                "role": "tool",
                "additional_kwargs": {"tool_call_id": "b", "name": "weather"},
                "blocks": [{"block_type": "text", "text": "rain"}],
            },
            {"role": "assistant", "blocks": [{"block_type": "text", "text": "Tea."}]},
        ),
        wire(
            {"role": "user", "blocks": [{"block_type": "text", "text": "What do I drink?"}]},
            {
                "role": "assistant",
                "blocks": [
                    {
                        "block_type": "tool_call",
                        "tool_name": "weather",
                        "tool_kwargs": {},
                        "tool_call_id": "b",
                    }
                ],
            },
            {"role": "tool", "blocks": [{"block_type": "text", "text": "rain"}]},
        ),
        {"role": "assistant", "blocks": [{"block_type": "text", "text": "Tea."}]},
    ),
}


@pytest.mark.parametrize(
    ("history", "messages", "answer"),
    [*HISTORIES.values(), *FRAMEWORKS.values()],
    ids=[*HISTORIES, *FRAMEWORKS],
)
def test_of_a_history_only_what_was_said_is_captured(service, memory, history, messages, answer):
    memory.capture(history)
    body = sent(service["capture"])
    assert body["sessionData"]["messages"] == messages
    assert body["response"] == answer
    assert "secret" not in json.dumps(body)
    assert RECALLED not in json.dumps(body)


@pytest.mark.parametrize("dialect", [*HISTORIES, "openai", "gemini"])
def test_the_calls_of_a_turn_are_counted_in_every_history(service, make, dialect):
    memory = make().for_user("user_123", max_calls_per_turn=2)
    opening = HISTORIES[dialect][0][0] if dialect in HISTORIES else USER
    if dialect == "gemini":
        opening = {"role": "user", "parts": [{"text": "hi"}]}
    history: list[Any] = [opening]
    for question in range(2):
        answered = []
        for number in range(3):
            reply = REPLY[dialect]([Call(f"{question}.{number}", RETRIEVE, {"limit": number + 1})])
            results = memory.handle(reply, session=[*history, *memory.handle(reply).turn])
            history += [*results.turn, *results]
            answered.append(results.outcomes[0].ok)
        assert answered == [True, True, False]
        history.append(opening)


@pytest.mark.parametrize(
    ("messages", "response"),
    [
        ([USER, function_call()], None),
        ([USER, {"type": "reasoning", "summary": []}, function_call()], None),
        ([USER], responses_reply({"type": "reasoning", "summary": []})),
        ([USER], responses_reply(function_call())),
        ([USER, {"type": "function_call", "id": "a", "name": RETRIEVE, "arguments": {}}], None),
        ([USER], anthropic_reply(tool_use())),
        ([USER], anthropic_reply(stop="refusal")),
        ([USER], {"steps": []}),
        ([USER], anthropic_reply(tool_use("b", "weather"))),
        *(([*each[:1], each[1]], None) for each, _, _ in FRAMEWORKS.values()),
    ],
)
def test_a_turn_without_an_answer_is_not_captured(service, memory, messages, response):
    with pytest.raises(EmptyAnswerError):
        memory.capture(messages, response)
    assert not service["capture"].called


@pytest.mark.parametrize("history", [each for each, _, _ in FRAMEWORKS.values()], ids=FRAMEWORKS)
def test_the_calls_of_a_turn_are_counted_in_a_framework_s_history(service, make, history):
    memory = make().for_user("user_123", max_calls_per_turn=1)
    asked = memory.handle(openai_reply((RETRIEVE, "{}")), session=[*history[:3], history[1]])
    assert not asked.outcomes[0].ok
    assert memory.handle(openai_reply((RETRIEVE, "{}")), session=[*history, history[0]]).outcomes[0].ok


def test_an_answer_in_several_items_is_captured_with_its_last_one_as_the_answer(service, memory):
    def item(text: str) -> Json:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    memory.capture(
        [USER], responses_reply({"type": "reasoning", "summary": []}, item("Let me see."), item("Tea."))
    )
    body = sent(service["capture"])
    assert (body["sessionData"]["messages"], body["response"]) == ([USER, item("Let me see.")], item("Tea."))


def test_a_picture_made_after_the_answer_is_no_answer_and_stays_behind(service, memory):
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]}
    picture = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "QUJD" * 100}
    step = {"type": "google_search_call", "id": "g", "signature": "secret", "arguments": {"queries": ["tea"]}}
    for given in (([USER, message, picture, step], None), ([USER], responses_reply(message, picture, step))):
        memory.capture(*given)
        body = sent(service["capture"])
        assert body["response"] == message
        (made,) = [each for each in body["sessionData"]["messages"] if each.get("id") == "ig"]
        assert (made["result"]["type"], made["result"]["bytes"]) == ("image", 300)
        assert "QUJD" not in json.dumps(body)
        assert "secret" not in json.dumps(body)


def test_a_picture_nobody_commented_stays_behind_its_request(service, memory):
    picture = {"type": "image_generation_call", "id": "ig", "result": "QUJD" * 100}
    memory.capture([USER, picture])
    first, second = sent(service["capture"])["sessionData"]["messages"]
    assert (first, second["id"]) == (USER, "ig")


def test_results_find_their_calls_across_spellings_of_ids(service, memory):
    made = {
        "role": "assistant",
        "tool_calls": [{"id": 5, "function": {"name": "weather", "arguments": "{}"}}],
    }
    told = {"role": "tool", "type": "tool", "tool_call_id": "5", "content": "rain"}
    memory.capture([USER, made, told, {"role": "assistant", "content": "Rain."}])
    assert sent(service["capture"])["sessionData"]["messages"] == [USER, made, told]


def test_memory_called_by_a_provider_over_mcp_is_not_learned_again(service, memory):
    def over_mcp(name: str, call_id: str, output: str) -> tuple[Json, list[Json]]:
        item = {"type": "mcp_call", "id": call_id, "name": name, "arguments": "{}", "output": output}
        made = {"type": "mcp_tool_use", "id": call_id, "name": name, "server_name": "s", "input": {}}
        result = {
            "type": "mcp_tool_result",
            "tool_use_id": call_id,
            "content": [{"type": "text", "text": output}],
        }
        return item, [made, result]

    (ours, our_blocks), (other, other_blocks) = (
        over_mcp(RETRIEVE, "a", RECALLED),
        over_mcp("weather", "b", "rain"),
    )
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Tea."}]}
    memory.capture([USER, ours, other, said])
    assert sent(service["capture"])["sessionData"]["messages"] == [USER, other]
    words = {"type": "text", "text": "Tea."}
    memory.capture([USER, {"role": "assistant", "content": [*our_blocks, *other_blocks, words]}])
    assert sent(service["capture"])["response"]["content"] == [*other_blocks, words]
    assert lint_history([USER, ours, other], "openai-responses") == []


def test_a_result_with_an_id_answers_a_call_that_came_without(service, memory):
    made = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]}
    result = {"functionResponse": {"id": "x", "name": "weather", "response": {"output": "rain"}}}
    told = {"role": "user", "parts": [result]}
    memory.capture(
        [
            {"role": "user", "parts": [{"text": "hi"}]},
            made,
            told,
            {"role": "model", "parts": [{"text": "Rain."}]},
        ]
    )
    assert sent(service["capture"])["sessionData"]["messages"][1:] == [made, told]


def test_sdk_objects_of_every_provider_are_read_as_they_come(service, memory):
    anthropic = pytest.importorskip("anthropic.types")
    responses = pytest.importorskip("openai.types.responses")
    mcp = pytest.importorskip("mcp_types")
    replies = [
        (anthropic.Message.construct(**anthropic_reply(tool_use())), "tool_use_id"),
        (responses.Response.construct(**responses_reply(function_call())), "call_id"),
    ]
    for reply, field in replies:
        (result,) = memory.handle(reply)
        assert (result.get("content") or [result])[0][field] == "a"
    request = mcp.CallToolRequest(
        method="tools/call", params=mcp.CallToolRequestParams(name=RETRIEVE, arguments={})
    )
    assert memory.handle(request)[0]["isError"] is False


def test_openai_and_gemini_fakes_agree_with_the_builders_of_replies():
    assert detected(openai_reply((RETRIEVE, "{}"))) is detected(REPLY["openai"](ONE))
    assert detected(gemini_reply({"name": RETRIEVE, "args": {}})) is detected(REPLY["gemini"](ONE))
