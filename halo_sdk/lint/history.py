"""What a provider would refuse in a history about to be sent.

Calls and their results must pair as each provider wants it. A provider that pairs them in another way changes this file.

Source:
    Public issue threads named beside the checks.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from halo_sdk._plain import plain
from halo_sdk.dialects.base import Answered, Called, Dialect, Settled, mapping
from halo_sdk.lint.base import Fault, known

MAX_CALL_ID_CHARS = 40

_NEEDS_IDS = frozenset({"anthropic", "gemini-interactions", "openai", "openai-responses"})
_REMEMBERS_TURNS = frozenset({"gemini-interactions", "openai-responses"})


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A call or a result of a history.

    Attributes:
        where: Its message's place.
        part: What it is.
        needs_id: Whether the provider pairs it by an id.
    """

    where: str
    part: Called | Answered
    needs_id: bool

    @property
    def id(self) -> str | int | None:
        """Its id, if that names anything."""
        return self.part.id if isinstance(self.part.id, str | int) and self.part.id != "" else None

    @property
    def pair(self) -> tuple[str, object]:
        """What a call has in common with its result."""
        if self.id is not None:
            return "id", self.id
        return "name", self.part.name if isinstance(self.part.name, str) else None


def lint_history(messages: object, dialect: str) -> list[Fault]:
    """Return what a provider would refuse in a history about to be sent; empty when nothing is known against it.

    Calls and results are paired reading forward.

    Args:
        messages: The history: dicts, SDK objects, or both.
        dialect: Name of the provider's dialect.

    Raises:
        HaloConfigError: The dialect is unknown.
    """
    spoken = known(dialect)
    parts = list(_spoken_parts(plain(messages), spoken))
    return [
        *_empty_ids(parts),
        *_repeated_ids(parts),
        *(_long_ids(parts) if dialect == "openai" else ()),
        *_unpaired(parts, is_continued=dialect in _REMEMBERS_TURNS),
    ]


def _spoken_parts(messages: Any, dialect: Dialect) -> Iterator[_Spoken]:
    for index, message in enumerate(messages if isinstance(messages, list) else [messages]):
        fields = mapping(message)
        # In the days before calls had ids.
        is_legacy = fields.get("role") == "function" or bool(fields.get("function_call"))
        for part in dialect.parts(fields):
            if isinstance(part, Settled):
                continue
            yield _Spoken(f"[{index}]", part, dialect.name in _NEEDS_IDS and not is_legacy)


def _empty_ids(parts: Iterable[_Spoken]) -> Iterator[Fault]:
    # Source: openai-node#1946, pydantic-ai#1892, vercel/ai#7834, openai-dotnet#428, lmnr#2019.
    for each in parts:
        if each.id is None and (each.needs_id or each.part.id is not None):
            message = "an empty id pairs no call with its result: give both the same, as the `turn` of `handle` does"
            yield Fault("empty_id", each.where, message)


def _repeated_ids(parts: Iterable[_Spoken]) -> Iterator[Fault]:
    # Source: claude-code#28515, nanobot#4444, anthropic-sdk-csharp#53.
    seen: set[object] = set()
    for each in parts:
        if isinstance(each.part, Called) and each.id is not None:
            if each.id in seen:
                message = f"a second call with the id {str(each.id)[:80]!r} is refused by Anthropic, and misread elsewhere"
                yield Fault("duplicate_call_id", each.where, message)
            seen.add(each.id)


def _long_ids(parts: Iterable[_Spoken]) -> Iterator[Fault]:
    # Source: pydantic-ai#4389, autogen#6377, dify#28987; vercel/ai#8132 could not reproduce it in 2026.
    for each in parts:
        if isinstance(each.part, Called) and len(str(each.id)) > MAX_CALL_ID_CHARS:
            message = (
                f"OpenAI refuses a call id of more than {MAX_CALL_ID_CHARS} characters, though some services take 64 and more; "
                "an id may carry a signature, so never shorten it by hand: send the turn to the service it came from"
            )
            yield Fault("long_call_id", each.where, message)


def _unpaired(parts: Iterable[_Spoken], *, is_continued: bool) -> Iterator[Fault]:
    """Yield calls and results that stand alone.

    Args:
        parts: The calls and results of a history, in order.
        is_continued: The provider may remember the calls the first results answer.
    """
    # Source: agno#3105, adk-python#417, fast-agent#314, litellm#10083, claude-code#8210, opencodex#620, claude-code#18947.
    waiting: dict[tuple[str, object], list[_Spoken]] = {}
    for each in parts:
        if isinstance(each.part, Called):
            waiting.setdefault(each.pair, []).append(each)
            is_continued = False
        elif waiting.get(each.pair):
            waiting[each.pair].pop(0)
        elif not is_continued:
            message = (
                "a result without a call before it is refused by every provider: drop it, or keep its call"
            )
            yield Fault("result_without_call", each.where, message)
    for each in (call for calls in waiting.values() for call in calls):
        message = "a call without a result is refused by every provider: append exactly one result for it"
        yield Fault("call_without_result", each.where, message)
