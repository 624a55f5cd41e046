"""Bodies in: which bytes are a request. One set of input rules for all doors and both databases.

Half an emoji, a NUL or a number no database can hold breaks each library below in its own way, some with a 500 (measured);
here they are mended or refused once, before anything else looks.
"""

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from starlette.requests import ClientDisconnect, Request

from halo_server.domain import JSON
from halo_server.errors import InvalidJSON, InvalidRequest, RequestTimeout, TooLarge, UnsupportedMediaType

__all__ = ["Body", "Limits", "identifier", "parse", "read"]

_INT64 = 2**63
_KEYS = ("projectKey", "endUserKey")
_STRICT_OBJECTS = ("arguments",)
"""Objects in which, as at the top, a repeated key is refused: a proxy and we could read different identities from it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a body may hold."""

    max_bytes: int
    max_depth: int
    max_nodes: int
    deadline_s: float


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed body.

    Attributes:
        value: The JSON object, free of lone surrogates and NUL.
        sanitized: How many characters were replaced or removed.
    """

    value: dict[str, JSON]
    sanitized: int = 0


async def read(request: Request, limits: Limits) -> bytes:
    """Return the body's bytes.

    Raises:
        UnsupportedMediaType: It is not declared as plain UTF-8 JSON.
        TooLarge: It is longer than `limits.max_bytes`, declared or sent.
        RequestTimeout: It did not arrive in time, or the client went away.
    """
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        raise UnsupportedMediaType
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > limits.max_bytes:
        raise TooLarge
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.deadline_s):
            async for part in request.stream():
                size += len(part)
                if size > limits.max_bytes:
                    raise TooLarge
                parts.append(part)
    except (TimeoutError, ClientDisconnect) as error:
        raise RequestTimeout from error
    return b"".join(parts)


class _Pairs(dict[str, JSON]):
    """An object that remembers whether a key was repeated."""

    repeated = False


def parse(data: bytes, limits: Limits) -> Body:
    """Return the JSON object in `data`.

    Lone surrogates in text become U+FFFD and NUL is removed, both counted. A key of an object is never changed.

    Raises:
        InvalidRequest: A NUL in a key of a project or an end user: without it, it would be another's key.
        InvalidJSON: Not UTF-8, not JSON, not an object; NaN, infinity, a number beyond 64 bits; nested too deeply or too
            many values; a key repeated at the top or in `arguments`; a surrogate or NUL in a key.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_Objects(limits.max_nodes),
            parse_constant=_no_constant,
            parse_int=_int64,
            parse_float=_finite,
        )
    except (UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise InvalidJSON from error
    if not isinstance(value, _Pairs):
        raise InvalidJSON("The body must be a JSON object.")
    if value.repeated or any(
        isinstance(value.get(key), _Pairs) and value[key].repeated for key in _STRICT_OBJECTS
    ):
        raise InvalidJSON("The body repeats a key.")
    for name in _KEYS:
        if isinstance(value.get(name), str) and "\0" in value[name]:
            raise InvalidRequest(f"{name} must not hold control characters.")
    cleaner = _Cleaner(limits)
    return Body(cleaner.clean(value, 1), cleaner.sanitized)


class _Objects:
    """Makes objects while a body is read, and stops where they alone hold more than is allowed.

    A million tiny objects fit into 8 MiB; made first and counted later they would take 600 MiB (measured).
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values = 0

    def __call__(self, pairs: Sequence[tuple[str, JSON]]) -> _Pairs:
        self._values += len(pairs)
        if self._values > self._most:
            raise _too_many(self._most)
        made = _Pairs(pairs)
        made.repeated = len(made) != len(pairs)
        return made


def _too_many(most: int) -> InvalidJSON:
    return InvalidJSON(f"The body holds more than {most} values.")


def _no_constant(_name: str) -> NoReturn:
    raise InvalidJSON("NaN and Infinity are not JSON.")


def _int64(digits: str) -> int:
    if len(digits) > 20 or not -_INT64 <= int(digits) < _INT64:
        raise InvalidJSON("An integer does not fit 64 bits; send it as a string.")
    return int(digits)


def _finite(digits: str) -> float:
    if not math.isfinite(float(digits)):
        raise InvalidJSON("A number is too large.")
    return float(digits)


class _Cleaner:
    """Copies a value into plain dicts and lists, cleaning text and counting what it passes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._nodes = 0
        self.sanitized = 0

    def clean(self, value: JSON, depth: int) -> JSON:
        self._nodes += 1
        if depth > self._limits.max_depth:
            raise InvalidJSON(f"The body is nested more than {self._limits.max_depth} levels deep.")
        if self._nodes > self._limits.max_nodes:
            raise _too_many(self._limits.max_nodes)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._key(key): self.clean(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.clean(item, depth + 1) for item in value]
        return value

    def _text(self, text: str) -> str:
        if text.isascii() and "\0" not in text:
            return text
        clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self.sanitized += clean.count("�") - text.count("�") + clean.count("\0")
        return clean.replace("\0", "")

    def _key(self, key: str) -> str:
        if "\0" in key or any("\ud800" <= character <= "\udfff" for character in key):
            raise InvalidJSON("A key holds a character that is none.")
        return key


def identifier(value: JSON, name: str, *, most: int = 160) -> str:
    """Return a key that names a project or an end user, exactly as given.

    Keys are compared byte by byte and never folded: splitting one user in two is safe, merging two is a leak.

    Raises:
        InvalidRequest: It is not a string of 1 to `most` characters, holds control characters or half a character, begins or
            ends with white space, or is what a program writes when it has no key (`null`, `undefined`).
    """
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{name} must be a non-empty string.")
    if len(value) > most:
        raise InvalidRequest(f"{name} must be at most {most} characters.")
    if value != value.strip() or any(
        ord(c) < 32 or ord(c) == 127 or "\ud800" <= c <= "\udfff" or c == "�" for c in value
    ):
        raise InvalidRequest(
            f"{name} must not hold control characters, half characters or outer white space."
        )
    if value.lower() in ("null", "undefined", "none", "nan"):
        raise InvalidRequest(f"{name} must be a real key, not the word for a missing one.")
    if name == "projectKey" and value.startswith("sk-"):
        raise InvalidRequest("projectKey must not be an API key. Choose a name that does not begin with sk-.")
    return value
