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

    The first entry is always among them; alone and still too long, it is cut from the longest part on and says `truncated`.
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
    """Let what is longest in `entry` give way until it fits or nothing is left that can."""
    entry = {**orjson.loads(orjson.dumps(entry)), "truncated": True}
    while size(entry) > room and _give_way(entry):
        pass
    return entry


def _give_way(entry: dict[str, JSON]) -> bool:
    """Halve the longest text, or leave out a longer value of the application state; when all are short, the oldest messages."""
    request = entry.get("requestRaw", {})
    state = {key: size(value) for key, value in request.items() if key != "messages"}
    bulky = {key: long for key, long in state.items() if isinstance(request[key], dict | list)}
    largest = max(bulky, key=bulky.__getitem__, default="")
    text, put = max(_texts(entry), key=lambda found: len(found[0]), default=("", None))
    messages = request.get("messages")
    if bulky and bulky[largest] > len(text):
        del request[largest]
    elif put is not None and len(text) > _SHORTEST:
        put(text[: max(_SHORTEST, len(text) // 2) - 1] + "…")
    elif messages:
        del messages[: 1 + len(messages) // 8]
    else:
        return False
    return True


def _texts(value: JSON) -> Iterator[tuple[str, Callable[[str], None]]]:
    """Yield each string inside `value` with the way to replace it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, str):
            yield item, lambda text, at=key: value.__setitem__(at, text)  # type: ignore[misc]
        elif isinstance(item, dict | list):
            yield from _texts(item)
