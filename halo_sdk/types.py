"""The values an application holds: frozen, and tolerant of services that say more or less than ours.

Fields are read by attribute in Python's spelling and written by `to_dict` in the wire's. A new field of an answer works without a
change here (`extra="allow"`); naming it here gives it a type.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self, TypeVar
from unicodedata import category

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr
from pydantic.alias_generators import to_camel

from halo_sdk.errors import HaloConfigError, HaloError

MAX_KEY_CHARS = 160
_NOBODY = frozenset({"null", "none", "undefined", "nan"})


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory is meant: one end user of one project. The unit of isolation.

    Raises:
        HaloConfigError: A key is empty, longer than 160 characters, a word for "nobody" such as `null`, holds control characters
            or outer white space, or looks like a credential. No service takes such a key, so no memory could ever answer.
    """

    project: str
    end_user: str

    def __post_init__(self) -> None:
        _check_key(self.project, "project_key")
        _check_key(self.end_user, "end_user_key")
        if self.project.startswith("sk-"):
            raise HaloConfigError("project_key looks like a secret key; it is the name of a project")


def _check_key(key: object, name: str) -> None:
    if not isinstance(key, str) or not key.strip():
        raise HaloConfigError(f"{name} must be a non-empty string")
    if len(key) > MAX_KEY_CHARS:
        raise HaloConfigError(f"{name} is longer than {MAX_KEY_CHARS} characters")
    if key.strip().lower() in _NOBODY:
        raise HaloConfigError(f"{name} is a word for nobody; every such user would share one memory")
    if any(category(character) in {"Cc", "Cs"} or character == "\ufffd" for character in key):
        raise HaloConfigError(f"{name} holds control characters or broken text")
    if key != key.strip():
        raise HaloConfigError(f"{name} begins or ends with white space")


@dataclass(frozen=True, slots=True)
class Effects:
    """What calling a function does to memory, for hosts that ask a person before they run one.

    Attributes:
        read_only: Nothing is written.
        destructive: Something may be lost.
        idempotent: A second identical call changes nothing more.
    """

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function as a model is told of it, before any provider's spelling.

    Attributes:
        name: What the model calls it.
        description: When to call it.
        parameters: JSON Schema of the arguments the model writes.
        strict: Whether the provider is asked to enforce the schema.
        effects: What calling it does, where that is known.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False
    effects: Effects | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return name, description and parameters, in this order."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request of a model to run a function.

    Attributes:
        name: The function's name as the model wrote it.
        arguments: What it wants to pass: decoded when it is JSON, else as written.
        id: The provider's opaque id of the call, if it gave one.
        index: The call's place in the reply.
        raw: The arguments exactly as they arrived.
        kind: `function`, or the provider's word for a call that takes free text.
    """

    name: str
    arguments: Any
    id: str | None = None
    index: int = 0
    raw: Any = None
    kind: str = "function"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call.

    Attributes:
        call: The call.
        ok: Whether it was carried out.
        body: What the model is told.
        error: Why it was not carried out.
    """

    call: ToolCall
    ok: bool
    body: Any
    error: HaloError | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the service, as it arrived. Header names are in lower case."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)  # holds memory, which belongs in no log


def _nothing_for_null(value: object) -> object:
    return () if value is None else value


_Element = TypeVar("_Element")
Many = Annotated[tuple[_Element, ...], BeforeValidator(_nothing_for_null)]


class Value(BaseModel):
    """An answer of the service, or a part of one."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        protected_namespaces=(),
        defer_build=True,  # building validators takes longer than importing the rest of this package
    )

    _reply: Reply | None = PrivateAttr(None)

    def __eq__(self, other: object) -> bool:
        """Tell whether two values say the same; how they arrived does not matter."""
        return isinstance(other, Value) and type(self) is type(other) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    @property
    def reply(self) -> Reply | None:
        """The service's answer as it arrived, status and headers; None on the parts of a result."""
        return self._reply

    def from_reply(self, reply: Reply) -> Self:
        """Return the value, which now knows what it was read from."""
        self._reply = reply
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON in the wire's spelling, with the fields the service sent."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def to_json(self) -> str:
        """Return the value as JSON text in the wire's spelling, with the fields the service sent."""
        return self.model_dump_json(by_alias=True, exclude_unset=True)


class TopicLink(Value):
    """The topic an exchange belongs to."""

    topic_key: str | None = None


class Topic(Value):
    """A subject within an end user's memory."""

    topic_id: str | None = None
    topic_key: str | None = None
    display_name: str | None = None
    aliases: Many[str] = ()
    confidence: float | None = None
    summary: str | None = None
    enabled: bool | None = None
    raw_count: int | None = None


class MatchedMessage(Value):
    """A message of an entry that the question found.

    Attributes:
        message: Its place in the request's messages; None for the response.
        why: What speaks for it, such as `words` or `meaning`.
    """

    message: int | None = None
    why: Many[str] = ()


class RawEntry(Value):
    """One captured exchange, verbatim."""

    id: str | None = None
    topic: TopicLink | None = None
    request_raw: Mapping[str, Any] | None = None
    response_raw: Any = None
    occurred_at: str | None = None
    recorded_at: str | None = None
    score: float | None = None
    matched: Many[MatchedMessage] = ()


class FunctionResponse(Value):
    """The compact part of an answer that is meant for the model."""

    request_id: str | None = None
    note: str | None = None
    overall_summary: str | None = None
    raw_entries: Many[RawEntry] = ()
    truncated: bool = False


class RetrieveResult(Value):
    """What the service chose from an end user's memory, and why. Empty for an end user never seen before."""

    request_id: str | None = None
    name: str | None = None
    project_key: str | None = None
    end_user_key: str | None = None
    selected_topic_keys: Many[str] = ()
    selection_reason: str | None = None
    overall_summary: str | None = None
    topics: Many[Topic] = ()
    raw_entries: Many[RawEntry] = ()
    function_response: FunctionResponse = Field(default_factory=FunctionResponse)
    degraded: Many[str] = ()


class CaptureResult(Value):
    """The receipt of a capture: the exchange is on disk.

    Attributes:
        duplicate: The service had this exchange already.
        forgotten: The exchange was deleted before; nothing was stored.
        index: `ready`, or `pending` while the exchange can be found by its words only.
        truncated_history: Older messages were left out to stay within what one capture may hold.
    """

    captured: bool = True
    request_id: str | None = None
    raw_entry_id: str | None = None
    topic_keys: Many[str] = ()
    index: str | None = None
    duplicate: bool = False
    forgotten: bool = False
    truncated_history: bool = False
    degraded: Many[str] = ()
