"""The index of one scope: FAISS over its messages and topics, BM25 beside it, and what ranking asks of each message.

Exact and alone: filtering a shared approximate index starves small tenants (10 of 10 neighbours lost, measured). It is a
cache of the store, caught up from the change log before each search; what it cannot follow step by step it rebuilds.
"""

from collections.abc import Collection, Sequence

import faiss
import numpy as np
import numpy.typing as npt

from halo_server.domain import Candidates, Change, Document, Scope, Topic, Vectors
from halo_server.index.base import Source
from halo_server.index.lexical import LexicalIndex
from halo_server.index.lock import ReadWriteLock

__all__ = ["ScopeIndex"]

_TOPIC = 1 << 62  # FAISS knows a message by its place and a topic by this plus its row
_DEPTH = 1024  # nearest messages looked at; a scope of fewer is compared whole
_WORTH = 4096  # a scope of more messages is ranked by those near in meaning, those that cover most, and their neighbours
_EMPTY = 4096  # bytes of an index that holds nothing: end users without memory are asked about too
_MANY = 1000  # more changes than this are slower to follow than to rebuild
_ROW = np.dtype(
    [
        ("message", np.int64),
        ("exchange", np.int64),
        ("topic", np.int64),
        ("previous", np.int64),
        ("following", np.int64),
        ("thread", np.int32),
        ("words", np.float32),
        ("terms", np.float32),
        ("asks", np.bool_),
        ("dated", np.bool_),
        ("personal", np.float32),
        ("specifics", np.float32),
        ("speaker", np.int32),
        ("assistant", np.bool_),
        ("replies", np.bool_),
        ("alike", np.int64),
    ]
)
_KEPT = [name for name in _ROW.names or () if name not in ("previous", "following")]  # not places


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
        # Half as wide numbers rank the same and are read twice as fast (R@10 1.0 of exact at 100,000 vectors, measured).
        half = faiss.IndexScalarQuantizer(
            self._dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        self._vectors = faiss.IndexIDMap2(half)
        self._background = faiss.IndexFlatIP(self._dim)
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
            + int(self._vectors.ntotal) * (2 * self._dim + 40)
            + int(self._background.ntotal) * 4 * self._dim
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
            self._rows[place] = self._row(place, document)
        self._lexical.extend([document.terms for document in documents])
        embedded = [(place, d.vector) for place, d in enumerate(documents, start) if d.vector is not None]
        self._add_vectors(np.array([place for place, _ in embedded]), [vector for _, vector in embedded])
        missing = _DEPTH - int(self._background.ntotal)
        if missing > 0 and embedded:
            self._background.add(np.stack([vector for _, vector in embedded[:missing]]).astype(np.float32))

    def _row(self, place: int, document: Document) -> tuple[object, ...]:
        """Return what the index keeps of a message, and let the one before it know of it."""
        previous = self._places.get(document.parent, -1) if document.parent is not None else -1
        speaker = self._speakers.setdefault(document.speaker, len(self._speakers)) if document.speaker else -1
        assistant = document.role == "assistant" and speaker < 0
        thread, replies = place, False
        if previous >= 0:
            before = self._rows[previous]
            before["following"] = place
            thread = int(before["thread"])
            replies = (int(before["speaker"]), bool(before["assistant"])) != (speaker, assistant)
        traits = document.traits
        return (
            document.message,
            document.exchange,
            document.topic,
            previous,
            -1,
            thread,
            traits.words,
            len(document.terms),
            traits.asks,
            traits.dated,
            traits.personal,
            traits.specifics,
            speaker,
            assistant,
            replies,
            int.from_bytes(document.digest[:8], signed=True),
        )

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

    def search(
        self,
        query: Vectors | None,
        terms: npt.NDArray[np.uint32],
        *,
        only: Collection[int] | None = None,
        include_disabled: bool = False,
    ) -> Candidates:
        """Return what the vectors and the words say of every message that may answer.

        Args:
            query: Shape (1, dim), unit length; None searches by words alone.
            terms: Token ids of the query; none searches by meaning alone.
            only: Rows of the topics to choose from; all when None.
            include_disabled: Choose from disabled topics too.
        """
        with self._lock.reading():
            size, rows = self._size, self._rows[: self._size]
            eligible = self._eligible(rows["topic"], only, include_disabled=include_disabled)
            covered = self._lexical.coverage(terms)
            similarity, meaning, topics = self._near(query, eligible)
            places = _worth(rows, eligible, similarity, covered.scores)
            at = np.full(size + 1, -1, dtype=np.int64)  # one more, for the place that is nowhere
            at[places] = np.arange(len(places))
            taken = rows[places]
            held = {term: at[holders][at[holders] >= 0] for term, holders in covered.holders.items()}
            return Candidates(
                **{name: taken[name] for name in _KEPT},
                previous=at[taken["previous"]],
                following=at[taken["following"]],
                speakers=tuple(self._speakers),
                eligible=eligible[places],
                similarity=similarity[places],
                meaning=meaning[places],
                coverage=covered.scores[places],
                phrases=covered.phrases[places],
                topics=topics,
                shares=covered.shares,
                holders=held,
            )

    def _eligible(
        self, topic: npt.NDArray[np.int64], only: Collection[int] | None, *, include_disabled: bool
    ) -> npt.NDArray[np.bool_]:
        eligible = np.ones(len(topic), dtype=np.bool_)
        if only is not None:
            eligible &= np.isin(topic, list(only))
        if self._hidden and not include_disabled:
            eligible &= ~np.isin(topic, list(self._hidden))
        return eligible

    def _near(
        self, query: Vectors | None, eligible: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], dict[int, float]]:
        """Return the cosines of the nearest messages, all in standard deviations, and the cosines of the topics."""
        similarity = np.full(len(eligible), np.nan, dtype=np.float32)
        unknown = np.zeros(len(eligible), dtype=np.float32)
        if query is None or not self._vectors.ntotal:
            return similarity, unknown, {}
        most = min(int(self._vectors.ntotal), _DEPTH + len(self._topics))
        faiss.omp_set_num_threads(1)  # holds for the calling thread only
        found, ids = self._vectors.search(query, most, params=self._among(eligible))
        is_topic = ids[0] >= _TOPIC
        is_message = (ids[0] >= 0) & ~is_topic  # FAISS fills up with -1
        similarity[ids[0][is_message]] = found[0][is_message]
        topics = dict(zip((ids[0][is_topic] - _TOPIC).tolist(), found[0][is_topic].tolist(), strict=True))
        if not is_message.any():
            return similarity, unknown, topics
        # By FAISS too: a product of numpy's takes every core, and waits for the busy ones.
        usual, _ = self._background.search(query, int(self._background.ntotal))
        # What was not returned lies below the farthest that was.
        filled = np.where(np.isnan(similarity), np.nanmin(similarity), similarity)
        meaning = (filled - usual.mean()) / (usual.std() + 1e-6)
        return similarity, meaning.astype(np.float32), topics

    def _among(self, eligible: npt.NDArray[np.bool_]) -> faiss.SearchParameters | None:
        """Return what keeps FAISS to these messages and the topics: chosen afterwards, few of a large scope would be left."""
        if eligible.all():
            return None
        topics = np.array([_TOPIC + row for row in self._topics], dtype=np.int64)
        kept = np.concatenate([np.flatnonzero(eligible), topics])
        return faiss.SearchParameters(sel=faiss.IDSelectorBatch(kept))  # type: ignore[call-arg]  # the stub has none


def _worth(
    rows: npt.NDArray[np.void],
    eligible: npt.NDArray[np.bool_],
    similarity: npt.NDArray[np.float32],
    coverage: npt.NDArray[np.float32],
) -> npt.NDArray[np.int64]:
    """Return the places of the messages worth ranking, ascending, each with the two before and after it."""
    if len(rows) <= _WORTH:
        return np.arange(len(rows))
    near = np.flatnonzero(~np.isnan(similarity))
    covering = np.argpartition(-(coverage * eligible), _DEPTH)[:_DEPTH]
    places = np.union1d(near, covering[coverage[covering] > 0])
    for _ in range(2):
        places = np.union1d(places, np.concatenate([rows["previous"][places], rows["following"][places]]))
        places = places[places >= 0]
    return places
