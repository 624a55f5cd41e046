"""The ports: how one provider spells declarations, calls, results, streams and history.

A dialect is pure: plain JSON in, plain JSON out; no I/O, no state, no provider SDK. It knows HALO's functions by their prefix
only. What a dialect must be able to do changes this file; a provider's change of wire format changes that provider's file.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from halo_sdk._plain import dumps, loads, plain
from halo_sdk.errors import HaloConfigError
from halo_sdk.types import Declaration, Outcome, ToolCall

PREFIX = "halo_"
"""Functions whose names begin like this are ours; every other call belongs to the application."""

_SAYING_FIELDS = (
    "audio",
    "blocks",
    "content",
    "function_call",
    "invalid_tool_calls",
    "parts",
    "refusal",
    "text",
    "tool_calls",
)
"""Where messages of any shape say or call something: one history may take away what another finds nothing else beside."""


def is_own(name: object) -> bool:
    """Tell whether a called name is one of HALO's, or pretends to be."""
    return isinstance(name, str) and name.startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model's reply says, whatever its provider.

    Attributes:
        calls: Every call, HALO's and the application's, in the reply's order.
        turn: The model's turn, ready to be appended to the history; empty when it produced none.
        problem: What is wrong with the reply as a whole: `truncated`, or the provider's word in lower case.
        ignored_calls: How many calls stand in alternatives to the first answer, which are not read.
    """

    calls: tuple[ToolCall, ...] = ()
    turn: tuple[dict[str, Any], ...] = ()
    problem: str | None = None
    ignored_calls: int = 0


@dataclass(frozen=True, slots=True)
class Called:
    """A call found in a history."""

    name: object
    id: object = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a call found in a history. It names its call by id, by the function's name, or both."""

    name: object = None
    id: object = None


@dataclass(frozen=True, slots=True)
class Settled:
    """A call with its result in one, found in a history: a provider's service carried it out itself."""

    name: object


Part = Called | Answered | Settled


class History(ABC):
    """How one provider or framework writes conversations down.

    A history claims the messages of its own shape only: others pass unchanged.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """Fields of a message whose elements, or whose one value, may be calls or results."""

    @abstractmethod
    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Tell what a message, or an element of one of its `fields`, is, if it is a call or a result."""

    def is_answer(self, message: Mapping[str, Any]) -> bool:  # noqa: ARG002 (a port's default)
        """Tell whether a message was produced by the model."""
        return False

    def opens_turn(self, message: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Tell whether a message was said by the end user, so that a new turn begins."""
        return False

    def parts(self, message: Mapping[str, Any]) -> Iterator[Part]:
        """Yield the calls and results of a message, itself first."""
        for value in (message, *(part for field in self.fields for part in _elements(message.get(field)))):
            part = self.part(value) if isinstance(value, dict) else None
            if part is not None:
                yield part

    def own_calls(self, message: Mapping[str, Any]) -> int:
        """Return how many calls of HALO's functions a message carries."""
        return sum(not isinstance(part, Answered) and is_own(part.name) for part in self.parts(message))

    def without_own_calls(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a history without HALO's calls and their results, and without results whose call is gone.

        Results are paired with calls reading forward: some services use an id again in a later turn. Messages that then say
        nothing are dropped, those of other shapes pass unchanged. Applying it twice changes nothing more.
        """
        pairs = _Pairs(self)
        return [kept for message in messages if (kept := pairs.kept(message)) is not None]


class _Pairs:
    """Which calls a history has shown so far, and what must go because of them."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._own: dict[object, bool] = {}

    def kept(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return what stays of a message, or None."""
        if self._goes(message):
            return None
        changed: dict[str, Any] = {}
        for field in self._history.fields:
            elements = _elements(message.get(field))
            left = [element for element in elements if not self._goes(element)]
            if len(left) < len(elements):
                changed[field] = left
        if not changed:
            return message
        kept = {key: changed.get(key, value) for key, value in message.items()}
        kept = {key: value for key, value in kept.items() if key not in changed or value}
        return kept if says_something(kept) else None

    def _goes(self, value: object) -> bool:
        part = self._history.part(value) if isinstance(value, dict) else None
        if isinstance(part, Settled):
            return is_own(part.name)
        if isinstance(part, Called):
            own = is_own(part.name)
            numbered = ("unnumbered", _key(part.name)) if part.id is None else ("id", _key(part.id))
            self._own |= {("name", _key(part.name)): own, numbered: own}
            return own
        if isinstance(part, Answered):
            by_id = (("id", _key(part.id)), ("unnumbered", _key(part.name)))
            pairs = (("name", _key(part.name)),) if part.id is None else by_id
            return is_own(part.name) or next((self._own[pair] for pair in pairs if pair in self._own), True)
        return False


def _key(value: object) -> object:
    return str(value) if isinstance(value, str | int) else None


def _elements(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []


class Accumulator(ABC):
    """Puts a streamed reply together, in the shape it would have had unstreamed.

    Feed it every chunk of one reply, then pass it to `handle`. A stream that breaks off leaves a reply that says it is cut in
    the provider's own word, so that a call whose arguments did not arrive whole is never carried out. Chunks of no known shape
    are ignored.
    """

    def __init__(self, dialect: "Dialect") -> None:
        self.dialect = dialect

    def feed(self, chunk: object) -> Self:
        """Take in one chunk: the SDK's object, a dict, or the JSON text of one `data:` line. Returns itself.

        Raises:
            HaloConfigError: The text is not JSON. `[DONE]` and empty lines are fine.
        """
        if isinstance(chunk, str | bytes | bytearray):
            chunk = _from_line(chunk)
        self._take(mapping(plain(chunk)))
        return self

    @property
    def turn(self) -> list[dict[str, Any]]:
        """The model's turn so far, ready to be appended to the history."""
        return list(self.dialect.read(self.reply).turn)

    @property
    @abstractmethod
    def reply(self) -> dict[str, Any]:
        """The reply so far, as the provider would have sent it unstreamed."""

    @abstractmethod
    def _take(self, chunk: Mapping[str, Any]) -> None:
        """Take in one chunk of plain JSON."""


def _from_line(line: str | bytes | bytearray) -> Any:
    text = line.decode(errors="replace") if isinstance(line, bytes | bytearray) else line
    text = text.strip().removeprefix("data:").strip()
    if text in {"", "[DONE]"}:
        return {}
    try:
        return loads(text)
    except ValueError as error:
        raise HaloConfigError("a chunk given as text must be the provider's JSON") from error


class Dialect(History):
    """One provider's spelling of function calling."""

    name: ClassVar[str]

    @abstractmethod
    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:
        """Return the provider's `tools` argument.

        Args:
            declarations: Fresh declarations, whose parameters may be used in the answer as they are.
            strict: Whether the provider should enforce the schema.
        """

    @abstractmethod
    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read back one element of `tools`; empty when it declares no function. What is absent becomes empty."""

    @abstractmethod
    def recognises(self, reply: object) -> bool:
        """Tell whether plain JSON has the shape of this provider's reply. Two dialects never recognise the same shape."""

    @abstractmethod
    def read(self, reply: object) -> ModelReply:
        """Return the calls of a reply.

        Must not raise for any JSON: what is no call is not in the answer.
        """

    @abstractmethod
    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return what to append to the history so that each outcome answers its call, in the order given."""

    def accumulator(self) -> Accumulator:
        """Return what puts one streamed reply together.

        Raises:
            HaloConfigError: Replies of this dialect are not streamed.
        """
        raise HaloConfigError(f"replies of {self.name!r} are not streamed")


def tool_call(name: object, raw: object, call_id: object, index: int, kind: str = "function") -> ToolCall:
    """Return a call as it was read, with its arguments decoded when they are JSON."""
    arguments = raw
    if isinstance(raw, str):
        try:
            arguments = plain(loads(raw))
        except ValueError:
            arguments = raw
    return ToolCall(
        name=name if isinstance(name, str) else "",
        arguments=arguments,
        id=call_id if isinstance(call_id, str) and call_id else None,
        index=index,
        raw=raw,
        kind=kind,
    )


def without(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return fields but these: an SDK's parsed copies of what it received are refused when they are sent back."""
    return {key: value for key, value in fields.items() if key not in names}


def id_of(given: object, reply: Mapping[str, Any], index: int) -> str:
    """Return a call's id, or one made up for a call that came without: the same for the turn and the result, never empty.

    A service that counts gets its number back as text, which is all a result can repeat.
    """
    if isinstance(given, str | int) and given != "":
        return str(given)
    return "call_" + hashlib.sha256(f"{index}:{dumps(reply)}".encode()).hexdigest()[:24]


def declaration(fields: Mapping[str, Any], parameters: str, *, strict: object = None) -> Declaration:
    """Return a declaration read from a provider's fields, its schema under the name given."""
    name, description = fields.get("name"), fields.get("description")
    return Declaration(
        name=name if isinstance(name, str) else "",
        description=description if isinstance(description, str) else "",
        parameters=dict(mapping(fields.get(parameters))),
        strict=strict is True,
    )


def says_something(message: Mapping[str, Any]) -> bool:
    """Tell whether anything is left of a message where messages of any shape say or call something."""
    return any(message.get(field) for field in _SAYING_FIELDS)


def from_user(message: Mapping[str, Any]) -> bool:
    """Tell whether a chat message is the end user's own: role `user`, and more than results of calls."""
    content = message.get("content")
    results = isinstance(content, list) and all(
        mapping(part).get("type") == "tool_result" for part in content
    )
    return message.get("role") == "user" and "parts" not in message and not (results and content)


def mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it has named fields, else nothing: providers and gateways leave parts out or null."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """Return those elements of a list that have named fields."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def either(fields: Mapping[str, Any], *names: str) -> Any:
    """Return the first field present under one of its spellings."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)
