"""What providers refuse in one function, as one table.

The rules are each with its evidence; a provider's change of mind changes one line. A rule speaks of what services refuse, or what
they and their clients silently change, not of taste. Limits some services have lifted stay while others keep them.

Source:
    Public issue threads named beside the rules; the "Structured Outputs" guide of OpenAI, the "Structured output" guide of Gemini.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from halo_sdk.dialects import DIALECTS
from halo_sdk.lint.base import under
from halo_sdk.lint.reading import GEMINI_PARAMETERS, Told
from halo_sdk.lint.schemas import (
    REFERENCES,
    UNIONS,
    Place,
    is_object,
    is_plainly_valid,
    kinds,
    leads_elsewhere,
    of_one_value,
    optional,
    properties,
    required,
    values,
    walk,
)

MAX_DESCRIPTION_CHARS = 1_024
MAX_STRICT_LEVELS = 5
MAX_STRICT_OPTIONAL = 24

_OPENAI = frozenset({"openai", "openai-responses"})
_ANTHROPIC = frozenset({"anthropic"})
_GEMINI = frozenset({"gemini", "gemini-interactions", GEMINI_PARAMETERS})
_PROTO = frozenset({GEMINI_PARAMETERS})
_STRICT = _OPENAI | _ANTHROPIC
_EVERYWHERE = frozenset(DIALECTS) | _PROTO

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

_FREE_WITHOUT = frozenset({"properties", "patternProperties", "additionalProperties", "$ref", *UNIONS})
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


def _objects(told: Told) -> Iterator[Place]:
    return (place for place in walk(told.schema) if told.has_schema and is_object(place.schema))


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
    if is_plainly_valid(told.schema):
        return
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
    found: dict[Found, None] = {}
    for place in values(told.schema):
        parts = of_one_value(place, told.schema)
        if _may_declare_more(parts, told.schema):
            continue
        declared = {name for part in parts for name in properties(part.schema)}
        found |= {
            (
                under(part.where, "required"),
                f"{name!r} is required but no property; {told.provider} cannot keep to it: declare it",
            ): None
            for part in parts
            for name in required(part.schema)
            if name not in declared
        }
    yield from found


def _may_declare_more(parts: list[Place], root: Mapping[str, Any]) -> bool:
    """Tell whether schemas of one value may declare properties that are not to be seen in them."""
    if any(part.schema.get("patternProperties") or leads_elsewhere(part.schema, root) for part in parts):
        return True  # a regular expression of JavaScript's need not be one of Python's
    return all(part.where != "" and "properties" not in part.schema for part in parts)


def _missing_properties(told: Told) -> Iterator[Found]:
    if told.has_schema and told.schema.get("type") == "object" and "properties" not in told.schema:
        yield (
            "properties",
            f"a root without `properties` is refused by {told.provider}: add them, {{}} for none",
        )


def _bare_object(told: Told) -> Iterator[Found]:
    if told.declaration.strict:
        return
    for place in walk(told.schema):
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
    for keyword in UNIONS:
        if keyword in told.schema:
            yield keyword, f"`{keyword}` at the root is refused by {told.provider}: move it into a property"


def _bad_key(told: Told) -> Iterator[Found]:
    allowed = _KEYS[told.spelling]
    for place in walk(told.schema):
        for name in properties(place.schema):
            if not allowed.fullmatch(name):
                yield (
                    under(place.where, f"properties.{name}"),
                    f"the property name {name[:80]!r} is refused by {told.provider}: use {allowed.pattern}",
                )


def _ref_beside_fields(told: Told) -> Iterator[Found]:
    for place in walk(told.schema):
        for keyword in REFERENCES:
            others = [key for key in place.schema if key != keyword and not key.startswith("$")]
            if isinstance(place.schema.get(keyword), str) and others:
                yield (
                    under(place.where, keyword),
                    f"`{keyword}` beside {others[0]!r} is refused by {told.provider}: let it stand alone",
                )


def _unknown_keyword(told: Told) -> Iterator[Found]:
    for place in walk(told.schema):
        for keyword in place.schema:
            if keyword not in _PROTO_KEYWORDS:
                yield (
                    under(place.where, keyword),
                    f"{keyword!r} is refused by {told.provider}: leave it out or use `parameters_json_schema`",
                )


def _type_list(told: Told) -> Iterator[Found]:
    for place in walk(told.schema):
        if isinstance(place.schema.get("type"), list):
            yield (
                under(place.where, "type"),
                f"a list of types is refused by {told.provider}: use `nullable`, or `parameters_json_schema`",
            )


def _empty_properties(told: Told) -> Iterator[Found]:
    for place in _objects(told):
        if not properties(place.schema):
            yield (
                under(place.where, "properties"),
                f"an object without properties is refused by {told.provider}: declare one, or no parameters at all",
            )


def _missing_items(told: Told) -> Iterator[Found]:
    for place in walk(told.schema):
        if "array" in kinds(place.schema) and "items" not in place.schema:
            yield (
                under(place.where, "items"),
                f"an array without `items` is refused by {told.provider}: add them",
            )


def _enum_not_text(told: Told) -> Iterator[Found]:
    for place in walk(told.schema):
        listed = place.schema.get("enum")
        if not isinstance(listed, list):
            continue
        is_text = all(isinstance(value, str) and value for value in listed)
        if is_text and not kinds(place.schema):
            yield (
                under(place.where, "enum"),
                f"an enum without a type beside it is refused by {told.provider}: say `STRING` there, not further in",
            )
        elif not is_text or kinds(place.schema) != ["string"]:
            yield (
                under(place.where, "enum"),
                f"an enum of anything but text is refused by {told.provider}: use strings, or `parameters_json_schema`",
            )


def _strict_open_object(told: Told) -> Iterator[Found]:
    for place in _objects(told):
        is_open = place.schema.get("additionalProperties") is not False
        if is_open and (not place.where or not _is_free_form(place.schema)):
            yield (
                under(place.where, "additionalProperties"),
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
    for place in walk(told.schema):
        for name in optional(place.schema):
            yield (
                under(place.where, f"properties.{name}"),
                f"an optional property of a strict schema is refused by {told.provider}: require it, and let it be null",
            )


def _strict_keyword(told: Told) -> Iterator[Found]:
    for place in walk(told.schema):
        for keyword in _NOT_STRICT:
            if keyword in place.schema:
                yield (
                    under(place.where, keyword),
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
    count = sum(len(optional(place.schema)) for place in walk(told.schema))
    if count > MAX_STRICT_OPTIONAL:
        yield (
            "",
            f"{count} optional properties are more than {told.provider} takes in all strict tools: {MAX_STRICT_OPTIONAL}",
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
    # Source: cline#7339, #7926 (Gemini); aichat#1049, mcp-digitalocean#265, TeXRA#2323, byterover-cli#42 (OpenAI).
    Rule("missing_items", _missing_items, _PROTO | _OPENAI),
    # Source: bifrost#25, celeste-python#262, OmniRoute#760, 9router#359, ha-claude#32; another hosting takes numbers spelled as text.
    Rule("enum_not_text", _enum_not_text, _PROTO),
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
