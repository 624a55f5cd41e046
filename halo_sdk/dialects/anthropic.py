"""Anthropic Messages.

Source:
    https://docs.anthropic.com/en/api/messages (read in `anthropic` 2.14): calls are `tool_use` blocks whose input is an object;
    all results of a turn travel as `tool_result` blocks of one user message, each with the id of its call; the model's turn is
    echoed whole, thinking and signatures included. A stream opens, fills and closes blocks by index.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import dumps
from halo_sdk.dialects.base import (
    Accumulator,
    Answered,
    Called,
    Dialect,
    ModelReply,
    Part,
    declaration,
    from_user,
    id_of,
    mapping,
    mappings,
    tool_call,
)
from halo_sdk.dialects.blocks import Blocks
from halo_sdk.types import Declaration, Outcome

_CALLS, _RESULTS = ("tool_use", "mcp_tool_use"), ("tool_result", "mcp_tool_result")
"""Blocks of a history; those of `mcp_` come from a server the service calls itself, which may be ours."""

_CUT = ("max_tokens", "model_context_window_exceeded")
_GOOD_STOPS = ("end_turn", "stop_sequence", "tool_use")
_GROWING = frozenset({"text", "thinking"})
_SET = frozenset({"signature", "content", "encrypted_content"})
"""Fields of a delta that come whole: a signature, and what a service made of a conversation that grew too long."""


class Anthropic(Dialect):
    """Messages of content blocks."""

    name: ClassVar[str] = "anthropic"
    fields: ClassVar[tuple[str, ...]] = ("content",)

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:
        """Return one tool a declaration."""
        return [
            {
                "name": each.name,
                "description": each.description,
                "input_schema": each.parameters,
                **({"strict": True} if strict else {}),
            }
            for each in declarations
        ]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read a tool of the application's own; those the service runs itself declare no function."""
        if tool.get("type", "custom") != "custom":
            return []
        return [declaration(tool, "input_schema", strict=tool.get("strict"))]

    def recognises(self, reply: object) -> bool:
        """Tell by a message that says it is one, or by a bare one that calls."""
        fields = mapping(reply)
        blocks = mappings(fields.get("content"))
        return fields.get("role") == "assistant" and (
            (fields.get("type") == "message" and "object" not in fields and not _is_responses(fields))
            or ("type" not in fields and any(block.get("type") == "tool_use" for block in blocks))
        )

    def read(self, reply: object) -> ModelReply:
        """Read the blocks; a stop reason is believed when it says the output was cut or refused."""
        fields = mapping(reply)
        blocks = [
            {**block, "id": id_of(block.get("id"), fields, index)}
            if mapping(block).get("type") == "tool_use"
            else block
            for index, block in enumerate(_blocks(fields.get("content")))
        ]
        calls = [block for block in blocks if mapping(block).get("type") == "tool_use"]
        stop = fields.get("stop_reason")
        return ModelReply(
            calls=tuple(
                tool_call(call.get("name"), call.get("input"), call["id"], index)
                for index, call in enumerate(calls)
            ),
            turn=({"role": "assistant", "content": [_echo(block) for block in blocks]},) if blocks else (),
            problem="truncated" if stop in _CUT else _problem(stop),
        )

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one message with all results; none at all when nothing is answered yet."""
        blocks = [_result(outcome) for outcome in outcomes]
        return [{"role": "user", "content": blocks}] if blocks else []

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a content block."""
        if value.get("type") in _CALLS:
            return Called(value.get("name"), value.get("id"))
        return Answered(id=value.get("tool_use_id")) if value.get("type") in _RESULTS else None

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `assistant`."""
        return message.get("role") == "assistant"

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `user`, unless every block is a result."""
        return from_user(message)

    def accumulator(self) -> Accumulator:
        """Return what puts a stream of message events together."""
        return _Stream(self)


def _is_responses(fields: Mapping[str, Any]) -> bool:
    """Tell whether a message is an item of OpenAI's Responses, which has the same type and role."""
    return any(block.get("type") in ("output_text", "refusal") for block in mappings(fields.get("content")))


def _blocks(content: object) -> list[Any]:
    if isinstance(content, str) and content:
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _echo(block: Any) -> Any:
    """Return a block as the service accepts it back: it refuses an input that is no object."""
    fields = mapping(block)
    cannot_return = fields.get("type") == "tool_use" and not isinstance(fields.get("input"), dict)
    return {**fields, "input": {}} if cannot_return else block


def _problem(stop: object) -> str | None:
    return stop if isinstance(stop, str) and stop not in _GOOD_STOPS else None


def _result(outcome: Outcome) -> dict[str, Any]:
    said = outcome.body if isinstance(outcome.body, str) else dumps(outcome.body)
    block = {"type": "tool_result", "tool_use_id": outcome.call.id, "content": said}
    return block if outcome.ok else {**block, "is_error": True}


class _Stream(Accumulator):
    """A message and its blocks by index."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._message: dict[str, Any] = {"type": "message", "role": "assistant"}
        self._blocks = Blocks("input")

    @property
    def reply(self) -> dict[str, Any]:
        """The message so far; one whose stream broke off says `max_tokens`."""
        stop = self._message.get("stop_reason") if self._blocks.is_whole else None
        return {**self._message, "content": self._blocks.parts, "stop_reason": stop or "max_tokens"}

    def _take(self, chunk: Mapping[str, Any]) -> None:
        at = chunk.get("index")
        index = at if isinstance(at, int) else None
        match chunk.get("type"):
            case "message_start":
                self._add(mapping(chunk.get("message")))
            case "content_block_start":
                self._blocks.open(index, mapping(chunk.get("content_block")))
            case "content_block_delta":
                self._fill(index, mapping(chunk.get("delta")))
            case "content_block_stop":
                self._blocks.close(index)
            case "message_delta":
                self._add({**mapping(chunk.get("delta")), "usage": self._usage(mapping(chunk.get("usage")))})

    def _add(self, fields: Mapping[str, Any]) -> None:
        self._message |= {
            key: value for key, value in fields.items() if key != "content" and value is not None
        }

    def _usage(self, added: Mapping[str, Any]) -> dict[str, Any]:
        """Return the counts so far: they are totals, and those left out still hold."""
        counted = {key: value for key, value in added.items() if value is not None}
        return {**mapping(self._message.get("usage")), **counted}

    def _fill(self, index: object, delta: Mapping[str, Any]) -> None:
        block = self._blocks.at(index)
        if block is None:
            return
        if delta.get("type") == "input_json_delta":
            self._blocks.argue(index, delta.get("partial_json"))
        elif delta.get("type") == "citations_delta":
            block["citations"] = [*mappings(block.get("citations")), delta.get("citation")]
        else:
            block.update({field: delta[field] for field in _SET & delta.keys()})
            for field in _GROWING & delta.keys():
                block[field] = str(block.get(field) or "") + str(delta[field] or "")
