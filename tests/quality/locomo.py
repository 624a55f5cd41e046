"""LoCoMo's conversations as captures, and its questions as retrievals, through the HALO door.

Public data beside the checkout (snap-research/locomo); never part of the project.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

DATA = Path(__file__).parents[3] / "shared" / "data" / "locomo" / "locomo10.json"
PROJECT = "locomo"


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation between two people."""

    id: str
    message: dict[str, str]


@dataclass(frozen=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    evidence: tuple[str, ...]


def conversations() -> dict[str, dict]:
    """Return the conversations by their ids."""
    return {sample["sample_id"]: sample for sample in json.loads(DATA.read_text(encoding="utf-8"))}


def sessions(sample: dict) -> Iterator[list[Turn]]:
    """Yield each session's turns; who speaks first is the user."""
    talk = sample["conversation"]
    number = 1
    while f"session_{number}_date_time" in talk:
        started = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        said = talk.get(f"session_{number}", [])
        first = said[0]["speaker"] if said else ""
        yield [
            Turn(
                turn["dia_id"],
                {
                    "role": "user" if turn["speaker"] == first else "assistant",
                    "name": turn["speaker"],
                    "content": turn["text"]
                    + (f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""),
                    "timestamp": started.isoformat(),
                },
            )
            for turn in said
        ]
        number += 1


def exchanges(session: list[Turn]) -> Iterator[tuple[int, int]]:
    """Yield where each exchange begins and ends: it closes when the first speaker speaks again."""
    begin = 0
    for at in range(1, len(session) + 1):
        ends = at == len(session) or (
            session[at].message["role"] == "user" and session[at - 1].message["role"] == "assistant"
        )
        if ends:
            yield begin, at
            begin = at


def questions(sample: dict, limit: int) -> list[Question]:
    """Return the first questions of categories 1-4 that name their evidence."""
    found = []
    for asked in sample["qa"]:
        evidence = re.findall(r"D\d+:\d+", " ".join(asked.get("evidence", [])))
        if asked["category"] in (1, 2, 3, 4) and evidence:
            found.append(Question(asked["question"], tuple(evidence)))
    return found[:limit]


def capture_all(client: httpx.Client, sample: dict) -> dict[str, list[str]]:
    """Capture every exchange, the session's history sent again each time; return entry id -> turns it added."""
    added: dict[str, list[str]] = {}
    for session in sessions(sample):
        for begin, end in exchanges(session):
            messages = [turn.message for turn in session[:end]]
            sent = {
                "projectKey": PROJECT,
                "endUserKey": sample["sample_id"],
                "sessionData": {"messages": messages},
            }
            if messages[-1]["role"] == "assistant":
                sent |= {"sessionData": {"messages": messages[:-1]}, "response": messages[-1]}
            answer = client.post("/api/v1/memory/capture", json=sent)
            assert answer.status_code == 201, answer.text
            added[answer.json()["rawEntryId"]] = [turn.id for turn in session[begin:end]]
    return added


def retrieve(client: httpx.Client, end_user: str, query: str, limit: int = 10) -> list[dict]:
    """Return the entries for a question, best first."""
    arguments = {"sessionData": {}, "query": query, "limit": limit}
    sent = {"projectKey": PROJECT, "endUserKey": end_user, "arguments": arguments}
    answer = client.post("/api/v1/memory/functions/halo_retrieve_end_user_memory", json=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()["rawEntries"]


def recall(asked: list[Question], ranked: list[list[str]]) -> float:
    """Return the mean share of each question's evidence among the turns found, in percent."""
    shares = [
        sum(turn in found for turn in question.evidence) / len(question.evidence)
        for question, found in zip(asked, ranked, strict=True)
    ]
    return 100 * sum(shares) / len(shares)
