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


def test_calls_a_llama_index_message_tells_of_only_beside_what_it_says_are_known_too(service, memory):
    def told(id_: str, name: str) -> Json:
        return {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}

    def result(id_: str, words: str) -> Json:
        blocks = [{"block_type": "text", "text": words}]
        return {"role": "tool", "blocks": blocks, "additional_kwargs": {"tool_call_id": id_}}

    calls = {"tool_calls": [told("a", RETRIEVE), told("b", "weather")]}
    history = [
        ASKED,
        {"role": "assistant", "blocks": [], "additional_kwargs": calls},
        result("a", "recalled words"),
        result("b", "rain"),
    ]
    rain = {"role": "tool", "blocks": [{"block_type": "text", "text": "rain"}]}
    said, response = captured(service, memory, [*history, TOLD])
    assert [message for message in said if message.get("blocks")] == [ASKED, rain]
    assert response == TOLD
    memory.handle(openai_reply((RETRIEVE, "{}")), session=history)
    limited = memory.handle(
        openai_reply(*[(RETRIEVE, f'{{"query":"{n}"}}') for n in range(9)]), session=history
    )
    alone = memory.handle(openai_reply(*[(RETRIEVE, f'{{"query":"{n}"}}') for n in range(9)]))
    assert sum(outcome.ok for outcome in limited.outcomes) == sum(o.ok for o in alone.outcomes) - 1
