"""The same question is embedded once, while there is room to remember it."""

from collections.abc import Sequence

import numpy as np

from halo_server.domain import Vectors
from halo_server.embedders.base import MAX_CHARS
from halo_server.services.vectors import QueryVectors


class Counting:
    """An embedder that remembers what it was asked."""

    is_local = True
    dim = 2
    id = "counting-2"

    def __init__(self, value: float = 1.0) -> None:
        self.asked: list[str] = []
        self.value = value

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.full((len(texts), 2), self.value, np.float32)


def test_a_question_is_kept_while_it_is_among_the_newest() -> None:
    embedder = Counting()
    vectors = QueryVectors(embedder, 2)

    for text in ("a", "b", "a", "c", "a", "b"):
        assert vectors(text).tolist() == [[1, 1]]
    assert embedder.asked == ["a", "b", "c", "b"]


def test_a_cleared_or_sizeless_cache_keeps_nothing() -> None:
    embedder = Counting()
    cleared, none = QueryVectors(embedder, 2), QueryVectors(embedder, 0)
    cleared("a")
    cleared.clear()
    for _ in range(2):
        none("b")
    cleared("a")

    assert embedder.asked == ["a", "b", "b", "a"]


def test_a_long_question_is_known_by_what_the_embedder_reads_of_it() -> None:
    embedder = Counting()
    vectors = QueryVectors(embedder, 2)
    read = "a" * MAX_CHARS
    for text in (f"{read} and more", f"{read} and other", read):
        vectors(text)

    assert embedder.asked == [read]


def test_a_vector_that_is_no_number_is_near_nothing() -> None:
    assert QueryVectors(Counting(float("nan")), 2)("a").tolist() == [[0, 0]]
