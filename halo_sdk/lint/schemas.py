"""The inside of a JSON Schema: which schemas it holds, where they stand, and which of them speak of one value.

Knows no provider. A new keyword of JSON Schema changes this file.

Source:
    https://json-schema.org/draft/2020-12: keywords that hold schemas, and which of those apply to the value around them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from halo_sdk.dialects.base import either, mapping
from halo_sdk.lint.base import under

SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
SCHEMAS = (
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
UNIONS = ("oneOf", "anyOf", "allOf")
REFERENCES = ("$ref", "ref")

_SAME_VALUE = frozenset({*UNIONS, "if", "then", "else", "dependentSchemas"})
_NO_OWN_VALUE = frozenset({*_SAME_VALUE, "$defs", "definitions", "not"})
_OF_MEMBERS = frozenset({"$dynamicRef", "patternProperties", "properties", "required"})
"""What says which members an object has, or that it is said elsewhere."""

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


class Place(NamedTuple):
    """A schema within a schema.

    Attributes:
        where: Its path; empty for the whole.
        schema: What stands there.
        level: How many objects lead to it, itself among them.
        keyword: What it stands under; empty for the whole.
    """

    where: str
    schema: Mapping[str, Any]
    level: int = 0
    keyword: str = ""

    @property
    def has_own_value(self) -> bool:
        """Whether it describes a value of its own: not that of the schema around it, and not one named elsewhere."""
        return self.keyword not in _NO_OWN_VALUE


def walk(schema: Mapping[str, Any], where: str = "", level: int = 0, keyword: str = "") -> Iterator[Place]:
    """Yield a schema and every schema within it. References are not followed."""
    level += is_object(schema)
    yield Place(where, schema, level, keyword)
    for word, step, inner in _within(schema):
        yield from walk(inner, under(where, step), level, word)


def values(root: Mapping[str, Any]) -> Iterator[Place]:
    """Yield the schemas that describe a value of their own, each once.

    In the place of one that only leads to another, as a reference does, stands the one it leads to, through however many.
    """
    seen: set[int] = set()
    for place in walk(root):
        described = place if place.has_own_value else None
        while described is not None and id(described.schema) not in seen:
            seen.add(id(described.schema))
            further = _further(described, root)
            if described.where == "" or len(further) != 1 or not _OF_MEMBERS.isdisjoint(described.schema):
                yield described
                break
            described = further[0]


def of_one_value(place: Place, root: Mapping[str, Any]) -> list[Place]:
    """Return a schema and every schema that speaks of the same value: its alternatives, and those they refer to."""
    found: dict[int, Place] = {}
    waiting = [place]
    while waiting:
        part = waiting.pop()
        if id(part.schema) in found:
            continue
        found[id(part.schema)] = part
        waiting += _further(part, root)
    return list(found.values())


def _further(place: Place, root: Mapping[str, Any]) -> list[Place]:
    """Return the schemas one step from a schema that speak of the same value."""
    target = _referred(place.schema, root)
    alternatives = [
        Place(under(place.where, step), inner, keyword=word)
        for word, step, inner in _within(place.schema)
        if word in _SAME_VALUE
    ]
    return alternatives if target is None else [*alternatives, target]


def leads_elsewhere(schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Tell whether a schema refers to one that is not found within the root."""
    refers = "$dynamicRef" in schema or either(schema, *REFERENCES) is not None
    return refers and _referred(schema, root) is None


def _referred(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Place | None:
    """Return what a schema refers to by a path of names from the root."""
    pointer = either(schema, *REFERENCES)
    if not isinstance(pointer, str) or not f"{pointer}/".startswith("#/"):
        return None
    steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    target: object = root
    for step in steps:
        target = mapping(target).get(step)
    return Place(".".join(steps), target) if isinstance(target, dict) else None


def _within(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the schemas directly within a schema, each after its keyword and the step that leads to it."""
    for keyword in SCHEMAS_BY_NAME:
        for name, inner in mapping(schema.get(keyword)).items():
            if isinstance(inner, dict):
                yield keyword, f"{keyword}.{name}", inner
    for keyword in SCHEMAS:
        value = schema.get(keyword)
        if isinstance(value, dict):
            yield keyword, keyword, value
        for index, inner in enumerate(value if isinstance(value, list) else ()):
            if isinstance(inner, dict):
                yield keyword, f"{keyword}.{index}", inner


def kinds(schema: Mapping[str, Any]) -> list[Any]:
    """Return the types a schema allows; empty when it does not say."""
    said = schema.get("type")
    return said if isinstance(said, list) else [] if said is None else [said]


def is_object(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema describes objects, or says what only an object has."""
    return "object" in kinds(schema) or ("type" not in schema and "properties" in schema)


def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the declared properties."""
    return mapping(schema.get("properties"))


def required(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of required properties, declared or not."""
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def optional(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of declared properties that are not required."""
    needed = required(schema)
    return [name for name in properties(schema) if name not in needed]


def is_plainly_valid(schema: object) -> bool:
    """Tell whether a schema is made of the commonest keywords only, each used as it should be.

    Vouches for what the meta-schema would pass, at a fraction of the cost; what it does not vouch for may be valid all the same.
    """
    return isinstance(schema, dict) and all(
        keyword in _COMMON and _COMMON[keyword](value) for keyword, value in schema.items()
    )


_COMMON: Mapping[str, Callable[[Any], bool]] = {
    "additionalProperties": lambda value: isinstance(value, bool) or is_plainly_valid(value),
    "anyOf": lambda value: isinstance(value, list) and bool(value) and all(map(is_plainly_valid, value)),
    "description": lambda value: isinstance(value, str),
    "enum": lambda value: isinstance(value, list),
    "items": is_plainly_valid,
    "properties": lambda value: isinstance(value, dict) and all(map(is_plainly_valid, value.values())),
    "required": lambda value: (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    ),
    "type": lambda value: isinstance(value, str) and value in TYPES,
}
