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
    """A stored message in its thread."""

    id: int
    parent_id: int | None
    spoken_id: int | None
    digest: bytes
    path: bytes
    depth: int
    role: str


def digest(secret: bytes, message: Message) -> bytes:
    """Return the keyed digest of who said what; times and ids do not count, since applications lose them."""
    said = (
        message.text.strip()
        if message.spoken
        else orjson.dumps(dict(message.raw), option=orjson.OPT_SORT_KEYS).decode()
    )
    joined = f"{message.role}\n{said}".encode("utf-8", "replace")
    return hashlib.blake2b(joined, digest_size=_SIZE, key=secret).digest()


def path(secret: bytes, before: bytes, message_digest: bytes) -> bytes:
    """Return the digest of a message and all before it, `before` being the path of its predecessor (b"" at the start)."""
    return hashlib.blake2b(before + message_digest, digest_size=_SIZE, key=secret).digest()


def fingerprint(secret: bytes, body: JSON) -> bytes:
    """Return the keyed digest of a whole request."""
    canonical = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=_SIZE, key=secret).digest()


def overlay(digests: Sequence[bytes], stored: Sequence[Place]) -> tuple[int, Place | None]:
    """Return how many of `digests`, from the first, lie along one stored thread, and the message where they end.

    One message alone proves nothing ("ok" is said in many threads) unless it is an answer and the newest of its thread.

    Args:
        digests: The conversation, oldest first, with its front cut off.
        stored: Stored messages with these digests, newest first.
    """
    below: dict[int | None, list[Place]] = {}
    for place in stored:
        below.setdefault(place.parent_id, []).append(place)
    longest, end = 0, None
    for first in stored:
        if first.digest != digests[0]:
            continue
        length, last = 1, first
        while length < len(digests):
            following = next((p for p in below.get(last.id, ()) if p.digest == digests[length]), None)
            if following is None:
                break
            length, last = length + 1, following
        if length > longest:
            longest, end = length, last
    if longest == 1 and end is not None and (end.role != "assistant" or below.get(end.id)):
        return 0, None
    return longest, end
