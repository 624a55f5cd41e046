"""The published description is true: whatever it allows to be sent is answered as it says."""

import json

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from halo_server.api.operations import PUBLIC
from tests.api.door import API, PROJECT, USER, Door, segment, served

HOLDS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
OFTEN = hypothesis.settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    door = Door(tmp_path_factory.mktemp("openapi") / "data")
    for word in ("tulips", "bicycle", "violin"):
        door.capture(f"{word} {word} {word}", word)
    yield door
    door.close()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_as_described(door, mode):
    """Sent three ways: as generated, with the names of somebody who has a memory, and with an admin key."""
    described = schemathesis.openapi.from_dict(door.send("GET", "/openapi.json", key=None).json())
    admin, seen = door.new_key(admin=True), set()

    def answered(case):
        whole_project = case.method == "DELETE" and case.operation.path == f"{API}/projects/{{project_key}}"
        for key, named in ((door.key, False), (door.key, True), (admin, False)):
            answer = send(door, case, key, named=named and not whole_project)
            case.validate_response(answer, checks=HOLDS)
            seen.add(answer.status_code)

    operations = [found.ok() for found in described.get_all_operations()]
    for operation in operations:
        if mode is GenerationMode.NEGATIVE and not (operation.body or list(operation.iter_parameters())):
            continue  # nothing in it can be wrong

        @OFTEN
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def every(case):
            answered(case)

        every()
    assert {400, 403, 404} <= seen
    assert mode is GenerationMode.NEGATIVE or {200, 201} <= seen


def send(door, case, key, *, named):
    path, body = case.operation.path, case.body
    own = {"project_key": PROJECT, "end_user_key": USER} if named else {}
    for name, value in {**(case.path_parameters or {}), **own}.items():
        path = path.replace(f"{{{name}}}", segment(str(value)) or "%20")
    query = "&".join(f"{segment(name)}={segment(str(value))}" for name, value in (case.query or {}).items())
    if isinstance(body, dict) and named and body.get("target") != "project":
        body = {**body, "projectKey": PROJECT, "endUserKey": USER}
    sends = case.operation.body and not isinstance(body, type(schemathesis.core.NOT_SET))
    content = (body if isinstance(body, bytes) else json.dumps(body).encode()) if sends else None
    headers = {name: str(value).encode("latin-1", "replace") for name, value in (case.headers or {}).items()}
    headers = {name: value for name, value in headers.items() if name.lower() == "idempotency-key"}
    return door.send(case.method, f"{path}?{query}", key=key, content=content, headers=headers)


def test_every_route_is_described_and_names_the_key_it_needs(door):
    document = door.send("GET", "/openapi.json", key=None).json()
    described = {
        (method.upper(), path): operation.get("security")
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    routes = {(method, path.replace(":key}", "}")) for method, path in served(door.app)} - {
        ("GET", "/openapi.json")
    }
    assert described == {(method, path): None if path in PUBLIC else [{"key": []}] for method, path in routes}
    assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
    assert "HTTPValidationError" not in json.dumps(document)


def test_only_what_can_be_sent_is_described(door):
    """A route that reads no body refuses none, and one that reads nothing but its path's own name finds nothing wrong."""
    document = door.send("GET", "/openapi.json", key=None).json()
    of_a_body = {"408", "413", "415"}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            answers, reads = set(operation["responses"]), "requestBody" in operation
            assert answers & of_a_body == (of_a_body if reads else set()), path
            assert ("400" in answers) == (reads or bool(operation.get("parameters"))), path
