"""What a model wrote, and what of it is sent."""

import pytest

from halo_sdk._arguments import MAX_TEXT_BYTES, read_arguments
from halo_sdk.errors import InvalidArgumentsError
from halo_sdk.functions import FUNCTIONS

PARAMETERS = FUNCTIONS["retrieve"].parameters("model")


class ProtoMap:
    """Answers like the argument map of a proto message."""

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def keys(self) -> list[str]:
        return list(self._fields)

    def __getitem__(self, name: str) -> object:
        return self._fields[name]


@pytest.mark.parametrize("written", [None, "", "  \n", "null", '""', {}, "{}", '"{}"'])
def test_fc02_fc12_no_arguments_are_an_empty_session(written):
    assert read_arguments(written, PARAMETERS, FUNCTIONS["retrieve"].repairs) == {"sessionData": {}}


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        (5, 5),
        (5.0, 5),
        ("5", 5),
        (" 7 ", 7),
        (2.9, 2),
        (0, 1),
        (-3, 1),
        (51, 50),
        (10**400, None),
        (1e9, 50),
        ("many", None),
        ("NaN", None),
        ("inf", None),
        (True, None),
        (None, None),
        ([5], None),
        ({}, None),
    ],
)
def test_fc11_fc15_a_limit_is_coerced_and_clamped_or_dropped(written, limit):
    assert read_arguments({"limit": written}, PARAMETERS, FUNCTIONS["retrieve"].repairs).get("limit") == limit


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("tea", "tea"),
        ("  tea ", "tea"),
        ("", None),
        ("   ", None),
        (None, None),
        (42, None),
        (["a"], None),
        ({"q": 1}, None),
        ('{"q":1}', '{"q":1}'),
        ("x" * 9_000, "x" * 4_000),
        ("\ud83d", "\ufffd"),
        ("'; DROP TABLE", "'; DROP TABLE"),
    ],
)
def test_a_query_is_text_and_never_decoded(written, query):
    assert read_arguments({"query": written}, PARAMETERS, FUNCTIONS["retrieve"].repairs).get("query") == query


@pytest.mark.parametrize(
    ("written", "session_data"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a":1}', {"a": 1}),
        ('[{"role":"user"}]', {"messages": [{"role": "user"}]}),
        ([], {"messages": []}),
        ("plain words", {"text": "plain words"}),
        ("7", {"text": "7"}),
        ("", {}),
        (None, {}),
        (7, {}),
        (True, {}),
        ({"a": float("nan")}, {"a": None}),
        ({"who": {"endUserKey": "x", "keep": 1}}, {"who": {"keep": 1}}),
        ([{"projectKey": "x"}], {"messages": [{}]}),
    ],
)
def test_session_data_becomes_an_object(written, session_data):
    assert (
        read_arguments({"sessionData": written}, PARAMETERS, FUNCTIONS["retrieve"].repairs)["sessionData"]
        == session_data
    )


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "not valid JSON"),
        ("{'query': 'x'}", "not valid JSON"),
        ('{"limit": NaN}', "not valid JSON"),
        ('{"limit": 1e999}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"limit": ' + "9" * 5_000 + "}", "not valid JSON"),
        ("[]", "one JSON object"),
        ("5", "one JSON object"),
        ('"text"', "not valid JSON"),
        ('"\\"\\\\\\"{}\\\\\\"\\""', "one JSON object"),
        (5, "one JSON object"),
        (True, "one JSON object"),
        ('"' + "x" * MAX_TEXT_BYTES + '"', "longer than"),
    ],
)
def test_fc01_fc03_fc05_fc13_what_is_no_object_is_refused_in_words_for_the_model(written, message):
    with pytest.raises(InvalidArgumentsError, match=message):
        read_arguments(written, PARAMETERS, FUNCTIONS["retrieve"].repairs)


def test_fc04_arguments_encoded_twice_are_decoded():
    assert (
        read_arguments('"{\\"query\\":\\"tea\\"}"', PARAMETERS, FUNCTIONS["retrieve"].repairs)["query"]
        == "tea"
    )


def test_fc16_arguments_may_be_a_proto_map():
    written = ProtoMap(query="tea", limit=5.0, sessionData=ProtoMap(turns=(ProtoMap(n=1.0),)))
    assert read_arguments(written, PARAMETERS, FUNCTIONS["retrieve"].repairs) == {
        "sessionData": {"turns": [{"n": 1.0}]},
        "query": "tea",
        "limit": 5,
    }


def test_arguments_a_model_nested_in_the_wrong_place_are_data():
    assert read_arguments(
        {"sessionData": {"query": "tea", "limit": "1"}}, PARAMETERS, FUNCTIONS["retrieve"].repairs
    ) == {"sessionData": {"query": "tea", "limit": "1"}}


def test_what_repair_cannot_fix_is_refused_by_the_declaration_without_quoting_it():
    parameters = {
        "type": "object",
        "properties": {"when": {"type": "object", "properties": {"day": {"type": "string"}}}},
    }
    assert read_arguments({"when": {"day": "Monday"}}, parameters, {}) == {"when": {"day": "Monday"}}
    with pytest.raises(
        InvalidArgumentsError, match=r"argument 'when' 'day' does not fit .*\(type\)"
    ) as caught:
        read_arguments({"when": {"day": 424242}}, parameters, {})
    assert "424242" not in str(caught.value)
