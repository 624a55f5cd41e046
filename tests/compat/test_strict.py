"""A second opinion on our declarations and on what we know of tools: the helpers and the types of the providers' SDKs."""

from copy import deepcopy
from typing import Any, get_args, get_type_hints

import pytest

from halo_sdk import lint
from halo_sdk.dialects import DIALECTS
from halo_sdk.functions import FUNCTIONS
from tests.compat.wires import sdk

STRICT = [
    pytest.param(function.declaration("app", strict=True).parameters, id=key)
    for key, function in FUNCTIONS.items()
]


@pytest.mark.parametrize("schema", STRICT)
def test_the_helper_of_openai_changes_nothing(schema: dict[str, Any]) -> None:
    helper = sdk("openai.lib._pydantic")
    assert helper._ensure_strict_json_schema(deepcopy(schema), path=(), root=schema) == schema


@pytest.mark.parametrize("schema", STRICT)
def test_the_helper_of_openai_agents_changes_nothing(schema: dict[str, Any]) -> None:
    helper = sdk("agents.strict_schema")
    assert helper.ensure_strict_json_schema(deepcopy(schema)) == schema


@pytest.mark.parametrize("schema", STRICT)
def test_the_helper_of_anthropic_changes_nothing(schema: dict[str, Any]) -> None:
    assert sdk("anthropic").transform_schema(deepcopy(schema)) == schema


def test_openai_agents_would_rather_fail_than_close_an_open_session() -> None:
    helper, errors = sdk("agents.strict_schema"), sdk("agents.exceptions")
    with pytest.raises(errors.UserError, match="additionalProperties"):
        helper.ensure_strict_json_schema(FUNCTIONS["retrieve"].parameters("model"))


@pytest.mark.parametrize(("session", "strict"), [("model", False), ("app", False), ("app", True)])
@pytest.mark.parametrize("field", ["parameters", "parameters_json_schema"])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_gemini_takes_our_schemas_in_either_field(
    function: Any, field: str, session: Any, strict: bool
) -> None:
    types = sdk("google.genai.types")
    declaration = function.declaration(session, strict=strict)
    schema = {field: declaration.parameters}
    types.FunctionDeclaration.model_validate({"name": declaration.name, **schema})
    for tool in DIALECTS["gemini"].declare([declaration], strict=strict):
        types.Tool.model_validate(tool)


FUNCTION_KINDS = {"function", "namespace"}


@pytest.mark.parametrize(
    ("dialect", "module", "union"),
    [
        ("openai", "openai.types.chat", "ChatCompletionToolUnionParam"),
        ("openai-responses", "openai.types.responses", "ToolParam"),
        ("anthropic", "anthropic.types", "ToolUnionParam"),
        ("anthropic", "anthropic.types.beta", "BetaToolUnionParam"),
    ],
)
def test_no_kind_of_tool_a_provider_has_is_taken_for_a_broken_function(
    dialect: str, module: str, union: str
) -> None:
    fields = [get_type_hints(kind) for kind in get_args(getattr(sdk(module), union))]
    kinds = {name for field in fields for name in get_args(field["type"])}
    others = {kind for kind in kinds if isinstance(kind, str)} - FUNCTION_KINDS
    if dialect == "anthropic":
        others -= {"custom"}
    assert others
    assert {kind: lint({"type": kind, "name": "f"}, dialect) for kind in others} == {
        kind: [] for kind in others
    }


def test_no_kind_of_tool_gemini_has_is_taken_for_a_broken_function() -> None:
    types = sdk("google.genai.types")
    others = set(types.Tool.model_fields) - {"function_declarations"}
    for field in others:
        tool = types.Tool.model_validate({field: [{}] if field == "mcp_servers" else {}})
        assert lint(tool, "gemini") == [], field


@pytest.mark.parametrize("enum", [[1], ["a", None]])
def test_gemini_takes_nothing_but_text_in_an_enum_of_its_own_schema(enum: list[object]) -> None:
    types = sdk("google.genai.types")
    schema = {"type": "object", "properties": {"city": {"type": "string", "enum": enum}}}
    types.FunctionDeclaration.model_validate({"name": "f", "parameters_json_schema": schema})
    with pytest.raises(ValueError, match="enum"):
        types.FunctionDeclaration.model_validate({"name": "f", "parameters": schema})


def test_a_declaration_of_geminis_sdk_is_known_for_its_own() -> None:
    types = sdk("google.genai.types")
    schema = {"type": "object", "properties": {"cities": {"type": "array"}}}
    declared = types.FunctionDeclaration.model_validate(
        {"name": "f", "description": "d", "parameters": schema}
    )
    assert [fault.code for fault in lint(declared, "gemini")] == ["missing_items"]
