"""What is no request: one answer a fault, the same envelope everywhere, nothing repeated and nothing stored in part."""

import asyncio
import copy
import gzip
import json

import pytest

from tests.api.door import API, FUNCTION, PROJECT, USER, Door

CANARY = "canary7f3a"
WHO = {"projectKey": PROJECT, "endUserKey": USER}
SAID = {"messages": [{"role": "user", "content": CANARY}]}

VALID = {
    "function": (FUNCTION, {**WHO, "arguments": {"sessionData": SAID, "query": CANARY}}),
    "capture": (f"{API}/capture", {**WHO, "sessionData": SAID, "response": CANARY}),
    "retrieve": (f"{API}/retrieve", {**WHO, "query": CANARY}),
    "delete": (f"{API}/delete", {**WHO, "target": "raw", "rawEntryId": CANARY}),
    "projects": (f"{API}/projects", {"projectKey": PROJECT, "note": CANARY}),
}
EVERY = pytest.mark.parametrize("route", VALID)


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    """One server for all that leaves no trace in it."""
    door = Door(tmp_path_factory.mktemp("bad") / "data")
    yield door
    door.close()


@pytest.fixture(scope="module")
def admin_key(door):
    return door.new_key(admin=True)


@pytest.fixture
def post(door, admin_key):
    """Post to a route with the kind of key it takes."""

    def send(route, body=None, **more):
        key = admin_key if route == "projects" else ""
        return door.send("POST", VALID[route][0], body, key=key, **more)

    return send


@pytest.fixture
def refused(door, post):
    """Post what must be refused with a code, and leave no trace in the answer or the store."""

    def send(route, code, status, body=None, **more):
        before = door.dump()
        answer = post(route, body, **more)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert CANARY not in answer.text
        assert door.dump() == before
        return answer

    return send


def valid(route):
    return copy.deepcopy(VALID[route][1])


def as_bytes(route):
    return json.dumps(valid(route)).encode()


@EVERY
def test_each_valid_body_is_taken(post, route):
    expected = {"function": 200, "capture": 201, "retrieve": 200, "delete": 404, "projects": 200}
    assert post(route, valid(route)).status_code == expected[route]


# -- bytes that are no JSON object ------------------------------------------------------------------------------


def put(value):
    """Return a change of a valid body that puts `value`, as bytes, under a name nothing reads."""
    return lambda body: body[:-1] + b',"extra":' + value + b"}"


NOT_JSON = {
    "empty": lambda body: b"",
    "cut": lambda body: body[:-1],
    "trailing": lambda body: body + b"x",
    "twice": lambda body: body + body,
    "list": lambda body: b"[" + body + b"]",
    "null": lambda body: b"null",
    "text": lambda body: b'"' + CANARY.encode() + b'"',
    "number": lambda body: b"5",
    "single quotes": lambda body: body.replace(b'"', b"'"),
    "comment": lambda body: b"/* hi */" + body,
    "byte order mark": lambda body: b"\xef\xbb\xbf" + body,
    "UTF-16": lambda body: body.decode().encode("utf-16"),
    "not UTF-8": lambda body: body.replace(CANARY.encode(), b"\xff\xfe"),
    "surrogate in UTF-8": lambda body: body.replace(CANARY.encode(), b"\xed\xa0\xbd"),
    "raw newline in a string": lambda body: body.replace(CANARY.encode(), b"a\nb"),
    "NaN": put(b"NaN"),
    "Infinity": put(b"Infinity"),
    "minus Infinity": put(b"[-Infinity]"),
    "1e400": put(b"1e400"),
    "2^63": put(b"9223372036854775808"),
    "below -2^63": put(b"-9223372036854775809"),
    "5,000 digits": put(b"1" * 5_000),
    "65 levels": put(b"[" * 64 + b"]" * 64),
    "100,000 levels": put(b"[" * 100_000 + b"]" * 100_000),
    "400,001 values": put(b"[" + b"1," * 400_000 + b"1]"),
    "key repeated": lambda body: body[:-1] + b',"projectKey":"other"}',
    "half a character in a key": put(b'{"\\ud83d":1}'),
    "NUL in a key": put(b'{"a\\u0000b":1}'),
}


@EVERY
@pytest.mark.parametrize("fault", NOT_JSON)
def test_what_is_no_json_object_is_refused(refused, route, fault):
    refused(route, "INVALID_JSON", 400, content=NOT_JSON[fault](as_bytes(route)))


@EVERY
def test_a_capture_may_hold_more_values_than_any_other_request(post, route):
    body = put(b"[" + b"1," * 50_000 + b"1]")(as_bytes(route))
    answer = post(route, content=body)
    if route == "capture":
        assert answer.status_code in (200, 201)
    else:
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_JSON")


def test_a_key_repeated_in_the_arguments_is_refused(refused):
    body = as_bytes("function").replace(b'"query":', b'"query": "other", "query":')
    refused("function", "INVALID_JSON", 400, content=body)


@EVERY
@pytest.mark.parametrize(
    "value", [b"[" * 63 + b"]" * 63, b"9223372036854775807", b"-9223372036854775808", b'"\\ud83d"']
)
def test_what_is_just_within_the_rules_is_taken(post, route, value):
    assert post(route, content=put(value)(as_bytes(route))).status_code in (200, 201, 404)


# -- keys -------------------------------------------------------------------------------------------------------

NO_KEY = {
    "empty": "",
    "spaces": "   ",
    "161 characters": "x" * 161,
    "outer space": f" {CANARY}",
    "newline": f"{CANARY}\n1",
    "delete character": f"{CANARY}\x7f",
    "NUL": f"{CANARY}\0",
    "half a character": f"{CANARY}\ud83d",
    "replacement character": f"{CANARY}\ufffd",
    "null": "null",
    "undefined": "undefined",
    "None": "None",
    "NaN": "NaN",
    "number": 5,
    "zero": 0,
    "true": True,
    "JSON null": None,
    "list": [CANARY],
    "object": {"$ne": CANARY},
}


@pytest.mark.parametrize("fault", [*NO_KEY, "absent"])
@pytest.mark.parametrize(
    ("route", "name"),
    [(route, name) for route in VALID for name in ("projectKey", "endUserKey") if name in VALID[route][1]],
)
def test_what_is_no_key_is_refused(refused, route, name, fault):
    body = {key: value for key, value in valid(route).items() if key != name}
    if route == "delete":
        body |= {"target": "scope"}
    if fault != "absent":
        body[name] = NO_KEY[fault]
    answer = refused(route, "INVALID_REQUEST", 400, content=json.dumps(body).encode())
    assert name in answer.json()["error"]


@EVERY
def test_an_api_key_is_no_project(refused, route):
    answer = refused(route, "INVALID_REQUEST", 400, {**valid(route), "projectKey": f"sk-{CANARY}"})
    assert answer.json()["error"] == (
        "projectKey must not be an API key. Choose a name that does not begin with sk-."
    )


SNAKE = {"projectKey": "project_key", "endUserKey": "end_user_key"}


@pytest.mark.parametrize(
    ("route", "name"),
    [(route, name) for route in VALID for name in SNAKE if name in VALID[route][1]],
)
def test_who_is_meant_has_one_spelling(refused, route, name):
    """Another spelling would pass what guards the first: NUL cut out of it, or both sent and either one read."""
    body = valid(route) | ({"target": "scope"} if route == "delete" else {})
    body[SNAKE[name]] = f"{body.pop(name)}\0"
    answer = refused(route, "INVALID_REQUEST", 400, content=json.dumps(body).encode())
    assert name in answer.json()["error"]


def test_another_spelling_beside_the_first_names_nobody(door):
    other = {"project_key": "other", "end_user_key": "other"}
    receipt = door.capture("Hello", user="one spelling", **other)
    assert (
        door.retrieve("hello", user="one spelling", **other)["rawEntries"][0]["id"] == receipt["rawEntryId"]
    )
    assert door.call("hello", user="other")["rawEntries"] == []


@pytest.mark.parametrize("target", ["topic", "raw"])
def test_an_end_user_that_may_be_absent_may_be_null(door, target):
    receipt = door.capture("Tulips tulips.", "Tulips.", user="absent")
    [topic] = door.retrieve("tulips", user="absent")["topics"]
    named = {"rawEntryId": receipt["rawEntryId"], "topicId": topic["topicId"]}
    body = {"projectKey": PROJECT, "endUserKey": None, "target": target, **named}
    assert door.send("POST", f"{API}/delete", body).status_code == 202


def test_a_key_of_160_characters_is_one(door):
    project, user = "p" * 160, "é" * 160
    key = door.new_key(project)
    receipt = door.capture("Hello", project=project, user=user, key=key)
    assert (
        door.call("hello", project=project, user=user, key=key)["rawEntries"][0]["id"]
        == receipt["rawEntryId"]
    )


# -- fields -----------------------------------------------------------------------------------------------------

NO_LIMIT = [0, -1, 2.5, "5", "", True, False, 51, 1e9, 1e300, 2**62, [5], {}]
A_LIMIT = [5, 5.0, None, 1, 50, 1.0]


def with_limit(route, limit):
    body = valid(route)
    (body["arguments"] if route == "function" else body)["limit"] = limit
    return body


@pytest.mark.parametrize("route", ["function", "retrieve"])
@pytest.mark.parametrize("limit", NO_LIMIT)
def test_a_limit_is_a_whole_number_from_1_to_50(refused, route, limit):
    answer = refused(route, "INVALID_REQUEST", 400, with_limit(route, limit))
    assert answer.json()["error"] == "limit must be a whole number from 1 to 50."


@pytest.mark.parametrize("route", ["function", "retrieve"])
@pytest.mark.parametrize("limit", A_LIMIT)
def test_a_limit_may_be_spelled_in_several_ways(door, post, route, limit):
    for n in range(7):
        door.capture(f"{CANARY} number {n}", idempotency_key=str(n), user="seven")
    found = post(route, {**with_limit(route, limit), "endUserKey": "seven"}).json()
    assert len(found["rawEntries"]) == min(7, int(limit or 5))


def test_an_absent_limit_is_5(door, post):
    for n in range(7):
        door.capture(f"{CANARY} number {n}", idempotency_key=str(n), user="seven")
    assert [
        len(post(route, {**valid(route), "endUserKey": "seven"}).json()["rawEntries"])
        for route in ("function", "retrieve")
    ] == [5, 5]


@pytest.mark.parametrize(
    "session", [CANARY, f'{{"messages":"{CANARY}"}}', [CANARY], [], 5, 0, True, False, None]
)
@pytest.mark.parametrize("route", ["function", "capture"])
def test_session_data_is_an_object(refused, route, session):
    body = valid(route)
    (body["arguments"] if route == "function" else body)["sessionData"] = session
    answer = refused(route, "INVALID_REQUEST", 400, body)
    assert "sessionData" in answer.json()["error"]


@pytest.mark.parametrize("route", ["function", "capture"])
def test_session_data_is_required(refused, route):
    body = valid(route)
    del (body["arguments"] if route == "function" else body)["sessionData"]
    refused(route, "INVALID_REQUEST", 400, body)


@pytest.mark.parametrize(
    "session", [{}, {"plan": "pro"}, {"messages": []}, {"messages": None}, {"messages": "Hi"}]
)
def test_session_data_may_be_empty_or_state_only(post, session):
    assert post("function", {**WHO, "arguments": {"sessionData": session}}).status_code == 200


WRONG = [
    ("function", {"arguments": CANARY}),
    ("function", {"arguments": f'{{"sessionData":{{}},"query":"{CANARY}"}}'}),
    ("function", {"arguments": [CANARY]}),
    ("function", {"arguments": None}),
    ("function", {"arguments": {"sessionData": {}, "query": 5}}),
    ("function", {"arguments": {"sessionData": {}, "query": [CANARY]}}),
    ("function", {"arguments": {"sessionData": {}, "query": CANARY * 4_000}}),
    ("function", {"arguments": {"sessionData": {"messages": [5]}}}),
    ("function", {"arguments": {"sessionData": {"messages": [[CANARY]]}}}),
    ("function", {"arguments": {"sessionData": {"messages": [None]}}}),
    ("capture", {"sessionData": {"messages": [5, CANARY]}}),
    ("capture", {"sessionData": {"messages": [{"role": "user", "content": CANARY}, None]}}),
    ("capture", {"response": 5}),
    ("capture", {"response": [CANARY]}),
    ("capture", {"response": ""}),
    ("capture", {"response": {}}),
    ("capture", {"response": {"role": "assistant", "content": None}}),
    ("capture", {"response": {"role": "user", "content": ""}}),
    ("capture", {"requestRaw": CANARY}),
    ("capture", {"responseRaw": 5}),
    ("capture", {"occurredAt": CANARY}),
    ("capture", {"occurredAt": -1}),
    ("capture", {"occurredAt": 1e18}),
    ("capture", {"occurredAt": "9999-12-31T00:00:00Z"}),
    ("capture", {"occurredAt": True}),
    ("capture", {"occurredAt": [CANARY]}),
    ("capture", {"truncatedHistory": CANARY}),
    ("retrieve", {"query": 5}),
    ("retrieve", {"query": CANARY * 4_000}),
    ("retrieve", {"topics": CANARY}),
    ("retrieve", {"topics": [5]}),
    ("retrieve", {"topics": [""]}),
    ("retrieve", {"topics": [CANARY] * 101}),
    ("retrieve", {"cursor": CANARY}),
    ("retrieve", {"cursor": f"!{CANARY}"}),
    ("retrieve", {"cursor": f"é{CANARY}"}),
    ("retrieve", {"cursor": CANARY * 11}),
    ("retrieve", {"cursor": "cjU"}),  # one of the list of raw entries
    ("retrieve", {"cursor": "b8Kz"}),  # a digit that is no ASCII digit
    ("retrieve", {"cursor": "bzEwMDAx"}),  # past the last place
    ("retrieve", {"cursor": 5}),
    ("retrieve", {"includeRaw": CANARY}),
    ("retrieve", {"includeDisabledTopics": 1}),
    ("delete", {"target": CANARY}),
    ("delete", {"target": None}),
    ("delete", {"target": "raw", "rawEntryId": None}),
    ("delete", {"target": "raw", "rawEntryId": ""}),
    ("delete", {"target": "raw", "rawEntryId": [CANARY]}),
    ("delete", {"target": "raw", "rawEntryId": CANARY * 21}),
    ("delete", {"target": "topic"}),
    ("delete", {"target": "topic", "topicKey": ""}),
    ("delete", {"target": "topic", "topicId": 5}),
    ("delete", {"includeRaw": CANARY}),
    ("delete", {"batch": [{"target": "raw", "rawEntryId": CANARY}]}),
]


@pytest.mark.parametrize(("route", "change"), WRONG)
def test_a_wrong_field_is_refused(refused, route, change):
    refused(route, "INVALID_REQUEST", 400, {**valid(route), **change})


def test_an_argument_in_another_spelling_is_dropped_like_any_other(refused, caplog):
    arguments = {"session_data": SAID}
    with caplog.at_level("WARNING", logger="halo"):
        refused("function", "INVALID_REQUEST", 400, {**WHO, "arguments": arguments})
    assert '"session_data"' in caplog.text


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\xe9".encode("latin-1"), b"a\tb"])
def test_an_idempotency_key_is_1_to_255_printable_characters(refused, key):
    refused("capture", "INVALID_REQUEST", 400, valid("capture"), headers={"Idempotency-Key": key})


def test_an_idempotency_key_of_255_characters_is_one(door):
    assert "duplicate" not in door.capture("Hello", idempotency_key="x" * 255, user="idempotent")
    assert door.capture("Hello", idempotency_key="x" * 255, user="idempotent")["duplicate"] is True


SCOPE = f"{API}/projects/{PROJECT}/scopes/{USER}"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(
            ("GET", f"{path}?{query}")
            for path in (f"{API}/projects", f"{SCOPE}/raw", f"{SCOPE}/topics")
            for query in ("limit=0", "limit=101", f"limit={CANARY}", "limit=2.5", f"cursor={CANARY * 11}")
        ),
        *(
            ("GET", f"{SCOPE}/{name}?cursor={cursor}")
            for name in ("raw", "topics")
            for cursor in (CANARY, "%F0%9F%99%82", "bzU", "!!")
        ),
        ("GET", f"{API}/projects/{PROJECT}/raw/{CANARY}?full={CANARY}"),
        ("DELETE", f"{API}/projects/{PROJECT}/topics/{CANARY}?includeRaw={CANARY}"),
        ("DELETE", f"{API}/projects/{PROJECT}/topics/{CANARY}?endUserKey="),
        ("GET", f"{API}/projects/{PROJECT}/scopes/{CANARY}%FF/raw"),
        ("DELETE", f"{API}/projects/{PROJECT}/scopes/{CANARY}%ED%A0%BD"),
        ("DELETE", f"{API}/projects/{PROJECT}/scopes/{CANARY}%00"),
        ("DELETE", f"{API}/projects/%20/scopes/{CANARY}"),
    ],
)
def test_a_wrong_path_or_parameter_is_refused(door, admin_key, method, path):
    answer = door.send(method, path, key=admin_key if path.startswith(f"{API}/projects?") else "")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert CANARY not in answer.text


# -- what is not there ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["halo_forget", "HALO_RETRIEVE_END_USER_MEMORY", CANARY, "..", "a%2Fb"])
def test_an_unknown_function_is_not_found(door, name):
    path = f"{API}/functions/{name.replace('..', '%2E%2E')}"
    answer = door.send("POST", path, valid("function"))
    assert (answer.status_code, answer.json()["code"]) == (404, "FUNCTION_NOT_FOUND")
    assert CANARY not in answer.text


@pytest.mark.parametrize(
    "path", ["/", f"/{CANARY}", "/docs", "/redoc", API, f"{API}/", f"{API}/capture/", "/static/../x"]
)
def test_an_unknown_path_is_not_found(door, path):
    answer = door.send("GET", path)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert CANARY not in answer.text


@EVERY
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_a_method_a_path_does_not_take_is_refused(door, route, method):
    answer = door.send(method, VALID[route][0], valid(route))
    assert (answer.status_code, answer.json()["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["Allow"] == "GET, POST" if route == "projects" else "POST"


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        (f"{API}/projects/{PROJECT}", "GET, DELETE"),
        (f"{API}/projects/{PROJECT}/raw/x", "GET, DELETE"),
        (f"{SCOPE}", "DELETE"),
        (f"{SCOPE}/raw", "GET"),
    ],
)
def test_a_refused_method_is_told_every_one_the_path_takes(door, path, methods):
    answer = door.send("PATCH", path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, methods)


# -- how it is sent ---------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": ""},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/jsonp"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Encoding": "gzip"},
        {"Content-Encoding": "br"},
        {"Content-Encoding": "deflate, gzip"},
    ],
)
def test_another_encoding_than_plain_json_is_refused(refused, route, headers):
    content = gzip.compress(as_bytes(route)) if "Content-Encoding" in headers else as_bytes(route)
    refused(route, "UNSUPPORTED_MEDIA_TYPE", 415, content=content, headers=headers)


@EVERY
@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "application/json;charset=UTF-8"},
        {"Content-Type": 'Application/JSON; charset="utf-8"'},
        {"Content-Encoding": "identity"},
    ],
)
def test_plain_json_may_be_declared_in_several_ways(post, route, headers):
    assert post(route, content=as_bytes(route), headers=headers).status_code in (200, 201, 404)


async def chunks(body):
    for start in range(0, len(body), 100):
        yield body[start : start + 100]


@EVERY
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_be_as_long_as_the_limit_and_no_longer(open_door, route, chunked):
    limits = {"max_body_bytes": 2_048, "max_capture_bytes": 4_096}
    door = open_door(**limits)
    key = door.new_key(admin=True) if route == "projects" else ""
    most = limits["max_capture_bytes" if route == "capture" else "max_body_bytes"]
    body = as_bytes(route).ljust(most)
    longer = body + b" "
    before = door.dump()
    answer = door.send("POST", VALID[route][0], key=key, content=chunks(longer) if chunked else longer)
    assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")
    assert CANARY not in answer.text
    assert door.dump() == before
    assert door.send(
        "POST", VALID[route][0], key=key, content=chunks(body) if chunked else body
    ).status_code in (
        200,
        201,
        404,
    )


def test_a_capture_takes_as_many_messages_as_the_limit_and_no_more(open_door):
    door = open_door(max_messages=3)
    messages = [{"role": "user", "content": f"{CANARY} {n}"} for n in range(4)]
    before = door.dump()
    answer = door.send(
        "POST", f"{API}/capture", {**WHO, "sessionData": {"messages": messages}, "response": "Hm."}
    )
    assert (answer.status_code, answer.json()) == (
        413,
        {
            "error": "A capture takes at most 3 messages; send the newest.",
            "code": "TOO_LARGE",
            "requestId": answer.headers["X-Request-Id"],
        },
    )
    assert door.dump() == before
    assert door.capture(messages[1:])["captured"] is True


def test_4000_messages_of_four_parts_with_ids_and_times_are_one_capture(open_door):
    door = open_door()
    messages = [
        {
            "id": f"m{n}",
            "role": ("user", "assistant")[n % 2],
            "createdAt": "2027-01-15T08:00:00Z",
            "content": [
                {"type": "text", "text": f"Line {n}, part {part}", "index": part} for part in range(4)
            ],
        }
        for n in range(3_999)
    ]
    assert door.capture(messages)["captured"] is True


def test_4000_messages_are_one_capture(open_door):
    door = open_door()
    messages = [{"role": ("user", "assistant")[n % 2], "content": f"Line {n}"} for n in range(3_999)]
    assert door.capture(messages)["captured"] is True
    assert door.capture([*messages, {"role": "user", "content": "One more"}])["captured"] is True
    answer = door.send("POST", f"{API}/capture", {**WHO, "sessionData": {"messages": [*messages, "a", "b"]}})
    assert answer.status_code == 413


@EVERY
@pytest.mark.parametrize("ending", ["silence", "disconnect"])
def test_a_body_that_does_not_arrive_in_time_is_given_up(open_door, route, ending):
    door = open_door(body_deadline_s=0.05)
    key = door.new_key(admin=True) if route == "projects" else door.key
    before, sent = door.dump(), []

    async def receive():
        if not sent:
            sent.append(as_bytes(route)[:-1])
            return {"type": "http.request", "body": sent[0], "more_body": True}
        if ending == "disconnect":
            return {"type": "http.disconnect"}
        return await asyncio.Event().wait()

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    answer = door.run_asgi("POST", VALID[route][0], receive, headers)
    assert (answer.status_code, answer.json()["code"]) == (408, "REQUEST_TIMEOUT")
    assert CANARY not in answer.text
    assert door.dump() == before


@EVERY
def test_a_body_from_nobody_is_not_read(door, route):
    async def receive():
        pytest.fail("read a body without a key")

    answer = door.run_asgi("POST", VALID[route][0], receive, {"Content-Type": "application/json"})
    assert answer.status_code == 401
