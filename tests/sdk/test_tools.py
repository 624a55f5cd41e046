"""How the functions are told to a model."""

import json

import pytest
from jsonschema import Draft202012Validator

from halo_sdk import Halo, HaloConfigError
from halo_sdk.dialects import DIALECTS
from tests.sdk.fakes import RETRIEVE

DESCRIPTION = "Retrieve relevant long-term memory for this end user."
PARAMETERS = {
    "type": "object",
    "properties": {
        "sessionData": {
            "type": "object",
            "description": "Current conversation and application state.",
            "additionalProperties": True,
        },
        "query": {"type": "string", "description": "Optional retrieval focus."},
        "limit": {"type": "number", "description": "Maximum raw records to return."},
    },
    "required": ["sessionData"],
}
APP_PROPERTIES = {
    "query": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Optional retrieval focus."},
    "limit": {
        "anyOf": [{"type": "number"}, {"type": "null"}],
        "description": "Maximum raw records to return.",
    },
}
NEUTRAL = {"name": RETRIEVE, "description": DESCRIPTION, "parameters": PARAMETERS}


def dumped(value):
    """Serialise with the order of keys, which prompt caches depend on."""
    return json.dumps(value)


@pytest.mark.parametrize(
    ("dialect", "declared"),
    [
        ("json-schema", [NEUTRAL]),
        ("openai", [{"type": "function", "function": {**NEUTRAL, "strict": False}}]),
        (
            "gemini",
            [
                {
                    "function_declarations": [
                        {"name": RETRIEVE, "description": DESCRIPTION, "parameters_json_schema": PARAMETERS}
                    ]
                }
            ],
        ),
    ],
)
def test_fc45_each_dialect_spells_the_same_declaration_to_the_byte(memory, dialect, declared):
    assert dumped(memory.tools(dialect)) == dumped(declared)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_fc46_declarations_are_a_fresh_copy_each_time(memory, dialect):
    before = dumped(memory.tools(dialect))
    (tool,) = memory.tools(dialect)
    json.loads(json.dumps(tool))
    for holder in (tool, *tool.values()):
        if isinstance(holder, dict):
            holder.clear()
        elif isinstance(holder, list):
            holder[0].clear()
    assert dumped(memory.tools(dialect)) == before


def test_an_application_that_passes_the_session_declares_only_the_rest(make):
    memory = make().for_user("user_123", session="app")
    (tool,) = memory.tools("json-schema")
    assert tool["parameters"] == {"type": "object", "properties": APP_PROPERTIES}


def test_a_strict_declaration_is_closed_and_requires_everything(make):
    (tool,) = make().for_user("user_123", session="app").tools("openai", strict=True)
    assert tool["function"]["strict"] is True
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": APP_PROPERTIES,
        "required": ["query", "limit"],
        "additionalProperties": False,
    }


def test_strictness_is_refused_while_the_model_writes_the_session(memory):
    with pytest.raises(HaloConfigError, match='session="app"'):
        memory.tools("openai", strict=True)


def test_every_declared_schema_is_valid_json_schema(make):
    for session in ("model", "app"):
        (tool,) = make().for_user("user_123", session=session).tools("json-schema")
        Draft202012Validator.check_schema(tool["parameters"])


def test_providers_accept_the_declarations(memory):
    types = pytest.importorskip("google.genai.types")
    types.Tool.model_validate(memory.tools("gemini")[0])


def test_unknown_tools_and_dialects_are_named_with_those_that_exist(memory):
    with pytest.raises(HaloConfigError, match=r"'x'.*gemini"):
        memory.tools("x")
    with pytest.raises(HaloConfigError, match=r"forget_all.*retrieve"):
        Halo("k", project_key="p").for_user("u", tools=("forget_all",))


def test_a_tool_enabled_twice_is_declared_once(make):
    assert len(make().for_user("u", tools=("retrieve", "retrieve")).tools("openai")) == 1
