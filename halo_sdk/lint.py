"""What a provider would refuse in a tool or a history, said before it is sent.

Providers refuse a whole request for one bad tool, often in words that name neither the tool nor the cure. The rules are one
table, each with its evidence; a provider's change of mind changes one line of it. A rule speaks of what services refuse, or what
they and their clients silently change, not of taste. Limits some services have lifted stay while others keep them.

Source:
    Public issue threads named beside the rules; the "Structured Outputs" guide of OpenAI, the "Structured output" guide of Gemini.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from halo_sdk._plain import plain
from halo_sdk.dialects import DIALECTS, named
from halo_sdk.dialects.base import Answered, Called, Dialect, Settled, declaration, either, mapping, mappings
from halo_sdk.errors import HaloConfigError
from halo_sdk.types import Declaration

MAX_DESCRIPTION_CHARS = 1_024
MAX_STRICT_LEVELS = 5
MAX_STRICT_OPTIONAL = 24
MAX_CALL_ID_CHARS = 40

GEMINI_PARAMETERS = "gemini parameters"
"""Where a rule holds for Gemini's older schema field, which is no JSON Schema."""

_OPENAI = frozenset({"openai", "openai-responses"})
_ANTHROPIC = frozenset({"anthropic"})
_GEMINI = frozenset({"gemini", "gemini-interactions", GEMINI_PARAMETERS})
_PROTO = frozenset({GEMINI_PARAMETERS})
_STRICT = _OPENAI | _ANTHROPIC
_EVERYWHERE = frozenset(DIALECTS) | _PROTO

_PROVIDERS = {
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "gemini-interactions": "Gemini",
    GEMINI_PARAMETERS: "Gemini, under `parameters`,",
    "json-schema": "most providers",
    "mcp": "MCP",
    "openai": "OpenAI",
    "openai-responses": "OpenAI",
}

_SCHEMA_FIELDS = (
    "parameters",
    "parameters_json_schema",
    "parametersJsonSchema",
    "input_schema",
    "inputSchema",
)
_NEEDS_SCHEMA = frozenset({"anthropic", "mcp"})
_NEEDS_IDS = frozenset({"anthropic", "gemini-interactions", "openai", "openai-responses"})
_REMEMBERS_TURNS = frozenset({"gemini-interactions", "openai-responses"})

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_NAMES = {
    **dict.fromkeys(_STRICT, _NAME),
    **dict.fromkeys(_GEMINI, _GEMINI_NAME),
    "mcp": re.compile(r"[a-zA-Z0-9._-]{1,128}"),
}
_ANY_NAME = re.compile(r".+", re.DOTALL)
_KEYS = {
    **dict.fromkeys(_ANTHROPIC, re.compile(r"[a-zA-Z0-9_.-]{1,64}")),
    **dict.fromkeys(_GEMINI, re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")),
}

_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMAS = (
    "items",
    "additionalProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_UNIONS = ("oneOf", "anyOf", "allOf")
_REFERENCES = ("$ref", "ref")
_FREE_WITHOUT = frozenset({"properties", "patternProperties", "additionalProperties", "$ref", *_UNIONS})
_NOT_STRICT = (
    "default",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
)
_PROTO_KEYWORDS = frozenset(
    {
        "anyOf",
        "default",
        "defs",
        "description",
        "enum",
        "example",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "propertyOrdering",
        "ref",
        "required",
        "title",
        "type",
    }
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something a provider refuses, or silently changes.

    Attributes:
        code: A stable word for what is wrong.
        where: The path within the function or its schema, such as `properties.limit.type`, after `[1]` in a tool of several
            functions; the message's place in a history; empty for a tool as a whole.
        message: What to do about it.
    """

    code: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Told:
    """One function as a tool tells a model of it.

    Attributes:
        declaration: What is told. Its schema is spelled as JSON Schema, whatever the provider's spelling.
        spelling: The dialect's name, or `GEMINI_PARAMETERS`.
        fields: The function's fields as they were written.
        is_neutral: The tool is a declaration in no provider's spelling, which HALO would spell.
    """

    declaration: Declaration
    spelling: str
    fields: Mapping[str, Any]
    is_neutral: bool = False

    @property
    def provider(self) -> str:
        """Who refuses it."""
        return _PROVIDERS.get(self.spelling, self.spelling)

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of the arguments."""
        return self.declaration.parameters

    @property
    def has_schema(self) -> bool:
        """Whether the tool has a schema, or must have one."""
        return self.spelling in _NEEDS_SCHEMA or either(self.fields, *_SCHEMA_FIELDS) is not None


Found = tuple[str, str]
"""Where a fault is, and what to do about it."""

Check = Callable[[Told], Iterable[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing providers refuse.

    Attributes:
        code: The code of its faults.
        check: Yields where a function breaks it.
        spellings: The dialects it holds for; `GEMINI_PARAMETERS` is one of its own.
        strict: It holds only where the provider enforces the schema.
    """

    code: str
    check: Check
    spellings: frozenset[str] = _EVERYWHERE
    strict: bool = False

    def holds(self, told: Told) -> bool:
        """Tell whether a function must keep to it."""
        return told.spelling in self.spellings and (told.declaration.strict or not self.strict)


def lint(tool: object, dialect: str) -> list[Fault]:
    """Return what a provider would refuse in a tool; empty when nothing is known against it.

    Args:
        tool: One element of the provider's `tools`, as a dict or its SDK's object, or a neutral
            `{"name", "description", "parameters"}`, which is checked as HALO would declare it.
        dialect: Name of the provider's dialect.

    Raises:
        HaloConfigError: The dialect is unknown.
    """
    spoken = _known(dialect)
    functions = list(_told(mapping(plain(tool)), spoken))
    if not functions:
        return [Fault("no_function", "", f"no function of {dialect!r} is declared in this tool")]
    return [
        Fault(rule.code, _under(f"[{index}]" if len(functions) > 1 else "", where), message)
        for index, told in enumerate(functions)
        for rule in RULES
        if rule.holds(told)
        for where, message in rule.check(told)
    ]


def _known(dialect: str) -> Dialect:
    if not isinstance(dialect, str):
        raise HaloConfigError(f"a dialect is named by text; known are {sorted(DIALECTS)}")
    return named(dialect)


def _told(tool: Mapping[str, Any], dialect: Dialect) -> Iterator[Told]:
    """Yield every function a tool declares."""
    if "type" not in tool and {"name", "parameters"} <= tool.keys():
        neutral = declaration(tool, "parameters", strict=tool.get("strict"))
        yield Told(neutral, dialect.name, tool, is_neutral=True)
        return
    for single, fields in _singles(tool):
        if fields.get("name") is None and either(fields, *_SCHEMA_FIELDS) is None:
            continue
        for read in dialect.declared(single):
            is_proto = dialect.name == "gemini" and either(fields, *_SCHEMA_FIELDS[1:3]) is None
            spelled = declaration(
                {**read.to_dict(), "parameters": _from_proto(read.parameters)}, "parameters"
            )
            yield Told(spelled if is_proto else read, GEMINI_PARAMETERS if is_proto else dialect.name, fields)


def _singles(tool: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return a tool as tools of one function each, beside that function's fields."""
    if listed := mappings(either(tool, "function_declarations", "functionDeclarations")):
        return [({"function_declarations": [each]}, each) for each in listed]
    if tool.get("type") == "namespace":
        return [(each, each) for each in mappings(tool.get("tools"))]
    return [(tool, mapping(tool.get("function")) or tool)]


def _from_proto(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of Gemini's `parameters` in JSON Schema's spelling: `OBJECT` is `object`, `any_of` is `anyOf`."""
    spelled = {to_camel(key) if "_" in key else key: value for key, value in schema.items()}
    if isinstance(spelled.get("type"), str):
        spelled["type"] = spelled["type"].lower()
    for key, value in spelled.items():
        if key in _SCHEMAS_BY_NAME:
            spelled[key] = _each(value, _from_proto)
        elif key in _SCHEMAS and isinstance(value, list):
            spelled[key] = [_from_proto(each) if isinstance(each, dict) else each for each in value]
        elif key in _SCHEMAS and isinstance(value, dict):
            spelled[key] = _from_proto(value)
    return spelled


def _each(value: object, change: Callable[[Mapping[str, Any]], Any]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: change(each) if isinstance(each, dict) else each for name, each in value.items()}


class _Place(NamedTuple):
    """A schema within a schema, and how many objects lead to it, itself among them."""

    where: str
    schema: Mapping[str, Any]
    level: int


def _walk(schema: Mapping[str, Any], where: str = "", level: int = 0) -> Iterator[_Place]:
    """Yield a schema and every schema within it. References are not followed."""
    level += _is_object(schema)
    yield _Place(where, schema, level)
    for step, inner in _within(schema):
        if isinstance(inner, dict):
            yield from _walk(inner, _under(where, step), level)


def _within(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for keyword in _SCHEMAS_BY_NAME:
        for name, inner in mapping(schema.get(keyword)).items():
            yield f"{keyword}.{name}", inner
    for keyword in _SCHEMAS:
        value = schema.get(keyword)
        if isinstance(value, list):
            yield from ((f"{keyword}.{index}", inner) for index, inner in enumerate(value))
        else:
            yield keyword, value


def _under(where: str, step: str) -> str:
    return f"{where}.{step}" if where and step else where or step


def _objects(told: Told) -> Iterator[_Place]:
    return (place for place in _walk(told.schema) if told.has_schema and _is_object(place.schema))


def _is_object(schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type", "object" if "properties" in schema else None)
    return kinds == "object" or (isinstance(kinds, list) and "object" in kinds)


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(schema.get("properties"))


def _required(schema: Mapping[str, Any]) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _optional(schema: Mapping[str, Any]) -> list[str]:
    required = _required(schema)
    return [name for name in _properties(schema) if name not in required]


def _is_free_form(schema: Mapping[str, Any]) -> bool:
    return "properties" not in schema and schema.get("additionalProperties") is not False


def _bad_name(told: Told) -> Iterator[Found]:
    allowed, name = _NAMES.get(told.spelling, _ANY_NAME), told.declaration.name
    if not allowed.fullmatch(name):
        yield "name", f"the name {name[:80]!r} is refused by {told.provider}: use {allowed.pattern}"


def _long_description(told: Told) -> Iterator[Found]:
    chars = len(told.declaration.description)
    if chars > MAX_DESCRIPTION_CHARS:
        yield (
            "description",
            f"{chars} characters are refused by some models of {told.provider}: use {MAX_DESCRIPTION_CHARS}",
        )


def _root_not_object(told: Told) -> Iterator[Found]:
    if told.has_schema and told.schema.get("type") != "object":
        yield (
            "type",
            f'a schema whose root is not of `"type": "object"` is refused by {told.provider}: say so',
        )


def _invalid_schema(told: Told) -> Iterator[Found]:
    # Loaded at first use: it takes longer to import than the rest of this package.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    # Without formats, unlike `check_schema`: a regular expression of JavaScript's need not be one of Python's.
    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    try:
        fault = next(judge.iter_errors(dict(told.schema)), None)
    except RecursionError:
        yield "", f"a schema nested this deeply is refused by {told.provider}: flatten it"
        return
    if fault is not None:
        where = ".".join(str(step) for step in fault.absolute_path)
        yield where, f"this is no valid JSON Schema, and refused by {told.provider}: {fault.message[:200]}"


def _unknown_required(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        if place.where and "properties" not in place.schema:
            continue  # an alternative may require what the schema around it declares
        for name in _required(place.schema):
            if name not in _properties(place.schema):
                yield (
                    _under(place.where, "required"),
                    f"{name!r} is required but no property; {told.provider} cannot keep to it: declare it",
                )


def _missing_properties(told: Told) -> Iterator[Found]:
    if told.has_schema and told.schema.get("type") == "object" and "properties" not in told.schema:
        yield (
            "properties",
            f"a root without `properties` is refused by {told.provider}: add them, {{}} for none",
        )


def _bare_object(told: Told) -> Iterator[Found]:
    if told.declaration.strict:
        return
    for place in _walk(told.schema):
        if place.where and place.schema.get("type") == "object" and _FREE_WITHOUT.isdisjoint(place.schema):
            yield (
                place.where,
                f"a bare object is closed to {{}} by clients of {told.provider}: say `additionalProperties`",
            )


def _strict_not_said(told: Told) -> Iterator[Found]:
    if not told.is_neutral and not isinstance(told.fields.get("strict"), bool):
        yield (
            "strict",
            f"without `strict`, {told.provider} may make the schema strict by itself: say true or false",
        )


def _root_union(told: Told) -> Iterator[Found]:
    for keyword in _UNIONS:
        if keyword in told.schema:
            yield keyword, f"`{keyword}` at the root is refused by {told.provider}: move it into a property"


def _bad_key(told: Told) -> Iterator[Found]:
    allowed = _KEYS[told.spelling]
    for place in _walk(told.schema):
        for name in _properties(place.schema):
            if not allowed.fullmatch(name):
                yield (
                    _under(place.where, f"properties.{name}"),
                    f"the property name {name[:80]!r} is refused by {told.provider}: use {allowed.pattern}",
                )


def _ref_beside_fields(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        for keyword in _REFERENCES:
            others = [key for key in place.schema if key != keyword and not key.startswith("$")]
            if isinstance(place.schema.get(keyword), str) and others:
                yield (
                    _under(place.where, keyword),
                    f"`{keyword}` beside {others[0]!r} is refused by {told.provider}: let it stand alone",
                )


def _unknown_keyword(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        for keyword in place.schema:
            if keyword not in _PROTO_KEYWORDS:
                yield (
                    _under(place.where, keyword),
                    f"{keyword!r} is refused by {told.provider}: leave it out or use `parameters_json_schema`",
                )


def _type_list(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        if isinstance(place.schema.get("type"), list):
            yield (
                _under(place.where, "type"),
                f"a list of types is refused by {told.provider}: use `nullable`, or `parameters_json_schema`",
            )


def _empty_properties(told: Told) -> Iterator[Found]:
    for place in _objects(told):
        if not _properties(place.schema):
            yield (
                _under(place.where, "properties"),
                f"an object without properties is refused by {told.provider}: declare one, or no parameters at all",
            )


def _missing_items(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        if place.schema.get("type") == "array" and "items" not in place.schema:
            yield (
                _under(place.where, "items"),
                f"an array without `items` is refused by {told.provider}: add them",
            )


def _strict_open_object(told: Told) -> Iterator[Found]:
    for place in _objects(told):
        is_open = place.schema.get("additionalProperties") is not False
        if is_open and (not place.where or not _is_free_form(place.schema)):
            yield (
                _under(place.where, "additionalProperties"),
                f"a strict object that is not closed is refused by {told.provider}: say `additionalProperties: false`",
            )


def _strict_free_form(told: Told) -> Iterator[Found]:
    for place in _objects(told):
        if place.where and _is_free_form(place.schema):
            yield (
                place.where,
                f"an object without declared properties cannot be strict for {told.provider}: declare them, or go unstrict",
            )


def _strict_optional(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        for name in _optional(place.schema):
            yield (
                _under(place.where, f"properties.{name}"),
                f"an optional property of a strict schema is refused by {told.provider}: require it, and let it be null",
            )


def _strict_keyword(told: Told) -> Iterator[Found]:
    for place in _walk(told.schema):
        for keyword in _NOT_STRICT:
            if keyword in place.schema:
                yield (
                    _under(place.where, keyword),
                    f"`{keyword}` in a strict schema is refused by {told.provider}: leave it out",
                )


def _strict_too_deep(told: Told) -> Iterator[Found]:
    for place in _objects(told):
        if place.level == MAX_STRICT_LEVELS + 1:
            yield (
                place.where,
                f"more than {MAX_STRICT_LEVELS} nested objects are refused by some models of {told.provider}: flatten them",
            )


def _strict_grammar(told: Told) -> Iterator[Found]:
    optional = sum(len(_optional(place.schema)) for place in _walk(told.schema))
    if optional > MAX_STRICT_OPTIONAL:
        yield (
            "",
            f"{optional} optional properties are more than {told.provider} takes in all strict tools: {MAX_STRICT_OPTIONAL}",
        )


RULES: tuple[Rule, ...] = (
    # Source: llama_index#16093, mcp-azure-devops#30, agentkit#217 (OpenAI); gemini-cli#2966, ccs#25 (Gemini); MCP 2026-07-28.
    Rule("bad_name", _bad_name),
    # Source: sentry-mcp#106, OpenHands#4838, open_deep_research#80, llama_index#17858.
    Rule("long_description", _long_description, _OPENAI),
    # Source: python-genai#981, livekit#2689 (Gemini, mode ANY); GPT_API_free#403 (OpenAI).
    Rule("root_not_object", _root_not_object),
    # Source: https://json-schema.org/draft/2020-12; no provider's SDK checks `type` and `required`.
    Rule("invalid_schema", _invalid_schema),
    # Source: iBUHub/AIStudioToAPI#154 (Gemini); JSON Schema itself permits it.
    Rule("unknown_required", _unknown_required),
    # Source: claude-code#27337, huly-mcp#66, mcp-sap-docs#51 (Anthropic); langchainjs#9804, google-calendar-mcp#39 (OpenAI).
    Rule("root_union", _root_union, _OPENAI | _ANTHROPIC),
    # Source: spring-ai#4776, karakeep#1696, everruns#984, wake-ai#16.
    Rule("missing_properties", _missing_properties, _OPENAI),
    # Source: openai-agents-python#4277, #4114, dynamiq#753.
    Rule("bare_object", _bare_object, _OPENAI),
    # Source: rig#2477, open-webui#27750, vercel/ai#11869, simstudio#7953.
    Rule("strict_not_said", _strict_not_said, frozenset({"openai-responses"})),
    # Source: n8n#30590, composio#3500, decocms/studio#6874 (Anthropic); `FunctionDeclaration` in `google-genai` 3.6 (Gemini).
    Rule("bad_key", _bad_key, _ANTHROPIC | _GEMINI),
    # Source: gcli2api#374.
    Rule("ref_beside_fields", _ref_beside_fields, _GEMINI),
    # Source: 5ire#42, CLIProxyAPI#97, zed#44875, nakama#292, pizza-bot#62, Antigravity-Manager#61.
    Rule("unknown_keyword", _unknown_keyword, _PROTO),
    # Source: zed#53919, tuxevil-rotator#10.
    Rule("type_list", _type_list, _PROTO),
    # Source: pipecat-flows#110, vercel/ai#3371, SWE-agent#1431.
    Rule("empty_properties", _empty_properties, _PROTO),
    # Source: cline#7339.
    Rule("missing_items", _missing_items, _PROTO),
    # Source: openai-agents-mcp#2, spring-ai#6865, langchain#34599.
    Rule("strict_open_object", _strict_open_object, _STRICT, strict=True),
    # Source: openai-agents-python#4277; https://platform.openai.com/docs/guides/structured-outputs.
    Rule("strict_free_form", _strict_free_form, _STRICT, strict=True),
    # Source: ayunis-core#1030, coder/xum#2250, open-webui#30046.
    Rule("strict_optional", _strict_optional, _OPENAI, strict=True),
    # Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas.
    Rule("strict_keyword", _strict_keyword, _OPENAI, strict=True),
    # Source: tidyverse/ellmer#671; newer models take ten levels.
    Rule("strict_too_deep", _strict_too_deep, _OPENAI, strict=True),
    # Source: alphaXiv/agents#49, #51, genkit#5230, elizaOS/eliza#16499; the limit is that of a request, shared by its tools.
    Rule("strict_grammar", _strict_grammar, _ANTHROPIC, strict=True),
)
"""Everything `lint` knows."""


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
    spoken = _known(dialect)
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
