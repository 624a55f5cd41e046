"""BM25 over token ids agrees with the formula written out slowly."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server.index.lexical import K1, B, LexicalIndex

documents = st.lists(st.lists(st.integers(0, 8), max_size=8), max_size=8)
queries = st.lists(st.integers(0, 10), max_size=5)


def ids(terms: list[int]) -> np.ndarray:
    return np.array(terms, dtype=np.uint32)


def slow_coverage(texts: list[list[int]], query: list[int]) -> list[float]:
    average = sum(map(len, texts)) / len(texts) or 1.0
    weights = {}
    for term in set(query):
        holding = sum(term in text for text in texts)
        weights[term] = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
    scores = []
    for text in texts:
        counts, norm = Counter(text), K1 * (1 - B + B * len(text) / average)
        found = sum(weights[t] * counts[t] / (counts[t] + norm) for t in weights if counts[t])
        scores.append(found / sum(weights.values()) if weights else 0.0)
    return scores


@given(texts=documents.filter(bool), query=queries)
def test_coverage_is_bm25_over_the_weight_of_the_query(texts: list[list[int]], query: list[int]) -> None:
    index = LexicalIndex()
    index.extend([ids(text) for text in texts])

    found = index.coverage(ids(query))
    coverage, holders = found.scores, found.holders

    np.testing.assert_allclose(coverage, slow_coverage(texts, query), rtol=1e-4, atol=1e-6)
    assert ((coverage >= 0) & (coverage <= 1)).all()
    assert {term: places.tolist() for term, places in holders.items()} == {
        term: [n for n, text in enumerate(texts) if term in text]
        for term in query
        if any(term in text for text in texts)
    }


@given(texts=documents, cuts=st.lists(st.integers(0, 8), max_size=3), query=queries)
def test_an_index_that_grew_is_the_one_built_at_once(
    texts: list[list[int]], cuts: list[int], query: list[int]
) -> None:
    at_once, grown = LexicalIndex(), LexicalIndex()
    at_once.extend([ids(text) for text in texts])
    bounds = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    for start, end in pairwise(bounds):
        grown.extend([ids(text) for text in texts[start:end]])

    one, other = at_once.coverage(ids(query)), grown.coverage(ids(query))

    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.phrases, other.phrases)
    assert one.shares == other.shares
    assert {t: p.tolist() for t, p in one.holders.items()} == {
        t: p.tolist() for t, p in other.holders.items()
    }
    assert (len(at_once), at_once.nbytes) == (len(grown), grown.nbytes)


def test_the_greatest_ids_are_terms_like_others() -> None:
    index = LexicalIndex()
    index.extend([ids([0xFFFF_FFFF, 0]), ids([0xFFFF_FFFE])])

    assert index.coverage(ids([0xFFFF_FFFF])).holders[0xFFFF_FFFF].tolist() == [0]


def test_a_term_that_nobody_holds_weighs_on_the_rest() -> None:
    index = LexicalIndex()
    index.extend([ids([1]), ids([2])])

    assert index.coverage(ids([1, 9])).scores[0] < 0.5 * index.coverage(ids([1])).scores[0]


def test_an_empty_index_covers_nothing_and_grows_in_bytes() -> None:
    index = LexicalIndex()
    assert index.coverage(ids([1])).scores.tolist() == []
    empty = index.nbytes
    index.extend([ids([1, 2])])
    assert index.nbytes > empty
    assert len(index) == 1
    assert index.coverage(ids([])).scores.tolist() == pytest.approx([0.0])


def test_neighbouring_words_are_a_phrase_only_side_by_side_in_one_text() -> None:
    index = LexicalIndex()
    index.extend([ids([1, 2, 3]), ids([2, 1]), ids([1, 9, 2]), ids([1])])
    index.extend([ids([2, 1, 2, 1, 2])])

    assert index.coverage(ids([1, 2, 3])).phrases.tolist() == [1.0, 0.0, 0.0, 0.0, 0.5]
