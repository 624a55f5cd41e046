"""The HALO door's words: what requests and answers look like on the wire. They stop here.

Requests name what is wrong with a field and never repeat it. Answers are documented by these models and checked against
`schemas/`; every field's spelling is the seed's.
"""

from typing import Annotated, Any, Literal, Self, TypeVar
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from halo_server.api.body import identifier
from halo_server.domain import JSON, Instant
from halo_server.errors import InvalidRequest
from halo_server.transcript import read_time

__all__ = [
    "MOST_QUERY_CHARS",
    "CaptureAnswer",
    "CaptureRequest",
    "DeleteAnswer",
    "DeleteRequest",
    "ErrorAnswer",
    "FunctionAnswer",
    "FunctionArguments",
    "FunctionCall",
    "FunctionsAnswer",
    "ProjectAnswer",
    "ProjectList",
    "ProjectRequest",
    "RawEntry",
    "RawList",
    "RetrieveAnswer",
    "RetrieveRequest",
    "TopicEntry",
    "TopicList",
    "TopicMerge",
    "TopicPatch",
    "checked",
]

MOST_ENTRIES = 50
MOST_QUERY_CHARS = 32_768
MOST_NAME_CHARS = 120
MOST_ALIASES = 16


class _Wire(BaseModel):
    # By the seed's spelling alone: a second one for each field would pass the guards of `body.py`, which know the first.
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True)


Model = TypeVar("Model", bound=_Wire)


def checked(model: type[Model], value: JSON) -> Model:
    """Return the request in `value`.

    Raises:
        InvalidRequest: With the first wrong field's name and rule; its value is not repeated.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=True)[0]
        cause = first.get("ctx", {}).get("error")
        name = ".".join(str(part) for part in first["loc"] if isinstance(part, str)) or "The body"
        raise InvalidRequest(str(cause) if cause else f"{name}: {first['msg']}.") from None


def _limit(value: JSON) -> int:
    if value is None:
        return 5
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_ENTRIES:
        raise ValueError(f"limit must be a whole number from 1 to {MOST_ENTRIES}.")
    return value


def _project_key(value: JSON) -> str:
    return _as_value_error(value, "projectKey")


def _end_user_key(value: JSON) -> str:
    return _as_value_error(value, "endUserKey")


def _optional_end_user_key(value: JSON) -> str | None:
    return None if value is None else _end_user_key(value)


def _as_value_error(value: JSON, name: str) -> str:
    try:
        return identifier(value, name)
    except InvalidRequest as error:
        raise ValueError(str(error)) from None


def _session(value: JSON) -> dict[str, JSON]:
    if not isinstance(value, dict):
        raise ValueError("sessionData must be an object.")  # noqa: TRY004 (pydantic reports ValueError)
    return value


def _time(value: JSON) -> Instant | None:
    if value is None:
        return None
    found = read_time(value)
    if found is None:
        raise ValueError("occurredAt must be ISO 8601 or Unix time, from 1970 to 2100.")
    return found


_KEY_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 160})
_OPTIONAL_KEY_SCHEMA = WithJsonSchema({"type": ["string", "null"], "minLength": 1, "maxLength": 160})
ProjectKey = Annotated[Any, BeforeValidator(_project_key), _KEY_SCHEMA]
EndUserKey = Annotated[Any, BeforeValidator(_end_user_key), _KEY_SCHEMA]
OptionalEndUserKey = Annotated[Any, BeforeValidator(_optional_end_user_key), _OPTIONAL_KEY_SCHEMA]
_LIMIT_SCHEMA = {
    "type": ["number", "null"],
    "minimum": 1,
    "maximum": MOST_ENTRIES,
    "multipleOf": 1,
    "default": 5,
}
Limit = Annotated[Any, BeforeValidator(_limit), WithJsonSchema(_LIMIT_SCHEMA)]
Session = Annotated[dict[str, JSON], BeforeValidator(_session)]
Time = Annotated[Any, BeforeValidator(_time), WithJsonSchema({"type": ["string", "number", "null"]})]
QueryText = Annotated[str, Field(max_length=MOST_QUERY_CHARS)]


def _name(value: JSON, field: str) -> str:
    text = value.strip() if isinstance(value, str) else ""
    # It stands in sentences a model reads: one line, and something to see.
    seen = any(c.isprintable() and not c.isspace() for c in text)
    if not seen or len(text) > MOST_NAME_CHARS or any(category(c) in _NOT_IN_A_LINE for c in text):
        raise ValueError(
            f"{field} must be 1 to {MOST_NAME_CHARS} characters, none of them a control character."
        )
    return text


def _label(value: JSON) -> str | None:
    return None if value is None else _name(value, "label")


def _aliases(value: JSON) -> list[str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > MOST_ALIASES:
        raise ValueError(f"aliases must be a list of at most {MOST_ALIASES} names.")
    return list(dict.fromkeys(_name(alias, "Each alias") for alias in value))


_NOT_IN_A_LINE = ("Cc", "Zl", "Zp")
_NAME_SCHEMA = {"minLength": 1, "maxLength": MOST_NAME_CHARS}
Label = Annotated[Any, BeforeValidator(_label), WithJsonSchema({"type": ["string", "null"], **_NAME_SCHEMA})]
_ALIASES_SCHEMA = {
    "type": ["array", "null"],
    "items": {"type": "string", **_NAME_SCHEMA},
    "maxItems": MOST_ALIASES,
}
Aliases = Annotated[Any, BeforeValidator(_aliases), WithJsonSchema(_ALIASES_SCHEMA)]


def _topic_keys(value: list[str] | None) -> list[str] | None:
    if value is not None and not all(value):
        raise ValueError("topics must be a list of non-empty strings.")
    return value


class FunctionArguments(_Wire):
    """What a model may say. Anything else it says is dropped, identity above all."""

    session_data: Session
    query: QueryText | None = None
    limit: Limit = 5


class FunctionCall(_Wire):
    """A model's call, with the identity its application adds."""

    project_key: ProjectKey
    end_user_key: EndUserKey
    arguments: dict[str, JSON]


class CaptureRequest(_Wire):
    """One exchange: the conversation so far and the answer."""

    project_key: ProjectKey
    end_user_key: EndUserKey
    session_data: Session | None = None
    request_raw: Session | None = Field(
        None, description="Older name of sessionData; wins when both are sent."
    )
    response: dict[str, JSON] | str | None = None
    response_raw: dict[str, JSON] | str | None = Field(
        default=None, description="Older name of response; wins."
    )
    occurred_at: Time = Field(default=None, description="When it was said; the time of receipt when absent.")
    truncated_history: bool = Field(default=False, description="The client left out the oldest messages.")


class RetrieveRequest(_Wire):
    """A search outside of function calling."""

    project_key: ProjectKey
    end_user_key: EndUserKey
    topics: Annotated[list[str] | None, Field(max_length=100), AfterValidator(_topic_keys)] = None
    query: QueryText | None = None
    limit: Limit = 5
    cursor: str | None = Field(default=None, max_length=100)
    include_raw: bool = True
    include_disabled_topics: bool = False


class DeleteRequest(_Wire):
    """What to forget."""

    project_key: ProjectKey
    target: Literal["project", "scope", "user", "topic", "raw"]
    end_user_key: OptionalEndUserKey = None
    topic_key: str | None = Field(default=None, max_length=200)
    topic_id: str | None = Field(default=None, max_length=200)
    raw_entry_id: str | None = Field(default=None, max_length=200)
    include_raw: bool = False


class TopicPatch(_Wire):
    """What a person sets of a topic, one field at least; no job changes it afterwards."""

    enabled: bool | None = None
    label: Label = None
    aliases: Aliases = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.enabled is None and self.label is None and self.aliases is None:
            raise ValueError("Nothing to change: send enabled, label or aliases.")
        return self


class TopicMerge(_Wire):
    """Which topic takes this one in."""

    into: Annotated[str, Field(min_length=1, max_length=200)]


class ProjectRequest(_Wire):
    """A project to make."""

    project_key: ProjectKey


class TopicName(_Wire):
    """Which topic an entry belongs to."""

    topic_key: str


class MatchedMessage(_Wire):
    """A message of an entry that the question found."""

    message: int | None = Field(description="Its place in requestRaw.messages; null for the response.", ge=0)
    why: list[str] = Field(
        description="words, phrase, meaning, speaker; context when only what stands beside it speaks for it."
    )


class RawEntry(_Wire):
    """One exchange as it was said."""

    id: str
    topic: TopicName
    request_raw: dict[str, JSON]
    response_raw: dict[str, JSON] | None
    occurred_at: str
    recorded_at: str
    score: float | None = None
    matched: list[MatchedMessage] | None = Field(
        default=None, description="Its messages that the question found, best first."
    )
    truncated: bool | None = None


class TopicEntry(_Wire):
    """A subject of the end user's memory."""

    topic_id: str
    topic_key: str
    display_name: str
    aliases: list[str]
    confidence: float
    summary: str
    summary_sources: list[str] = Field(description="Ids of the exchanges the summary quotes, in its order.")
    enabled: bool
    pinned: list[str] = Field(
        description="What a person set, of aliases, enabled and label (the displayName)."
    )
    raw_count: int
    updated_at: str


class FunctionResponse(_Wire):
    """What a model reads."""

    request_id: str
    note: str
    overall_summary: str
    raw_entries: list[RawEntry]
    truncated: bool | None = None


class RetrieveAnswer(_Wire):
    """Selected topics and exchanges; each entry's topic is among the selected."""

    request_id: str
    project_key: str
    end_user_key: str
    selected_topic_keys: list[str]
    selection_reason: str
    overall_summary: str
    topics: list[TopicEntry]
    raw_entries: list[RawEntry]
    next_cursor: str | None = None
    degraded: list[str] | None = None


class FunctionAnswer(RetrieveAnswer):
    """The same, for a model's call."""

    name: str
    function_response: FunctionResponse


class CaptureAnswer(_Wire):
    """The receipt: what it names is on disk and found by the next retrieve."""

    captured: bool
    request_id: str
    raw_entry_id: str | None
    topic_keys: list[str]
    index: Literal["ready", "pending"]
    duplicate: bool | None = None
    forgotten: bool | None = Field(default=None, description="It was deleted before; nothing is stored.")
    sanitized: int | None = None
    truncated_history: bool | None = None
    degraded: list[str] | None = None


class DeletedCounts(_Wire):
    """How much went."""

    exchanges: int
    messages: int
    topics: int


class DeleteAnswer(_Wire):
    """The receipt of a deletion: unreachable for every later request."""

    deleted: bool
    request_id: str
    state: Literal["hidden"]
    counts: DeletedCounts


class FunctionsAnswer(_Wire):
    """The functions a model may call."""

    functions: list[dict[str, JSON]]


class ProjectAnswer(_Wire):
    """A project, with what it holds when asked for alone."""

    project_key: str
    created_at: str
    end_users: int | None = None
    exchanges: int | None = None
    topics: int | None = None


class ProjectList(_Wire):
    """Projects this key may see."""

    projects: list[ProjectAnswer]
    next_cursor: str | None


class TopicList(_Wire):
    """An end user's topics, oldest first."""

    topics: list[TopicEntry]
    next_cursor: str | None


class RawList(_Wire):
    """An end user's exchanges, newest first. A page whose entries are long may hold fewer than its limit."""

    raw_entries: list[RawEntry]
    next_cursor: str | None


class ErrorAnswer(_Wire):
    """Why a request failed; `code` is stable, the message is for people."""

    error: str
    code: str
    request_id: str
