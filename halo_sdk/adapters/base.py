"""What every adapter turns into its framework's tools: HALO's functions, ready to be called.

A framework runs the loop itself, so it hands over one call at a time, by name. An adapter is a few lines: it neither plans nor
repairs nor talks to the service, and it never raises for a call that did not work out.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from halo_sdk._plain import dumps
from halo_sdk.types import Declaration, Outcome

Answer = Callable[[object, object], Outcome]
"""Carries out a call: its arguments as the model wrote them and the conversation, if the framework knows it, in; outcome out."""

AsyncAnswer = Callable[[object, object], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class BoundTool:
    """One of HALO's functions for one end user.

    Attributes:
        declaration: What the model is told.
        answer: Carries out a call and waits; None for a memory that can only be awaited.
        answer_async: Carries out a call and is awaited. Never blocks the event loop.
    """

    declaration: Declaration
    answer: Answer | None
    answer_async: AsyncAnswer


def told(outcome: Outcome) -> str:
    """Return what a model is told of an outcome, as JSON text."""
    return dumps(outcome.body if outcome.ok else {"error": outcome.body})
