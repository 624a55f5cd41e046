"""Parts of a streamed reply that are opened, filled and closed by index, as more than one provider sends them."""

from collections.abc import Mapping
from typing import Any

from halo_sdk._plain import loads


class Blocks:
    """The parts so far. The arguments of a call are parsed when its part is closed, never by half.

    Args:
        arguments: The field of a part that holds a call's arguments.
    """

    def __init__(self, arguments: str) -> None:
        self._field = arguments
        self._parts: list[dict[str, Any]] = []
        self._at: dict[object, dict[str, Any]] = {}
        self._texts: dict[object, str] = {}
        self._open: set[object] = set()
        self._is_cut = False

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts in the order they were opened."""
        return [dict(part) for part in self._parts]

    @property
    def is_whole(self) -> bool:
        """Whether every part that was opened is closed."""
        return not self._open and not self._is_cut

    def open(self, index: object, part: Mapping[str, Any]) -> None:
        """Begin a part. An earlier one of the same index stays; if it was not closed, it never will be."""
        self._is_cut |= index in self._open
        self._at[index] = dict(part)
        self._parts.append(self._at[index])
        self._texts[index] = ""
        self._open.add(index)

    def at(self, index: object) -> dict[str, Any] | None:
        """Return a part to be filled, or None where none was opened."""
        return self._at.get(index)

    def argue(self, index: object, text: object) -> None:
        """Add a piece of the JSON text of a call's arguments. One that comes too late opens its part again."""
        self._texts[index] = self._texts.get(index, "") + str(text or "")
        if index in self._at and text:
            self._open.add(index)

    def close(self, index: object) -> None:
        """End a part. Arguments that are no JSON stay text, so that the model can be told."""
        self._open.discard(index)
        text = self._texts.get(index, "")
        if index in self._at and text.strip():
            self._at[index][self._field] = _parsed(text)


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return text
