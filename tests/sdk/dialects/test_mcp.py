"""What only the Model Context Protocol does: one call a request, and no conversation."""

from typing import Any

import pytest

from halo_sdk import HaloConfigError
from halo_sdk.dialects import DIALECTS
from tests.sdk.fakes import RETRIEVE, sent

Json = dict[str, Any]
PARAMS: Json = {"name": RETRIEVE, "arguments": {"query": "tea", "endUserKey": "victim"}}
MCP = DIALECTS["mcp"]


@pytest.mark.parametrize(("request_id", "known"), [(0, "0"), ("r", "r"), (None, None)])
def test_a_call_has_the_id_of_its_request(service, memory, request_id, known):
    (call,) = memory.handle({"method": "tools/call", "params": PARAMS, "id": request_id}).calls
    assert (call.id, call.name) == (known, RETRIEVE)


@pytest.mark.parametrize("method", ["tools/list", "ping", None])
def test_a_request_of_another_method_is_no_call(memory, method):
    with pytest.raises(HaloConfigError, match="dialect"):
        memory.handle({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cursor": "x"}})


def test_fc08_parameters_are_a_call_where_the_dialect_is_named_and_never_say_who_is_meant(service, memory):
    types = pytest.importorskip("mcp_types")
    (result,) = memory.handle(types.CallToolRequestParams(**PARAMS), dialect="mcp")
    assert types.CallToolResult.model_validate(result).is_error is False
    body = sent(service["function"])
    assert body["endUserKey"] == "user_123"
    assert body["arguments"] == {"sessionData": {}, "query": "tea"}


@pytest.mark.parametrize(
    ("output", "is_error", "text", "structured"),
    [
        ({"degrees": 20}, False, '{"degrees":20}', {"degrees": 20}),
        ([1, 2], False, "[1,2]", None),
        ("sunny", False, "sunny", None),
        (None, False, "null", None),
        ({"why": "closed"}, True, '{"error":{"why":"closed"}}', None),
    ],
)
def test_only_an_object_that_worked_is_structured_content(memory, output, is_error, text, structured):
    results = memory.handle({"method": "tools/call", "params": {"name": "weather"}})
    results.add(results.pending[0], output, is_error=is_error)
    (result,) = results
    assert result["content"] == [{"type": "text", "text": text}]
    assert result["isError"] is is_error
    assert result.get("structuredContent") == structured


def test_what_a_server_lists_is_read_back(memory):
    types = pytest.importorskip("mcp_types")
    (tool,) = memory.tools("mcp")
    (declared,) = MCP.declared(tool)
    assert (declared.name, declared.description) == (tool["name"], tool["description"])
    assert declared.parameters == tool["inputSchema"]
    assert MCP.declared(types.Tool.model_validate(tool).model_dump()) == [declared]


def test_replies_are_not_streamed_and_there_is_no_history_to_read(memory):
    with pytest.raises(HaloConfigError, match="'mcp' are not streamed"):
        memory.accumulator("mcp")
    assert MCP.part(PARAMS) is None
