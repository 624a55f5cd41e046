"""The project's own questions are answered as well as they were: in English, by kind of question, and in other languages."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from halo_server.__main__ import cli

SETS = Path(__file__).parent / "sets"

FLOORS = {
    "regress": {"R@5": 0.91, "R@10": 0.91, "MRR": 0.81},
    "en": {"R@10": 0.73, "MRR": 0.62},
    "zh": {"R@10": 0.80, "MRR": 0.53},
    "ja": {"R@10": 0.63, "MRR": 0.32},
    "cross": {"R@10": 0.60, "MRR": 0.37},
    "el": {"R@10": 0.93, "MRR": 0.93},
    "hi": {"R@10": 0.93, "MRR": 0.90},
    "vi": {"R@10": 0.93, "MRR": 0.93},
}
"""Least overall figures of each set: what was measured, less two questions of it."""


def test_every_set_has_its_floors() -> None:
    assert sorted(path.stem for path in SETS.glob("*.json")) == sorted(FLOORS)


@pytest.mark.parametrize("name", FLOORS)
def test_the_messages_that_answer_are_found(name: str) -> None:
    answer = CliRunner().invoke(cli, ["eval", str(SETS / f"{name}.json"), "--json"])
    assert answer.exit_code == 0, answer.output
    (measured,) = json.loads(answer.stdout)
    found = {figure: mean for figure, (mean, *_) in measured["groups"][-1]["figures"].items()}
    print(f"\n{name}: " + ", ".join(f"{figure} {found[figure]:.3f}" for figure in found))
    missed = {figure: found[figure] for figure, floor in FLOORS[name].items() if found[figure] < floor}
    assert not missed
