"""A second opinion on our declarations: the helpers with which SDKs close a schema before they send it."""

from copy import deepcopy
from typing import Any

import pytest

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
