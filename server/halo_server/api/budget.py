"""Fits an answer that a model will read into its budget: whole entries go first, from the worst."""

from collections.abc import Callable, Iterator, Sequence

import orjson

from halo_server.domain import JSON

__all__ = ["fit"]

_SHORTEST = 32  # a text cut below this says nothing


def size(value: JSON) -> int:
    """Return the length of `value` as compact JSON, in characters."""
    return len(orjson.dumps(value).decode())


def fit(entries: Sequence[dict[str, JSON]], room: int) -> tuple[list[dict[str, JSON]], bool]:
    """Return the first entries that fit into `room` characters of JSON, and whether anything was left out.

    The first entry is always among them; alone and still too long, its longest texts are cut and it says `truncated`.
    """
    kept: list[dict[str, JSON]] = []
    used = 0
    for entry in entries:
        used += size(entry) + 1
        if kept and used > room:
            return kept, True
        kept.append(entry)
    if kept and used > room:
        return [_cut(kept[0], room)], True
    return kept, False


def _cut(entry: dict[str, JSON], room: int) -> dict[str, JSON]:
    """Halve the longest text of `entry` until it fits or nothing is left to cut."""
    entry = {**orjson.loads(orjson.dumps(entry)), "truncated": True}
    while size(entry) > room:
        text, put = max(_texts(entry), key=lambda found: len(found[0]))
        if len(text) <= _SHORTEST:
            break
        put(text[: max(_SHORTEST, len(text) // 2) - 1] + "…")
    return entry


def _texts(value: JSON) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield each string inside `value` with the way to replace it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, str):
            yield item, lambda text, at=key: value.__setitem__(at, text)  # type: ignore[misc]
        elif isinstance(item, dict | list):
            yield from _texts(item)
