"""Which topic an exchange belongs to, what the topic is called, and what it says: without an LLM. Pure.

An exchange joins the nearest topic when their vectors agree enough, else it opens one (leader clustering: one pass, stable
under growth). Keys are made once, from the phrase that best names the first exchange, and never change. Summaries quote:
each sentence names the exchange it was taken from, so that forgetting the exchange forgets the sentence.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from halo_server.domain import Instant, Message, Sentence, Topic
from halo_server.text import asks, content_words, phrases, sentences

__all__ = [
    "MOST_NAMES",
    "UNNAMED",
    "UNSORTED",
    "Gist",
    "exchange_vector",
    "gist",
    "gives_away",
    "joined",
    "merged",
    "nearest",
    "opened",
    "overall",
    "united",
    "without",
]

JOIN = 0.32
"""Least mean cosine at which an exchange joins a topic. Unrelated turns lie below 0.2 under the default embedder."""

_STAY = 0.24  # a conversation tends to stay on its topic: a follow-up seldom names what it is about

MOST_TOPICS = 512
"""A scope with this many topics opens no more: the nearest takes the exchange."""

UNNAMED = "notes"
"""What a topic is called when nothing that was said can name it."""

UNSORTED = "unsorted"
"""What a topic is called that holds what deleted topics left behind."""

NO_PHRASES = frozenset({UNNAMED, UNSORTED})
"""Labels that tell nothing of what was said."""

_READ_CHARS = 8_000
_MOST_TERMS = 48
_MOST_ALIASES = 5
MOST_NAMES = 16
"""Aliases of a topic in all, those a person gave included."""

_MOST_SENTENCES = 3
_SENTENCE_CHARS = 240
_OVERALL_CHARS = 480
_KEY_CHARS = 48

_Vector = npt.NDArray[np.float32]


def exchange_vector(vectors: Sequence[_Vector | None], dim: int) -> _Vector:
    """Return the unit direction of an exchange: the mean of its messages' vectors; zero when it has none."""
    total = np.sum(
        [vector for vector in vectors if vector is not None] or [np.zeros(dim, np.float32)], axis=0
    )
    unit: _Vector = (total / (np.linalg.norm(total) or 1.0)).astype(np.float32)
    return unit


def nearest(vector: _Vector, sums: _Vector, sizes: npt.NDArray[np.int64], current: int | None) -> int | None:
    """Return the place of the topic this exchange joins, or None when it opens its own.

    Nearness is the mean cosine to the topic's exchanges, not the cosine to their centre: the centre of a large topic is
    near everything, and one topic would swallow the scope.

    Args:
        vector: Shape (dim,), unit length; zero says nothing and stays where the conversation is.
        sums: Shape (n, dim): the `vector_sum` of each topic.
        sizes: Shape (n,): how many exchanges each holds.
        current: The place of the topic the conversation was on, if any.
    """
    if not len(sums) or (not vector.any() and current is None):
        return None
    if not vector.any():
        return current
    nearness = (sums @ vector) / np.maximum(sizes, 1)
    if current is not None:
        nearness[current] += _STAY
    best = int(np.argmax(nearness))
    return best if nearness[best] >= JOIN or len(sums) >= MOST_TOPICS else None


@dataclass(frozen=True, slots=True)
class Gist:
    """What a topic takes from one exchange.

    Attributes:
        terms: Phrases that name what was said, and how often.
        telling: The sentence that tells most; "" when there is none.
        vector: Shape (dim,), unit length or zero.
    """

    terms: Mapping[str, int]
    telling: str
    vector: _Vector


def gist(said: Sequence[Message], vector: _Vector) -> Gist:
    """Return what a topic takes from the messages of an exchange; reads the first `_READ_CHARS` of each."""
    read = [replace(message, text=message.text[:_READ_CHARS]) for message in said if message.spoken]
    return Gist(_terms(read), _telling(read), vector)


def opened(topic_id: str, exchange_id: str, first: Gist, taken: Collection[str], now: Instant) -> Topic:
    """Return a new topic for an exchange, with a key that is not among `taken`."""
    label = _label(first.terms) if first.vector.any() else UNNAMED  # others without a vector join it
    topic = Topic(
        id=topic_id,
        key=_free_key(label, taken),
        label=label,
        aliases=(),
        summary=(),
        enabled=True,
        exchanges=0,
        vector_sum=np.zeros_like(first.vector),
        terms={},
        updated_at=now,
    )
    return joined(topic, exchange_id, first, now)


def joined(topic: Topic, exchange_id: str, more: Gist, now: Instant) -> Topic:
    """Return the topic with one more exchange; key and label stay."""
    counts = Counter(topic.terms)
    counts.update(more.terms)
    terms = _kept(counts, (topic.label, *topic.former_labels))
    kept = [Sentence(more.telling, exchange_id)] if more.telling else []
    summary = (*kept, *(sentence for sentence in topic.summary if sentence.text != more.telling))
    return replace(
        topic,
        exchanges=topic.exchanges + 1,
        vector_sum=_added(topic.vector_sum, more.vector),
        terms=terms,
        aliases=_aliases(topic, terms, topic.label, topic.former_labels),
        summary=summary[:_MOST_SENTENCES],
        updated_at=max(now, topic.updated_at),
    )


def without(topic: Topic, exchange_id: str, gone: Gist, taken: Collection[str]) -> Topic:
    """Return the topic as if the exchange had never joined it.

    Key, label and former labels stay only if others said the phrase too: what was forgotten must not be read off a name.
    A label or alias that a person set is the person's own word, and stays.
    """
    counts = Counter(topic.terms)
    counts.subtract(gone.terms)
    terms = {term: count for term, count in counts.items() if count > 0}
    unsaid = gone.terms.keys() - terms
    # A label that nobody said was written by a model, perhaps from what is now forgotten.
    stays = "label" in topic.pinned or topic.label in terms or topic.label in NO_PHRASES
    label = topic.label if stays else _label(terms)
    renamed = topic.label in unsaid - {label} or gives_away(topic.key, gone.terms, terms)
    former = tuple(name for name in topic.former_labels if name not in unsaid)
    return replace(
        topic,
        key=_free_key(label, taken) if renamed else topic.key,
        label=label,
        exchanges=max(0, topic.exchanges - 1),
        vector_sum=topic.vector_sum - gone.vector if topic.vector_sum.size else np.zeros_like(gone.vector),
        terms=terms,
        aliases=_aliases(topic, terms, label, former),
        summary=tuple(sentence for sentence in topic.summary if sentence.exchange_id != exchange_id),
        former_labels=former,
    )


def gives_away(key: str, gone: Iterable[str], left: Iterable[str]) -> bool:
    """Whether the key was made from a phrase of `gone` that is none of `left`."""
    made_from = [phrase for phrase in gone if re.fullmatch(re.escape(_key(phrase)) + r"(_\d+)?", key)]
    return bool(made_from) and not {_key(phrase) for phrase in made_from} & {_key(phrase) for phrase in left}


def merged(topic: Topic, other: Topic) -> Topic:
    """Return the topic with the exchanges of another, which keeps nothing else."""
    together = _added(topic.vector_sum, other.vector_sum)
    return replace(topic, exchanges=topic.exchanges + other.exchanges, vector_sum=together)


def united(topic: Topic, other: Topic, now: Instant) -> Topic:
    """Return the topic with all that another held: its exchanges, what they said, and its names as aliases."""
    counts = Counter(topic.terms)
    counts.update(other.terms)
    names = dict.fromkeys((other.label, *_own_aliases(other), *other.former_labels, *topic.former_labels))
    own = {topic.label, *_own_aliases(topic)}
    former = tuple(name for name in names if name not in own)[:MOST_NAMES]
    terms = _kept(counts, (topic.label, *former))
    newest = sorted((topic, other), key=lambda one: -one.updated_at)
    quoted = {sentence.text: sentence for one in newest for sentence in one.summary}
    return replace(
        merged(topic, other),
        terms=terms,
        aliases=_aliases(topic, terms, topic.label, former),
        summary=tuple(quoted.values())[:_MOST_SENTENCES],
        updated_at=max(now, topic.updated_at, other.updated_at),
        former_labels=former,
    )


def overall(largest: Iterable[Topic]) -> str:
    """Return the scope in a few sentences: the newest one of each of its largest topics, in their order."""
    said = ""
    for topic in largest:
        longer = f"{said} {topic.summary[0].text}".strip() if topic.summary else said
        if len(longer) > _OVERALL_CHARS:
            break
        said = longer
    return said


def _added(total: _Vector, vector: _Vector) -> _Vector:
    """Return the sum; the empty array, a total of another embedder's vectors, counts as none."""
    if not vector.size:
        return total
    return total + vector if total.size else vector


def _terms(said: Sequence[Message]) -> Mapping[str, int]:
    """Count the phrases that name what was said; the user's own words count double."""
    counts: Counter[str] = Counter()
    for message in said:
        weight = 2 if message.role == "user" else 1
        for phrase in phrases(message.text):
            counts[" ".join(phrase[:3])] += weight
    return dict(counts.most_common(_MOST_TERMS))


def _label(terms: Mapping[str, int]) -> str:
    """Return the phrase that says most.

    Source:
        RAKE's degree score: a word counts by the length of the phrases it stands in, a phrase by its words (Rose et al.,
        2010), here times how often the phrase was used.
    """
    degree: Counter[str] = Counter()
    for term, count in terms.items():
        words = term.split()
        for word in words:
            degree[word] += count * len(words)
    return max(
        terms, key=lambda term: (sum(degree[word] for word in term.split()), terms[term]), default=UNNAMED
    )


def _kept(counts: Counter[str], names: Iterable[str]) -> dict[str, int]:
    """Return the commonest phrases, and those that name the topic: as long as one is said, it does."""
    return dict(counts.most_common(_MOST_TERMS)) | {name: counts[name] for name in names if counts[name]}


def _key(label: str) -> str:
    words = re.sub(r"[\W_]+", "_", unicodedata.normalize("NFKC", label).lower())
    return words.strip("_")[:_KEY_CHARS].rstrip("_") or UNNAMED


def _free_key(label: str, taken: Collection[str]) -> str:
    key = _key(label)
    number = next(n for n in range(1, len(taken) + 2) if (key if n == 1 else f"{key}_{n}") not in taken)
    return key if number == 1 else f"{key}_{number}"


def _aliases(topic: Topic, terms: Mapping[str, int], label: str, former: Sequence[str]) -> tuple[str, ...]:
    """Return a person's aliases or, without those, the commonest phrases; after them what was merged into the topic."""
    often = sorted((term for term in terms if term != label), key=lambda term: (-terms[term], -len(term)))
    own = _own_aliases(topic) if "aliases" in topic.pinned else often[:_MOST_ALIASES]
    return tuple(dict.fromkeys((*own, *former)))[:MOST_NAMES]


def _own_aliases(topic: Topic) -> tuple[str, ...]:
    """Return the aliases a person set."""
    pinned = topic.aliases if "aliases" in topic.pinned else ()
    return tuple(name for name in pinned if name not in topic.former_labels)


def _telling(said: Sequence[Message]) -> str:
    """Return the sentence that tells most: a statement before a question, the user's before the assistant's."""
    best, best_rank = "", (-1, -1, 0)
    for message in said:
        for sentence in sentences(message.text):
            weight = len(set(content_words(sentence)))
            rank = (int(weight > 0 and not asks(sentence)), int(message.role == "user"), weight)
            if rank > best_rank:
                best, best_rank = sentence, rank
    return best if len(best) <= _SENTENCE_CHARS else best[: _SENTENCE_CHARS - 1].rstrip() + "…"
