"""Which bytes are a request: one table for all doors and both databases."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from halo_server.api.body import Body, Limits, identifier, parse, read
from halo_server.errors import (
    InvalidJSON,
    InvalidRequest,
    RequestTimeout,
    TooLarge,
    UnsupportedMediaType,
)

LIMITS = Limits(max_bytes=1000, max_depth=8, max_nodes=20, deadline_s=5.0)


def nested(depth: int) -> bytes:
    """Return an object with lists in it, `depth` levels deep in all."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def wide(nodes: int) -> bytes:
    """Return an object that holds `nodes` values, itself and its list included."""
    return json.dumps({"a": [0] * (nodes - 2)}).encode()


@pytest.mark.parametrize(
    ("data", "value", "sanitized"),
    [
        (b"{}", {}, 0),
        (b' {"a": [1, 2.5, true, null, "x"]} ', {"a": [1, 2.5, True, None, "x"]}, 0),
        ('{"a": "é 花 😀"}'.encode(), {"a": "é 花 😀"}, 0),
        (rb'{"a": "\ud83d\ude00"}', {"a": "😀"}, 0),
        (rb'{"a": "x\ud83d"}', {"a": "x�"}, 1),
        (rb'{"a": "\ude00\ud83d!"}', {"a": "��!"}, 2),
        (rb'{"a": ["\ud83d", {"b": "\ud83d"}]}', {"a": ["�", {"b": "�"}]}, 2),
        ('{"a": "�"}'.encode(), {"a": "�"}, 0),
        (rb'{"a": "x\u0000y\u0000"}', {"a": "xy"}, 2),
        (b'{"a": 9223372036854775807, "b": -9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}, 0),
        (b'{"a": 1e308, "b": 1e-400}', {"a": 1e308, "b": 0.0}, 0),
        (b'{"a": {"x": 1, "x": 2}}', {"a": {"x": 2}}, 0),
        (b'{"arguments": {"a": {"x": 1, "x": 2}}}', {"arguments": {"a": {"x": 2}}}, 0),
        (rb'{"a": "\u0007\u007f"}', {"a": "\x07\x7f"}, 0),
    ],
)
def test_what_is_a_request_and_what_is_mended(data: bytes, value: Any, sanitized: int) -> None:
    assert parse(data, LIMITS) == Body(value, sanitized)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"a": 1} x',
        b"[]",
        b'"text"',
        b"1",
        b"null",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}',
        b'{"a": -1e400}',
        b'{"a": 9223372036854775808}',
        b'{"a": 18446744073709551616}',
        b'{"a": -9223372036854775809}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 1, "a": 2}',
        b'{"arguments": {"x": 1, "x": 2}}',
        rb'{"\ud83d": 1}',
        rb'{"a": {"x\u0000": 1}}',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-16-le"),
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\x00"}',
        b'{"a":' + b"[" * 200_000,
        nested(100_000),
    ],
)
def test_what_is_no_request(data: bytes) -> None:
    with pytest.raises(InvalidJSON):
        parse(data, LIMITS)


@pytest.mark.parametrize("name", ["projectKey", "endUserKey"])
def test_a_nul_is_not_cut_out_of_a_key_that_names_somebody(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        parse(json.dumps({name: "ana\0"}).encode(), LIMITS)


@pytest.mark.parametrize(
    ("fits", "over"),
    [
        (nested(LIMITS.max_depth), nested(LIMITS.max_depth + 1)),
        (wide(LIMITS.max_nodes), wide(LIMITS.max_nodes + 1)),
    ],
)
def test_depth_and_number_of_values_are_accepted_at_the_limit_and_refused_beyond(
    fits: bytes, over: bytes
) -> None:
    assert parse(fits, LIMITS).value == json.loads(fits)
    with pytest.raises(InvalidJSON, match=r"more than \d+ "):
        parse(over, LIMITS)


def test_a_body_of_too_many_objects_is_refused_where_it_passes_the_limit() -> None:
    objects = b'{"a": [' + b'{"b": 1},' * (LIMITS.max_nodes + 1)
    with pytest.raises(InvalidJSON, match="more than 20 values"):
        parse(objects + b"no JSON any more", LIMITS)


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4).filter(lambda key: "\0" not in key), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(value=st.dictionaries(st.sampled_from(["a", "b", "c"]), _values))
def test_a_request_comes_out_as_it_was_sent_but_for_broken_characters(value: dict[str, Any]) -> None:
    body = parse(json.dumps(value).encode(), Limits(10**6, 64, 10**6, 5.0))

    text = json.dumps(body.value, ensure_ascii=False)
    text.encode()
    assert "\0" not in text
    if not body.sanitized:
        assert body.value == value
    assert parse(json.dumps(body.value).encode(), Limits(10**6, 64, 10**6, 5.0)) == Body(body.value, 0)


@given(data=st.binary(max_size=40))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    with suppress(InvalidJSON, InvalidRequest):
        assert isinstance(parse(data, LIMITS).value, dict)


@pytest.mark.parametrize("name", ["projectKey", "endUserKey"])
@pytest.mark.parametrize("value", ["a", 160 * "x", 160 * "花", "ana b", "é", "e\u0301", "0", "nullable"])
def test_a_key_is_kept_exactly(name: str, value: str) -> None:
    assert identifier(value, name) == value


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        True,
        ["a"],
        {},
        "",
        " ",
        161 * "x",
        " a",
        "a\n",
        "a\u00a0",
        "a\tb",
        "a\0b",
        "a\x7fb",
        "a\ud83d",
        "b�",
        "null",
        "None",
        "undefined",
        "NaN",
    ],
)
def test_what_names_nobody_is_refused_without_repeating_it(value: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^endUserKey must ") as refused:
        identifier(value, "endUserKey")
    assert len(str(refused.value)) < 100


def test_an_api_key_is_no_project_but_may_be_what_a_person_is_called() -> None:
    for key in ("sk-123", "sk-telecom"):
        with pytest.raises(
            InvalidRequest, match=r"must not be an API key\. Choose a name that does not begin"
        ):
            identifier(key, "projectKey")
    assert identifier("telecom-sk", "projectKey") == "telecom-sk"
    assert identifier("sk-123", "endUserKey") == "sk-123"
    assert identifier("abc", "bank", most=3) == "abc"
    with pytest.raises(InvalidRequest):
        identifier("abcd", "bank", most=3)


# -- bytes -----------------------------------------------------------------------------------------------------------


def receive(
    *parts: bytes, headers: dict[str, str] | None = None, then: Any = None, deadline_s: float = 5.0
) -> bytes:
    """Read a request that arrives in `parts`, and after them `then`: the end, a disconnect, or nothing ever."""
    sent = {"content-type": "application/json", **(headers or {})}
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    messages.append(then or {"type": "http.request", "body": b"", "more_body": False})

    async def next_message() -> Any:
        if messages[0] == "never":
            await asyncio.Event().wait()
        return messages.pop(0)

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(k.encode(), v.encode()) for k, v in sent.items() if v is not None],
    }
    return asyncio.run(read(Request(scope, next_message), Limits(10, 8, 20, deadline_s)))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "Application/JSON; charset=UTF-8"},
        {"content-type": 'application/json;charset="utf-8"'},
        {"content-encoding": "Identity"},
        {"content-length": "10"},
    ],
)
def test_a_declared_body_is_read_whole(headers: dict[str, str]) -> None:
    assert receive(b"12345", b"67890", headers=headers) == b"1234567890"


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": ""},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-encoding": "gzip"},
    ],
)
def test_another_kind_of_body_is_not_read(headers: dict[str, str]) -> None:
    with pytest.raises(UnsupportedMediaType):
        receive(b"{}", headers=headers)


@pytest.mark.parametrize("declared", ["11", "-1", "x", "²"])
def test_a_length_that_is_too_large_or_none_is_refused_before_reading(declared: str) -> None:
    with pytest.raises(TooLarge):
        receive(headers={"content-length": declared}, then="never")


def test_a_body_longer_than_declared_is_refused_where_it_passes_the_limit() -> None:
    with pytest.raises(TooLarge):
        receive(b"1234567890", b"1", then="never")


def test_a_body_that_does_not_arrive_or_whose_client_leaves_times_out() -> None:
    with pytest.raises(RequestTimeout):
        receive(b"1", then="never", deadline_s=0.01)
    with pytest.raises(RequestTimeout):
        receive(b"1", then={"type": "http.disconnect"})
