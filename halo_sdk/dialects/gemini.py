"""Gemini `generateContent`.

Source:
    https://ai.google.dev/gemini-api/docs/function-calling (read in `google-genai` 3.6): declarations carry JSON Schema under
    `parameters_json_schema`, arguments are objects whose numbers are floats, and all results of a turn travel in one content of
    role `user`, in call order, with an id exactly when the call had one. Fields come in camelCase from the wire and in
    snake_case from an SDK's dump.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk.dialects.base import (
    Accumulator,
    Answered,
    Called,
    Dialect,
    ModelReply,
    Part,
    declaration,
    either,
    mapping,
    mappings,
    tool_call,
)
from halo_sdk.types import Declaration, Outcome

_REPLY_FIELDS = frozenset(
    {
        "candidates",
        "promptFeedback",
        "prompt_feedback",
        "usageMetadata",
        "usage_metadata",
        "modelVersion",
        "model_version",
    }
)
DECLARATIONS = ("function_declarations", "functionDeclarations")
JSON_SCHEMA = ("parameters_json_schema", "parametersJsonSchema")
"""Where a tool holds its functions, and a function its JSON Schema; `parameters` holds a schema of Gemini's own kind."""

_PIECEMEAL = ("partialArgs", "partial_args", "willContinue", "will_continue")
"""Fields of a call whose arguments come in pieces, which only one hosting of the models can do and nobody asks for unawares."""

_GOOD_FINISHES = ("STOP", "FINISH_REASON_UNSPECIFIED")


class Gemini(Dialect):
    """Contents and parts."""

    name: ClassVar[str] = "gemini"
    fields: ClassVar[tuple[str, ...]] = ("parts",)

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return one tool that holds every declaration. There is no flag for strictness; the closed schema is all."""
        spelled = [
            {
                "name": each.name,
                "description": each.description,
                "parameters_json_schema": each.parameters,
            }
            for each in declarations
        ]
        return [{"function_declarations": spelled}]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read every function of a tool, whichever of the two schema fields it uses."""
        schemas = (*JSON_SCHEMA, "parameters")
        listed = mappings(either(tool, *DECLARATIONS))
        return [declaration({**each, "schema": either(each, *schemas)}, "schema") for each in listed]

    def recognises(self, reply: object) -> bool:
        """Tell by a response's fields, or by a bare content of role `model`."""
        fields = mapping(reply)
        return not _REPLY_FIELDS.isdisjoint(fields) or ("parts" in fields and self.is_answer(fields))

    def read(self, reply: object) -> ModelReply:
        """Read the first candidate only; without content there are no calls and the finish reason is the problem."""
        fields = mapping(reply)
        if "parts" in fields:
            return _read_content(fields, None)
        candidates = mappings(fields.get("candidates"))
        if not candidates:
            return ModelReply(problem="empty_candidates")
        finish = either(candidates[0], "finishReason", "finish_reason")
        others = [mapping(each.get("content")) for each in candidates[1:]]
        return _read_content(mapping(candidates[0].get("content")), _problem(finish), others)

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one content with all results; none at all when nothing is answered yet."""
        parts = [{"function_response": _response(outcome)} for outcome in outcomes]
        return [{"role": "user", "parts": parts}] if parts else []

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `model`."""
        return message.get("role") == "model"

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by a part of role `user` that is no function response. A framework's messages have parts too, and a kind."""
        parts = mappings(message.get("parts"))
        by_user = message.get("role") in ("user", None) and "kind" not in message
        return by_user and any(not isinstance(self.part(part), Answered) for part in parts)

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a content's part: calls and results both carry the name, ids are optional."""
        call, result = _call(value), either(value, "functionResponse", "function_response")
        if call is not None:
            return Called(call.get("name"), call.get("id"))
        return Answered(result.get("name"), result.get("id")) if isinstance(result, dict) else None

    def accumulator(self) -> Accumulator:
        """Return what puts a stream of responses together."""
        return _Stream(self)


def _problem(finish: object) -> str | None:
    if not isinstance(finish, str) or finish in _GOOD_FINISHES:
        return None
    return "truncated" if finish == "MAX_TOKENS" else finish.lower()


def _read_content(
    content: Mapping[str, Any], problem: str | None, others: Sequence[Mapping[str, Any]] = ()
) -> ModelReply:
    found = _calls(content)
    if any(either(call, *_PIECEMEAL) for call in found):
        problem = "truncated"
    return ModelReply(
        calls=tuple(
            tool_call(call.get("name"), call.get("args"), call.get("id"), index)
            for index, call in enumerate(found)
        ),
        turn=(dict(content),) if content else (),
        problem=problem,
        ignored_calls=sum(len(_calls(other)) for other in others),
    )


def _calls(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [call for part in mappings(content.get("parts")) if (call := _call(part)) is not None]


def _call(part: Mapping[str, Any]) -> dict[str, Any] | None:
    call = either(part, "functionCall", "function_call")
    return call if isinstance(call, dict) else None


def _response(outcome: Outcome) -> dict[str, Any]:
    key = "output" if outcome.ok else "error"
    response = {"name": outcome.call.name, "response": {key: outcome.body}}
    return response if outcome.call.id is None else {"id": outcome.call.id, **response}


class _Stream(Accumulator):
    """Candidates by index, each with its parts one after another. A call arrives whole."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._envelope: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}

    @property
    def reply(self) -> dict[str, Any]:
        """The response so far; one whose end never came was cut, unless it calls: a call arrives whole."""
        return {
            **self._envelope,
            "candidates": [_ended(self._candidates[at]) for at in sorted(self._candidates)],
        }

    def _take(self, chunk: Mapping[str, Any]) -> None:
        self._envelope |= {
            key: value for key, value in chunk.items() if key != "candidates" and value is not None
        }
        for candidate in mappings(chunk.get("candidates")):
            index = candidate.get("index")
            at = index if isinstance(index, int) else 0
            before = self._candidates.get(at, {})
            said = {key: value for key, value in candidate.items() if value is not None}
            self._candidates[at] = {**before, **said, **_joined(before.get("content"), said.get("content"))}


def _ended(candidate: dict[str, Any]) -> dict[str, Any]:
    calls = _calls(mapping(candidate.get("content")))
    said = either(candidate, "finishReason", "finish_reason") or calls
    return candidate if said else {**candidate, "finishReason": "MAX_TOKENS"}


def _joined(before: object, added: object) -> dict[str, Any]:
    """Return content with a chunk's content added, if there is any; words that follow words are one part."""
    first, second = mapping(before), mapping(added)
    if not first and not second:
        return {}
    parts = mappings(first.get("parts"))
    for part in mappings(second.get("parts")):
        last = parts[-1] if parts else {}
        if _is_words(last) and _is_words(part) and last.get("thought") == part.get("thought"):
            parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            parts.append(dict(part))
    return {"content": {**first, **second, "parts": parts}}


def _is_words(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and not part.keys() - {"text", "thought"}
