"""The port every dialect implements: how one provider spells declarations, calls, results and history.

A dialect is pure: plain JSON in, plain JSON out; no I/O, no state, no provider SDK. It knows HALO's functions by their prefix
only. What a dialect must be able to do changes this file; a provider's change of wire format changes that provider's file.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from halo_sdk._plain import loads, plain
from halo_sdk.types import Outcome, ToolCall


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model's reply says, whatever its provider.

    Attributes:
        calls: Every call, HALO's and the application's, in the reply's order.
        message: The model's turn, ready to be appended to the history; None when it produced none.
        problem: What is wrong with the reply as a whole: `truncated`, or the provider's word in lower case.
    """

    calls: tuple[ToolCall, ...] = ()
    message: dict[str, Any] | None = None
    problem: str | None = None


class Dialect(ABC):
    """One provider's spelling of function calling. The last four methods read histories; by default there are none."""

    name: ClassVar[str]

    @abstractmethod
    def declare(self, declarations: Sequence[dict[str, Any]], *, strict: bool) -> list[dict[str, Any]]:
        """Return the provider's `tools` argument.

        Args:
            declarations: Fresh neutral declarations, which may be used in the answer as they are.
            strict: Whether the provider should enforce the schema.
        """

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

    def is_answer(self, message: Mapping[str, Any]) -> bool:  # noqa: ARG002 (a port's default)
        """Tell whether a message of a history was said by the model."""
        return False

    def opens_turn(self, message: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Tell whether a message of a history was said by the end user, so that a new turn begins."""
        return False

    def own_calls(self, message: Mapping[str, Any]) -> int:  # noqa: ARG002
        """Return how many calls of HALO's functions a message of a history carries."""
        return 0

    def without_own_calls(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a history without HALO's calls and their results, and without results whose call is gone.

        Messages of other dialects pass unchanged. Applying it twice changes nothing more.
        """
        return list(messages)


def tool_call(name: object, raw: object, call_id: object, index: int) -> ToolCall:
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
    )


def mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it has named fields, else nothing: providers and gateways leave parts out or null."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """Return those elements of a list that have named fields."""
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []


def either(fields: Mapping[str, Any], *names: str) -> Any:
    """Return the first field present under one of its spellings."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)
