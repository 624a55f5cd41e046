"""Rank turns as an end user's memory would: for programs that score anything with `fit(turns)` and `search(question)`.

Turns have an id, a session, a date, a speaker and a text, in the order they were said. They are captured through the services
every door calls and looked up through them, in a data directory that goes with the process. Vectors are kept on disk, under
`HALO_EVAL_CACHE` or the system's directory for temporary files: the same turns are embedded once.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # loaded by its path, from anywhere

from halo_server.app import Memory, open_memory
from halo_server.config import Settings
from halo_server.domain import Vectors
from halo_server.embedders.base import Embedder
from halo_server.evaluation import Replay
from halo_server.labelled import Session
from halo_server.services.vectors import QueryVectors
from tests.eval import public

__all__ = ["KeptVectors", "Ranker", "Turn", "kept_vectors", "opened", "sessions"]


class Turn(Protocol):
    """What somebody said."""

    @property
    def id(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def date(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def text(self) -> str: ...


class KeptVectors:
    """An embedder that reads each text once in its life.

    The file holds one record a text, key and vector together: a process that dies in the middle spoils its last record alone.
    """

    def __init__(self, embedder: Embedder, directory: Path) -> None:
        self._embedder = embedder
        self.id = embedder.id
        self.dim = embedder.dim
        self.is_local = embedder.is_local
        self._record = np.dtype([("key", "V16"), ("vector", "<f4", (self.dim,))])
        self._path = directory / f"{self.id}.vectors"
        directory.mkdir(parents=True, exist_ok=True)
        self._path.touch()
        whole = self._path.stat().st_size // self._record.itemsize
        os.truncate(self._path, whole * self._record.itemsize)
        records = np.fromfile(self._path, dtype=self._record, count=whole)
        self._kept = {bytes(record["key"]): record["vector"] for record in records}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text; see the port."""
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._kept}
        if missing:
            records = np.empty(len(missing), dtype=self._record)
            records["key"] = [np.void(key) for key in missing]
            records["vector"] = self._embedder.encode(list(missing.values()))
            self._kept |= zip(missing, records["vector"], strict=True)
            with self._path.open("ab") as file:
                file.write(records.tobytes())
        return np.stack([self._kept[key] for key in keys]) if keys else np.zeros((0, self.dim), np.float32)


def kept_vectors(embedder: Embedder) -> KeptVectors:
    """Return the embedder with its vectors kept where the environment says."""
    return KeptVectors(embedder, Path(os.environ.get("HALO_EVAL_CACHE") or _TEMPORARY / "halo-eval-vectors"))


_TEMPORARY = Path(tempfile.gettempdir())


def opened(directory: Path) -> tuple[Memory, Replay]:
    """Return a memory in `directory`, to be closed, and what replays conversations in it."""
    settings = Settings(data=directory, embedder="use")
    memory = open_memory(settings)
    embedder = kept_vectors(memory.services.capture.embedder)
    capture = replace(memory.services.capture, embedder=embedder)
    retrieve = replace(memory.services.retrieve, vectors=QueryVectors(embedder, settings.query_cache))
    return memory, Replay(settings, memory.store, capture, retrieve)


def sessions(turns: Sequence[Turn]) -> list[Session]:
    """Return the turns as sessions; one that was left and taken up again is two."""
    found: list[Session] = []
    for name, run in groupby(turns, key=lambda turn: turn.session):
        said = ((turn.id, turn.speaker, turn.text, turn.date) for turn in run)
        plain: dict[str, Any] = public.session(name, "", said)
        found.append(Session.model_validate(plain))
    return found


class Ranker:
    """Index the turns of one conversation, then rank them for each question."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="halo-eval-")
        self._memory, self._replay = opened(Path(self._directory.name))
        self._conversations = 0

    def fit(self, turns: Sequence[Turn]) -> None:
        """Capture the turns for an end user of their own, in place of the last one's."""
        if self._conversations:
            self._replay.erase()
        self._conversations += 1
        self._replay.capture(f"conversation {self._conversations}", sessions(turns))

    def search(self, question: str) -> list[str]:
        """Return at most 200 ids of turns, best first."""
        return self._replay.search(question)

    def close(self) -> None:
        """Let go of the directory."""
        self._memory.close()
        self._directory.cleanup()
