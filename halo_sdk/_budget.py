"""Fits JSON into the room there is: above all an answer into what a model may be shown.

Whole entries go first, from the worst; the last one left is cut inside its texts; the answer says `truncated` and stays valid
JSON. How memory is shortened for a model changes this file.
"""

from collections.abc import Callable
from typing import Any

from halo_sdk._plain import dumps

_KEPT_WHOLE = frozenset({"id", "role", "type", "topicKey", "requestId", "occurredAt", "recordedAt", "note"})


def fitted(body: dict[str, Any], limit_chars: int) -> dict[str, Any]:
    """Return `body`, or a shorter form of it that serialises to at most `limit_chars` characters.

    Args:
        body: A function response. It is not changed.
        limit_chars: Most characters of the serialised answer.
    """
    if _size_chars(body) <= limit_chars:
        return body
    entries = body.get("rawEntries")
    shorter = body | {"truncated": True}
    if isinstance(entries, list) and entries:
        shorter["rawEntries"] = _leading(entries, limit_chars - _size_chars(shorter | {"rawEntries": []}))
    for candidate in (shorter, shorter | {"rawEntries": []}):
        cut = cut_to_fit(candidate, limit_chars, _size_chars)
        if cut is not None:
            return cut
    return {"truncated": True}


def _leading(entries: list[Any], room_chars: int) -> list[Any]:
    """Return as many entries from the front as fit, but at least one."""
    kept = 0
    for entry in entries:
        room_chars -= _size_chars(entry) + 1
        if room_chars < 0:
            break
        kept += 1
    return entries[: max(kept, 1)]


def _size_chars(value: Any) -> int:
    return len(dumps(value))


def cut_to_fit(body: dict[str, Any], limit: int, size: Callable[[Any], int]) -> dict[str, Any] | None:
    """Return `body` with every text and list cut to the greatest length that fits, or None when no length does.

    Args:
        body: Plain JSON. It is not changed.
        limit: The greatest size.
        size: What a value counts, at least one for each character of a text and each element of a list.
    """
    if size(body) <= limit:
        return body
    fits, low, high = None, 0, limit
    while low <= high:
        middle = (low + high) // 2
        candidate = _cut(body, middle)
        if size(candidate) <= limit:
            fits, low = candidate, middle + 1
        else:
            high = middle - 1
    return fits


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else value[:most] + "…"
    if isinstance(value, list):
        return [_cut(part, most) for part in value[:most]]
    if isinstance(value, dict):
        return {key: part if key in _KEPT_WHOLE else _cut(part, most) for key, part in value.items()}
    return value
