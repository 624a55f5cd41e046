"""The format of labelled sets: what is read, and what is refused because a figure would mean something else."""

import json
from pathlib import Path
from typing import Any

import pytest

from halo_server.errors import StartError
from halo_server.labelled import read_set

MESSAGE = {"id": "m1", "role": "user", "content": "I moved to Porto."}
SESSION = {"id": "s1", "occurredAt": "2025-04-01T18:20:00Z", "messages": [MESSAGE, {**MESSAGE, "id": "m2"}]}
QUESTION = {"id": "q1", "question": "Where do I live?", "category": "home", "relevant": ["m1"]}
WHOLE: dict[str, Any] = {"name": "small", "language": "en", "sessions": [SESSION], "questions": [QUESTION]}


def _written(directory: Path, value: object) -> Path:
    path = directory / "set.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_set_holds_one_end_user_or_several(tmp_path: Path) -> None:
    alone = read_set(_written(tmp_path, WHOLE))
    assert [one.name for one in alone.everyone] == ["small"]
    assert [message.id for message in alone.messages] == ["m1", "m2"]
    end_user = {"name": "Ann", "sessions": [SESSION], "questions": [QUESTION]}
    several = {"name": "several", "language": "en", "endUsers": [end_user, {**end_user, "name": "Bo"}]}
    assert [one.name for one in read_set(_written(tmp_path, several)).everyone] == ["Ann", "Bo"]
    both = {**WHOLE, "endUsers": [end_user]}
    assert [one.name for one in read_set(_written(tmp_path, both)).everyone] == ["small", "Ann"]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"sessions": [SESSION, SESSION]}, "the session id s1 stands for two"),
        ({"sessions": [SESSION, {**SESSION, "id": "s2"}]}, "the message id m1 stands for two"),
        ({"questions": [QUESTION, QUESTION]}, "the question id q1 stands for two"),
        ({"questions": [{**QUESTION, "relevant": []}]}, "questions.0.relevant"),
        ({"questions": [{**QUESTION, "relevant": ["m3"]}]}, "question q1 asks for m3, which nobody has said"),
        ({"questions": [{**QUESTION, "before": "m1"}]}, "question q1 asks for m1, which nobody has said"),
        ({"questions": [{**QUESTION, "before": "m3"}]}, "question q1 asks for m1, which nobody has said"),
        ({"questions": [{**QUESTION, "answer": "Porto"}]}, "questions.0.answer"),
        (
            {"sessions": [{**SESSION, "messages": [{**MESSAGE, "role": "tool"}]}]},
            "sessions.0.messages.0.role",
        ),
        ({"endUsers": [WHOLE]}, "endUsers.0.language"),
        (
            {"endUsers": [{k: v for k, v in WHOLE.items() if k != "language"}]},
            "the end user id small stands for two",
        ),
    ],
)
def test_what_would_change_the_meaning_of_a_figure_is_refused_by_name(
    tmp_path: Path, changed: dict[str, Any], says: str
) -> None:
    path = _written(tmp_path, {**WHOLE, **changed})
    with pytest.raises(StartError) as refused:
        read_set(path)
    assert str(refused.value).startswith(f"{path} is no labelled set: ")
    assert says in str(refused.value)
