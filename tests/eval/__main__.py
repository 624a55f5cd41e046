"""What `make eval` measures of the public sets, by the definitions of their own evaluator.

    python -m tests.eval                  # everything: a quarter of an hour
    python -m tests.eval locomo topics

Where constants were chosen on some conversations of a set, the others are reported.
"""

import random
import sys
from collections.abc import Sequence
from typing import Any

from tests.eval import published, topics
from tests.eval.ranker import Ranker

SETS = {
    "locomo": "5:10",
    "realtalk": "5:10",
    "beam100k": "5:10",
    "realmem": "5:10",
    "bfcl": ":",
    "memdaily_pool": ":",
}
"""The evaluator's names of the sets, and which of their conversations are reported."""

_DRAWN = 300  # of MemDaily's three thousand stories
_SEED = 13


def _report(name: str, evaluator: Any, ranker: Ranker) -> None:
    conversations = evaluator.LOADERS[name]()[published.part(SETS[name])]
    if name == "memdaily_pool":
        conversations = random.Random(_SEED).sample(conversations, _DRAWN)
    measured = evaluator.evaluate(conversations, ranker)
    evaluator.table(name, "HALO", *measured, name in evaluator.SESSION_ONLY)
    sys.stdout.flush()


def main(asked: Sequence[str]) -> int:
    """Report the sets asked for, all when none is; return 0."""
    if not published.EVALUATOR.exists():
        print(f"There are no public sets here; {published.CURE}.")
        return 0
    evaluator, ranker = published.evaluator(), Ranker()
    for name in SETS:
        if not asked or name in asked:
            _report(name, evaluator, ranker)
    if not asked or "topics" in asked:
        topics.main("5:10")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
