"""Turns of any public conversation, as the memory takes and finds them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from halo_server.domain import Vectors
from halo_server.embedders.hashing import HashingEmbedder
from tests.eval import public
from tests.eval.ranker import KeptVectors, Ranker, sessions
from tests.eval.topics import topic_of_sessions


@dataclass(frozen=True)
class Turn:
    id: str
    session: str
    date: str
    speaker: str
    text: str


TALK = [
    Turn("D1:1", "s1", "1:56 pm on 8 May, 2023", "Ann", "I adopted a puppy from the shelter last week."),
    Turn("D1:2", "s1", "1:56 pm on 8 May, 2023", "Bo", "What is the name of your puppy?"),
    Turn("D1:3", "s1", "1:56 pm on 8 May, 2023", "Ann", "She is called Rufina, after my grandmother."),
    Turn("D2:1", "s2", "", "Bo", "The mortgage papers arrived today."),
    Turn("D2:2", "s2", "", "Ann", "How much is the mortgage on the house?"),
]
OTHER = [Turn("x", "s", "2024-05-01", "user", "My puppy eats the mortgage papers.")]


@pytest.fixture
def ranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranker]:
    monkeypatch.setenv("HALO_EVAL_CACHE", str(tmp_path))
    made = Ranker()
    yield made
    made.close()


def test_the_turns_of_the_last_conversation_are_ranked_and_no_others(ranker: Ranker) -> None:
    ranker.fit(OTHER)
    assert ranker.search("puppy") == ["x"]
    ranker.fit(TALK)
    found = ranker.search("How is Ann's puppy called?")
    assert found[0] == "D1:3"
    assert sorted(found) == [turn.id for turn in TALK]


def test_who_speaks_first_in_a_session_is_its_user_under_the_name_given() -> None:
    first, second = sessions(TALK)
    assert [(one.role, one.name) for one in first.messages] == [
        ("user", "Ann"),
        ("assistant", "Bo"),
        ("user", "Ann"),
    ]
    assert [(one.role, one.name, one.created_at) for one in second.messages] == [
        ("user", "Bo", None),
        ("assistant", "Ann", None),
    ]


def test_who_is_called_user_or_assistant_is_that_and_nameless() -> None:
    spoken = public.roles(["Assistant", "User", "助手", "用户", "Ann", "Bo"])
    assert spoken == [
        ("assistant", None),
        ("user", None),
        ("assistant", None),
        ("user", None),
        ("user", "Ann"),
        ("assistant", "Bo"),
    ]


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00+00:00"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00+00:00"),
        ("28.12.2023, 20:02:02", "2023-12-28T20:02:02+00:00"),
        ("March-15-2024", "2024-03-15T00:00:00+00:00"),
        ("2024年04月01日 周一 08:30", "2024-04-01T08:30:00+00:00"),
        ("2024年4月1日", "2024-04-01T00:00:00+00:00"),
        ("2025-12-15 (Monday)", "2025-12-15T00:00:00+00:00"),
        ("2025-04-01T18:20:00Z", "2025-04-01T18:20:00+00:00"),
        ("2025-04-01T18:20:00+02:00", "2025-04-01T18:20:00+02:00"),
        ("", None),
        ("last Tuesday", None),
    ],
)
def test_a_time_is_read_however_a_set_writes_it(written: str, instant: str | None) -> None:
    assert public.read_time(written) == instant


@pytest.mark.parametrize(
    ("written", "turns"),
    [
        (["D1:3"], ["D1:3"]),
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D9:1 D4:4 D4:6"], ["D9:1", "D4:4", "D4:6"]),
        (["D:11:26", "D30:05", "D17;39"], ["D11:26", "D30:5", "D17:39"]),
        (["D12:3-D12:5", "D12:4"], ["D12:3", "D12:4", "D12:5"]),
        (["D2:3-5"], ["D2:3", "D2:4", "D2:5"]),
        (["D2:30-D3:2"], ["D2:30", "D3:2"]),
        (["D"], []),
    ],
)
def test_evidence_is_read_however_a_labeller_wrote_it(written: list[str], turns: list[str]) -> None:
    assert public.evidence(written) == turns


class CountingEmbedder(HashingEmbedder):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return super().encode(texts)


def test_a_text_is_embedded_once_in_the_life_of_its_file(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    texts = ["one puppy", "two puppies", "one puppy", ""]
    for _ in range(2):
        kept = KeptVectors(embedder, tmp_path)
        np.testing.assert_array_equal(kept.encode(texts), HashingEmbedder().encode(texts))
    assert embedder.asked == ["one puppy", "two puppies", ""]


def test_a_record_cut_short_is_written_anew(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    KeptVectors(embedder, tmp_path).encode(["one puppy", "two puppies"])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    for _ in range(2):
        kept = KeptVectors(embedder, tmp_path)
        np.testing.assert_array_equal(kept.encode(["two puppies"]), HashingEmbedder().encode(["two puppies"]))
    assert embedder.asked == ["one puppy", "two puppies", "two puppies"]


def test_a_sessions_topic_is_the_one_most_of_its_exchanges_have() -> None:
    linked = {("s1", 1): 7, ("s1", 2): 8, ("s1", 3): 8, ("s2", 4): 9, ("s2", 5): 7}
    assert topic_of_sessions(linked) == {"s1": 8, "s2": 9}
