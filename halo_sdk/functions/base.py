"""The port every function a model may call implements: how it is told to a model, and how a call of it is carried out.

One more function is one file beside this one and one line in `functions/__init__`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from halo_sdk._arguments import Repair
from halo_sdk._session import Session
from halo_sdk._wire import Request, function_request
from halo_sdk.types import Declaration, Effects, Reply, Scope, Value

SessionSource = Literal["model", "app"]
"""Who supplies the conversation: the model retypes it as `sessionData`, or the application passes it beside the call."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a function, ready to be carried out.

    Attributes:
        scope: Whose memory is meant. From the application, never from the model.
        arguments: What the model wrote, repaired and checked.
        session: The conversation, if the application passed it.
    """

    scope: Scope
    arguments: dict[str, Any]
    session: Session | None


class Function(ABC):
    """One function a model may call."""

    key: ClassVar[str]
    """What an application enables it by."""

    name: ClassVar[str]
    """What the model calls it."""

    description: ClassVar[str]
    effects: ClassVar[Effects]
    repairs: ClassVar[Mapping[str, Repair]] = {}
    """How values a model got wrong are understood, by parameter."""

    @abstractmethod
    def parameters(self, session: SessionSource) -> dict[str, Any]:
        """Return a fresh JSON Schema of the arguments the model writes."""

    def request(self, made: Invocation) -> Request:
        """Return what carries out a call: the arguments as they are, unless a function says otherwise.

        Raises:
            ToolCallError: The call cannot be carried out. The message is for the model.
        """
        return function_request(made.scope, self.name, made.arguments)

    @abstractmethod
    def result(self, reply: Reply) -> Value:
        """Read the service's answer.

        Raises:
            HaloResponseError: It is not what was promised.
        """

    def body(self, result: Any) -> dict[str, Any]:
        """Return what the model is told of a result."""
        told: dict[str, Any] = result.to_dict()
        return told

    def declaration(self, session: SessionSource, *, strict: bool = False) -> Declaration:
        """Return a fresh declaration.

        Args:
            session: Who supplies the conversation.
            strict: Close the schema so that a provider can enforce it.
        """
        parameters = self.parameters(session)
        if strict:
            parameters |= {"required": list(parameters["properties"]), "additionalProperties": False}
        return Declaration(self.name, self.description, parameters, strict, self.effects)


def nullable(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    """Return a schema that also takes null, spelled as every provider's strict mode understands it.

    As `anyOf`: strict helpers leave it alone, while some fail on a list of types.
    """
    return {"anyOf": [dict(schema), {"type": "null"}], "description": description}
