import json

import pytest

from halo_sdk import Halo
from tests.contract import schemas

EXPECTED = schemas.expected()
SEED = {
    "name": "halo_retrieve_end_user_memory",
    "description": "Retrieve relevant long-term memory for this end user.",
    "parameters": {
        "type": "object",
        "properties": {
            "sessionData": {"type": "object", "description": "Current conversation and application state."},
            "query": {"type": "string", "description": "Optional retrieval focus."},
            "limit": {"type": "number", "description": "Maximum raw records to return."},
        },
        "required": ["sessionData"],
    },
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_published_file_is_what_the_code_emits(name: str) -> None:
    assert (schemas.ROOT / name).read_text(encoding="utf-8") == schemas.text(EXPECTED[name])


def test_nothing_is_published_that_the_code_does_not_emit() -> None:
    published = {str(path.relative_to(schemas.ROOT)) for path in schemas.ROOT.rglob("*.json")}
    assert published == set(EXPECTED)


def test_the_declaration_is_the_seeds_but_for_the_open_session_data() -> None:
    declaration = json.loads(
        (schemas.ROOT / "functions/halo_retrieve_end_user_memory.json").read_text(encoding="utf-8")
    )
    assert declaration["parameters"]["properties"]["sessionData"].pop("additionalProperties") is True
    assert declaration == SEED
    assert json.dumps(declaration) == json.dumps(SEED)  # in the same order too


def test_sdk_and_server_emit_the_same_declaration() -> None:
    name = "functions/halo_retrieve_end_user_memory.json"
    assert Halo("key", project_key="project").for_user("end user").tools("json-schema") == [EXPECTED[name]]
