"""Anything a provider's SDK hands out, as plain JSON that can be sent.

Provider objects, proto messages, dataclasses, bytes and broken text all arrive here; what leaves is made of dict, list, str, int,
float, bool and None only, is finite, and encodes as UTF-8. A new kind of carrier object changes this file.
"""

import dataclasses
import enum
import hashlib
import json
import math
import types
from collections.abc import Iterable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

MAX_DEPTH = 56
"""Deeper values are cut: no conversation needs them, serialisers recurse, and a service takes 64 levels, a request's own among
them."""

_CUT = "…"
_BINARY = bytes | bytearray | memoryview
_WIDEST_INT_BITS = 1_000  # still a finite float; Python refuses to print integers beyond 4,300 digits


class Substitute(str):
    """Text nobody wrote: what stands for a value that is neither text nor anything JSON has."""

    __slots__ = ()


def plain(value: object) -> Any:
    """Return `value` as plain JSON.

    Never raises for what a provider's SDK can hold: text with lone surrogates is repaired (U+FFFD), bytes become a placeholder,
    numbers JSON cannot express become null, what is nested deeper than `MAX_DEPTH` is cut, and an object of an unknown kind
    becomes its type's name, as a `Substitute`.
    """
    return _plain(value, 0)


def _plain(value: object, depth: int) -> Any:
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, bool | str | int | float):
        return _plain_scalar(value)
    if depth >= MAX_DEPTH:
        return _CUT
    fields = _fields(value)
    if fields is not None:
        return {clean_text(str(key)): _plain(fields[key], depth + 1) for key in fields.keys()}  # noqa: SIM118 (duck-typed)
    if isinstance(value, Iterable) and not isinstance(value, _BINARY):
        return [_plain(element, depth + 1) for element in value]
    return _plain_leaf(value)


def _plain_scalar(value: str | float | None) -> Any:
    """Return a scalar as its plain type: a subclass may serialise in its own way."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if value.bit_length() <= _WIDEST_INT_BITS else None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def _plain_leaf(value: object) -> Any:
    if isinstance(value, _BINARY):
        return omitted(bytes(value))
    if isinstance(value, date | time):
        return Substitute(value.isoformat())
    return Substitute(value if isinstance(value, UUID | Decimal) else f"<{type(value).__name__}>")


def _fields(value: object) -> Mapping[Any, Any] | None:
    """Return what an object says about itself, if it is a thing with named fields."""
    if isinstance(value, type):
        return None
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, types.SimpleNamespace):
        return vars(value)
    return _dumped(value)


def _dumped(value: object) -> Mapping[Any, Any] | None:
    if callable(dump := getattr(value, "model_dump", None)):
        # A gateway may have put other types into a provider's model; pydantic would warn about each.
        options = {"by_alias": True, "exclude_none": True, "warnings": False}
        try:
            return _mapping(
                dump(mode="json", **options)
            )  # signatures are bytes that must go back as they came
        except ValueError:  # a value JSON has no word for
            return _mapping(dump(**options))
    if callable(dump := getattr(value, "to_dict", None)):
        return _mapping(dump())
    # Proto maps answer like a dict without being registered as one.
    return (
        cast("Mapping[Any, Any]", value) if hasattr(value, "keys") and hasattr(value, "__getitem__") else None
    )


def _mapping(value: object) -> Mapping[Any, Any] | None:
    return value if isinstance(value, Mapping) else None


def clean_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and lone surrogates replaced by U+FFFD, so that it encodes as UTF-8."""
    if text.isascii():
        return str(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str(text)


def omitted(content: bytes, media_type: str = "") -> dict[str, Any]:
    """Return the placeholder that stands for binary content: its kind, size and digest."""
    kind = media_type.partition("/")[0]
    return {
        "type": kind if kind in {"image", "audio", "video"} else "file",
        "omitted": True,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def loads(text: str | bytes | bytearray) -> Any:
    """Parse strict JSON.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, or holds a number JSON cannot express.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(name: str) -> float:
    message = f"{name} is not JSON"
    raise ValueError(message)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits)


def dumps(value: object) -> str:
    """Serialise plain JSON compactly, in the characters it holds."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def size_bytes(value: object) -> int:
    """Return how many bytes plain JSON takes on the wire."""
    return len(dumps(value).encode())
