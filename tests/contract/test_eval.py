"""The command `halo eval`: what it measures, prints and writes, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from halo_server.__main__ import cli

run = CliRunner()


def _message(name: str, content: str, role: str = "user") -> dict[str, str]:
    return {"id": name, "role": role, "content": content}


def _session(name: str, *messages: dict[str, str]) -> dict[str, Any]:
    return {"id": name, "occurredAt": "2025-04-01T18:20:00Z", "messages": list(messages)}


def _question(name: str, text: str, *relevant: str, category: str = "work", **more: str) -> dict[str, Any]:
    return {"id": name, "question": text, "category": category, "relevant": list(relevant), **more}


SESSIONS = [
    _session(
        "s1",
        _message("m1", "My contract with the bank ends in May."),
        _message("m2", "Shall we look for another contract?", "assistant"),
        _message("m3", "First I need a holiday in Bergen."),
        _message("m4", "The ferry is slow but pretty.", "assistant"),
    ),
    _session(
        "s2",
        _message("m5", "The cherry tree in our garden is in blossom."),
        _message("m6", "Enjoy it, blossom is short.", "assistant"),
        _message("m7", ""),
        _message("m8", "Are you still there?", "assistant"),
    ),
    _session("s3", _message("m9", "Our piano needs tuning."), _message("m10", "Our dog is called Rufus.")),
]
QUESTIONS = [
    _question("q1", "When does the contract with the bank end?", "m1"),
    _question("q2", "What blossoms in the garden?", "m5", category="home"),
    _question("q3", "Which contract with the bank was cancelled?", "m5", category="adversarial"),
]
WHOLE = {"name": "small", "language": "en", "sessions": SESSIONS, "questions": QUESTIONS}


def _evaluate(directory: Path, value: object, *options: str) -> Result:
    path = directory / "set.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return run.invoke(cli, ["eval", str(path), *options], env={"HALO_EMBEDDER": "hashing"})


def _rows(directory: Path, value: object, *options: str) -> dict[str, dict[str, Any]]:
    path = directory / "rows.jsonl"
    answer = _evaluate(directory, value, "--rows", str(path), *options)
    assert answer.exit_code == 0, answer.output
    read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {f"{row['endUser']}/{row['id']}": row for row in read}


def test_the_table_shows_each_category_and_what_chance_would_give(tmp_path: Path) -> None:
    answer = _evaluate(tmp_path, WHOLE)
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("small: percent, 95 % intervals; by chance R@1 10.0, R@5 50.0, R@10 100.0")
    assert [line.split()[:3] for line in lines[2:]] == [
        ["adversarial", "1", "0.0"],
        ["home", "1", "100.0"],
        ["work", "1", "100.0"],
        ["all", "2", "100.0"],
    ]


def test_json_holds_the_same_figures(tmp_path: Path) -> None:
    (measured,) = json.loads(_evaluate(tmp_path, WHOLE, "--json").stdout)
    assert measured["name"] == "small"
    overall = measured["groups"][-1]
    assert (overall["category"], overall["questions"]) == ("all", 2)
    assert overall["figures"]["R@1"] == [1.0, 1.0, 1.0]
    assert overall["chance"]["R@5"] == 0.5


@pytest.mark.parametrize("bulk", ["--bulk", "--no-bulk"])
def test_every_question_leaves_a_row_however_the_conversation_was_captured(tmp_path: Path, bulk: str) -> None:
    rows = _rows(tmp_path, WHOLE, bulk)
    asked = rows["small/q1"]
    assert list(rows) == ["small/q1", "small/q2", "small/q3"]
    assert (asked["set"], asked["size"], asked["relevant"]) == ("small", 10, ["m1"])
    assert asked["ranked"][0] == "m1"
    assert {"m7"} == {message["id"] for one in SESSIONS for message in one["messages"]} - set(asked["ranked"])
    assert (asked["R@1"], asked["MRR"], asked["nDCG@10"]) == (1, 1, 1)


def test_a_question_knows_only_what_was_said_before_it(tmp_path: Path) -> None:
    early = _question("early", "Does the cherry tree blossom?", "m1", before="m5")
    row = _rows(tmp_path, {**WHOLE, "questions": [early]})["small/early"]
    assert (row["size"], sorted(row["ranked"])) == (4, ["m1", "m2", "m3", "m4"])


def test_end_users_are_asked_about_alone(tmp_path: Path) -> None:
    other = _session(
        "s1", _message("m1", "The contract with the bank was a mistake."), _message("m2", "Oh.", "assistant")
    )
    end_users = [
        {"name": "Ann", "sessions": SESSIONS, "questions": QUESTIONS[:1]},
        {"name": "Bo", "sessions": [other], "questions": [_question("q1", "contract", "m2")]},
    ]
    rows = _rows(tmp_path, {"name": "two", "endUsers": end_users})
    assert len(rows["Ann/q1"]["ranked"]) == 9
    assert sorted(rows["Bo/q1"]["ranked"]) == ["m1", "m2"]


def test_a_session_said_before_word_by_word_is_found_under_both_names(tmp_path: Path) -> None:
    said = SESSIONS[0]["messages"]
    again = _session("again", *({**message, "id": f"again {message['id']}"} for message in said))
    rows = _rows(tmp_path, {**WHOLE, "sessions": [*SESSIONS, again], "questions": QUESTIONS[:1]})
    assert {"m3", "again m3", "m4", "again m4"} < set(rows["small/q1"]["ranked"])


def test_a_figure_below_what_was_asked_for_ends_with_one(tmp_path: Path) -> None:
    questions = [*QUESTIONS, _question("q4", "contract with the bank", "m10")]
    missed = _evaluate(
        tmp_path, {**WHOLE, "questions": questions}, "--at-least", "R@1=0.8", "--at-least", "R@20=0.5"
    )
    assert missed.exit_code == 1
    assert missed.stderr.splitlines()[-1] == "small: R@1 is 0.667, below 0.8."
    assert _evaluate(tmp_path, WHOLE, "--at-least", "MRR=1").exit_code == 0


@pytest.mark.parametrize("option", ["R@7=0.5", "R@10", "R@10=80", "R@10=much"])
def test_a_figure_that_cannot_be_asked_for_is_refused_before_anything_is_measured(
    tmp_path: Path, option: str
) -> None:
    answer = _evaluate(tmp_path, WHOLE, "--at-least", option)
    assert answer.exit_code == 2
    assert "R@10=0.8" in answer.output


def test_a_file_that_is_no_set_ends_with_one_line(tmp_path: Path) -> None:
    answer = _evaluate(tmp_path, {"name": "x", "sessions": 3})
    assert (answer.exit_code, len(answer.output.splitlines())) == (1, 1)
    assert "is no labelled set: sessions:" in answer.output
    nowhere = run.invoke(cli, ["eval", str(tmp_path / "nowhere.json")])
    assert (nowhere.exit_code, nowhere.output) == (
        1,
        f"Cannot use {tmp_path / 'nowhere.json'}: No such file or directory.\n",
    )
