"""How well topics agree with the projects people have: RealMem's conversations, each session about one of a person's projects.

    python -m tests.eval.topics 5:10

A session's topic is the one most of its exchanges are linked to. Scored by the evaluator beside the data; the constants of
the grouping were chosen on the first five people.
"""

import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.eval import published
from tests.eval.ranker import opened, sessions

__all__ = ["main", "scores", "topic_of_sessions"]

FIGURES = ("ARI", "B3-F1", "B3-P", "B3-R", "clusters", "gold")


def topic_of_sessions(exchanges: Mapping[tuple[str, int], int]) -> dict[str, int]:
    """Return each session's topic.

    Args:
        exchanges: (Session, exchange) -> topic; of topics linked equally often, the one linked first is it.
    """
    linked: dict[str, Counter[int]] = {}
    for (session, _), topic in exchanges.items():
        linked.setdefault(session, Counter())[topic] += 1
    return {session: topics.most_common(1)[0][0] for session, topics in linked.items()}


def scores(people: slice) -> list[tuple[str, dict[str, float]]]:
    """Return each person's name and scores."""
    evaluator = published.evaluator()
    found = []
    with tempfile.TemporaryDirectory(prefix="halo-eval-") as made:
        memory, replay = opened(Path(made))
        for person, projects, turns in evaluator.realmem_topics()[people]:
            replay.capture(person, sessions(turns))
            session_of = {turn.id: turn.session for turn in turns}
            linked = {(session_of[turn], one.exchange): one.topic for turn, one in replay.documents()}
            found.append((person, evaluator.cluster_scores(topic_of_sessions(linked), projects)))
            replay.erase()
        memory.close()
    return found


def main(people: str = ":") -> None:
    """Print the scores of each person and their mean; `people` is a slice of the people in the order of their names."""
    measured = scores(published.part(people))
    mean: dict[str, Any] = {name: statistics.fmean(one[name] for _, one in measured) for name in FIGURES}
    print(f"\n## RealMem, topics of sessions against projects, people {people}")
    for person, one in [*measured, ("mean", mean)]:
        print(f"{person:16}", "  ".join(f"{name} {one[name]:.3g}" for name in FIGURES), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
