"""Each public set, read: the same turns, questions and evidence as their own evaluator reads."""

from pathlib import Path

import pytest

from halo_server.labelled import LabelledSet
from tests.eval import public, published
from tests.parts import require


@pytest.mark.data
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # the evaluator leaves its files open
@pytest.mark.parametrize(
    ("name", "path", "theirs"),
    [
        ("locomo", "locomo/locomo10.json", "locomo"),
        ("realtalk", "realtalk/data", "realtalk"),
        ("beam", "beam/chats/100K", "beam100k"),
        ("realmem", "realmem/dataset", "realmem"),
        ("bfcl", "bfcl_v4_memory", "bfcl"),
    ],
)
def test_a_set_is_read_as_its_evaluator_reads_it(name: str, path: str, theirs: str) -> None:
    where = published.DATA / path
    require(name, published.EVALUATOR.exists() and where.exists(), published.CURE)
    read = LabelledSet.model_validate(public.READERS[name](where)).everyone
    expected = published.evaluator().LOADERS[theirs]()
    assert [[(one.id, one.content) for one in each.messages] for each in read] == [
        [(turn.id, turn.text) for turn in each.turns] for each in expected
    ]
    assert [[(one.question, set(one.relevant), one.before) for one in each.questions] for each in read] == [
        [
            (one.text, one.gold, None if one.before is None else each.turns[one.before].id)
            for one in each.questions
        ]
        for each in expected
    ]
    times = [
        one.created_at or session.occurred_at
        for each in read
        for session in each.sessions
        for one in session.messages
    ]
    dates = [turn.date for each in expected for turn in each.turns]
    assert [time is not None for time in times] == [date != "" for date in dates]


@pytest.mark.data
def test_a_story_of_memdaily_stands_among_messages_of_others() -> None:
    where: Path = published.DATA / "memdaily_zh" / "messages_and_QAs"
    require("MemDaily", where.exists(), published.CURE)
    drawn, again = (LabelledSet.model_validate(public.memdaily(where, asked=3, noise=50)) for _ in range(2))
    assert drawn == again
    assert len(drawn.everyone) == 3
    for each in drawn.everyone:
        own = {message.id for message in each.sessions[0].messages}
        assert len(each.messages) == len(own) + 50
        assert all(own.issuperset(one.relevant) for one in each.questions)
        assert {message.role for message in each.messages} == {"user"}
