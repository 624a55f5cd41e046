"""The nouns of the memory as frozen values; no I/O, no framework.

A word here is the word everywhere behind the doors: what a door calls `endUserKey` is `end_user`, what it calls a raw
entry is an `Exchange`. This file changes when the memory itself learns a new noun.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

__all__ = [
    "JSON",
    "Added",
    "Candidates",
    "Change",
    "Clock",
    "Counts",
    "Document",
    "Exchange",
    "Grant",
    "Instant",
    "Job",
    "Match",
    "Message",
    "NewId",
    "Project",
    "Question",
    "Receipt",
    "Retrieved",
    "Scope",
    "Sentence",
    "Submission",
    "Topic",
    "Traits",
    "Vectors",
]

JSON = Any
"""A value that came from JSON: dict, list, str, int, float, bool or None."""

Instant = int
"""Unix milliseconds, UTC."""

Clock = Callable[[], Instant]
"""The present; injected, so that nothing below the composition root reads a clock."""

NewId = Callable[[], str]
"""A fresh, unguessable public id (128 random bits); injected for the same reason."""

Vectors = npt.NDArray[np.float32]
"""Shape (n, dim), float32, rows of unit length (or zero: text without any feature)."""


@dataclass(frozen=True, slots=True)
class Scope:
    """One end user of one project: the unit of isolation, first argument of every store and index method."""

    project: str
    end_user: str

    @property
    def id(self) -> bytes:
        """16 bytes that name this scope in the store.

        The project is prefixed by its length, so that ("a:b", "c") and ("a", "b:c") can never meet.
        """
        project = self.project.encode()
        joined = len(project).to_bytes(4) + project + self.end_user.encode()
        return hashlib.blake2b(joined, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Grant:
    """What the caller's key allows."""

    key_id: str
    project: str | None = None
    end_user: str | None = None
    admin: bool = False
    label: str = ""
    created_at: Instant = 0
    expires_at: Instant | None = None
    revoked_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """One product of a customer; the outermost boundary."""

    key: str
    created_at: Instant


@dataclass(frozen=True, slots=True)
class Message:
    """One role and its content, as it was said.

    Attributes:
        raw: The message as received after the input rules; what a retrieval gives back.
        text: Its readable text; empty for placeholders and pure tool calls.
        spoken: Whether `text` is something a person or the assistant said, and therefore searchable.
    """

    role: str
    raw: Mapping[str, JSON]
    text: str = ""
    spoken: bool = False
    speaker: str | None = None
    occurred_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """What an application hands over for one capture, already parsed and masked."""

    messages: tuple[Message, ...]
    response: Message | None
    state: Mapping[str, JSON]
    occurred_at: Instant | None = None
    sanitized: int = 0
    truncated: bool = False

    @property
    def has_history(self) -> bool:
        """Whether more than the newest turn was sent, so that its place in a thread can be told."""
        return sum(message.spoken for message in self.messages) > 1


@dataclass(frozen=True, slots=True)
class Traits:
    """What a message shows of itself, besides its words and its meaning.

    Attributes:
        words: Its length (`text.count_words`).
        asks: Whether it ends as a question.
        personal: How often the speaker names himself, at most 4.
        specifics: How many names and numbers it holds, at most 4. Scripts without capitals show numbers only.
        dated: Whether it says when something was or will be.
    """

    words: int = 0
    asks: bool = False
    personal: int = 0
    specifics: int = 0
    dated: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """One message about to be written, with everything derived from it."""

    message: Message
    digest: bytes
    path: bytes
    vector: npt.NDArray[np.float32] | None
    terms: npt.NDArray[np.uint32]
    traits: Traits


@dataclass(frozen=True, slots=True)
class Match:
    """A message of an exchange that a question found.

    Attributes:
        place: Its place in the request; None for the response.
        why: What speaks for it: `words`, `meaning`, `phrase`, `speaker`; `context` when only what stands beside it does.
    """

    place: int | None
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One captured round of user and assistant, immutable: the source of everything derived.

    Attributes:
        messages: The numbers of the request's messages.
        request: The messages this exchange added to its thread, oldest first.
        response: The assistant's answer; None when the exchange has none.
        state: The application state that came with it.
    """

    id: str
    seq: int
    topic_key: str
    request: tuple[Mapping[str, JSON], ...]
    response: Mapping[str, JSON] | None
    state: Mapping[str, JSON]
    occurred_at: Instant
    recorded_at: Instant
    messages: tuple[int, ...] = ()
    score: float | None = None
    matched: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a summary and the exchange it was taken from."""

    text: str
    exchange_id: str


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject within a scope.

    Attributes:
        vector_sum: Shape (dim,), float32: the sum of its exchanges' unit vectors. Its direction is the topic's
            vector, its length over `exchanges` is how well they agree.
        terms: Surface phrases and how often they occurred: where key, label and aliases come from.
        pinned: Names of the fields a person set, of `enabled`, `label` and `aliases`; only a person changes them again.
        former_labels: What topics that were merged into this one were called; the newest first.
    """

    id: str
    key: str
    label: str
    aliases: tuple[str, ...]
    summary: tuple[Sentence, ...]
    enabled: bool
    exchanges: int
    vector_sum: npt.NDArray[np.float32]
    terms: Mapping[str, int]
    updated_at: Instant
    row: int = 0
    pinned: frozenset[str] = frozenset()
    former_labels: tuple[str, ...] = ()

    @property
    def confidence(self) -> float:
        """How well its exchanges agree, shrunk while they are few; in [0, 1)."""
        if not self.exchanges:
            return 0.0
        agreement = float(np.linalg.norm(self.vector_sum)) / self.exchanges
        return round(min(agreement, 1.0) * self.exchanges / (self.exchanges + 1), 3)


@dataclass(frozen=True, slots=True)
class Document:
    """One searchable message as the index holds it.

    Attributes:
        parent: `message` of the nearest searchable message before it in its thread; None at the start.
        digest: The keyed digest of who said what: the same for messages of the same words.
        terms: Token ids with repetition, uint32.
    """

    message: int
    exchange: int
    topic: int
    parent: int | None
    digest: bytes
    role: str
    speaker: str | None
    vector: npt.NDArray[np.float32] | None
    terms: npt.NDArray[np.uint32]
    traits: Traits


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the indexes say about the searchable messages of a scope that may answer a query, in the order they were written.

    Each array has one value a message; a place is a position in these arrays, -1 is nowhere.

    Attributes:
        message, exchange, topic: int64: the message's and its exchange's number, the row of its topic (0: none).
        previous, following: int64: place of the message before and after it in its thread.
        thread: int32: one number for the messages of one conversation.
        words, terms: float32: length in words, and in search terms.
        asks, dated: See `Traits`.
        personal, specifics: float32, see `Traits`.
        speaker: int32: place in `speakers`; -1 when nobody is named.
        assistant: Whether an assistant without a name of its own said it.
        replies: Whether it follows what somebody else said.
        alike: int64: the same for messages in which the same role says the same words.
        eligible: Whether it may be chosen; the others are there for what stands beside them.
        similarity: float32, cosine in [-1, 1]; NaN where it is unknown.
        meaning: float32: `similarity` in standard deviations from that of any message of the scope; 0 where it is unknown.
        coverage: float32 in [0, 1]: how much of the query's words the message covers (BM25).
        phrases: float32 in [0, 1]: how many of the query's pairs of neighbouring words it holds.
        topics: Row -> cosine of each enabled topic's vector with the query.
        shares: Query term -> its share of the query's weight; the shares sum to 1.
        holders: Query term -> places of the messages that hold it, ascending; absent when none does.
    """

    message: npt.NDArray[np.int64]
    exchange: npt.NDArray[np.int64]
    topic: npt.NDArray[np.int64]
    previous: npt.NDArray[np.int64]
    following: npt.NDArray[np.int64]
    thread: npt.NDArray[np.int32]
    words: npt.NDArray[np.float32]
    terms: npt.NDArray[np.float32]
    asks: npt.NDArray[np.bool_]
    dated: npt.NDArray[np.bool_]
    personal: npt.NDArray[np.float32]
    specifics: npt.NDArray[np.float32]
    speaker: npt.NDArray[np.int32]
    speakers: tuple[str, ...]
    assistant: npt.NDArray[np.bool_]
    replies: npt.NDArray[np.bool_]
    alike: npt.NDArray[np.int64]
    eligible: npt.NDArray[np.bool_]
    similarity: npt.NDArray[np.float32]
    meaning: npt.NDArray[np.float32]
    coverage: npt.NDArray[np.float32]
    phrases: npt.NDArray[np.float32]
    topics: Mapping[int, float]
    shares: Mapping[int, float]
    holders: Mapping[int, npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the change log: what a worker's index must look at again."""

    seq: int
    kind: Literal["exchange", "topic", "scope"]
    target: int


@dataclass(frozen=True, slots=True)
class Job:
    """Work promised for later, taken by one worker.

    Attributes:
        payload: What it is about, by ids.
        attempts: How often it was taken, this time included.
        lease: Proof that it is this worker's.
    """

    id: int
    kind: str
    scope: Scope
    payload: Mapping[str, JSON]
    attempts: int
    lease: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of one capture: durable when you hold it; `forgotten` says that nothing was stored, by an earlier wish."""

    exchange_id: str
    topic_keys: tuple[str, ...]
    index: Literal["ready", "pending"] = "ready"
    duplicate: bool = False
    forgotten: bool = False
    sanitized: int = 0
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for.

    Attributes:
        text: The question; "" asks for the newest exchanges.
        topic_keys: Only exchanges of these topics; all when None.
        offset: How many of the best exchanges to pass over.
    """

    text: str
    limit: int
    topic_keys: tuple[str, ...] | None = None
    include_disabled: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a retrieval found: every exchange's topic is in `topics`, in the order of the best exchange."""

    topics: tuple[Topic, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    reason: str = ""
    summary: str = ""
    more: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was there, or went."""

    exchanges: int = 0
    messages: int = 0
    topics: int = 0
    end_users: int = 0
