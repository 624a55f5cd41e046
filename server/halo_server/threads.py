"""Where a conversation continues: which of the messages an application sends again are already stored. Pure.

Every stored message has a keyed digest of its role and words, and a path: the digest of all up to it. A conversation that
only grew is found by its deepest known path in one look. One that was cut at the front is laid over the stored threads.
Digests are keyed, so that a leaked database does not confirm a guessed sentence.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from halo_server.domain import JSON, Message

__all__ = ["Place", "digest", "fingerprint", "overlay", "path"]

_SIZE = 16  # bytes; 128 bits


@dataclass(frozen=True, slots=True)
class Place:
    """A stored message in its thread.

    Attributes:
        spoken_id: Itself if somebody said it, else the nearest message before it that somebody said.
        path: Digest of all that was said up to it; what nobody said has its predecessor's.
        depth: How many messages were said up to it.
        erased: Whether its content was forgotten; the place stays.
    """

    id: int
    parent_id: int | None
    parent_spoken_id: int | None
    spoken_id: int | None
    digest: bytes
    path: bytes
    depth: int
    role: str
    spoken: bool
    erased: bool


def digest(secret: bytes, message: Message) -> bytes:
    """Return the keyed digest of who said what; times and ids do not count, since applications lose them.

    What nobody said (instructions, calls, their results) has the empty digest: applications add and drop it at will.
    """
    if not message.spoken:
        return b""
    joined = f"{message.role}\n{message.text.strip()}".encode("utf-8", "replace")
    return hashlib.blake2b(joined, digest_size=_SIZE, key=secret).digest()


def path(secret: bytes, before: bytes, message_digest: bytes) -> bytes:
    """Return the digest of a message and all said before it, `before` being the path of its predecessor (b"" at the start)."""
    if not message_digest:
        return before
    return hashlib.blake2b(before + message_digest, digest_size=_SIZE, key=secret).digest()


def fingerprint(secret: bytes, body: JSON) -> bytes:
    """Return the keyed digest of a whole request."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=_SIZE, key=secret).digest()


def overlay(digests: Sequence[bytes], stored: Sequence[Place]) -> tuple[int, Place | None]:
    """Return how many of `digests`, from the first, lie along one stored thread, and the message where they end.

    Of equally long ways, the one that ends at the newest message. One message alone proves nothing ("ok" is said in many
    threads) unless it is an answer and the newest of its thread.

    Args:
        digests: What was said in the conversation, oldest first, with its front cut off.
        stored: Stored messages with these digests.

    Source:
        Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977, run down every thread at once: how much of the
        conversation ends at a message follows from how much ends at the one before it.
    """
    if not digests:
        return 0, None
    fallback = _fallbacks(digests)
    matched: dict[int, int] = {}
    longest, end = 0, None
    for place in sorted(stored, key=lambda place: (place.depth, place.id)):
        length = matched.get(place.parent_spoken_id or 0, 0)
        while length and (length == len(digests) or digests[length] != place.digest):
            length = fallback[length - 1]
        length += digests[length] == place.digest
        matched[place.id] = length
        if length and (end is None or (length, place.id) > (longest, end.id)):
            longest, end = length, place
    if end and longest == 1:
        followed = any(place.parent_spoken_id == end.id for place in stored)
        return (0, None) if followed or end.role != "assistant" else (1, end)
    return longest, end


def _fallbacks(pattern: Sequence[bytes]) -> list[int]:
    """Return for each prefix of `pattern` the length of its longest proper prefix that is also its end."""
    lengths = [0] * len(pattern)
    length = 0
    for at in range(1, len(pattern)):
        while length and pattern[at] != pattern[length]:
            length = lengths[length - 1]
        length += pattern[at] == pattern[length]
        lengths[at] = length
    return lengths
