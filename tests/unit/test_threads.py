"""Where a conversation continues."""

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.domain import Message
from halo_server.threads import Place, digest, fingerprint, overlay, path
from halo_server.transcript import read_message

SECRET = b"s"


def thread(*letters: str, first: int = 1, answers: str = "") -> list[Place]:
    """Return one stored thread, a message a letter, numbered from `first`; those of `answers` are the assistant's."""
    places: list[Place] = []
    for number, letter in enumerate(letters, first):
        parent = places[-1].id if places else None
        role = "assistant" if letter in answers else "user"
        places.append(Place(number, parent, number, letter.encode(), b"", len(places), role))
    return places


def laid(letters: str, *threads: list[Place]) -> tuple[int, int | None]:
    newest_first = sorted((place for one in threads for place in one), key=lambda place: -place.id)
    length, end = overlay([letter.encode() for letter in letters], newest_first)
    return length, end.id if end else None


@pytest.mark.parametrize(
    ("sent", "answers", "expected"),
    [
        ("bc", "", (2, 3)),
        ("bcx", "", (2, 3)),
        ("abc", "", (3, 3)),
        ("xbc", "", (0, None)),
        ("c", "", (0, None)),
        ("cx", "c", (1, 3)),
        ("bx", "b", (0, None)),
    ],
)
def test_a_conversation_cut_at_the_front_lies_along_its_thread(
    sent: str, answers: str, expected: Any
) -> None:
    assert laid(sent, thread(*"abc", answers=answers)) == expected


def test_the_thread_with_the_longest_agreement_wins_and_among_equals_the_newest() -> None:
    old, new = thread(*"abcd"), thread(*"abc", first=11)

    assert laid("bcd", old, new) == (3, 4)
    assert laid("bc", old, new) == (2, 13)
    assert laid("bc") == (0, None)


@given(stored=st.text("abc", max_size=8), data=st.data())
def test_any_part_of_a_thread_of_two_or_more_is_found_whole(stored: str, data: st.DataObject) -> None:
    distinct = [f"{letter}{n}" for n, letter in enumerate(stored)]
    start = data.draw(st.integers(0, len(distinct)))
    part = distinct[start : data.draw(st.integers(start, len(distinct)))]
    places = thread(*distinct)
    if len(part) > 1:
        length, end = overlay([letter.encode() for letter in part], places[::-1])
        assert (length, end) == (len(part), places[start + len(part) - 1])


def test_who_said_what_is_one_digest_whatever_its_times_and_ids() -> None:
    said = [
        {"role": "user", "content": "hi"},
        {"role": "human", "content": " hi ", "id": "m1", "timestamp": 5},
        {"role": "user", "parts": [{"text": "hi"}]},
    ]

    assert len({digest(SECRET, read_message(one)) for one in said}) == 1


def test_another_role_word_or_secret_is_another_digest() -> None:
    digests = {
        digest(SECRET, read_message("hi")),
        digest(b"other", read_message("hi")),
        digest(SECRET, read_message("ho")),
        digest(SECRET, read_message({"role": "assistant", "content": "hi"})),
        digest(SECRET, read_message({"role": "tool", "content": "hi"})),
        digest(SECRET, read_message({"role": "tool", "content": "hi", "tool_call_id": "1"})),
        digest(SECRET, Message("user", {}, "\ud800", spoken=True)),
    }

    assert len(digests) == 7
    assert {len(one) for one in digests} == {16}


@given(
    one=st.lists(st.binary(min_size=16, max_size=16), max_size=4),
    two=st.lists(st.binary(min_size=16, max_size=16), max_size=4),
)
def test_two_conversations_have_one_path_only_when_they_are_one(one: list[bytes], two: list[bytes]) -> None:
    def end(digests: list[bytes]) -> bytes:
        return list(accumulate(digests, lambda before, each: path(SECRET, before, each), initial=b""))[-1]

    assert (end(one) == end(two)) == (one == two)


def test_a_request_is_known_whatever_the_order_of_its_keys() -> None:
    assert fingerprint(SECRET, {"a": 1, "b": [2]}) == fingerprint(SECRET, {"b": [2], "a": 1})
    assert fingerprint(SECRET, {"a": 1, "b": [2]}) != fingerprint(SECRET, {"a": 1, "b": [3]})
