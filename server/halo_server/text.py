"""Words out of text: what the lexical index counts, the hashing embedder hashes and topic names are made of.

It changes when a language needs other words. Space-separated languages are stemmed by their script (Snowball: English for
Latin, Russian for Cyrillic, Greek, Hindi, Arabic, …); Chinese, Japanese, Korean and Thai, which a space does not divide, give single
characters and pairs, the pairing that measured best for two-character words.
"""

import re
import threading
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import snowballstemmer

__all__ = ["asks", "content_words", "count_words", "phrases", "sentences", "term_ids", "tokens"]

# Signs that stand above, below and beside letters belong to the word: without them Hindi falls into single consonants.
_SIGNS = "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0970-\u0dff\u0f71-\u0f84\u1000-\u109f"
_RUN = re.compile(
    rf"[぀-ヿ㐀-鿿豈-﫿가-힣\u0e00-\u0e7f々〆]+|(?:(?!_)[\w{_SIGNS}])+(?:['’](?:(?!_)[\w{_SIGNS}])+)?"
)
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿豈-﫿가-힣\u0e00-\u0e7f々〆]")
_CONTENT_RUN = re.compile(r"[㐀-鿿豈-﫿々〆]+|[゠-ヿ]{2,}|[가-힣]+|[\u0e00-\u0e7f]+")
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?!\s|$)[^.!?。！？\n]*)*[.!?。！？]*")
_QUESTION_END = re.compile(r"[?？]\s*$|(?:吗|呢|か)[。.\s]*$")

_STOP = frozenset(
    "a about after again all also am an and any are as at be been before being but by can could did do does doing don "
    "down each else ever every for from get go going gone got had has have having he hello her here hers hey hi him "
    "his how i if in into is it its just let like ll m may me might more most my need no not now of off ok okay on one only or "
    "other our out over own please re s same say see she should so some such sure t than thank thanks that the their "
    "them then there these they thing this those through to too under until up us ve very want was we well were what "
    "when where which while who whom whose why will with would yes yet you your yours".split()
)
_WEAK = frozenset(
    "actually always best better big bit came come day days did done feel felt find first give good great keep kept "
    "know last let lot lots made make makes making many maybe much never new next nice oh often old put quite really "
    "remember right said send sent set show since still take taken tell time times today told tomorrow took try use "
    "used using way week went work yesterday monday tuesday wednesday thursday friday saturday sunday january february "
    "march april june july august september october november december two three four five six seven eight nine ten half "
    "past must anything everything something nothing because possible around near help write play".split()
)
_CONTRACTED = frozenset(("", "d", "ll", "m", "re", "s", "t", "ve"))
_CJK_STOP = frozenset(
    "的了是在我你他她它们们和与及吗呢吧啊有也都就不这那个么什怎样请把被让给对从到说想要会能可以很最"
)
_STEMMING = threading.Lock()
_STEMMERS = {
    script: snowballstemmer.stemmer(language)
    for script, language in {
        "latin": "english",
        "greek": "greek",
        "cyrillic": "russian",
        "armenian": "armenian",
        "arabic": "arabic",
        "devanagari": "hindi",
        "tamil": "tamil",
    }.items()
}
_SCRIPTS = (  # where a script ends, and which it is
    ("\u0370", "latin"),
    ("\u0400", "greek"),
    ("\u0530", "cyrillic"),
    ("\u0590", "armenian"),
    ("\u0600", "latin"),
    ("\u0700", "arabic"),
    ("\u0900", "latin"),
    ("\u0980", "devanagari"),
    ("\u0b80", "latin"),
    ("\u0c00", "tamil"),
    ("\u1f00", "latin"),
    ("\u2000", "greek"),
)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    script = next((name for end, name in _SCRIPTS if word[0] < end), "latin")
    with _STEMMING:  # a stemmer keeps the word it works on in itself
        return str(_STEMMERS[script].stemWord(word))


def _uncontracted(word: str) -> str:
    """Return "report" for "report's" and "i" for "i'm"; names such as "o'brien" stay whole."""
    head, _, tail = word.replace("’", "'").partition("'")
    return head if tail in _CONTRACTED else f"{head}'{tail}"


def tokens(text: str) -> Iterator[str]:
    """Yield the search terms of `text`, in order, with repetition; never raises on any string.

    Source:
        Snowball stemming (snowballstem.org). Single characters and pairs for unspaced scripts: measured on
        paraphrase sets, R@1 .60 against .33 for pairs alone.
    """
    # One spelling of each letter: an accent may be a sign of its own, a Latin letter may be as wide as a Chinese one.
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).lower()):
        if _UNSPACED.match(run):
            yield from run
            yield from (run[i : i + 2] for i in range(len(run) - 1))
            continue
        word = _uncontracted(run)
        if word not in _STOP:
            yield _stem(word)


def term_ids(text: str) -> npt.NDArray[np.uint32]:
    """Return the search terms of `text` as stable 32-bit ids, with repetition.

    The id is a checksum of the term, the same in every process and on every machine, so that it can be stored and no
    dictionary has to be.
    """
    return np.fromiter((zlib.crc32(token.encode()) for token in tokens(text)), dtype=np.uint32)


def count_words(text: str) -> int:
    """Return the length of `text` in words; two unspaced characters count as one word."""
    unspaced = len(_UNSPACED.findall(text))
    return sum(1 for run in _RUN.findall(text) if not _UNSPACED.match(run)) + (unspaced + 1) // 2


def asks(text: str) -> bool:
    """Return whether `text` ends as a question, in English, Chinese or Japanese."""
    return bool(_QUESTION_END.search(text.rstrip()))


def sentences(text: str) -> list[str]:
    """Return the sentences of `text`, trimmed, without empty ones; a dot inside a word or number does not end one."""
    return [found.strip() for found in _SENTENCE.findall(text) if found.strip()]


def content_words(text: str) -> Iterator[str]:
    """Yield the words of `text` that carry meaning, lower case, unstemmed: what a reader would underline."""
    for phrase in phrases(text):
        yield from phrase


def phrases(text: str) -> Iterator[tuple[str, ...]]:
    """Yield runs of neighbouring words that carry meaning.

    A run ends at punctuation or at a word that carries none. In Chinese and Japanese a run is a stretch of kanji or
    katakana between function characters.

    Source:
        Candidate keywords of RAKE: Rose, Engel, Cramer, Cowley, "Automatic keyword extraction from individual
        documents", 2010.
    """
    for part in re.split(r"[^\w\s'’-]+", text.lower()):
        yield from _phrases_of(_words(part))


def _words(part: str) -> Iterator[str]:
    for run in _RUN.findall(part):
        if not _UNSPACED.match(run):
            yield _uncontracted(run)
            continue
        for content in _CONTENT_RUN.findall(run):
            for piece in re.split(f"[{''.join(sorted(_CJK_STOP))}]+", content):
                yield piece if len(piece) > 1 else ""
            yield ""


def _phrases_of(words: Iterable[str]) -> Iterator[tuple[str, ...]]:
    run: list[str] = []
    for word in [*words, ""]:
        if word and word not in _STOP and word not in _WEAK and (len(word) > 2 or not word.isascii()):
            run.append(word)
        elif run:
            yield tuple(run)
            run = []
