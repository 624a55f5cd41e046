"""What providers refuse, told before it is sent."""

import re
import sys
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from halo_sdk._plain import plain
from halo_sdk.dialects import DIALECTS
from halo_sdk.errors import HaloConfigError
from halo_sdk.functions import FUNCTIONS
from halo_sdk.lint import GEMINI_PARAMETERS, RULES, Fault, lint, lint_history
from halo_sdk.lint import schemas as schemas_of_lint

OPENAI = ("openai", "openai-responses")
STRICT = (*OPENAI, "anthropic")
GEMINI = ("gemini", "gemini-interactions", GEMINI_PARAMETERS)
PROTO = (GEMINI_PARAMETERS,)
EVERY = (*DIALECTS, GEMINI_PARAMETERS)
SCHEMA_FIELDS = {"anthropic": "input_schema", "mcp": "inputSchema", "gemini": "parameters_json_schema"}

TEXT = {"type": "string"}
GOOD = {"type": "object", "properties": {"city": TEXT}}
CLOSED = {**GOOD, "required": ["city"], "additionalProperties": False}


def holding(schema, keyword="city", **more):
    """Return the schema of an object that holds another."""
    return {"type": "object", "properties": {keyword: schema}, **more}


def closed(schema):
    return holding(schema, required=["city"], additionalProperties=False)


def nested(levels):
    """Return so many closed objects within each other."""
    schema = TEXT
    for _ in range(levels):
        schema = closed(schema)
    return schema


def many(count, schema=TEXT, required=()):
    properties = {f"p{index}": schema for index in range(count)}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required or ()),
        "additionalProperties": False,
    }


def told(spelling, schema=GOOD, name="f", description="d", strict=False):
    """Return a tool as a provider spells it, and the dialect it is spelled in."""
    field = SCHEMA_FIELDS.get(spelling, "parameters")
    function = {"name": name, "description": description, field: schema}
    spelled = {
        "anthropic": {**function, "strict": strict},
        "gemini": {"function_declarations": [function]},
        "gemini-interactions": {"type": "function", **function},
        "openai": {"type": "function", "function": {**function, "strict": strict}},
        "openai-responses": {"type": "function", **function, "strict": strict},
        GEMINI_PARAMETERS: {"functionDeclarations": [function]},
    }
    return spelled.get(spelling, function), "gemini" if spelling == GEMINI_PARAMETERS else spelling


def codes(spelling, **tool):
    return [fault.code for fault in lint(*told(spelling, **tool))]


def row(code, spellings, where, refused, passed):
    return pytest.param(code, spellings, where, refused, passed, id=f"{code}:{where}")


def schemas(code, spellings, where, refused, passed, **more):
    return row(code, spellings, where, {"schema": refused, **more}, {"schema": passed, **more})


TABLE = [
    *(
        row("bad_name", (*STRICT,), "name", {"name": refused}, {"name": passed})
        for refused, passed in (("a.b", "a-B_9"), ("a" * 65, "a" * 64), ("über", "9uber"), ("", "a"))
    ),
    *(
        row("bad_name", GEMINI, "name", {"name": refused}, {"name": passed})
        for refused, passed in (("9a", "_9a"), ("a b", "a.b:c-d"), ("a" * 65, "a" * 64))
    ),
    *(
        row("bad_name", ("mcp",), "name", {"name": refused}, {"name": passed})
        for refused, passed in (("a:b", "a.b-C_9"), ("a" * 129, "a" * 128), ("a\n", "a"))
    ),
    row("bad_name", ("json-schema",), "name", {"name": ""}, {"name": "anything at all"}),
    row("long_description", OPENAI, "description", {"description": "é" * 1025}, {"description": "é" * 1024}),
    schemas("root_not_object", EVERY, "type", {"properties": {"city": TEXT}}, GOOD),
    schemas("root_not_object", EVERY, "type", "no schema", GOOD),
    schemas("invalid_schema", EVERY, "properties.city.type", holding({"type": "text"}), GOOD),
    schemas("invalid_schema", EVERY, "required", {**GOOD, "required": "city"}, GOOD),
    schemas(
        "unknown_required", EVERY, "required", {**GOOD, "required": ["town"]}, {**GOOD, "required": ["city"]}
    ),
    schemas(
        "unknown_required",
        EVERY,
        "properties.city.items.required",
        holding({"type": "array", "items": {**GOOD, "required": ["town"]}}),
        {**GOOD, "anyOf": [{"required": ["city"]}], "type": "object"},
    ),
    schemas(
        "unknown_required",
        EVERY,
        "required",
        {"type": "object", "required": ["town"]},
        holding({"type": "object", "required": ["town"]}),
    ),
    *(
        schemas("root_union", STRICT, word, {**GOOD, word: [GOOD]}, GOOD)
        for word in ("oneOf", "anyOf", "allOf")
    ),
    schemas("root_union", STRICT, "anyOf", {**CLOSED, "anyOf": [CLOSED]}, CLOSED, strict=True),
    schemas(
        "missing_properties",
        OPENAI,
        "properties",
        {"type": "object", "additionalProperties": True},
        {"type": "object", "properties": {}},
    ),
    schemas(
        "bare_object",
        OPENAI,
        "properties.city",
        holding({"type": "object", "description": "anything"}),
        holding({"type": "object", "additionalProperties": True}),
    ),
    row("strict_not_said", ("openai-responses",), "strict", {"strict": None}, {"strict": False}),
    schemas("bad_key", ("anthropic",), "properties.a b", holding(TEXT, "a b"), holding(TEXT, "9a.b-c")),
    schemas(
        "bad_key", ("anthropic",), "properties." + "a" * 65, holding(TEXT, "a" * 65), holding(TEXT, "a" * 64)
    ),
    schemas("bad_key", GEMINI, "properties.9a", holding(TEXT, "9a"), holding(TEXT, "_9a")),
    schemas(
        "bad_key",
        GEMINI,
        "properties.city.properties.a-b",
        holding(holding(TEXT, "a-b")),
        holding(holding(TEXT)),
    ),
    schemas(
        "ref_beside_fields",
        GEMINI,
        "properties.city.$ref",
        holding({"$ref": "#/$defs/a", "description": "d"}),
        holding(TEXT),
    ),
    *(
        schemas("unknown_keyword", PROTO, f"properties.city.{word}", holding({**TEXT, word: value}), GOOD)
        for word, value in {
            "additionalProperties": False,
            "$schema": "x",
            "const": "a",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 9,
            "multipleOf": 2,
            "$ref": "#",
            "$defs": {},
            "oneOf": [TEXT],
            "propertyNames": TEXT,
        }.items()
    ),
    schemas(
        "type_list",
        PROTO,
        "properties.city.type",
        holding({"type": ["string", "null"]}),
        holding({"type": "STRING", "nullable": True}),
    ),
    schemas("empty_properties", PROTO, "properties", {"type": "OBJECT", "properties": {}}, GOOD),
    schemas(
        "empty_properties",
        PROTO,
        "properties.city.anyOf.0.properties",
        holding({"any_of": [{"type": "OBJECT"}]}),
        holding({"any_of": [TEXT]}),
    ),
    schemas(
        "missing_items",
        PROTO,
        "properties.city.items",
        holding({"type": "ARRAY"}),
        holding({"type": "ARRAY", "items": TEXT}),
    ),
    *(
        schemas(
            "missing_items",
            OPENAI,
            "properties.city.items",
            refuse(listed),
            refuse({**listed, "items": TEXT}),
            strict=strict,
        )
        for refuse, strict in ((holding, False), (closed, True))
        for listed in (
            {"type": "array"},
            {"type": ["array", "null"]},
            {"type": "array", "prefixItems": [TEXT]},
        )
    ),
    *(
        schemas(
            "enum_not_text", PROTO, "properties.city.enum", holding(refused), holding({**TEXT, "enum": ["1"]})
        )
        for refused in (
            {"type": "INTEGER", "enum": [1]},
            {"type": "NUMBER", "enum": ["1"]},
            {"type": "STRING", "enum": ["a", None]},
            {"type": "STRING", "enum": ["a", ""]},
            {"enum": ["a"]},
        )
    ),
    schemas(
        "strict_open_object",
        STRICT,
        "additionalProperties",
        {**GOOD, "required": ["city"]},
        CLOSED,
        strict=True,
    ),
    schemas(
        "strict_open_object",
        STRICT,
        "properties.city.anyOf.1.additionalProperties",
        closed({"anyOf": [TEXT, {**CLOSED, "additionalProperties": True}]}),
        closed({"anyOf": [TEXT, CLOSED]}),
        strict=True,
    ),
    schemas(
        "strict_free_form",
        STRICT,
        "properties.city",
        closed({"type": "object", "additionalProperties": True}),
        closed(CLOSED),
        strict=True,
    ),
    schemas("strict_optional", OPENAI, "properties.city", {**CLOSED, "required": []}, CLOSED, strict=True),
    *(
        schemas(
            "strict_keyword",
            OPENAI,
            f"properties.city.{word}",
            closed({**TEXT, word: value}),
            CLOSED,
            strict=True,
        )
        for word, value in {"default": "Bonn", "oneOf": [TEXT], "not": TEXT, "if": TEXT}.items()
    ),
    schemas(
        "strict_too_deep",
        OPENAI,
        ".".join(["properties.city"] * 5),
        nested(6),
        nested(5),
        strict=True,
    ),
    schemas("strict_grammar", ("anthropic",), "", many(25), many(24), strict=True),
]


@pytest.mark.parametrize(("code", "spellings", "where", "refused", "passed"), TABLE)
def test_each_dialect_is_told_what_its_provider_refuses(code, spellings, where, refused, passed):
    for spelling in spellings:
        faults = [fault for fault in lint(*told(spelling, **refused)) if fault.code == code]
        assert [fault.where for fault in faults] == [where], spelling
        assert code not in codes(spelling, **passed), spelling
        rule = next(rule for rule in RULES if rule.code == code)
        assert spelling in rule.spellings


@pytest.mark.parametrize(("code", "spellings", "where", "refused", "passed"), TABLE)
def test_what_one_provider_refuses_is_not_held_against_another(code, spellings, where, refused, passed):
    rule = next(rule for rule in RULES if rule.code == code)
    for spelling in set(EVERY) - rule.spellings:
        assert code not in codes(spelling, **refused)


def test_every_rule_is_in_the_table_and_has_a_code_of_its_own():
    rules = [rule.code for rule in RULES]
    assert len(set(rules)) == len(rules)
    assert set(rules) == {row.values[0] for row in TABLE}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.strict], ids=lambda rule: rule.code)
def test_what_only_strictness_refuses_is_free_without_it(rule):
    refused = next(row.values[3] for row in TABLE if row.values[0] == rule.code)
    for spelling in rule.spellings:
        assert rule.code not in codes(spelling, **{**refused, "strict": False})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("session", "strict"), [("model", False), ("app", False), ("app", True)])
def test_nothing_is_known_against_our_own_declarations(make, dialect, session, strict):
    memory = make().for_user("user_123", tools=tuple(FUNCTIONS), session=session)
    assert [fault for tool in memory.tools(dialect, strict=strict) for fault in lint(tool, dialect)] == []
    for function in FUNCTIONS.values():
        assert lint(function.declaration(session, strict=strict), dialect) == []


def test_a_fault_says_where_it_is_and_who_refuses_it():
    tool, dialect = told("anthropic", {**GOOD, "oneOf": [GOOD]})
    message = "`oneOf` at the root is refused by Anthropic: move it into a property"
    assert lint(tool, dialect) == [Fault("root_union", "oneOf", message)]


@pytest.mark.parametrize(
    ("schema", "cure"),
    [
        ({"any_of": [{"type": "STRING"}], "enum": ["a"]}, "say `STRING` there, not further in"),
        ({"enum": ["a"]}, "say `STRING` there"),
        ({"type": "INTEGER", "enum": [1]}, "use strings"),
        ({"any_of": [{"type": "INTEGER"}], "enum": [1]}, "use strings"),
    ],
)
def test_an_enum_of_text_without_a_type_is_not_told_to_hold_text(schema, cure):
    (fault,) = lint(*told(GEMINI_PARAMETERS, holding(schema)))
    assert (fault.code, fault.where) == ("enum_not_text", "properties.city.enum")
    assert cure in fault.message


@pytest.mark.parametrize(("code", "spellings", "where", "refused", "passed"), TABLE)
def test_a_message_reads_as_a_sentence(code, spellings, where, refused, passed):
    for spelling in spellings:
        for fault in lint(*told(spelling, **refused)):
            assert not re.search(r"[,;:]\s*[,;:]", fault.message.replace("[a-zA-Z_][a-zA-Z0-9_.:-]", "")), (
                spelling
            )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_neutral_declaration_is_checked_as_it_would_be_declared(dialect):
    schema = holding({"type": ["string", "null"], "const": "a"})
    assert lint({"name": "f", "description": "d", "parameters": schema}, dialect) == []
    assert [fault.code for fault in lint({"name": "f", "parameters": {}}, dialect)] == ["root_not_object"]


@pytest.mark.parametrize(
    ("tool", "dialect"),
    [
        ({"function_declarations": [{"name": "a"}, {"name": "9b"}]}, "gemini"),
        (
            {
                "type": "namespace",
                "name": "n",
                "tools": [
                    {"type": "function", "name": "a", "strict": False},
                    {"type": "function", "name": "b c", "strict": False},
                ],
            },
            "openai-responses",
        ),
    ],
)
def test_a_fault_in_a_tool_of_several_functions_says_which(tool, dialect):
    assert [(fault.code, fault.where) for fault in lint(tool, dialect)] == [("bad_name", "[1].name")]


@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "gemini", "gemini-interactions"])
def test_a_function_may_take_no_arguments(dialect):
    tool, _ = told(dialect, None)
    assert lint(tool, dialect) == []


@pytest.mark.parametrize("dialect", ["anthropic", "mcp"])
def test_some_providers_want_a_schema_of_every_function(dialect):
    tool, _ = told(dialect, None)
    assert [fault.code for fault in lint(tool, dialect)] == ["root_not_object"]


WORDS = st.sampled_from(
    "$defs $ref additionalProperties anyOf arguments array call_id content default description function "
    "function_declarations functionDeclarations id input_schema inputSchema items name namespace not object "
    "parameters parameters_json_schema parts properties required role strict string tool_calls tools type".split()
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS | st.builds(object)
)
JUNK = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=25,
)


def mostly(right):
    """Return what is mostly right, and sometimes anything."""
    return st.one_of(right, right, right, JUNK)


SCHEMAS = st.recursive(
    st.just({}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "additionalProperties": mostly(st.booleans() | inner),
            "anyOf": mostly(st.lists(inner, min_size=1, max_size=2)),
            "description": mostly(st.text(max_size=3)),
            "enum": mostly(st.lists(LEAVES, max_size=2)),
            "items": mostly(inner),
            "properties": mostly(st.dictionaries(st.text(max_size=3), inner, max_size=2)),
            "required": mostly(st.lists(st.text(max_size=1), max_size=2)),
            "type": mostly(st.sampled_from("array boolean integer null number object string text".split())),
            "format": JUNK,
        },
    ),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(schema=SCHEMAS)
def test_a_schema_is_valid_when_its_meta_schema_says_so(schema):
    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    assert ("invalid_schema" in codes("mcp", schema=schema)) is not judge.is_valid(plain(schema))


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        *(("additionalProperties", value) for value in (None, 5, {"type": 5})),
        *(("anyOf", value) for value in (None, [], {}, [5], [{"items": 5}])),
        ("description", 5),
        *(("enum", value) for value in (None, {}, "a")),
        *(("items", value) for value in (None, [TEXT], {"enum": 5})),
        *(("properties", value) for value in (None, [], {"city": 5}, {"city": {"anyOf": []}})),
        *(("required", value) for value in (None, "a", [5], [["a"]], ["a", "a"])),
        *(("type", value) for value in (None, 5, "text", "STRING", {}, [])),
    ],
)
def test_a_common_keyword_used_badly_is_a_fault(keyword, value):
    assert "invalid_schema" in codes("mcp", schema=holding({keyword: value}))


@pytest.mark.parametrize("session", ["model", "app"])
def test_our_own_declarations_are_checked_without_a_library_that_is_slow_to_load(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    for function, dialect in product(FUNCTIONS.values(), DIALECTS):
        for strict in {False, session == "app"}:
            assert lint(function.declaration(session, strict=strict), dialect) == []


def test_a_regular_expression_of_another_language_is_no_fault():
    assert codes("openai", schema=holding({"type": "string", "pattern": r"^\p{L}+$"})) == []


def test_a_tool_may_be_an_object():
    function = SimpleNamespace(name="a b", description="d", parameters=GOOD, strict=False)
    tool = SimpleNamespace(type="function", function=function)
    assert [fault.code for fault in lint(tool, "openai")] == ["bad_name"]


FUNCTION = {"name": "f", "description": "d", "parameters": GOOD}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "tool",
    [
        None,
        5,
        "f",
        {},
        {"type": "function"},
        {"type": "function", "function": None},
        {"type": ""},
        {"google_search": None},
        {"function_declarations": []},
        {"function_declarations": [5]},
        {"function_declarations": [{"description": "d"}]},
        {"parameters_json_schema": None, "description": "d"},
    ],
    ids=str,
)
def test_what_is_no_tool_is_told_apart(dialect, tool):
    assert [fault.code for fault in lint(tool, dialect)] == ["no_function"]


@pytest.mark.parametrize(
    ("dialect", "spelling"),
    [
        *((dialect, "openai") for dialect in DIALECTS if dialect != "openai"),
        *((dialect, GEMINI_PARAMETERS) for dialect in DIALECTS if dialect != "gemini"),
        ("openai", "openai-responses"),
        ("openai", "anthropic"),
        ("gemini", "gemini-interactions"),
    ],
)
def test_a_function_in_another_providers_spelling_is_none(dialect, spelling):
    tool, _ = told(spelling)
    assert [fault.code for fault in lint(tool, dialect)] == ["no_function"]


SAYS_ITS_KIND = ("anthropic", "gemini-interactions", "openai", "openai-responses")


@pytest.mark.parametrize(
    ("dialects", "tool"),
    [
        *((SAYS_ITS_KIND, {"type": kind}) for kind in ("object", "OBJECT", "array", "string", "integer")),
        (SAYS_ITS_KIND, GOOD),
        (SAYS_ITS_KIND, {"type": "OBJECT", "properties": {}}),
        (SAYS_ITS_KIND, {"type": "weather", "properties": {"city": TEXT}}),
        *(
            (SAYS_ITS_KIND, {"type": "functions", "name": "f", field: value})
            for field, value in {
                "function": FUNCTION,
                "parameters": GOOD,
                "input_schema": {},
                "inputSchema": GOOD,
                "parameters_json_schema": GOOD,
                "function_declarations": [FUNCTION],
            }.items()
        ),
        (("gemini",), GOOD["properties"]),
        (("gemini",), {"properties": GOOD["properties"]}),
        (("gemini",), {"city": {"type": "STRING"}}),
        (("gemini",), {"weather": {"description": "d", "parameters": GOOD}}),
        (("gemini",), {"google_search": {}, "city": TEXT}),
    ],
    ids=str,
)
def test_what_tries_to_declare_a_function_is_taken_for_no_tool_of_a_provider_s_own(dialects, tool):
    for dialect in dialects:
        assert [fault.code for fault in lint(tool, dialect)] == ["no_function"], dialect


@pytest.mark.parametrize(
    ("tool", "dialect", "other"),
    [
        ({"name": "f", "input_schema": GOOD}, "openai", "anthropic"),
        ({"type": "custom", "name": "f", "input_schema": GOOD}, "openai-responses", "anthropic"),
        ({"type": "custom", "name": "f", "input_schema": GOOD}, "gemini", "anthropic"),
        ({"name": "f", "inputSchema": GOOD}, "gemini", "mcp"),
        (told("openai")[0], "anthropic", "openai"),
        (told("openai")[0], "openai-responses", "openai"),
        (told("gemini")[0], "openai", "gemini"),
        (told(GEMINI_PARAMETERS)[0], "anthropic", "gemini"),
        (told("openai-responses")[0], "gemini-interactions", None),
        (told("openai-responses")[0], "openai", None),
        (GOOD, "openai", None),
        ({"type": "functions", "name": "f", "parameters": GOOD}, "openai", None),
        ({}, "openai", None),
    ],
    ids=str,
)
def test_a_function_in_the_spelling_of_one_other_provider_is_told_whose_it_is(tool, dialect, other):
    hints = [fault.message.partition("; ")[2] for fault in lint(tool, dialect) if fault.code == "no_function"]
    assert hints in ([], [f"this looks like a tool for {other!r}" if other else ""])
    assert hints or dialect == "gemini-interactions"


OTHER_KINDS = {
    "openai": [{"type": "custom", "custom": {"name": "a b"}}, {"type": "something_new"}],
    "openai-responses": [
        {"type": "web_search"},
        {"type": "file_search", "vector_store_ids": ["v"]},
        {"type": "mcp", "server_label": "a b", "server_url": "https://mcp.invalid"},
        {"type": "custom", "name": "f", "format": {"type": "text"}},
        {"type": "tool_search", "parameters": {}},
        {"type": "something_new", "parameters": None, "function": None},
        {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "f"}]},
    ],
    "anthropic": [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "mcp_toolset", "mcp_server_name": "s"},
    ],
    "gemini": [
        {"google_search": {}},
        {"googleSearch": {}},
        {"code_execution": {}, "url_context": {}},
        {"file_search": {"file_search_store_names": ["s"]}},
        {"mcp_servers": [{"name": "s"}]},
        {"something_new": {}, "function_declarations": None},
        {"something_new": {}, "functionDeclarations": []},
        SimpleNamespace(google_maps=SimpleNamespace()),
    ],
    "gemini-interactions": [
        {"type": "google_search"},
        {"type": "mcp_server", "name": "s", "url": "u"},
        {"type": "tool_search", "name": "f", "parameters": GOOD},
    ],
}


@pytest.mark.parametrize(
    ("dialect", "tool"), [(dialect, tool) for dialect, tools in OTHER_KINDS.items() for tool in tools]
)
def test_a_tool_that_declares_no_function_by_design_has_nothing_to_check(dialect, tool):
    assert lint(tool, dialect) == []


@pytest.mark.parametrize(
    ("dialect", "tool"),
    [
        ("gemini", {"function_declarations": [FUNCTION, 5]}),
        ("gemini", {"function_declarations": [FUNCTION, {"description": "d"}], "google_search": {}}),
        ("openai-responses", {"type": "namespace", "tools": [{"type": "custom", "name": "f"}, {}]}),
    ],
)
def test_a_broken_function_is_told_apart_from_those_beside_it(dialect, tool):
    assert [(fault.code, fault.where) for fault in lint(tool, dialect)] == [("no_function", "[1]")]


def test_a_function_may_say_that_it_is_one_or_be_silent():
    tool, _ = told("anthropic", name="a b")
    for kind in ({}, {"type": None}, {"type": "custom"}):
        assert [fault.code for fault in lint({**tool, **kind}, "anthropic")] == ["bad_name"]
    assert [fault.code for fault in lint({**tool, "type": ""}, "anthropic")] == ["no_function"]


@pytest.mark.parametrize("more", [{}, {"tools": []}, {"tools": None}])
def test_a_namespace_of_nothing_declares_no_function(more):
    tool = {"type": "namespace", "name": "n", **more}
    assert [fault.code for fault in lint(tool, "openai-responses")] == ["no_function"]


def test_functions_beside_a_providers_own_tool_are_checked():
    tool, dialect = told(GEMINI_PARAMETERS, name="9a")
    assert [fault.code for fault in lint({**tool, "google_search": {}}, dialect)] == ["bad_name"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "tools", [[FUNCTION], (FUNCTION,), [], {"tools": [FUNCTION]}, SimpleNamespace(tools=[FUNCTION])], ids=str
)
def test_several_tools_are_told_from_one(dialect, tools):
    (fault,) = lint(tools, dialect)
    assert fault == Fault("not_one_tool", "", "`lint` takes one element of `tools`: call it for each")


DEFINED = {"$defs": {"a/b": {"properties": {"town": TEXT}}}}


@pytest.mark.parametrize(
    "beside",
    [
        {"allOf": [{"properties": {"town": TEXT}}]},
        {"anyOf": [GOOD, {"oneOf": [{"properties": {"town": TEXT}}]}]},
        {"if": {"required": ["city"]}, "then": {"properties": {"town": TEXT}}},
        {"dependentSchemas": {"city": {"properties": {"town": TEXT}}}},
        {"patternProperties": {"^t": TEXT}},
        {"$ref": "#/$defs/a~1b", **DEFINED},
        {
            "allOf": [{"$ref": "#/$defs/a%2Fb"}, {"$ref": "#"}],
            "$defs": {"a/b": {"properties": {"town": TEXT}}},
        },
        {"allOf": [{"$ref": "https://schemas.invalid/town"}]},
        {"allOf": [{"$ref": "#town"}]},
        {"$ref": 5},
        {"$dynamicRef": "#town"},
    ],
    ids=str,
)
def test_what_is_required_may_be_declared_beside_it(beside):
    assert "unknown_required" not in codes("mcp", schema={**GOOD, "required": ["town"], **beside})


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"allOf": [{"properties": {"town": TEXT}, "required": ["city", "town"]}]}, []),
        ({"allOf": [{"properties": {"town": TEXT}, "required": ["village"]}]}, ["allOf.0.required"]),
        ({"anyOf": [{"required": ["city"]}, {"required": ["village"]}]}, ["anyOf.1.required"]),
        ({"not": {"properties": {"town": TEXT}, "required": ["village"]}}, []),
        ({"required": ["town"], "allOf": [{"$ref": "#"}]}, ["required"]),
        ({"required": ["town"], **DEFINED}, ["required"]),
    ],
)
def test_what_is_required_is_looked_for_in_all_that_is_said_of_one_value(more, where):
    faults = lint(*told("mcp", {**GOOD, **more}))
    assert [fault.where for fault in faults if fault.code == "unknown_required"] == where


@pytest.mark.parametrize("pointer", ["#/$defs/a~1b", "#/$defs/a%2Fb"])
def test_a_definition_is_judged_where_it_is_used_and_once(pointer):
    defined = {"$defs": {"a/b": {"properties": {"street": TEXT}, "required": ["city", "street"]}}}
    reference = {"$ref": pointer}
    apart = {"type": "object", "properties": {"from": reference, "to": reference}, **defined}
    (fault,) = lint(*told("mcp", apart))
    assert (fault.code, fault.where) == ("unknown_required", "$defs.a/b.required")
    assert codes("mcp", schema={**GOOD, "allOf": [reference], **defined}) == []


def test_a_chain_of_references_may_be_long_and_closed():
    chain = {f"d{at}": {"$ref": f"#/$defs/d{(at + 1) % 5_000}"} for at in range(5_000)}
    schema = {**GOOD, "required": ["town"], "allOf": [{"$ref": "#/$defs/d0"}], "$defs": chain}
    assert "unknown_required" in codes("mcp", schema=schema)


@pytest.mark.parametrize(
    "to_next", [lambda ref: ref, lambda ref: {"allOf": [ref]}, lambda ref: {"anyOf": [ref]}]
)
def test_each_schema_is_looked_into_a_few_times_however_many_properties_refer_to_it(monkeypatch, to_next):
    looks = []
    within = schemas_of_lint._within

    def counted(schema):
        looks.append(1)
        return within(schema)

    monkeypatch.setattr(schemas_of_lint, "_within", counted)
    links = 200
    end = {**GOOD, "required": ["city", "town"]}
    defined = {f"d{at}": to_next({"$ref": f"#/$defs/d{at + 1}"}) for at in range(links)} | {f"d{links}": end}
    properties = {f"p{at}": {"$ref": f"#/$defs/d{at}"} for at in range(links)}
    faults = lint(*told("mcp", {"type": "object", "properties": properties, "$defs": defined}))
    assert [fault.where for fault in faults] == [f"$defs.d{links}.required"]
    assert len(looks) < 20 * links


PROTO_SPELLED = holding({"type": "ARRAY"})


@pytest.mark.parametrize(
    ("schema", "faults"),
    [
        (PROTO_SPELLED, ["missing_items"]),
        ({"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}, []),
        ({"type": "OBJECT", "properties": {"city": {"const": "a"}}}, ["unknown_keyword"]),
        (holding({"type": "array", "prefixItems": [{"const": "a"}]}), []),
    ],
)
def test_a_bare_declaration_in_capitals_is_geminis_own(schema, faults):
    tool = {"name": "f", "description": "d", "parameters": schema}
    assert [fault.code for fault in lint(tool, "gemini")] == faults


def test_capitals_are_no_types_of_anybody_elses():
    for dialect in set(DIALECTS) - {"gemini"}:
        tool = {"name": "f", "description": "d", "parameters": PROTO_SPELLED}
        assert "invalid_schema" in [fault.code for fault in lint(tool, dialect)]


@pytest.mark.parametrize("check", [lint, lint_history])
@pytest.mark.parametrize("dialect", ["cohere", "", None, [], {}])
def test_an_unknown_dialect_is_an_error_that_names_those_there_are(check, dialect):
    with pytest.raises(HaloConfigError, match="openai"):
        check({}, dialect)


@pytest.mark.parametrize("spelling", EVERY)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(junk=JUNK)
def test_no_tool_and_no_history_is_too_broken_to_be_checked(spelling, junk):
    tool, dialect = told(spelling, junk, name=junk, description=junk, strict=True)
    for broken in (junk, tool, {"name": "f", "parameters": junk, "strict": True}):
        assert all(isinstance(fault, Fault) for fault in lint(broken, dialect))
    for history in (
        junk,
        [junk],
        [{"role": "assistant", "content": junk, "tool_calls": junk, "parts": junk}],
    ):
        assert all(isinstance(fault, Fault) for fault in lint_history(history, dialect))


@pytest.mark.parametrize("keyword", ["not", "items", "anyOf"])
@pytest.mark.parametrize("spelling", EVERY)
def test_a_schema_nested_past_all_sense_is_a_fault(spelling, keyword):
    schema = GOOD
    for _ in range(100):
        schema = {**GOOD, keyword: [schema] if keyword == "anyOf" else schema}
    assert "invalid_schema" in codes(spelling, schema=schema)


def call(spelling, call_id="call_1", name="f"):
    """Return the message of a model that makes one call."""
    match spelling:
        case "openai":
            made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
            return {"role": "assistant", "content": None, "tool_calls": [made]}
        case "openai-responses":
            return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
        case "anthropic":
            made = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            return {"role": "assistant", "content": [made]}
        case "gemini-interactions":
            return {"type": "function_call", "id": call_id, "name": name, "arguments": {}}
    return {"role": "model", "parts": [{"functionCall": {"id": call_id, "name": name, "args": {}}}]}


def result(spelling, call_id="call_1", name="f"):
    match spelling:
        case "openai":
            return {"role": "tool", "tool_call_id": call_id, "content": "done"}
        case "openai-responses":
            return {"type": "function_call_output", "call_id": call_id, "output": "done"}
        case "anthropic":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id}]}
        case "gemini-interactions":
            return {"type": "function_result", "call_id": call_id, "name": name, "result": "done"}
    return {
        "role": "user",
        "parts": [{"function_response": {"id": call_id, "name": name, "response": {"output": 1}}}],
    }


HISTORIES = ("openai", "openai-responses", "anthropic", "gemini", "gemini-interactions")
QUESTION = {"role": "user", "content": "Hello"}


def places(messages, dialect):
    return [(fault.code, fault.where) for fault in lint_history(messages, dialect)]


@pytest.mark.parametrize("dialect", HISTORIES)
@pytest.mark.parametrize(
    ("turns", "faults"),
    [
        ([call, result], []),
        ([call], [("call_without_result", "[1]")]),
        ([result], [("result_without_call", "[1]")]),
        ([call, result, result], [("result_without_call", "[3]")]),
        ([result, call], [("result_without_call", "[1]"), ("call_without_result", "[2]")]),
        ([call, result, call, result], [("duplicate_call_id", "[3]")]),
        ([call, call, result, result], [("duplicate_call_id", "[2]")]),
    ],
)
def test_every_call_of_a_history_has_one_result_after_it(dialect, turns, faults):
    history = [QUESTION, *(turn(dialect) for turn in turns)]
    if dialect in {"openai-responses", "gemini-interactions"}:  # may continue a response the provider stored
        faults = [fault for fault in faults if fault != ("result_without_call", "[1]")]
    assert places(history, dialect) == faults


@pytest.mark.parametrize("dialect", HISTORIES)
def test_fc18_an_empty_id_pairs_nothing(dialect):
    history = [QUESTION, call(dialect, ""), result(dialect, "")]
    assert [place for place in places(history, dialect) if place[0] == "empty_id"] == [
        ("empty_id", "[1]"),
        ("empty_id", "[2]"),
    ]


def test_calls_without_ids_are_paired_by_name_where_the_provider_does():
    pairs = [call("gemini", None, "a"), call("gemini", None, "b"), result("gemini", None, "b")]
    assert places(pairs, "gemini") == [("call_without_result", "[0]")]
    assert places([*pairs, result("gemini", None, "a")], "gemini") == []
    legacy = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "done"},
    ]
    assert places(legacy, "openai") == []


def test_an_id_longer_than_openai_takes_is_never_to_be_shortened():
    def pair(chars):
        return [call("openai", "c" * chars), result("openai", "c" * chars)]

    assert places(pair(40), "openai") == []
    (fault,) = lint_history(pair(41), "openai")
    assert (fault.code, fault.where) == ("long_call_id", "[0]")
    assert "64" in fault.message
    assert "never shorten" in fault.message
    assert places([call("anthropic", "c" * 41), result("anthropic", "c" * 41)], "anthropic") == []


def test_a_history_may_hold_objects_and_be_one_message():
    made = call("openai")
    assert places(SimpleNamespace(**made), "openai") == [("call_without_result", "[0]")]
    assert places([SimpleNamespace(**made), None, result("openai")], "openai") == []


def test_what_handle_answers_is_a_history_without_faults(service, memory):
    messages = [QUESTION, call("openai", "call_1", "halo_retrieve_end_user_memory")]
    messages += memory.handle(messages[-1], session=messages)
    assert lint_history(messages, "openai") == []
