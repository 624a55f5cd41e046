"""A tool as its provider spells it, read as the functions it declares.

Tools that declare none by design, such as those a provider carries out itself, are told by their shape: their names come and go
with every release. A new way of spelling a function, or of putting several into one tool, changes this file.

Source:
    The tool types of `openai` 3.57, `anthropic` 2.14, `google-genai` 3.6 and `mcp` 2.3.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from halo_sdk.dialects import DIALECTS
from halo_sdk.dialects.base import Dialect, declaration, either, mapping, mappings
from halo_sdk.dialects.gemini import DECLARATIONS, JSON_SCHEMA
from halo_sdk.lint.schemas import SCHEMAS, SCHEMAS_BY_NAME, TYPES, kinds, walk
from halo_sdk.types import Declaration

GEMINI_PARAMETERS = "gemini parameters"
"""Where a rule holds for Gemini's older schema field, which is no JSON Schema."""

_PROVIDERS = {
    "anthropic": "Anthropic",
    "gemini": "Gemini",
    "gemini-interactions": "Gemini",
    GEMINI_PARAMETERS: "Gemini under `parameters`",
    "json-schema": "most providers",
    "mcp": "MCP",
    "openai": "OpenAI",
    "openai-responses": "OpenAI",
}
_OWN_SCHEMA = {
    "anthropic": ("input_schema",),
    "gemini": ("parameters", *JSON_SCHEMA),
    "gemini-interactions": ("parameters",),
    "mcp": ("inputSchema",),
    "openai": ("parameters",),
    "openai-responses": ("parameters",),
}
"""Dialect of a provider -> where a function's schema stands in it."""

_SCHEMA_FIELDS = tuple({field for fields in _OWN_SCHEMA.values() for field in fields})
_OF_FUNCTIONS = frozenset({"function", "properties", *DECLARATIONS, *_SCHEMA_FIELDS})
"""Fields that speak of a function or of its arguments, whichever provider's."""

_SEARCH = "tool_search"
"""The one kind of tool that has a schema without being a function."""

_NEEDS_SCHEMA = frozenset({"anthropic", "mcp"})

_FUNCTION_KINDS = {
    "anthropic": frozenset({"custom", "function"}),  # where `function` is another provider's word
    "gemini-interactions": frozenset({"function"}),
    "openai": frozenset({"function"}),
    "openai-responses": frozenset({"function", "namespace"}),
}
"""Dialect whose tools say what they are -> the types that should declare a function."""


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


def is_several(tool: object) -> bool:
    """Tell whether a value is a list of tools, alone or as a request or a server's answer carries it."""
    return isinstance(tool, list) or (
        "type" not in mapping(tool) and isinstance(mapping(tool).get("tools"), list)
    )


def split(tool: Mapping[str, Any], dialect: Dialect) -> list[Mapping[str, Any]]:
    """Return a tool as tools of one function each."""
    declared = either(tool, *DECLARATIONS) if dialect.name == "gemini" else None
    if isinstance(declared, list) and declared:
        return [{"function_declarations": [each]} for each in declared]
    inner = tool.get("tools") if dialect.name == "openai-responses" else None
    if tool.get("type") == "namespace" and isinstance(inner, list) and inner:
        return [single for each in inner for single in split(mapping(each), dialect)]
    return [tool]


def read(tool: Mapping[str, Any], dialect: Dialect) -> Told | None:
    """Return the function a tool of one declares, or None.

    A bare `{"name", "parameters"}` is a neutral declaration; for Gemini it is one of Gemini's own if a type within it is in
    capitals, which JSON Schema has nowhere.
    """
    if "type" not in tool and {"name", "parameters"} <= tool.keys():
        neutral = declaration(tool, "parameters", strict=tool.get("strict"))
        if dialect.name != "gemini" or not _has_capitals(neutral.parameters):
            return Told(neutral, dialect.name, tool, is_neutral=True)
        tool = {"function_declarations": [tool]}
    # Null is as good as absent: an SDK's types let `type` be null.
    given = {key: value for key, value in tool.items() if value is not None}
    fields = _function_fields(given, dialect.name)
    if fields.get("name") is None and either(fields, *_SCHEMA_FIELDS) is None:
        return None
    told = next(iter(dialect.declared(given)), None)
    if told is None:
        return None
    if dialect.name != "gemini" or either(fields, *JSON_SCHEMA) is not None:
        return Told(told, dialect.name, fields)
    spelled = {**told.to_dict(), "parameters": _from_proto(told.parameters)}
    return Told(declaration(spelled, "parameters"), GEMINI_PARAMETERS, fields)


def is_of_another_kind(tool: Mapping[str, Any], dialect: Dialect) -> bool:
    """Tell whether a tool declares no function by design: the provider carries it out itself, or it takes free text."""
    if dialect.name == "gemini":
        given = {key: value for key, value in tool.items() if value is not None and value != []}
        objects = all(isinstance(value, dict) or mappings(value) for value in given.values())
        return bool(given) and objects and not any(map(_speaks_of_a_function, (given, *given.values())))
    kind, functions = tool.get("type"), _FUNCTION_KINDS.get(dialect.name)
    if functions is None or not isinstance(kind, str) or kind == "" or kind in functions:
        return False
    return kind == _SEARCH or not _speaks_of_a_function(tool)


def _speaks_of_a_function(value: object) -> bool:
    """Tell whether a value tries to declare a function, or is the schema of something."""
    fields = mapping(value)
    given = {key for key in fields if fields[key] is not None}
    return not _OF_FUNCTIONS.isdisjoint(given) or str(fields.get("type")).lower() in TYPES - {"null"}


def looks_like(tool: Mapping[str, Any], dialect: Dialect) -> str | None:
    """Return the name of the dialect a tool of none in this one is spelled in, if there is exactly one other."""
    names = [name for name in _OWN_SCHEMA if name != dialect.name and _is_spelled_in(tool, name)]
    return names[0] if len(names) == 1 else None


def _is_spelled_in(tool: Mapping[str, Any], name: str) -> bool:
    told = read(tool, DIALECTS[name])
    return told is not None and either(told.fields, *_OWN_SCHEMA[name]) is not None


def _function_fields(tool: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    if dialect == "gemini":
        return next(iter(mappings(either(tool, *DECLARATIONS))), {})
    return mapping(tool.get("function")) if dialect == "openai" else tool


def _has_capitals(schema: Mapping[str, Any]) -> bool:
    return any(str(kind).isupper() for place in walk(schema) for kind in kinds(place.schema))


def _from_proto(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of Gemini's `parameters` in JSON Schema's spelling: `OBJECT` is `object`, `any_of` is `anyOf`."""
    spelled = {to_camel(key) if "_" in key else key: value for key, value in schema.items()}
    if isinstance(spelled.get("type"), str):
        spelled["type"] = spelled["type"].lower()
    for key, value in spelled.items():
        if key in SCHEMAS_BY_NAME:
            spelled[key] = _each(value, _from_proto)
        elif key in SCHEMAS and isinstance(value, list):
            spelled[key] = [_from_proto(each) if isinstance(each, dict) else each for each in value]
        elif key in SCHEMAS and isinstance(value, dict):
            spelled[key] = _from_proto(value)
    return spelled


def _each(value: object, change: Callable[[Mapping[str, Any]], Any]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: change(each) if isinstance(each, dict) else each for name, each in value.items()}
