"""Labelled sets: conversations, questions about them, and which messages answer each. What quality is measured on.

Format, version 1, one JSON object a file:

    {"name": "…", "language": "en",
     "sessions": [{"id": "s1", "occurredAt": "2025-04-01T18:20:00Z",
                   "messages": [{"id": "m1", "role": "user", "name": "Ann", "content": "…", "createdAt": "…"}]}],
     "questions": [{"id": "q1", "question": "…", "category": "…", "relevant": ["m1"]}]}

* Sessions stand in the order they were held, messages in the order they were said. Ids are unique within their object.
* `role` is `user` or `assistant`. `name`, `createdAt`, and a session's `occurredAt` may be absent; a message without
  `createdAt` was said when its session began. A time that cannot be read is no time.
* `relevant` names every message that answers the question; at least one.
* A question may name the first message it must not know, `"before": "m9"`: only what was said earlier can answer it.
* The category `adversarial` holds questions with a false premise. It is reported, and left out of the overall figures.
* `"endUsers": [{"name": …, "sessions": …, "questions": …}, …]` beside or instead of `sessions` and `questions` holds the
  conversations of several end users, each asked about alone.

The format changes by new optional fields alone; a field this version does not know is refused, since it could change what a
figure means.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from halo_server.errors import StartError

__all__ = [
    "ADVERSARIAL",
    "EndUser",
    "LabelledMessage",
    "LabelledQuestion",
    "LabelledSet",
    "Session",
    "read_set",
]

ADVERSARIAL = "adversarial"


class _Labelled(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class LabelledMessage(_Labelled):
    """What somebody said."""

    id: str
    role: Literal["user", "assistant"]
    content: str
    name: str | None = None
    created_at: str | None = None


class Session(_Labelled):
    """A conversation without a break."""

    id: str
    messages: tuple[LabelledMessage, ...]
    occurred_at: str | None = None


class LabelledQuestion(_Labelled):
    """A question and the ids of all messages that answer it."""

    id: str
    question: str = Field(min_length=1)
    category: str
    relevant: tuple[str, ...] = Field(min_length=1)
    before: str | None = None


class EndUser(_Labelled):
    """The conversations of one end user and the questions about them."""

    name: str
    sessions: tuple[Session, ...] = ()
    questions: tuple[LabelledQuestion, ...] = ()

    @property
    def messages(self) -> list[LabelledMessage]:
        """All messages, oldest first."""
        return [message for session in self.sessions for message in session.messages]

    @model_validator(mode="after")
    def _ids_name_one_thing(self) -> "EndUser":
        messages = [message.id for message in self.messages]
        _refuse_repeated("session", [session.id for session in self.sessions])
        _refuse_repeated("message", messages)
        _refuse_repeated("question", [question.id for question in self.questions])
        places = {message: place for place, message in enumerate(messages)}
        for question in self.questions:
            end = len(messages) if question.before is None else places.get(question.before, 0)
            for one in question.relevant:
                if places.get(one, end) >= end:
                    raise ValueError(f"question {question.id} asks for {one}, which nobody has said by then")
        return self


class LabelledSet(EndUser):
    """A whole file."""

    language: str = ""
    end_users: tuple[EndUser, ...] = ()

    @property
    def everyone(self) -> tuple[EndUser, ...]:
        """Every end user with something to ask about."""
        return tuple(one for one in (self, *self.end_users) if one.questions)

    @model_validator(mode="after")
    def _names_name_one_end_user(self) -> "LabelledSet":
        _refuse_repeated("end user", [one.name for one in self.everyone])
        return self


def read_set(path: Path) -> LabelledSet:
    """Return the labelled set in a file.

    Raises:
        StartError: It is none; the line names the file and the first thing that is wrong.
    """
    try:
        return LabelledSet.model_validate_json(path.read_bytes())
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, wrong["loc"])) or "the file"
        raise StartError(f"{path} is no labelled set: {where}: {wrong['msg']}.") from None


def _refuse_repeated(what: str, ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise ValueError(f"the {what} id {one} stands for two")
        seen.add(one)
