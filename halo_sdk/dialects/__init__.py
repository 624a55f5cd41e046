"""Name → dialect, the only registry. One more dialect, or one more history, is one file beside this one and one line here."""

from collections.abc import Mapping, Sequence
from typing import Any

from halo_sdk.dialects.anthropic import Anthropic
from halo_sdk.dialects.base import Dialect, History
from halo_sdk.dialects.gemini import Gemini
from halo_sdk.dialects.gemini_interactions import GeminiInteractions
from halo_sdk.dialects.json_schema import JsonSchema
from halo_sdk.dialects.langchain import LangChain
from halo_sdk.dialects.llama_index import LlamaIndex
from halo_sdk.dialects.mcp import Mcp
from halo_sdk.dialects.openai import OpenAI
from halo_sdk.dialects.openai_responses import OpenAIResponses
from halo_sdk.dialects.pydantic_ai import PydanticAI
from halo_sdk.errors import HaloConfigError

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Anthropic(),
        Gemini(),
        GeminiInteractions(),
        JsonSchema(),
        Mcp(),
        OpenAI(),
        OpenAIResponses(),
    )
}

HISTORIES: Sequence[History] = (*DIALECTS.values(), LangChain(), LlamaIndex(), PydanticAI())
"""Every way a conversation may be written down: the dialects', and those of frameworks that have one of their own."""


def named(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        HaloConfigError: There is none.
    """
    if name not in DIALECTS:
        raise HaloConfigError(f"unknown dialect {name!r}; known are {sorted(DIALECTS)}")
    return DIALECTS[name]


def detected(reply: object) -> Dialect:
    """Return the dialect a reply is written in, by its shape.

    Raises:
        HaloConfigError: No dialect, or more than one, recognises the shape.
    """
    matches = [dialect for dialect in DIALECTS.values() if dialect.recognises(reply)]
    if len(matches) != 1:
        raise HaloConfigError(
            f"cannot tell the dialect of this reply; pass dialect= one of {sorted(DIALECTS)}"
        )
    return matches[0]


def calls_in(message: Mapping[str, Any]) -> int:
    """Return how many calls of HALO's functions a message of a history carries."""
    return max(history.own_calls(message) for history in HISTORIES)


def is_call_or_result(value: Mapping[str, Any]) -> bool:
    """Tell whether a message, or an element of one, is a call of a function or its result, and nothing anybody said."""
    return any(history.part(value) is not None for history in HISTORIES)


def is_answer(message: Mapping[str, Any]) -> bool:
    """Tell whether a message of a history was produced by the model."""
    return any(history.is_answer(message) for history in HISTORIES)


def opens_turn(message: Mapping[str, Any]) -> bool:
    """Tell whether a message of a history was said by the end user, so that a new turn begins."""
    return any(history.opens_turn(message) for history in HISTORIES)


def without_own_calls(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history without HALO's calls and their results, and without results whose call is gone.

    Applying it twice changes nothing more.
    """
    kept = list(messages)
    for history in HISTORIES:
        kept = history.without_own_calls(kept)
    return kept
