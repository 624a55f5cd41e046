"""The turns that answer a question, on real conversations: better than words alone, far better than chance."""

import random
from pathlib import Path

import numpy as np
import pytest

import halo_server
from halo_server.config import Settings
from halo_server.index.lexical import LexicalIndex
from halo_server.text import term_ids
from tests.parts import require
from tests.quality import locomo

ENTRIES = 10
QUESTIONS = 40


@pytest.mark.data
@pytest.mark.parametrize("name", ["conv-26", "conv-44"])
def test_ten_entries_hold_three_fifths_of_the_answers_and_more_than_words_alone(
    name: str, tmp_path: Path
) -> None:
    require("LoCoMo", locomo.DATA.exists(), "locomo10.json of snap-research/locomo beside the checkout")
    sample = locomo.conversations()[name]
    asked = locomo.questions(sample, QUESTIONS)
    settings = Settings(max_result_chars=1_000_000)
    with halo_server.embedded(tmp_path, project=locomo.PROJECT, settings=settings) as client:
        added = locomo.capture_all(client, sample)
        found = [
            _turns(added, [entry["id"] for entry in locomo.retrieve(client, name, q.text)]) for q in asked
        ]
    recall = locomo.recall(asked, found)
    words_alone = locomo.recall(asked, _words_alone(sample, added, asked))
    chance = locomo.recall(asked, _by_chance(added, asked))
    print(
        f"\n{name}: HALO {recall:.1f} %, BM25 {words_alone:.1f} %, random {chance:.1f} % of {len(asked)} questions"
    )
    assert recall > words_alone
    assert recall >= 60


@pytest.mark.data
def test_sending_the_whole_history_again_takes_no_more_room(tmp_path: Path) -> None:
    require("LoCoMo", locomo.DATA.exists(), "locomo10.json of snap-research/locomo beside the checkout")
    samples = locomo.conversations()
    alone, again = (_room(tmp_path / kind, samples, history=kind == "again") for kind in ("alone", "again"))
    print(f"\n500 exchanges: {alone:,} bytes alone, {again:,} bytes with history: {again / alone:.3f} times")
    assert again <= 1.3 * alone


def _turns(added: dict[str, list[str]], entries: list[str]) -> list[str]:
    return [turn for entry in entries for turn in added[entry]]


def _words_alone(sample: dict, added: dict[str, list[str]], asked: list[locomo.Question]) -> list[list[str]]:
    """BM25 over the same entries, each as one document of all it added."""
    said = {
        turn.id: f"{turn.message['name']}: {turn.message['content']}"
        for s in locomo.sessions(sample)
        for turn in s
    }
    entries = list(added)
    index = LexicalIndex()
    index.extend([term_ids(" ".join(said[turn] for turn in added[entry])) for entry in entries])
    ranked = (np.argsort(-index.coverage(term_ids(q.text)).scores, kind="stable")[:ENTRIES] for q in asked)
    return [_turns(added, [entries[place] for place in best]) for best in ranked]


def _by_chance(added: dict[str, list[str]], asked: list[locomo.Question]) -> list[list[str]]:
    chance = random.Random(7)
    return [_turns(added, chance.sample(list(added), ENTRIES)) for _ in asked]


def _room(directory: Path, samples: dict[str, dict], *, history: bool) -> int:
    """Return the size of the data directory after 500 captures and a checkpoint."""
    left = 500
    with halo_server.embedded(directory, project=locomo.PROJECT) as client:
        for name, sample in samples.items():
            for session in locomo.sessions(sample):
                for begin, end in locomo.exchanges(session):
                    if not left:
                        break
                    left -= 1
                    messages = [turn.message for turn in session[0 if history else begin : end]]
                    sent = {
                        "projectKey": locomo.PROJECT,
                        "endUserKey": name,
                        "sessionData": {"messages": messages},
                    }
                    headers = {"Idempotency-Key": f"{name}-{session[begin].id}"}
                    assert (
                        client.post("/api/v1/memory/capture", json=sent, headers=headers).status_code == 201
                    )
    # Closing the last connection checkpoints the write-ahead log into the database.
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
