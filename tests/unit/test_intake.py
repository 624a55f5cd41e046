"""A conversation in: masked, counted, split, the same way for every door."""

import pytest

from halo_server.api.intake import submission
from halo_server.config import Settings
from halo_server.domain import Submission
from halo_server.errors import InvalidRequest, TooLarge
from halo_server.transcript import read_message

KEY = "ghp_" + "aB3" * 15


def test_a_session_and_an_answer_become_what_is_to_be_captured() -> None:
    taken = submission(
        Settings(),
        {"messages": ["hi", f"my key is {KEY}"], "note": KEY},
        f"Keep {KEY} safe.",
        occurred_at=5,
        sanitized=2,
        truncated=True,
    )

    assert taken == Submission(
        messages=(read_message("hi"), read_message("my key is [masked: token]")),
        response=read_message({"role": "assistant", "content": "Keep [masked: token] safe."}),
        state={"note": "[masked: token]"},
        occurred_at=5,
        sanitized=2,
        truncated=True,
    )
    assert taken.has_history


def test_without_an_answer_the_trailing_one_is_it() -> None:
    taken = submission(Settings(), {"messages": ["hi", {"role": "assistant", "content": "ho"}]}, None)

    assert taken == Submission(
        (read_message("hi"),), read_message({"role": "assistant", "content": "ho"}), {}
    )
    assert not taken.has_history


def test_a_whole_completion_is_an_answer() -> None:
    taken = submission(Settings(), {}, {"choices": [{"message": {"role": "assistant", "content": "ho"}}]})

    assert taken.response == read_message({"role": "assistant", "content": "ho"})


def test_as_many_messages_as_allowed_and_no_more() -> None:
    few = Settings(max_messages=2)

    assert len(submission(few, {"messages": ["a", "b"]}, None).messages) == 2
    with pytest.raises(TooLarge, match="at most 2 messages"):
        submission(few, {"messages": ["a", "b", "c"]}, None)


@pytest.mark.parametrize(
    "response", [{}, {"role": "assistant", "content": ""}, "", {"role": "system", "content": "x"}]
)
def test_an_answer_without_text_is_refused(response: object) -> None:
    with pytest.raises(InvalidRequest, match="response must hold"):
        submission(Settings(), {"messages": ["hi"]}, response)


def test_masking_can_be_switched_off() -> None:
    taken = submission(Settings(redact="off"), {"messages": [KEY]}, None)

    assert taken.messages[0].text == KEY
