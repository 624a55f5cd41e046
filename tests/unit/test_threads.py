"""Where a conversation continues."""

from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_server.domain import Message
from halo_server.threads import Place, digest, fingerprint, overlay, path
from halo_server.transcript import read_message

SECRET = b"s"


def thread(*letters: str, first: int = 1, answers: str = "") -> list[Place]:
    """Return one stored thread, a message a letter, numbered from `first`; those of `answers` are the assistant's."""
    places: list[Place] = []
    for number, letter in enumerate(letters, first):
        role = "assistant" if letter in answers else "user"
        places.append(said(number, letter, places[-1] if places else None, role))
    return places


def said(number: int, letter: str, parent: Place | None, role: str = "user") -> Place:
    before = parent.id if parent else None
    return Place(
        id=number,
        parent_id=before,
        parent_spoken_id=before,
        spoken_id=number,
        digest=letter.encode(),
        path=b"",
        depth=parent.depth + 1 if parent else 1,
        role=role,
        spoken=True,
        erased=False,
    )


def laid(letters: str, *threads: list[Place]) -> tuple[int, int | None]:
    places = [place for one in threads for place in one]
    length, end = overlay([letter.encode() for letter in letters], places)
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
    assert laid("bc", thread(*"xxbc"), new) == (2, 13)
    assert laid("bc") == laid("", old) == (0, None)


def test_an_answer_is_the_newest_of_its_thread_or_proves_nothing() -> None:
    old, new = thread(*"abb", answers="b"), thread(*"xyb", first=11, answers="b")

    assert laid("bz", old, new) == (1, 13)
    assert laid("bz", old) == (1, 3)
    assert laid("bz", thread(*"abb", first=21, answers="b")[:2], old) == (1, 22)


def _by_trying(letters: str, stored: list[Place]) -> tuple[int, int | None]:
    """Lay the conversation on every message and follow every branch as far as it agrees."""
    ways: list[tuple[int, Place]] = []

    def follow(length: int, place: Place) -> None:
        if place.digest.decode() != letters[length - 1]:
            return
        ways.append((length, place))
        if length < len(letters):
            for below in (one for one in stored if one.parent_spoken_id == place.id):
                follow(length + 1, below)

    for place in stored if letters else ():
        follow(1, place)
    if not ways:
        return 0, None
    length, end = max(ways, key=lambda way: (way[0], way[1].id))
    followed = any(one.parent_spoken_id == end.id for one in stored)
    if length == 1 and (end.role != "assistant" or followed):
        return 0, None
    return length, end.id


@settings(max_examples=300)
@given(letters=st.text("abc", max_size=6), data=st.data())
def test_a_conversation_lies_where_trying_every_place_finds_it(letters: str, data: st.DataObject) -> None:
    tree: list[Place] = []
    for number in range(1, data.draw(st.integers(0, 14)) + 1):
        parent = data.draw(st.sampled_from([None, *tree, *tree[-1:], *tree[-1:]]))
        letter = data.draw(st.sampled_from("aabbcx"))
        tree.append(said(number, letter, parent, "assistant" if letter == "b" else "user"))
    if data.draw(st.booleans()):
        tree = [place for place in tree if place.digest.decode() in letters]

    assert laid(letters, data.draw(st.permutations(tree))) == _by_trying(letters, tree)


class _Counted(bytes):
    """Bytes that count how often they are compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = bytes.__hash__


@pytest.mark.parametrize("length", [1_000, 4_000])
@pytest.mark.parametrize("last", ["ok", "no"])
def test_one_word_said_thousands_of_times_is_compared_a_few_times_a_message(length: int, last: str) -> None:
    spoken = [_Counted(b"ok")] * (length - 1)
    stored = [replace(place, digest=_Counted(place.digest)) for place in thread(*length * ["ok"])]
    _Counted.compared = 0

    known, end = overlay([*spoken, _Counted(last.encode())], stored)

    assert known == length - (last == "no")
    assert end is stored[-1]
    assert _Counted.compared < 10 * length


@given(stored=st.text("abc", max_size=8), data=st.data())
def test_any_part_of_a_thread_of_two_or_more_is_found_whole(stored: str, data: st.DataObject) -> None:
    distinct = [f"{letter}{n}" for n, letter in enumerate(stored)]
    start = data.draw(st.integers(0, len(distinct)))
    part = distinct[start : data.draw(st.integers(start, len(distinct)))]
    places = thread(*distinct)
    if len(part) > 1:
        length, end = overlay([letter.encode() for letter in part], places[start:])
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
        digest(SECRET, Message("user", {}, "\ud800", spoken=True)),
    }

    assert len(digests) == 5
    assert {len(one) for one in digests} == {16}


@pytest.mark.parametrize(
    "raw",
    [
        {"role": "system", "content": "Be kind."},
        {"role": "tool", "tool_call_id": "1", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "get_weather"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "halo_retrieve_memory"}}],
        },
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "https://halo.local/a.png"}}],
        },
    ],
)
def test_what_nobody_said_has_no_digest_and_the_path_of_what_was_said_before(raw: Any) -> None:
    assert digest(SECRET, read_message(raw)) == b""
    assert path(SECRET, b"before", b"") == b"before"
    assert path(SECRET, b"", b"") == b""


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
