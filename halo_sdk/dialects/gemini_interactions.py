"""Gemini Interactions.

Source:
    https://ai.google.dev/gemini-api/docs/interactions (read in `google-genai` 3.6): a conversation is a list of steps, arguments
    are objects, a result is a step that names its call by `call_id`; the service may keep the earlier steps itself. A stream
    opens, fills and closes steps by index; arguments come as pieces of JSON text.
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
    id_of,
    mapping,
    mappings,
    tool_call,
)
from halo_sdk.dialects.blocks import Blocks
from halo_sdk.types import Declaration, Outcome

_CALL, _RESULT = "function_call", "function_result"
_BY_MODEL = ("model_output", "thought")
_GOOD_STATUSES = ("completed", "idle", "requires_action")


class GeminiInteractions(Dialect):
    """Steps."""

    name: ClassVar[str] = "gemini-interactions"

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return one flat tool a declaration. There is no flag for strictness; the closed schema is all."""
        return [{"type": "function", **each.to_dict()} for each in declarations]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read a function."""
        return [declaration(tool, "parameters")] if tool.get("type") == "function" else []

    def recognises(self, reply: object) -> bool:
        """Tell by a list of steps, or by what the object says it is: one that failed may have no steps."""
        fields = mapping(reply)
        return isinstance(fields.get("steps"), list) or fields.get("object") == "interaction"

    def read(self, reply: object) -> ModelReply:
        """Read the steps; the status is believed when it says that the output was cut or failed."""
        fields = mapping(reply)
        steps = [
            {**step, "id": id_of(step.get("id"), fields, index)} if step.get("type") == _CALL else step
            for index, step in enumerate(mappings(fields.get("steps")))
            if step.get("type") != "user_input"
        ]
        calls = [step for step in steps if step.get("type") == _CALL]
        status = fields.get("status")
        return ModelReply(
            calls=tuple(
                tool_call(call.get("name"), call.get("arguments"), call["id"], index)
                for index, call in enumerate(calls)
            ),
            turn=tuple(_echo(step) for step in steps),
            problem=_problem(status) if isinstance(status, str) else None,
        )

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one step a call."""
        return [_result(outcome) for outcome in outcomes]

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a step. One with a `call_id` is another provider's call."""
        if value.get("type") == _CALL and "call_id" not in value:
            return Called(value.get("name"), value.get("id"))
        if value.get("type") == _RESULT:
            return Answered(value.get("name"), value.get("call_id"))
        return None

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the steps only a model produces."""
        return message.get("type") in _BY_MODEL or isinstance(self.part(message), Called)

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by a step of the end user's."""
        return message.get("type") == "user_input"

    def accumulator(self) -> Accumulator:
        """Return what puts a stream of step events together."""
        return _Stream(self)


def _problem(status: str) -> str | None:
    if status in _GOOD_STATUSES:
        return None
    return "truncated" if status == "incomplete" else status


def _echo(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step as the service accepts it back: it refuses arguments that are no object."""
    cannot_return = step.get("type") == _CALL and not isinstance(step.get("arguments"), dict)
    return {**step, "arguments": {}} if cannot_return else dict(step)


def _result(outcome: Outcome) -> dict[str, Any]:
    step = {
        "type": _RESULT,
        "call_id": outcome.call.id,
        "name": outcome.call.name,
        "result": outcome.body if isinstance(outcome.body, str | dict) else {"output": outcome.body},
    }
    return step if outcome.ok else {**step, "is_error": True}


class _Stream(Accumulator):
    """An interaction and its steps by index."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._interaction: dict[str, Any] = {}
        self._steps = Blocks("arguments")
        self._ended = False

    @property
    def reply(self) -> dict[str, Any]:
        """The interaction so far; one whose stream broke off, or left a step open, is incomplete."""
        said = mappings(self._interaction.get("steps"))
        whole = self._ended and (said or self._steps.is_whole)
        status = self._interaction.get("status") if whole else "incomplete"
        return {**self._interaction, "steps": said or self._steps.parts, "status": status}

    def _take(self, chunk: Mapping[str, Any]) -> None:
        given = chunk.get("index")
        index = given if isinstance(given, int) else None
        match chunk.get("event_type"):
            case "interaction.created":
                said = mapping(chunk.get("interaction"))
                self._interaction = {key: value for key, value in said.items() if key != "steps"}
            case "interaction.completed":
                self._interaction |= mapping(chunk.get("interaction"))
                self._ended = True
            case "interaction.status_update":
                self._interaction["status"] = chunk.get("status")
            case "error":
                self._interaction |= {"status": "failed", "errors": [dict(mapping(chunk.get("error")))]}
                self._ended = True
            case "step.start":
                self._steps.open(index, mapping(chunk.get("step")))
            case "step.delta":
                self._fill(index, mapping(chunk.get("delta")))
            case "step.stop":
                self._steps.close(index)

    def _fill(self, index: int | None, delta: Mapping[str, Any]) -> None:
        step = self._steps.at(index)
        if step is None:
            return
        match delta.get("type"):
            case "arguments_delta":
                self._steps.argue(index, delta.get("arguments"))
            case "thought_signature":
                step["signature"] = str(step.get("signature") or "") + str(delta.get("signature") or "")
            case "thought_summary":
                step["summary"] = [*mappings(step.get("summary")), delta.get("content")]
            case "text" | "text_annotation_delta":
                step["content"] = _with_words(mappings(step.get("content")), delta)
            case _ if step.get("type") == "model_output":
                step["content"] = [*mappings(step.get("content")), dict(delta)]
            case _:  # a step of a tool the service runs itself: its delta repeats the step's type
                step |= {key: value for key, value in delta.items() if key != "type"}


def _with_words(content: list[dict[str, Any]], delta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return content with a delta's text, or the sources of it, added to its last block, if that is text."""
    continues = bool(content) and content[-1].get("type") == "text"
    before, last = (content[:-1], content[-1]) if continues else (content, {"type": "text"})
    block: dict[str, Any] = {**last, "text": str(last.get("text") or "") + str(delta.get("text") or "")}
    if sources := mappings(delta.get("annotations")):
        block["annotations"] = [*mappings(block.get("annotations")), *sources]
    return [*before, block]
