"""Keys in paths: decoded once, byte for byte, whatever a URL means by their characters."""

import pytest

from tests.api.door import API, PROJECT, segment

KEYS = [
    "a/b",
    "/",
    "a%2Fb",
    "a%252Fb",
    "%",
    "%2",
    "%zz",
    "..",
    ".",
    "../../etc/passwd",
    "a:b",
    "what?",
    "what?x=1&y=2",
    "a#b",
    "a;b",
    "a\\b",
    "two words",
    "a+b",
    "a&b",
    "topics",
    "raw",
    "scopes",
    "日本語",
    "e\u0301",
    "\u00e9",
    "🙂",
    "'; DROP TABLE scopes; --",
    "x" * 160,
]
"""Keys that a path, a query, a database or a careless client could read as something else."""


def project(key, rest=""):
    return f"{API}/projects/{segment(key)}{rest}"


def scope(key, user):
    return project(key, f"/scopes/{segment(user)}")


@pytest.fixture
def filled(door):
    """Capture for an end user of a project of such a key, and one beside; return the key's receipt and API key."""

    def fill(name, **more):
        key = door.new_key(name)
        receipt = door.capture("Mine are tulips.", "Nice.", project=name, user=name, key=key, **more)
        return receipt, key

    return fill


@pytest.mark.parametrize("name", KEYS)
def test_every_get_finds_what_was_captured_under_the_key(door, filled, name):
    receipt, key = filled(name)
    assert door.send("GET", project(name), key=key).json()["projectKey"] == name
    [entry] = door.send("GET", f"{scope(name, name)}/raw", key=key).json()["rawEntries"]
    [topic] = door.send("GET", f"{scope(name, name)}/topics", key=key).json()["topics"]
    assert (entry["id"], [topic["topicKey"]]) == (receipt["rawEntryId"], receipt["topicKeys"])
    assert door.send("GET", project(name, f"/raw/{entry['id']}"), key=key).json() == entry
    answer = door.call("tulips", project=name, user=name, key=key)
    assert (answer["projectKey"], answer["endUserKey"], answer["rawEntries"][0]["id"]) == (
        name,
        name,
        entry["id"],
    )


DELETES = {
    "raw": lambda name, entry, topic: project(name, f"/raw/{entry}"),
    "topic by id": lambda name, entry, topic: project(name, f"/topics/{topic['topicId']}?includeRaw=true"),
    "topic by key": lambda name, entry, topic: project(
        name, f"/topics/{segment(topic['topicKey'])}?includeRaw=true&endUserKey={segment(name)}"
    ),
    "scope": lambda name, entry, topic: scope(name, name),
    "project": lambda name, entry, topic: project(name),
}


@pytest.mark.parametrize("what", DELETES)
@pytest.mark.parametrize("name", KEYS)
def test_every_delete_meets_the_key_and_no_other(door, filled, name, what):
    kept = {other: filled(other) for other in {KEYS[KEYS.index(name) - 1], "a/b"} - {name}}
    receipt, key = filled(name)
    [topic] = door.send("GET", f"{scope(name, name)}/topics", key=key).json()["topics"]
    answer = door.send("DELETE", DELETES[what](name, receipt["rawEntryId"], topic), key=key)
    assert (answer.status_code, answer.json()) == (
        202,
        {
            "deleted": True,
            "requestId": answer.headers["X-Request-Id"],
            "state": "hidden",
            "counts": {"exchanges": 1, "messages": 2, "topics": 1},
        },
    )
    if what != "project":
        assert door.call(project=name, user=name, key=key)["rawEntries"] == []
    for other, (their_receipt, their_key) in kept.items():
        [entry] = door.call(project=other, user=other, key=their_key)["rawEntries"]
        assert entry["id"] == their_receipt["rawEntryId"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("a/b", "a%2Fb"), ("a%2Fb", "a%252Fb"), ("a b", "a+b"), ("a b", "a%20b"), ("é", "e\u0301")],
)
def test_keys_that_differ_only_by_encoding_are_two_users(door, one, other):
    ids = {name: door.capture("Hello", user=name)["rawEntryId"] for name in (one, other)}
    for name, exchange_id in ids.items():
        [entry] = door.send("GET", f"{scope(PROJECT, name)}/raw").json()["rawEntries"]
        assert entry["id"] == exchange_id
    assert door.send("DELETE", scope(PROJECT, one)).status_code == 202
    assert door.call(user=one)["rawEntries"] == []
    assert [entry["id"] for entry in door.call(user=other)["rawEntries"]] == [ids[other]]


@pytest.mark.parametrize("rest", ["", "/", "/x/y", "//raw", "/%2F/raw"])
def test_more_or_fewer_segments_are_another_path(door, rest):
    door.capture("Hello", user="a/b")
    answer = door.send("DELETE", project(PROJECT, f"/scopes/a/b{rest}"))
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert len(door.call(user="a/b")["rawEntries"]) == 1


def test_the_function_name_is_decoded_too(door):
    body = {"projectKey": PROJECT, "endUserKey": "u", "arguments": {"sessionData": {}}}
    path = f"{API}/functions/halo%5Fretrieve_end_user_memory"
    assert door.send("POST", path, body).status_code == 200
