"""What stands beside the calls in the histories of frameworks: provider content, chunks, dumps, prompts to try again."""

from typing import Any

import pytest

from tests.sdk.fakes import RETRIEVE, openai_reply, sent

Json = dict[str, Any]

HUMAN: Json = {"type": "human", "content": "What do I drink?"}
TEA: Json = {"type": "ai", "content": "Tea."}
PROMPT: Json = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "What do I drink?"}]}
SAID: Json = {"kind": "response", "parts": [{"part_kind": "text", "content": "Tea."}]}
ASKED: Json = {"role": "user", "blocks": [{"block_type": "text", "text": "What do I drink?"}]}
TOLD: Json = {"role": "assistant", "blocks": [{"block_type": "text", "text": "Tea."}]}


def captured(service: Any, memory: Any, history: list[Json]) -> tuple[list[Json], Json | None]:
    memory.capture(history)
    body = sent(service["capture"])
    return body["sessionData"]["messages"], body["response"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_call", "id": "{id}", "args": {}},
        {"type": "tool_use", "id": "{id}", "input": {}},
        {"type": "function_call", "id": "fc_{id}", "call_id": "{id}", "arguments": "{}"},
    ],
    ids=lambda block: block["type"],
)
def test_a_call_a_provider_left_in_the_content_of_a_langchain_message_goes_too(service, memory, block):
    def called(id_: str, name: str) -> Json:
        spelled = {key: id_ if value == "{id}" else value for key, value in block.items()}
        return {**spelled, "name": name}

    said = {"type": "text", "text": "Let me see."}
    own, other = called("a", RETRIEVE), called("b", "weather")
    made = [
        {"type": "tool_call", "name": each["name"], "args": {}, "id": id_}
        for each, id_ in ((own, "a"), (other, "b"))
    ]
    history = [
        HUMAN,
        {"type": "ai", "content": [said, own, other], "tool_calls": made},
        {"type": "tool", "content": "recalled words", "tool_call_id": "a"},
        {"type": "tool", "content": "rain", "tool_call_id": "b"},
        {"type": "ai", "content": [own], "tool_calls": made[:1]},
        {"type": "tool", "content": "recalled words", "tool_call_id": "a"},
        TEA,
    ]
    assert captured(service, memory, history) == (
        [
            HUMAN,
            {"type": "ai", "content": [said, other], "tool_calls": made[1:]},
            {"type": "tool", "content": "rain", "tool_call_id": "b"},
        ],
        TEA,
    )


def test_a_streamed_langchain_message_keeps_no_piece_of_an_own_call(service, memory):
    pieces = [
        {"type": "tool_call_chunk", "name": name, "args": "{}", "id": id_, "index": at}
        for at, (id_, name) in enumerate((("a", RETRIEVE), ("b", "weather")))
    ]
    chunk = {"type": "AIMessageChunk", "content": "Let me see.", "tool_call_chunks": pieces}
    messages, answer = captured(service, memory, [HUMAN, chunk, {**TEA, "type": "AIMessageChunk"}])
    assert messages == [HUMAN, {**chunk, "tool_call_chunks": pieces[1:]}]
    assert answer == {**TEA, "type": "AIMessageChunk"}


def dumped(message: Json) -> Json:
    """Return a message as `messages_to_dict` does."""
    return {"type": message["type"], "data": {**message, "usage_metadata": None}}


OWN = {"type": "tool_call", "name": RETRIEVE, "args": {}, "id": "a"}
OTHER = {"type": "tool_call", "name": "weather", "args": {}, "id": "b"}
CALLED: list[Json] = [
    HUMAN,
    {"type": "ai", "content": "", "tool_calls": [OWN, OTHER]},
    {"type": "tool", "content": "recalled words", "tool_call_id": "a"},
    {"type": "tool", "content": "rain", "tool_call_id": "b"},
]


def test_langchain_messages_dumped_as_dicts_are_read_like_the_messages(service, memory):
    assert captured(service, memory, [dumped(message) for message in [*CALLED, TEA]]) == (
        [HUMAN, {**CALLED[1], "tool_calls": [OTHER]}, CALLED[3]],
        TEA,
    )


def test_the_calls_of_a_turn_are_counted_in_dumped_langchain_messages(service, make):
    memory = make().for_user("user_123", max_calls_per_turn=1)
    history = [dumped(message) for message in CALLED]
    reply = openai_reply((RETRIEVE, "{}"))
    assert not memory.handle(reply, session=history).outcomes[0].ok
    assert memory.handle(reply, session=[*history, dumped(TEA), dumped(HUMAN)]).outcomes[0].ok


def test_what_else_has_data_is_no_langchain_message(service, memory):
    event = {"type": "event", "content": "opened", "data": {"role": "user", "content": "a page"}}
    assert captured(service, memory, [event, HUMAN, TEA]) == ([event, HUMAN], TEA)


def test_a_prompt_of_pydantic_ai_to_try_an_own_call_again_goes_with_the_call(service, memory):
    def again(**named: str) -> Json:
        return {"part_kind": "retry-prompt", "content": "does not fit", **named}

    own = {"part_kind": "tool-call", "tool_name": RETRIEVE, "args": "{", "tool_call_id": "a"}
    other = {"part_kind": "tool-call", "tool_name": "weather", "args": "{", "tool_call_id": "b"}
    unbound = again()
    history = [
        PROMPT,
        {"kind": "response", "parts": [own, other]},
        {
            "kind": "request",
            "parts": [
                again(tool_name=RETRIEVE, tool_call_id="a"),
                again(tool_name="weather", tool_call_id="b"),
            ],
        },
        {"kind": "request", "parts": [unbound]},
        SAID,
    ]
    assert captured(service, memory, history) == (
        [
            PROMPT,
            {"kind": "response", "parts": [other]},
            {"kind": "request", "parts": [again(tool_name="weather", tool_call_id="b")]},
            {"kind": "request", "parts": [unbound]},
        ],
        SAID,
    )


@pytest.mark.parametrize(
    "named", [{"name": RETRIEVE}, {"tool_call_id": "a"}, {"name": RETRIEVE, "tool_call_id": "other"}]
)
@pytest.mark.parametrize("role", ["tool", "function"])
def test_the_result_of_an_own_call_in_a_llama_index_message_is_known_by_id_or_name(
    service, memory, role, named
):
    call = {"block_type": "tool_call", "tool_name": RETRIEVE, "tool_kwargs": {}, "tool_call_id": "a"}
    recalled = {"block_type": "text", "text": "recalled words"}
    history = [
        ASKED,
        {"role": "assistant", "blocks": [call]},
        {"role": role, "blocks": [recalled], "additional_kwargs": named},
        TOLD,
    ]
    assert captured(service, memory, history) == ([ASKED], TOLD)


def test_a_llama_index_model_named_chatbot_gives_answers(service, memory):
    told = {**TOLD, "role": "chatbot"}
    assert captured(service, memory, [ASKED, told]) == ([ASKED], told)


def result(id_: str, words: str, **named: str) -> Json:
    blocks = [{"block_type": "text", "text": words}]
    return {"role": "tool", "blocks": blocks, "additional_kwargs": {"tool_call_id": id_, **named}}


SPELLED = {
    "openai": lambda id_, name: {
        "id": id_,
        "type": "function",
        "function": {"name": name, "arguments": '{"city":"Oslo"}'},
    },
    "anthropic": lambda id_, name: {
        "id": id_,
        "type": "tool_use",
        "name": name,
        "input": {"city": "Oslo"},
    },
    "ollama": lambda id_, name: {"id": id_, "function": {"name": name, "arguments": {"city": "Oslo"}}},
}


@pytest.mark.parametrize("spelled", SPELLED.values(), ids=SPELLED)
@pytest.mark.parametrize("words", [[], [{"block_type": "text", "text": "Let me see."}]])
def test_a_call_a_llama_index_message_tells_of_only_beside_what_it_says_goes_or_stays_with_its_result(
    service, memory, spelled, words
):
    calls = {"tool_calls": [spelled("a", RETRIEVE), spelled("b", "weather")]}
    history = [
        ASKED,
        {"role": "assistant", "blocks": words, "additional_kwargs": calls},
        result("a", "recalled words"),
        result("b", "rain"),
    ]
    (asked, called, rain), response = captured(service, memory, [*history, TOLD])
    (*said, call) = called["blocks"]
    assert (asked, said, response) == (ASKED, words, TOLD)
    assert (call["block_type"], call["tool_call_id"], call["tool_name"]) == ("tool_call", "b", "weather")
    assert "Oslo" in str(call["tool_kwargs"])
    assert rain["blocks"] == result("b", "rain")["blocks"]
    assert "recalled" not in str(service["capture"].calls[-1].request.content)


def test_calls_of_a_llama_index_message_are_told_by_its_blocks_where_they_stand_there_too(service, memory):
    block = {"block_type": "tool_call", "tool_name": "weather", "tool_kwargs": {}, "tool_call_id": "b"}
    beside = {"tool_calls": [SPELLED["openai"]("b", "weather")]}
    history = [
        ASKED,
        {"role": "assistant", "blocks": [block], "additional_kwargs": beside},
        result("b", "rain"),
        TOLD,
    ]
    said, _ = captured(service, memory, history)
    assert said[1] == {"role": "assistant", "blocks": [block]}
    assert len(said) == 3


def test_many_calls_without_arguments_are_kept_by_name_and_id_where_that_is_no_longer(service, memory):
    ids = [f"call_{number}" for number in range(20)]
    calls = [{"id": id_, "type": "function", "function": {"name": "clock", "arguments": "{}"}} for id_ in ids]
    history = [
        ASKED,
        {"role": "assistant", "blocks": [], "additional_kwargs": {"tool_calls": calls}},
        *(result(id_, "noon") for id_ in ids),
        TOLD,
    ]
    (_, called, *results), _ = captured(service, memory, history)
    assert called["blocks"] == [
        {"block_type": "tool_call", "tool_call_id": id_, "tool_name": "clock"} for id_ in ids
    ]
    assert len(results) == len(ids)


def test_calls_too_short_to_stand_among_the_blocks_go_and_their_results_with_them(service, memory):
    names = ("a", RETRIEVE, "b", "c")
    calls = {"tool_calls": [{"name": name} for name in names]}
    results = [result("", "recalled words", name=name) for name in names]
    history = [ASKED, {"role": "assistant", "blocks": [], "additional_kwargs": calls}, *results, TOLD]
    said, response = captured(service, memory, history)
    assert ([message for message in said if message.get("blocks")], response) == ([ASKED], TOLD)


@pytest.mark.parametrize("blocks", [[], [{"block_type": "text", "text": "Let me see."}]])
def test_calls_a_llama_index_message_tells_of_beside_what_it_says_count_towards_the_limit(
    service, make, blocks
):
    calls = {"tool_calls": [SPELLED["openai"]("a", RETRIEVE), SPELLED["openai"]("b", "weather")]}
    history = [
        ASKED,
        {"role": "assistant", "blocks": blocks, "additional_kwargs": calls},
        result("a", "recalled words"),
        result("b", "rain"),
    ]
    reply = openai_reply((RETRIEVE, '{"query":"1"}'), (RETRIEVE, '{"query":"2"}'))
    memory = make().for_user("user_123", max_calls_per_turn=2)
    assert [outcome.ok for outcome in memory.handle(reply, session=history).outcomes] == [True, False]
