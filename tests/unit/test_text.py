"""Words out of text, in any language, without ever failing."""

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_server import text as text_module
from halo_server.text import asks, content_words, count_words, phrases, sentences, term_ids, tokens

any_text = st.text(st.characters(), max_size=80)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("The peanuts are Mia's.", ["peanut", "mia"]),
        ("I'm running, we’re running", ["run", "run"]),
        ("O'Brien", ["o'brien"]),
        ("花生过敏", ["花", "生", "过", "敏", "花生", "生过", "过敏"]),
        ("Книги книга", ["книг", "книг"]),
        ("snake_case 42", ["snake", "case", "42"]),
        ("!? … —", []),
    ],
)
def test_search_terms_are_stems_of_words_and_characters_with_their_pairs(
    text: str, expected: list[str]
) -> None:
    assert list(tokens(text)) == expected


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurried")
def test_many_threads_find_the_stems_that_one_finds() -> None:
    chance = random.Random(7)
    endings = ("ization", "fulness", "ational", "ingly", "ies", "ement", "ously", "s", "ости", "ами")
    words = ["".join(chance.choices("abcdeilnorst", k=6)) + chance.choice(endings) for _ in range(3000)]
    text_module._stem.cache_clear()
    expected = [list(tokens(word)) for word in words]
    text_module._stem.cache_clear()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [list(tokens(word)) for word in words], range(8)))

    assert all(one == expected for one in found)


def test_term_ids_are_the_same_in_every_process() -> None:
    assert term_ids("Mia, peanuts, peanuts").tolist() == [834928705, 801184389, 801184389]


@given(text=any_text)
def test_any_text_has_terms_words_and_sentences(text: str) -> None:
    found = [token for token in tokens(text) if token[0] < "\ud800" or token[0] > "\udfff"]

    assert len(term_ids(" ".join(found))) >= 0
    assert count_words(text) >= 0
    assert all(sentence == sentence.strip() != "" for sentence in sentences(text))
    assert [word for phrase in phrases(text) for word in phrase] == list(content_words(text))
    assert asks(text) in (True, False)


@given(text=any_text)
def test_there_is_one_id_a_term(text: str) -> None:
    ids = term_ids(text)

    assert ids.dtype == np.uint32
    assert len(ids) == len(list(tokens(text)))


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), ("Mia's two cats", 3), ("花生过敏", 2), ("花生过", 2), ("吃 peanuts 吗", 2)]
)
def test_two_unspaced_characters_count_as_one_word(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Why?", True),
        ("为什么？", True),
        ("你好吗", True),
        ("そうですか。", True),
        ("Because.", False),
        ("Why? Because.", False),
    ],
)
def test_a_question_is_known_by_its_end(text: str, question: bool) -> None:
    assert asks(text) is question


def test_a_dot_inside_a_number_or_a_name_does_not_end_a_sentence() -> None:
    assert sentences("It costs 3.50 at node.js cafe. Really?\n好。是的！") == [
        "It costs 3.50 at node.js cafe.",
        "Really?",
        "好。",
        "是的！",
    ]


def test_a_phrase_is_a_run_of_words_that_say_something() -> None:
    assert list(phrases("My daughter Mia is allergic to peanut butter, we think.")) == [
        ("daughter", "mia"),
        ("allergic",),
        ("peanut", "butter"),
        ("think",),
    ]
    assert list(phrases("我女儿对花生过敏")) == [("女儿", "花生过敏")]
