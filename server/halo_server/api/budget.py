"""Fits an answer into its budget: whole entries go first, from the worst; the last one left is cut inside its text.

An exchange may hold thousands of messages, so nothing here is looked at once for each thing left out: every message is
measured once, and one length that all its texts are cut to is found by bisection.
"""

from collections.abc import Callable, Sequence

import orjson

from halo_server.domain import JSON

__all__ = ["byte_size", "fit", "size"]

_SHORTEST = 32  # a text cut below this says nothing
_READABLE = 400  # no text is cut below this to keep an older message, nor application state that is no text
_WHOLE = ("id", "topic", "occurredAt", "recordedAt")  # what names an entry is never cut


def size(value: JSON) -> int:
    """Return the length of `value` as compact JSON, in characters."""
    return len(orjson.dumps(value).decode())


def byte_size(value: JSON) -> int:
    """Return the length of `value` as compact JSON, in bytes of UTF-8."""
    return len(orjson.dumps(value))


def fit(
    entries: Sequence[dict[str, JSON]], room: int, measure: Callable[[JSON], int] = size
) -> tuple[list[dict[str, JSON]], bool]:
    """Return the first entries that fit into `room` of JSON as `measure` counts it, and whether anything was left out.

    The first entry is always among them; alone and still too long, it is cut and says `truncated`: its structured state
    goes first, then the oldest messages, and what is left is shortened, the longest texts most.
    """
    used = 0
    for place, entry in enumerate(entries):
        used += measure(entry) + 1
        if used > room:
            return list(entries[:place]) or [_cut(entry, room, measure)], True
    return list(entries), False


def _cut(entry: dict[str, JSON], room: int, measure: Callable[[JSON], int]) -> dict[str, JSON]:
    """Return a copy of `entry` that fits; where even that is too long, only what names it is left."""
    entry = {**entry, "truncated": True}
    excess = measure(_shortened(entry, _READABLE)) - room
    if excess > 0 and isinstance(entry.get("requestRaw"), dict):
        entry["requestRaw"] = _without_oldest(entry["requestRaw"], excess, measure)
    entry = _emptied(entry, room, measure)
    fits, over = _SHORTEST, min(_longest(entry), max(room, _SHORTEST)) + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        if measure(_shortened(entry, middle)) <= room:
            fits = middle
        else:
            over = middle
    return _shortened(entry, fits)


def _without_oldest(request: dict[str, JSON], excess: int, measure: Callable[[JSON], int]) -> dict[str, JSON]:
    """Leave out `excess`: structured values of the state, the largest first, then messages, but never the newest."""
    state = {key: value for key, value in request.items() if key != "messages"}
    bulky = {
        key: measure(_cut_texts(value, _READABLE)) for key, value in state.items() if _is_structure(value)
    }
    gone = set()
    for key in sorted(bulky, key=bulky.__getitem__, reverse=True):
        if excess <= 0:
            break
        gone.add(key)
        excess -= bulky[key] + measure(key) + 2  # its colon and comma
    left = {key: value for key, value in request.items() if key not in gone}
    messages = request.get("messages")
    if isinstance(messages, list):
        oldest = 0
        while excess > 0 and oldest < len(messages) - 1:
            excess -= measure(_cut_texts(messages[oldest], _READABLE)) + 1
            oldest += 1
        left["messages"] = messages[oldest:]
    return left


def _emptied(entry: dict[str, JSON], room: int, measure: Callable[[JSON], int]) -> dict[str, JSON]:
    """Leave out what holds no text that could be cut: all state, then the larger of question and answer, then both."""
    request = entry.get("requestRaw")
    if not isinstance(request, dict):
        return entry
    messages, answer = request.get("messages", []), entry.get("responseRaw")
    sizes = [measure(_cut_texts(value, _SHORTEST)) for value in (messages, answer)]
    one = ([], answer) if sizes[0] >= sizes[1] else (messages, None)
    for said, answered in ((messages, answer), one, ([], None)):
        if measure(_shortened(entry, _SHORTEST)) <= room:
            break
        entry = {**entry, "requestRaw": {"messages": said}, "responseRaw": answered}
    return entry


def _shortened(entry: dict[str, JSON], most: int) -> dict[str, JSON]:
    """Return a copy of `entry` in which no text is longer than `most` characters, but for what names it."""
    return {key: value if key in _WHOLE else _cut_texts(value, most) for key, value in entry.items()}


def _cut_texts(value: JSON, most: int) -> JSON:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[: most - 1]}…"
    if isinstance(value, dict):
        return {key: _cut_texts(item, most) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut_texts(item, most) for item in value]
    return value


def _longest(value: JSON) -> int:
    """Return the length of the longest text in `value`."""
    if isinstance(value, str):
        return len(value)
    items = value.values() if isinstance(value, dict) else value
    return max(map(_longest, items), default=0) if _is_structure(value) else 0


def _is_structure(value: JSON) -> bool:
    return isinstance(value, dict | list)
