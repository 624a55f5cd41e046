"""What of a conversation goes with a question: its newest part, in bounds, whichever way it is asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_sdk import Memory
from halo_sdk._plain import size_bytes
from halo_sdk._session import MAX_QUESTION_BYTES, opened
from tests.sdk.fakes import RETRIEVE, openai_reply, sent


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def result(number: int, content: str) -> list[dict[str, Any]]:
    """Return a call of the application's own function and its result."""
    name = f"c{number}"
    called = {"id": name, "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": name, "content": content},
    ]


def handled(memory: Memory, session: Any) -> None:
    memory.handle(openai_reply((RETRIEVE, "{}")), session=session)


def called(memory: Memory, session: Any) -> None:
    memory.call(RETRIEVE, {}, session=session)


def retrieved(memory: Memory, session: Any) -> None:
    memory.retrieve(session)


@pytest.mark.parametrize("ask", [handled, called, retrieved])
def test_of_a_long_conversation_the_newest_whole_messages_go_with_a_question(service, memory, ask):
    history = [user(f"{number}: {'x' * 1_500}") for number in range(2_001)]
    ask(memory, history)
    data = sent(service["function"])["arguments"]["sessionData"]
    assert data == {"messages": history[-len(data["messages"]) :]}
    assert MAX_QUESTION_BYTES - 2_000 < size_bytes(data) <= MAX_QUESTION_BYTES


def test_a_short_conversation_goes_whole_and_so_does_its_state():
    history = [user("one"), {"role": "assistant", "content": "two"}, user("three")]
    session = {"messages": history, "plan": "pro", "cart": [1, None, {"n": 2.5}]}
    assert opened(session).question == session


def test_the_end_user_s_question_goes_along_however_much_the_application_did_since():
    question = user("Which of my files is about whales?")
    since = [message for number in range(9) for message in result(number, "y" * 10_000)]
    newest = opened([user("old"), question, *since]).question["messages"]
    assert newest == [question, *since[-len(newest) + 1 :]]
    assert len(newest) > 10


def test_a_question_before_a_result_larger_than_all_the_room_goes_alone():
    question = user("What does this say?")
    huge = [{"role": "assistant", "content": "Reading."}, *result(0, "y" * 70_000)]
    assert opened([question, *huge]).question == {"messages": [question]}


def test_a_question_of_gemini_is_told_from_the_results_that_carry_the_same_role():
    question = {"role": "user", "parts": [{"text": "What does this say?"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {}}}]}
    answer = {"name": "read_file", "response": {"output": "y" * 70_000}}
    answered = {"role": "user", "parts": [{"functionResponse": answer}]}
    assert opened([question, call, answered]).question == {"messages": [question]}


@pytest.mark.parametrize("content", ["é" * 200_000, [{"type": "text", "text": "é" * 200_000}]])
def test_a_question_larger_than_the_room_is_cut_in_its_text(content):
    data = opened([user("old"), user(content)]).question
    (message,) = data["messages"]
    assert message["role"] == "user"
    assert "ééé" in str(message["content"])
    assert MAX_QUESTION_BYTES - 100 < size_bytes(data) <= MAX_QUESTION_BYTES


def test_a_question_of_very_many_parts_is_cut_to_its_first():
    parts = [{"type": "text", "text": str(number)} for number in range(10_000)]
    (message,) = opened([user(parts)]).question["messages"]
    assert message["content"][:2] == [{"type": "text", "text": "0"}, {"type": "text", "text": "1"}]
    assert size_bytes(message) <= MAX_QUESTION_BYTES


def test_without_an_end_user_the_newest_message_counts():
    data = opened([{"role": "assistant", "content": "z" * 100_000}]).question
    assert data["messages"][0]["content"].startswith("zzz")


def test_of_a_large_state_the_small_fields_stay_whole_and_the_messages_keep_their_room():
    history = [user("x" * 1_000) for _ in range(40)]
    state = {"page": "d" * 200_000, "plan": "pro", "rows": [7] * 100_000, "locale": "pt"}
    data = opened({"messages": history, **state}).question
    assert data["messages"] == history
    assert (data["plan"], data["locale"]) == ("pro", "pt")
    assert size_bytes(data) <= MAX_QUESTION_BYTES


def test_a_state_without_messages_may_use_all_the_room():
    data = opened({"plan": "pro", "page": "d" * 200_000}).question
    assert data["plan"] == "pro"
    assert list(data) == ["plan", "page"]
    assert MAX_QUESTION_BYTES - 100 < size_bytes(data) <= MAX_QUESTION_BYTES


def test_a_result_whose_call_was_left_out_is_left_out_too():
    called, answered = result(0, "y" * 100)
    called["content"] = "c" * 70_000
    assert opened([user("hi"), called, answered]).question == {"messages": [user("hi")]}


SAID = st.sampled_from([0, 10, 20_000, 70_000]).map("ü".__mul__)
MESSAGES = st.lists(
    SAID.map(user)
    | st.builds(lambda text: {"role": "assistant", "content": text}, SAID)
    | st.builds(lambda text: {"role": "model", "parts": [{"text": text}]}, SAID)
    | st.builds(lambda text: {"speaker": text, "n": 1}, SAID),
    max_size=6,
)
STATE = st.dictionaries(st.sampled_from("abc"), SAID | st.integers() | st.none())


@given(history=MESSAGES, state=STATE)
def test_what_goes_with_a_question_is_bounded_and_in_order_and_holds_the_newest(history, state):
    data = opened({"messages": history, **state}).question
    assert size_bytes(data) <= MAX_QUESTION_BYTES
    kept = iter(range(len(history)))
    for message in data.get("messages", []):
        assert any(history[at].keys() == message.keys() for at in kept)
    asked = [message["content"] for message in history if message.get("role") == "user"]
    if asked:
        shown = [message["content"] for message in data["messages"] if message.get("role") == "user"]
        assert shown[-1][:100] == asked[-1][:100]
