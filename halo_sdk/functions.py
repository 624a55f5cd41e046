"""The functions a model may call, in neutral form, and what it is told when a call does not work out.

A new function, or a word of a declaration, changes this file; how a provider spells declarations does not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from halo_sdk.errors import HaloConfigError

PREFIX = "halo_"
"""Names that begin like this are ours; every other call belongs to the application."""

RETRIEVE = "halo_retrieve_end_user_memory"

SessionSource = Literal["model", "app"]
"""Who supplies `sessionData`: the model retypes it, or the application passes it beside the call."""

UNAVAILABLE = "memory is unavailable; answer without it"
REFUSED = "memory could not answer this call; answer without it"
CONSULTED = "memory was already consulted for this turn; answer with what you have"
CUT_OFF = "arguments were cut off; call again with shorter arguments"


@dataclass(frozen=True, slots=True)
class Function:
    """One function a model may call.

    Attributes:
        name: What the model calls it.
        description: When to call it.
        parameters: Builds a fresh JSON Schema of the arguments the model writes.
    """

    name: str
    description: str
    parameters: Callable[[SessionSource], dict[str, Any]]

    def declaration(self, session: SessionSource, *, strict: bool = False) -> dict[str, Any]:
        """Return a fresh neutral declaration: name, description, parameters, in this order.

        Args:
            session: Who supplies `sessionData`.
            strict: Close the schema so that a provider can enforce it.
        """
        parameters = self.parameters(session)
        if strict:
            parameters |= {"required": list(parameters["properties"]), "additionalProperties": False}
        return {"name": self.name, "description": self.description, "parameters": parameters}


def _retrieve_parameters(session: SessionSource) -> dict[str, Any]:
    query = "Optional retrieval focus."
    limit = "Maximum raw records to return."
    if session == "app":
        # Nullable as `anyOf`: providers' strict helpers leave it alone, while some fail on a list of types.
        return {
            "type": "object",
            "properties": {"query": _nullable("string", query), "limit": _nullable("number", limit)},
        }
    return {
        "type": "object",
        "properties": {
            "sessionData": {
                "type": "object",
                "description": "Current conversation and application state.",
                # Said aloud: several SDKs read a bare object as "no properties allowed" and close it.
                "additionalProperties": True,
            },
            "query": {"type": "string", "description": query},
            "limit": {"type": "number", "description": limit},
        },
        "required": ["sessionData"],
    }


def _nullable(kind: str, description: str) -> dict[str, Any]:
    return {"anyOf": [{"type": kind}, {"type": "null"}], "description": description}


FUNCTIONS: Mapping[str, Function] = {
    "retrieve": Function(
        RETRIEVE, "Retrieve relevant long-term memory for this end user.", _retrieve_parameters
    ),
}
"""Short name, as an application enables it, to function."""


def enabled(names: Sequence[str]) -> tuple[Function, ...]:
    """Return the functions an application enabled, in its order.

    Raises:
        HaloConfigError: A name is unknown.
    """
    if unknown := [name for name in names if name not in FUNCTIONS]:
        raise HaloConfigError(f"unknown tools {unknown}; known are {sorted(FUNCTIONS)}")
    return tuple(FUNCTIONS[name] for name in dict.fromkeys(names))


def is_own(name: object) -> bool:
    """Tell whether a called name is one of HALO's, or pretends to be."""
    return isinstance(name, str) and name.startswith(PREFIX)
