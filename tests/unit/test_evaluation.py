"""What the figures of a labelled set mean."""

import math

import pytest

from halo_server.evaluation import FIGURES, Row, chance, exchanges, groups, score
from halo_server.labelled import LabelledMessage

RANKED = [f"m{place}" for place in range(1, 31)]


@pytest.mark.parametrize(
    ("relevant", "expected"),
    [
        ({"m1"}, (1, 1, 1, 1, 1, 1)),
        ({"m2", "m11"}, (0, 0.5, 0.5, 1, 0.5, (1 / math.log2(3)) / (1 + 1 / math.log2(3)))),
        ({"m30", "never said"}, (0, 0, 0, 0, 1 / 30, 0)),
        ({"never said"}, (0, 0, 0, 0, 0, 0)),
        (set(RANKED[:20]), (0.05, 0.25, 0.5, 1, 1, 1)),
    ],
)
def test_a_ranking_scores_by_where_the_relevant_messages_stand(
    relevant: set[str], expected: tuple[float, ...]
) -> None:
    assert score(RANKED, frozenset(relevant)) == pytest.approx(dict(zip(FIGURES, expected, strict=True)))


def test_by_chance_a_small_haystack_gives_everything() -> None:
    assert chance(10) == {"R@1": 0.1, "R@5": 0.5, "R@10": 1.0, "R@20": 1.0}


def _row(category: str, *, found: bool, ms: float = 1.0) -> Row:
    ranked = ("m1",) if found else ("m2",)
    return Row("e", "q", category, 100, ("m1",), ranked, score(ranked, frozenset({"m1"})), ms)


def test_every_question_counts_alike_and_false_premises_count_apart() -> None:
    rows = [
        _row("temporal", found=True),
        *(_row("family", found=at == 0, ms=at) for at in range(3)),
        _row("adversarial", found=False, ms=900),
    ]
    found = {group.category: (group.questions, group.figures["R@1"].mean, group.ms) for group in groups(rows)}
    assert found == {
        "adversarial": (1, 0.0, 900),
        "family": (3, pytest.approx(1 / 3), 1),
        "temporal": (1, 1.0, 1.0),
        "all": (4, 0.5, 1.0),
    }
    assert list(found)[-1] == "all"


def test_the_interval_is_as_wide_as_the_questions_disagree() -> None:
    agreed = groups([_row("family", found=True)] * 50)[-1].figures["R@10"]
    assert (agreed.low, agreed.mean, agreed.high) == (1, 1, 1)
    few, many = (
        groups([_row("family", found=at % 2 == 0) for at in range(size)])[-1].figures["R@10"]
        for size in (20, 500)
    )
    assert few.low < many.low < 0.5 < many.high < few.high
    # Half of n coin tosses: the 95 % interval is 0.5 ± 1.96 * 0.5 / √n.
    assert (many.high - many.low) / 2 == pytest.approx(0.98 / math.sqrt(500), rel=0.15)


@pytest.mark.parametrize(
    ("said", "handed_over"),
    [
        ("uaua", ["ua", "uaua"]),
        ("uuaau", ["uuaa", "uuaau"]),
        ("aua", ["a", "aua"]),
        ("uuu", ["u", "uu", "uuu"]),
        ("a", ["a"]),
        ("", []),
    ],
)
def test_an_exchange_ends_where_the_user_speaks_again_after_an_answer(
    said: str, handed_over: list[str]
) -> None:
    names = {"u": "user", "a": "assistant"}
    messages = [
        LabelledMessage.model_validate({"id": str(at), "role": names[role], "content": role})
        for at, role in enumerate(said)
    ]
    assert ["".join(one.content for one in sent) for sent in exchanges(messages)] == handed_over
