"""An answer fits: whole entries go first, from the worst."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from halo_server.api.budget import fit, size

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
