"""What a model wrote, as arguments that may be sent.

A model is an untrusted author: it double-encodes, invents parameters, names other people, and writes numbers as words. What can
be understood is repaired, what was never declared is dropped, the rest is refused in words the model can act on. A new parameter
of a declaration, or a new way models get one wrong, changes this file.
"""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from halo_sdk._plain import clean_text, loads, plain
from halo_sdk.errors import InvalidArgumentsError

Repair = Callable[[object], object]
"""Returns what a value a model wrote must have meant, or None when it means nothing."""

logger = logging.getLogger("halo_sdk")

MAX_TEXT_BYTES = 256 * 1024
"""Longer argument text is refused before it is parsed."""

MAX_LIMIT = 50
MAX_QUERY_CHARS = 4_000

_IDENTITY = frozenset({"projectKey", "endUserKey", "project_key", "end_user_key"})
_MOST_NAMES_LOGGED = 10
_FLAGS = {"true": True, "false": False}


def decoded(raw: object) -> Any:
    """Return what argument text means: an object encoded once or twice, and `{}` for nothing.

    Raises:
        InvalidArgumentsError: The text is not strict JSON, or too long.
    """
    value = plain(raw)
    for _ in range(2):
        if not isinstance(value, str):
            break
        value = _parsed(value)
    return {} if value is None else value


def _parsed(text: str) -> Any:
    if not text.strip():
        return None
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise InvalidArgumentsError(f"arguments are longer than {MAX_TEXT_BYTES} bytes")
    try:
        return plain(loads(text))
    except ValueError as error:
        raise InvalidArgumentsError("arguments are not valid JSON; send one JSON object") from error


def read_arguments(
    raw: object, parameters: Mapping[str, Any], repairs: Mapping[str, Repair]
) -> dict[str, Any]:
    """Return the declared arguments of a model's call, repaired and checked.

    Undeclared arguments are dropped, those that name an identity above all; only their names are logged.

    Args:
        raw: What the model wrote: JSON text, an object, or nothing.
        parameters: The JSON Schema the model was shown.
        repairs: How to understand the value of a parameter.

    Raises:
        InvalidArgumentsError: The arguments cannot be understood, or do not fit the schema. The message is for the model.
    """
    written = decoded(raw)
    if not isinstance(written, dict):
        raise InvalidArgumentsError("arguments must be one JSON object")
    declared = parameters["properties"]
    if undeclared := [name for name in written if name not in declared]:
        logger.warning("dropped undeclared arguments: %s", _printable(undeclared))
    understood = {name: repairs.get(name, _unchanged)(written.get(name)) for name in declared}
    arguments = {name: value for name, value in understood.items() if value is not None}
    _check(arguments, parameters)
    return arguments


def _printable(names: list[str]) -> str:
    return ", ".join(ascii(name[:64]) for name in names[:_MOST_NAMES_LOGGED])


def read_session_data(value: object) -> dict[str, Any]:
    """Return session data without identities: text is wrapped, a list is messages, anything else is nothing."""
    if isinstance(value, str):
        value = _from_text(value)
    if isinstance(value, list):
        value = {"messages": value}
    return _without_identity(value) if isinstance(value, dict) else {}


def _from_text(text: str) -> object:
    try:
        value = decoded(text)
    except InvalidArgumentsError:
        value = text
    return value if isinstance(value, dict | list) else {"text": text}


def _without_identity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_identity(part) for key, part in value.items() if key not in _IDENTITY}
    return [_without_identity(part) for part in value] if isinstance(value, list) else value


def read_query(value: object) -> str | None:
    """Return text to search for, at most `MAX_QUERY_CHARS` of it."""
    if not isinstance(value, str):
        return None
    return clean_text(value.strip()[:MAX_QUERY_CHARS]) or None


def read_limit(value: object) -> int | None:
    """Return a whole number from 1 to `MAX_LIMIT`; one written as text is read, one outside is clamped."""
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(1, min(MAX_LIMIT, int(value)))


def read_flag(value: object) -> bool | None:
    """Return true or false, also where it was written as text."""
    if isinstance(value, str):
        return _FLAGS.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unchanged(value: object) -> object:
    return value


def _check(arguments: dict[str, Any], parameters: Mapping[str, Any]) -> None:
    # Loaded at first use: it takes longer to import than the rest of this package.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    fault = next(Draft202012Validator(parameters).iter_errors(arguments), None)
    if fault is not None:
        where = "".join(f" {part!r}" for part in fault.absolute_path)
        raise InvalidArgumentsError(f"argument{where} does not fit the declaration ({fault.validator})")
