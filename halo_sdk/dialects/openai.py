"""OpenAI Chat Completions, and the many services that speak it.

Source:
    https://platform.openai.com/docs/api-reference/chat (read in `openai` 3.57): tools are `{"type": "function", "function": …}`,
    arguments are JSON text, each call is answered by one message of role `tool` that repeats its id.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from halo_sdk._plain import dumps, loads
from halo_sdk.dialects.base import (
    Accumulator,
    Answered,
    Called,
    Dialect,
    ModelReply,
    Part,
    declaration,
    either,
    from_user,
    id_of,
    mapping,
    mappings,
    tool_call,
    without,
)
from halo_sdk.types import Declaration, Outcome, ToolCall

_KINDS = ("function", "custom")
_CALL_FIELDS = frozenset({"index", "id", "type", *_KINDS})
_PROBLEMS = {"length": "truncated", "content_filter": "content_filter", "error": "error"}
"""What is wrong with a reply that ended like this. Services end a good one in words of their own."""

_WORDS = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a streamed message that come in pieces. Some services want the reasoning that led to a call back with it."""


class OpenAI(Dialect):
    """Chat Completions."""

    name: ClassVar[str] = "openai"
    fields: ClassVar[tuple[str, ...]] = ("tool_calls", "function_call")

    def declare(self, declarations: Sequence[Declaration], *, strict: bool) -> list[dict[str, Any]]:
        """Return one tool a declaration. `strict` is always said: its absence means different things in different places."""
        return [
            {"type": "function", "function": {**each.to_dict(), "strict": strict}} for each in declarations
        ]

    def declared(self, tool: Mapping[str, Any]) -> list[Declaration]:
        """Read what is under `function`, unless the tool says that it is something else."""
        function = mapping(tool.get("function")) if tool.get("type", "function") == "function" else {}
        return [declaration(function, "parameters", strict=function.get("strict"))] if function else []

    def recognises(self, reply: object) -> bool:
        """Tell by `choices`, or by a bare assistant message."""
        fields = mapping(reply)
        # A `type` beside the role, or in a block a call, is another provider's message.
        return "choices" in fields or (
            fields.get("role") == "assistant"
            and "type" not in fields
            and all(block.get("type") != "tool_use" for block in mappings(fields.get("content")))
        )

    def read(self, reply: object) -> ModelReply:
        """Read the first choice only; a finish reason is believed when it says that the output was cut or stopped."""
        fields = mapping(reply)
        if "choices" not in fields:
            return _read_message(fields, fields)
        choices = mappings(fields["choices"])
        if not choices:
            return ModelReply(problem="empty_choices")
        return _read_message(
            mapping(choices[0].get("message")),
            fields,
            problem=_PROBLEMS.get(str(choices[0].get("finish_reason"))),
            ignored_calls=sum(len(_calls(mapping(each.get("message")))) for each in choices[1:]),
        )

    def write(self, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
        """Return one message a call. The format has no error flag, so the content says it."""
        return [_result(outcome) for outcome in outcomes]

    def is_answer(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `assistant`."""
        return message.get("role") == "assistant"

    def opens_turn(self, message: Mapping[str, Any]) -> bool:
        """Tell by the role `user`."""
        return from_user(message)

    def part(self, value: Mapping[str, Any]) -> Part | None:
        """Read a message of role `tool`, or a call. Some services pair the two by name and know no ids."""
        if value.get("role") in ("tool", "function"):
            named = either(value, "name", "tool_name")
            call_id = value.get("tool_call_id")
            return Answered(named, call_id) if named is not None or call_id is not None else None
        is_call = any(kind in value for kind in _KINDS) or {"name", "arguments"} <= value.keys()
        return (
            Called(_name(value), value.get("id"))
            if is_call and value.get("type", "function") in _KINDS
            else None
        )

    def accumulator(self) -> Accumulator:
        """Return what puts a stream of completion chunks together."""
        return _Stream(self)


def _read_message(
    message: Mapping[str, Any], reply: Mapping[str, Any], problem: str | None = None, ignored_calls: int = 0
) -> ModelReply:
    raw_calls = [
        call if call is message.get("function_call") else {**call, "id": id_of(call.get("id"), reply, index)}
        for index, call in enumerate(_calls(message))
    ]
    turn = {"role": "assistant", **without(message, "parsed")}
    if mappings(message.get("tool_calls")):
        turn["tool_calls"] = [_echo(call) for call in raw_calls]
    calls = tuple(_read_call(call, index) for index, call in enumerate(raw_calls))
    return ModelReply(calls, (turn,) if message else (), problem, ignored_calls)


def _echo(call: Mapping[str, Any]) -> dict[str, Any]:
    echo = without(call, "index")
    if isinstance(echo.get("function"), dict):
        echo["function"] = without(echo["function"], "parsed_arguments")
    return echo


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message, or the one call of the days before there were several."""
    legacy = message.get("function_call")
    return mappings(message.get("tool_calls")) or ([legacy] if isinstance(legacy, dict) else [])


def _read_call(call: Mapping[str, Any], index: int) -> ToolCall:
    spelled = mapping(call.get("function") or call.get("custom")) or call
    kind = "custom" if isinstance(call.get("custom"), dict) else "function"
    return tool_call(_name(call), either(spelled, "arguments", "input"), call.get("id"), index, kind)


def _name(call: Mapping[str, Any]) -> object:
    return (mapping(call.get("function") or call.get("custom")) or call).get("name")


def _result(outcome: Outcome) -> dict[str, Any]:
    """Return a message of role `tool`, or of role `function` for a call of the days before calls had ids."""
    content = outcome.body if outcome.ok else {"error": outcome.body}
    text = content if isinstance(content, str) else dumps(content)
    if outcome.call.id is None:
        return {"role": "function", "name": outcome.call.name, "content": text}
    return {"role": "tool", "tool_call_id": outcome.call.id, "content": text}


class _Stream(Accumulator):
    """Choices by index, each with the calls its deltas open and fill."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        self._envelope: dict[str, Any] = {}
        self._choices: dict[int, _Choice] = {}

    @property
    def reply(self) -> dict[str, Any]:
        """The completion so far."""
        choices = [self._choices[index].reply(index) for index in sorted(self._choices)]
        return {**self._envelope, "choices": choices}

    def _take(self, chunk: Mapping[str, Any]) -> None:
        chunk = mapping(chunk.get("chunk")) or chunk  # the SDK's stream helper wraps what came
        self._envelope |= {key: chunk[key] for key in ("id", "model", "created", "usage") if chunk.get(key)}
        for choice in mappings(chunk.get("choices")):
            index = choice.get("index")
            self._choices.setdefault(index if isinstance(index, int) else 0, _Choice()).take(choice)


class _Choice:
    """One answer of a streamed completion."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._calls: list[_Growing] = []
        self._by_index: dict[int, _Growing] = {}
        self._legacy: _Growing | None = None
        self._finish: str | None = None

    def reply(self, index: int) -> dict[str, Any]:
        """Return the choice; one whose end never came was cut, unless it ends with a whole call: some services never say so."""
        growing = [*self._calls, *([self._legacy] if self._legacy else [])]
        cut = self._finish is None and not (growing and all(call.is_whole for call in growing))
        message: dict[str, Any] = {"role": "assistant", "content": None, **self._texts}
        if self._calls:
            message["tool_calls"] = [call.reply() for call in self._calls]
        if self._legacy:
            message["function_call"] = {"name": self._legacy.name, "arguments": self._legacy.text}
        return {"index": index, "message": message, "finish_reason": "length" if cut else self._finish}

    def take(self, choice: Mapping[str, Any]) -> None:
        """Take in what a chunk says of this answer."""
        delta = mapping(choice.get("delta"))
        for field in _WORDS:
            if isinstance(delta.get(field), str):
                self._texts[field] = self._texts.get(field, "") + delta[field]
        for fragment in mappings(delta.get("tool_calls")):
            self._call_of(fragment).take(fragment)
        if isinstance(delta.get("function_call"), dict):
            self._legacy = self._legacy or _Growing()
            self._legacy.take({"function": delta["function_call"]})
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish

    def _call_of(self, fragment: Mapping[str, Any]) -> "_Growing":
        """Return the call a fragment belongs to. Services leave indexes and ids out, use them again, or repeat them."""
        index = fragment.get("index")
        call = self._continued_by(fragment)
        if call is None or call.is_begun_anew_by(fragment):
            call = _Growing()
            self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _continued_by(self, fragment: Mapping[str, Any]) -> "_Growing | None":
        """Return the call a fragment names, by index, by id, or by coming after it."""
        index, id_ = fragment.get("index"), fragment.get("id")
        here = self._by_index.get(index) if isinstance(index, int) else None
        opens = here is None and isinstance(index, int) and bool(_spelled(fragment).get("name"))
        if not id_:
            last = self._calls[-1] if self._calls else None
            return here or (None if opens else last)
        if here and here.id in (None, id_):
            return here
        known = next((call for call in reversed(self._calls) if call.id == id_), None)
        return None if known and known.is_whole and opens else known


class _Growing:
    """A call whose pieces arrive one after another."""

    def __init__(self) -> None:
        self.id: Any = None
        self.name = ""
        self.text = ""
        self._kind = "function"
        self._others: dict[str, Any] = {}

    def take(self, fragment: Mapping[str, Any]) -> None:
        """Take in a piece. Id and name are set; only a name that comes in pieces is joined."""
        self._kind = "custom" if isinstance(fragment.get("custom"), dict) else self._kind
        self.id = fragment.get("id") or self.id
        self._others |= {key: value for key, value in fragment.items() if key not in _CALL_FIELDS}
        spelled = _spelled(fragment)
        name = spelled.get("name")
        if isinstance(name, str) and name != self.name:
            self.name += name
        piece = either(spelled, "arguments", "input")
        text = piece if isinstance(piece, str) else "" if piece is None else dumps(piece)
        is_placeholder = self.text.strip() == "{}" and text.lstrip().startswith("{")
        self.text = text if is_placeholder else self.text + text

    def is_begun_anew_by(self, fragment: Mapping[str, Any]) -> bool:
        """Tell whether a piece opens another call, whatever its id: nothing can follow arguments that are whole."""
        spelled = _spelled(fragment)
        opens = str(spelled.get("arguments") or "").lstrip().startswith("{")
        renamed = spelled.get("name") not in (None, "", self.name)
        if not renamed and self.text.strip() == "{}":
            return False  # a placeholder some services send before the arguments
        return (opens or renamed) and bool(self.text) and self.is_whole

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are complete: a part of an object's text never is one itself, and of free text nobody can tell."""
        if self._kind == "custom":
            return False
        try:
            return isinstance(loads(self.text), dict)
        except ValueError:
            return False

    def reply(self) -> dict[str, Any]:
        """Return the call as it would have come unstreamed."""
        spelled = {"name": self.name, "input" if self._kind == "custom" else "arguments": self.text}
        return {**self._others, "id": self.id, "type": self._kind, self._kind: spelled}


def _spelled(fragment: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(fragment.get("function") or fragment.get("custom"))
