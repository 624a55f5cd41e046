"""An answer fits: whole entries go first, from the worst."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.api.budget import byte_size, fit, size

entries = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text("abc", min_size=1, max_size=8),
            "text": st.text(max_size=200),
            "more": st.lists(st.dictionaries(st.sampled_from("xy"), st.text(max_size=90)), max_size=3),
        }
    ),
    max_size=6,
)


@given(given_entries=entries, room=st.integers(0, 900))
def test_the_first_that_fit_are_kept_and_only_a_lone_one_is_cut(
    given_entries: list[dict[str, Any]], room: int
) -> None:
    before = copy.deepcopy(given_entries)
    kept, cut = fit(given_entries, room)

    assert given_entries == before
    assert (kept == given_entries) == (not cut)
    if len(kept) > 1 or not cut:
        assert kept == given_entries[: len(kept)]
    if len(kept) > 1:
        assert size(kept) <= room + 1
    if cut and len(kept) < len(given_entries) and len(kept) > 1:
        assert size(given_entries[: len(kept) + 1]) > room
    assert bool(kept) == bool(given_entries)


def test_a_lone_entry_is_cut_inside_its_longest_text_and_says_so() -> None:
    kept, cut = fit([{"id": "e1", "text": 900 * "x", "n": 7}], 200)

    assert cut
    assert kept[0]["id"] == "e1"
    assert kept[0]["truncated"] is True
    assert kept[0]["text"].endswith("x…")
    assert size(kept[0]) <= 200


def test_what_cannot_be_cut_any_more_stays() -> None:
    assert fit([{"n": list(range(99))}], 10) == ([{"n": list(range(99)), "truncated": True}], True)
    assert fit([{"text": 32 * "x"}], 10) == ([{"text": 32 * "x", "truncated": True}], True)
    assert fit([], 10) == ([], False)


def test_state_goes_before_words_and_the_oldest_messages_go_last() -> None:
    said = [{"role": "user", "content": f"line {n}"} for n in range(40)]
    entry = {"id": "e1", "requestRaw": {"messages": said, "cart": list(range(500)), "plan": "gold"}}

    kept, cut = fit([entry], 600)

    assert cut
    assert size(kept[0]) <= 600
    assert kept[0]["requestRaw"].keys() == {"messages", "plan"}
    left = kept[0]["requestRaw"]["messages"]
    assert left == said[-len(left) :]


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def exchange(*messages: Any, answer: Any = "Noted.", **state: Any) -> dict[str, Any]:
    """Return an entry as the budget meets it."""
    return {
        "id": "e" * 32,
        "topic": {"topicKey": "weekly_reports_in_the_morning_and_short_ones"},
        "occurredAt": "2027-01-15T08:00:00.000Z",
        "requestRaw": {**state, "messages": list(messages)},
        "responseRaw": {"role": "assistant", "content": answer},
    }


def test_of_many_messages_the_newest_that_fit_stay_whole() -> None:
    messages = [said(f"{n} " + "word " * 24) for n in range(4_000)]

    [kept], cut = fit([exchange(*messages)], 24_000)

    left = kept["requestRaw"]["messages"]
    assert cut
    assert left == messages[-len(left) :]
    assert kept["responseRaw"] == exchange()["responseRaw"]
    assert 24_000 - size(messages[0]) - 1 < size(kept) <= 24_000


def test_a_long_text_is_shortened_before_anything_older_or_shorter_goes() -> None:
    entry = exchange(said(20_000 * "x"), said("short"), cart=[1, 2, 3], answer=9_000 * "y")

    [kept], _ = fit([entry], 5_000)

    first, second = kept["requestRaw"]["messages"]
    assert (second, kept["requestRaw"]["cart"]) == (said("short"), [1, 2, 3])
    lengths = len(first["content"]), len(kept["responseRaw"]["content"])
    assert lengths[0] == lengths[1] > 2_000
    assert 4_990 < size(kept) <= 5_000


@pytest.mark.parametrize("text", ["x", "é", "🙂", '"', "\n"])
@pytest.mark.parametrize("measure", [size, byte_size])
def test_what_is_cut_fits_closely_however_its_characters_are_counted(text: str, measure: Any) -> None:
    [kept], _ = fit([exchange(said(10_000 * text))], 3_000, measure)

    assert 2_900 < measure(kept) <= 3_000


def test_the_best_entry_is_cut_also_when_others_come_after_it() -> None:
    best, other = exchange(said(9_000 * "x")), exchange(said("short"))

    assert fit([best, other], 1_000) == fit([best], 1_000)


def test_what_names_an_entry_is_never_cut() -> None:
    entry = exchange(said(900 * "x"))

    [kept], _ = fit([entry], 10)

    names = ("id", "topic", "occurredAt")
    assert [kept[name] for name in names] == [entry[name] for name in names]


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        (exchange({"role": "user", "content": list(range(9_000))}), exchange()),
        (exchange(said("Hi"), answer=list(range(9_000))), {**exchange(said("Hi")), "responseRaw": None}),
        (exchange(said("Hi"), **{f"key {n}": "v" for n in range(9_000)}), exchange(said("Hi"))),
        (
            exchange({"role": "user", "content": list(range(9_000))}, answer=list(range(9_000))),
            {**exchange(), "responseRaw": None},
        ),
    ],
)
def test_what_holds_no_text_to_cut_is_left_out(entry: dict[str, Any], left: dict[str, Any]) -> None:
    assert fit([entry], 1_000) == ([{**left, "truncated": True}], True)


def test_the_work_grows_with_the_entry_and_not_with_its_square() -> None:
    """Counted by what is measured: characters of JSON, the dearest part of the work."""

    def work(messages: int) -> int:
        measured = 0

        def counting(value: Any) -> int:
            nonlocal measured
            measured += size(value)
            return size(value)

        entry = exchange(*(said(f"{n} " + "word " * 24) for n in range(messages)))
        fit([entry], 24_000, counting)
        return measured

    assert work(8_000) < 9 * work(1_000)


@given(
    given_entry=st.builds(
        exchange,
        st.builds(said, st.text(max_size=600)),
        st.builds(said, st.text(max_size=600)),
        answer=st.text(max_size=600) | st.lists(st.integers(0, 99), max_size=90),
        plan=st.text(max_size=90) | st.lists(st.text(max_size=90), max_size=9),
    ),
    room=st.integers(250, 2_500),
)
def test_a_lone_entry_always_fits(given_entry: dict[str, Any], room: int) -> None:
    before = copy.deepcopy(given_entry)
    [kept], cut = fit([given_entry], room)

    assert given_entry == before
    assert size(kept) <= room
    assert cut == (kept != given_entry)
