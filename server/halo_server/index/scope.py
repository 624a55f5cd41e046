"""The index of one scope: FAISS over its messages and topics, BM25 beside it, and what ranking asks of each message.

Exact and alone: filtering a shared approximate index starves small tenants (10 of 10 neighbours lost, measured). It is a
cache of the store, caught up from the change log before each search; what it cannot follow step by step it rebuilds.
"""

from collections.abc import Sequence

import faiss
import numpy as np
import numpy.typing as npt

from halo_server.domain import Candidates, Change, Document, Scope, Topic, Vectors
from halo_server.index.base import Source
from halo_server.index.lexical import LexicalIndex
from halo_server.index.lock import ReadWriteLock

__all__ = ["ScopeIndex"]

_TOPIC = 1 << 62  # FAISS knows a message by its place and a topic by this plus its row
_DEPTH = 256  # nearest messages looked at: scores standardised over 100 or over all rank alike (R@10 within 0.5, measured)
_EMPTY = 4096  # bytes of an index that holds nothing: end users without memory are asked about too
_MANY = 1000  # more changes than this are slower to follow than to rebuild
_ROW = np.dtype(
    [
        ("exchange", np.int64),
        ("topic", np.int64),
        ("previous", np.int64),
        ("words", np.float32),
        ("asks", np.bool_),
        ("speaker", np.int32),
    ]
)


class ScopeIndex:
    """Searches one scope's messages and topics.

    Args:
        dim: Width of the vectors, from the embedder.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._lock = ReadWriteLock()
        self._clear(0)

    def _clear(self, position: int) -> None:
        self.position = position
        self._vectors = faiss.IndexIDMap2(faiss.IndexFlatIP(self._dim))
        self._lexical = LexicalIndex()
        self._rows = np.empty(16, dtype=_ROW)
        self._size = 0
        self._places: dict[int, int] = {}
        self._exchanges: set[int] = set()
        self._topics: set[int] = set()
        self._hidden: set[int] = set()
        self._speakers: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        """About how much memory this index holds."""
        objects = 120 * (len(self._places) + len(self._exchanges))
        return (
            _EMPTY
            + int(self._vectors.ntotal) * (4 * self._dim + 40)
            + self._rows.nbytes
            + self._lexical.nbytes
            + objects
        )

    @property
    def speakers(self) -> tuple[str, ...]:
        """Who is named as having said something."""
        with self._lock.reading():
            return tuple(self._speakers)

    def catch_up(self, scope: Scope, source: Source) -> bool:
        """Bring the index to the moment `source` shows; return whether anything changed. Never goes back in time."""
        if not source.changes_since(scope, self.position, limit=1):
            return False
        with self._lock.writing():
            changes = source.changes_since(scope, self.position, limit=_MANY + 1)
            if not self.position or not self._follows(changes):
                self._rebuild(scope, source)
                return True
            # Each once: an exchange that was added and then moved stands in the log twice.
            added = dict.fromkeys(change.target for change in changes if change.kind == "exchange")
            self._add(source.documents(scope, list(added)))
            self._replace_topics(
                scope, source, {change.target for change in changes if change.kind == "topic"}
            )
            self.position = changes[-1].seq if changes else self.position
            return True

    def _follows(self, changes: Sequence[Change]) -> bool:
        """Whether every change adds an exchange or alters a topic; anything else takes something away."""
        if len(changes) > _MANY:
            return False
        return all(
            change.kind == "topic" or (change.kind == "exchange" and change.target not in self._exchanges)
            for change in changes
        )

    def _rebuild(self, scope: Scope, source: Source) -> None:
        self._clear(source.position(scope))
        self._add(source.documents(scope))
        self._put_topics(source.topics(scope))

    def _add(self, documents: Sequence[Document]) -> None:
        if not documents:
            return
        start, self._size = self._size, self._size + len(documents)
        if self._size > len(self._rows):
            # A new array, so that searches under way keep theirs.
            self._rows = np.concatenate([self._rows, np.empty(max(self._size, len(self._rows)), dtype=_ROW)])
        for place, document in enumerate(documents, start):
            self._places[document.message] = place
            self._exchanges.add(document.exchange)
            previous = self._places.get(document.parent, -1) if document.parent is not None else -1
            speaker = (
                self._speakers.setdefault(document.speaker, len(self._speakers)) if document.speaker else -1
            )
            row = (document.exchange, document.topic, previous, document.words, document.asks, speaker)
            self._rows[place] = row
        self._lexical.extend([document.terms for document in documents])
        embedded = [(place, d.vector) for place, d in enumerate(documents, start) if d.vector is not None]
        self._add_vectors(np.array([place for place, _ in embedded]), [vector for _, vector in embedded])

    def _replace_topics(self, scope: Scope, source: Source, rows: set[int]) -> None:
        stale = [_TOPIC + row for row in rows & self._topics]
        if stale:
            self._vectors.remove_ids(faiss.IDSelectorBatch(np.array(stale, dtype=np.int64)))
            self._topics -= rows
        self._put_topics(source.topics_by_row(scope, sorted(rows)))

    def _put_topics(self, topics: Sequence[Topic]) -> None:
        self._hidden -= {topic.row for topic in topics}
        self._hidden |= {topic.row for topic in topics if not topic.enabled}
        live = [t for t in topics if t.enabled and t.exchanges and t.vector_sum.shape == (self._dim,)]
        self._topics |= {topic.row for topic in live}
        sums = [topic.vector_sum / (np.linalg.norm(topic.vector_sum) or 1.0) for topic in live]
        self._add_vectors(np.array([_TOPIC + topic.row for topic in live]), sums)

    def _add_vectors(self, ids: npt.NDArray[np.int64], vectors: Sequence[npt.NDArray[np.float32]]) -> None:
        if len(vectors):
            self._vectors.add_with_ids(np.stack(vectors).astype(np.float32), ids.astype(np.int64))

    def search(self, query: Vectors | None, terms: npt.NDArray[np.uint32]) -> Candidates:
        """Return what the vectors and the words say of every message.

        Args:
            query: Shape (1, dim), unit length; None searches by words alone.
            terms: Token ids of the query; none searches by meaning alone.
        """
        with self._lock.reading():
            size, rows = self._size, self._rows[: self._size]
            similarity = np.full(size, np.nan, dtype=np.float32)
            topics: dict[int, float] = {}
            if query is not None and self._vectors.ntotal:
                most = min(int(self._vectors.ntotal), _DEPTH + len(self._topics))
                faiss.omp_set_num_threads(1)  # holds for the calling thread only
                found, ids = self._vectors.search(query, most)
                is_topic = ids[0] >= _TOPIC
                similarity[ids[0][~is_topic]] = found[0][~is_topic]
                topics = dict(
                    zip((ids[0][is_topic] - _TOPIC).tolist(), found[0][is_topic].tolist(), strict=True)
                )
            coverage, holders = self._lexical.coverage(terms)
            return Candidates(
                exchange=rows["exchange"],
                topic=rows["topic"],
                previous=rows["previous"],
                words=rows["words"],
                asks=rows["asks"],
                speaker=rows["speaker"],
                speakers=tuple(self._speakers),
                similarity=similarity,
                coverage=coverage,
                topics=topics,
                hidden=frozenset(self._hidden),
                holders=holders,
            )
