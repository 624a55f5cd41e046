"""BM25 over token ids, in memory, growing: the words' half of a scope's index.

Postings are numpy arrays that double when full, so that a query adds arrays instead of looping over documents (a Python
loop took 17 ms a query at 6,000 messages, measured; bm25s, the library weighed, cannot add a document without indexing all
again).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["LexicalIndex"]

K1 = 0.9
B = 0.4
"""Constants of BM25; measured best for chat turns on LoCoMo conversations 1-5, against the usual 1.2 and 0.75."""

_Ids = npt.NDArray[np.uint32]


class _Posting:
    """The documents that hold one term, and how often: two arrays that grow together."""

    __slots__ = ("_counts", "_documents", "_size")

    def __init__(self, documents: npt.NDArray[np.int32], counts: npt.NDArray[np.float32]) -> None:
        self._documents, self._counts, self._size = documents, counts, len(documents)

    def append(self, document: int, count: int) -> None:
        if self._size == len(self._documents):
            self._documents = np.resize(self._documents, 2 * self._size + 2)
            self._counts = np.resize(self._counts, 2 * self._size + 2)
        self._documents[self._size], self._counts[self._size] = document, count
        self._size += 1

    @property
    def documents(self) -> npt.NDArray[np.int32]:
        return self._documents[: self._size]

    @property
    def counts(self) -> npt.NDArray[np.float32]:
        return self._counts[: self._size]


class LexicalIndex:
    """Which documents hold which terms, and how often.

    Documents are numbered 0, 1, 2, … in the order they are added; none is ever removed, an erasure rebuilds the scope.
    Not safe for a writer beside readers: the owner locks.
    """

    def __init__(self) -> None:
        self._postings: dict[int, _Posting] = {}
        self._lengths = np.empty(0, dtype=np.float32)
        self._pairs = 0

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def nbytes(self) -> int:
        """About how much memory it holds: 12 bytes a posting with its spare room, 400 for the objects of a term."""
        return 12 * self._pairs + 400 * len(self._postings) + self._lengths.nbytes

    def extend(self, documents: Sequence[_Ids]) -> None:
        """Add documents, each as its term ids with repetition."""
        first = len(self)
        lengths = np.array([len(terms) for terms in documents], dtype=np.float32)
        self._lengths = np.concatenate([self._lengths, lengths])
        if not first:
            self._build(documents)
            return
        for number, terms in enumerate(documents, first):
            for term, count in zip(*np.unique(terms, return_counts=True), strict=True):
                posting = self._postings.get(int(term))
                if posting is None:
                    posting = self._postings[int(term)] = _Posting(
                        np.empty(0, np.int32), np.empty(0, np.float32)
                    )
                posting.append(number, count)
                self._pairs += 1

    def _build(self, documents: Sequence[_Ids]) -> None:
        """Index the first documents all at once, by sorting: thirty times faster than one by one."""
        lengths = [len(terms) for terms in documents]
        numbers = np.repeat(np.arange(len(documents), dtype=np.uint64), lengths)
        terms = np.concatenate([np.empty(0, np.uint32), *documents]).astype(np.uint64)
        pairs, counts = np.unique(terms << np.uint64(32) | numbers, return_counts=True)
        self._pairs = len(pairs)
        holders = (pairs & np.uint64(0xFFFF_FFFF)).astype(np.int32)
        distinct, starts = np.unique(pairs >> np.uint64(32), return_index=True)
        for term, start, end in zip(
            distinct.tolist(), starts, np.append(starts, len(pairs))[1:], strict=True
        ):
            part = slice(int(start), int(end))
            self._postings[term] = _Posting(holders[part], counts[part].astype(np.float32))

    def coverage(self, query: _Ids) -> tuple[npt.NDArray[np.float32], Mapping[int, npt.NDArray[np.int32]]]:
        """Return how much of the query each document covers, and which documents hold each of its terms.

        Returns:
            Shape (n,), float32, in [0, 1]: BM25 without its (k1 + 1) factor, over the sum of the query terms' weights. A
            term that no document holds has the greatest weight, so that one stray common word stays a small part of a
            long question. And the documents of each held term, ascending.

        Source:
            Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; the normalisation was
            measured: it keeps R@1 of paraphrases at .95 where a z-score of BM25 drops it to .65.
        """
        scores = np.zeros(len(self), dtype=np.float32)
        holders: dict[int, npt.NDArray[np.int32]] = {}
        average = float(self._lengths.mean()) if len(self) else 1.0
        norms = K1 * (1 - B + B * self._lengths / (average or 1.0))
        weight = 0.0
        for term in np.unique(query).tolist():
            posting = self._postings.get(term)
            frequency = len(posting.documents) if posting else 0
            idf = float(np.log1p((len(self) - frequency + 0.5) / (frequency + 0.5)))
            weight += idf
            if posting:
                holders[term] = posting.documents
                counts = posting.counts
                scores[posting.documents] += idf * counts / (counts + norms[posting.documents])
        return (scores / weight if weight else scores), holders
