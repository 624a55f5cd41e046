"""Forgetting: what was deleted is unreachable when the answer comes, and what stays still agrees."""

import pytest

from tests.api.door import API, PROJECT, USER

SCOPE = f"{API}/projects/{PROJECT}/scopes/{USER}"
ABOUT = {
    "tulips": "Tulips tulips tulips in the garden.",
    "bicycle": "The bicycle bicycle bicycle needs oil.",
    "violin": "A violin violin violin lesson.",
}


@pytest.fixture
def receipts(door):
    """Three subjects of one end user, and one of another."""
    door.capture("Tulips tulips for somebody else.", "Yes.", user="other")
    return {word: door.capture(text, f"{word} {word}, yes.") for word, text in ABOUT.items()}


def delete(door, **target):
    return door.send("POST", f"{API}/delete", {"projectKey": PROJECT, **target})


def counts(answer):
    assert (answer.status_code, {**answer.json(), "counts": None}) == (
        202,
        {"deleted": True, "requestId": answer.headers["X-Request-Id"], "state": "hidden", "counts": None},
    )
    return tuple(answer.json()["counts"][name] for name in ("exchanges", "messages", "topics"))


def everywhere(door, user=USER):
    """Return every text that any reading route gives back about the end user."""
    scope = f"{API}/projects/{PROJECT}/scopes/{user}"
    questions = [None, *ABOUT, "garden"]
    answers = [door.send("GET", f"{scope}/{name}").text for name in ("raw", "topics")]
    answers += [repr(door.call(question, user=user)) for question in questions]
    answers += [
        repr(door.retrieve(question, user=user, includeDisabledTopics=True)) for question in questions
    ]
    return "\n".join(answers).lower()


def topic_of(door, key):
    return next(t for t in door.send("GET", f"{SCOPE}/topics").json()["topics"] if t["topicKey"] == key)


WAYS_RAW = {
    "path": lambda door, r: door.send("DELETE", f"{API}/projects/{PROJECT}/raw/{r['rawEntryId']}"),
    "encoded path": lambda door, r: door.send(
        "DELETE", f"{API}/projects/{PROJECT}/raw/{''.join(f'%{ord(c):02x}' for c in r['rawEntryId'])}"
    ),
    "body": lambda door, r: delete(door, target="raw", rawEntryId=r["rawEntryId"]),
    "body with user": lambda door, r: delete(door, target="raw", rawEntryId=r["rawEntryId"], endUserKey=USER),
}


@pytest.mark.parametrize("way", WAYS_RAW)
def test_a_deleted_exchange_is_gone_everywhere_at_once(door, receipts, way):
    gone = receipts["tulips"]
    assert counts(WAYS_RAW[way](door, gone)) == (1, 2, 1)
    seen = everywhere(door)
    assert "tulips in the garden" not in seen
    assert gone["rawEntryId"] not in seen
    assert "bicycle" in seen
    assert "tulips for somebody else" in everywhere(door, "other")
    again = WAYS_RAW[way](door, gone)
    assert (again.status_code, again.json()["code"]) == (404, "NOT_FOUND")
    shown = door.send("GET", f"{API}/projects/{PROJECT}/raw/{gone['rawEntryId']}")
    assert (shown.status_code, shown.json()["code"]) == (404, "NOT_FOUND")


def test_where_later_exchanges_build_on_a_deleted_one_its_place_shows_as_erased(door):
    first = door.capture("My pin is heliotrope.", "Noted.")
    history = [
        {"role": "user", "content": "My pin is heliotrope."},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "What else?"},
    ]
    second = door.capture(history, "Nothing.")
    assert counts(delete(door, target="raw", rawEntryId=first["rawEntryId"])) == (1, 2, 1)
    path = f"{API}/projects/{PROJECT}/raw/{second['rawEntryId']}"
    assert door.send("GET", f"{path}?full=true").json()["requestRaw"]["messages"] == [
        {"role": "user", "content": None, "erased": True},
        {"role": "assistant", "content": None, "erased": True},
        history[2],
    ]
    assert "heliotrope" not in everywhere(door)
    assert "heliotrope" not in repr(door.dump())


def test_a_window_that_is_sent_again_does_not_bring_a_deleted_exchange_back(door):
    history = [
        {"role": "user", "content": "My pin is heliotrope."},
        {"role": "assistant", "content": "Noted."},
    ]
    first = door.capture(history[:1], history[1])
    delete(door, target="raw", rawEntryId=first["rawEntryId"])
    door.capture([*history, {"role": "user", "content": "What else?"}], "Nothing.")
    assert "heliotrope" not in everywhere(door)
    assert "heliotrope" not in repr(door.dump())


WAYS_TOPIC = {
    "path, id": lambda door, topic, raw: door.send(
        "DELETE", f"{API}/projects/{PROJECT}/topics/{topic['topicId']}?includeRaw={raw}"
    ),
    "path, key": lambda door, topic, raw: door.send(
        "DELETE", f"{API}/projects/{PROJECT}/topics/{topic['topicKey']}?includeRaw={raw}&endUserKey={USER}"
    ),
    "body, id": lambda door, topic, raw: delete(
        door, target="topic", topicId=topic["topicId"], includeRaw=raw == "true"
    ),
    "body, key": lambda door, topic, raw: delete(
        door, target="topic", endUserKey=USER, topicKey=topic["topicKey"], includeRaw=raw == "true"
    ),
}


@pytest.mark.parametrize("way", WAYS_TOPIC)
def test_a_deleted_topic_leaves_its_exchanges_unless_told_otherwise(door, receipts, way):
    for word, include, went in (("tulips", "false", (0, 0, 1)), ("bicycle", "true", (1, 2, 1))):
        [key] = receipts[word]["topicKeys"]
        topic = topic_of(door, key)
        assert counts(WAYS_TOPIC[way](door, topic, include)) == went
        keys = [t["topicKey"] for t in door.send("GET", f"{SCOPE}/topics").json()["topics"]]
        assert key not in keys
        assert WAYS_TOPIC[way](door, topic, include).status_code == 404
        assert door.retrieve(word, topics=[key])["rawEntries"] == []
    kept = door.call("tulips")["rawEntries"][0]
    assert (kept["id"], kept["topic"]) == (receipts["tulips"]["rawEntryId"], {"topicKey": "unsorted"})
    assert "bicycle" not in everywhere(door)
    assert len(door.call()["rawEntries"]) == 2
    assert "tulips for somebody else" in everywhere(door, "other")


def test_topics_deleted_one_after_the_other_share_one_place_for_what_stays(door, receipts):
    for receipt in receipts.values():
        delete(door, target="topic", endUserKey=USER, topicKey=receipt["topicKeys"][0])
        everywhere(door)
    [topic] = door.call()["topics"]
    assert (topic["topicKey"], topic["rawCount"]) == ("unsorted", 3)
    assert counts(delete(door, target="topic", endUserKey=USER, topicKey="unsorted", includeRaw=True)) == (
        3,
        6,
        1,
    )
    assert door.call()["rawEntries"] == []


def test_that_place_can_itself_be_deleted_and_its_exchanges_still_stay(door, receipts):
    delete(door, target="topic", endUserKey=USER, topicKey=receipts["tulips"]["topicKeys"][0])
    for _ in range(2):
        assert counts(delete(door, target="topic", endUserKey=USER, topicKey="unsorted")) == (0, 0, 1)
        assert [t["topicKey"] for t in door.call("tulips", limit=1)["topics"]] == ["unsorted"]
    assert len(door.call()["rawEntries"]) == 3


@pytest.mark.parametrize("target", ["path", "scope", "user"])
def test_a_deleted_end_user_is_as_if_new(door, receipts, target):
    answer = door.send("DELETE", SCOPE) if target == "path" else delete(door, target=target, endUserKey=USER)
    assert counts(answer) == (3, 6, 3)
    new, gone = door.call("tulips", user="never seen"), door.call("tulips")
    for body in (new, gone):
        del body["requestId"], body["endUserKey"], body["functionResponse"]["requestId"]
    assert gone == new
    assert not any(word in everywhere(door) for word in ("in the garden", "oil", "lesson"))
    assert "tulips for somebody else" in everywhere(door, "other")
    again = door.send("DELETE", SCOPE)
    assert (again.status_code, again.json()["code"]) == (404, "NOT_FOUND")
    assert not {"garden", "violin"} & set(repr(door.dump()).lower().split())
    # And may come back.
    back = door.capture(ABOUT["tulips"], "Welcome back.")
    assert [entry["id"] for entry in door.call("tulips")["rawEntries"]] == [back["rawEntryId"]]


@pytest.mark.parametrize("way", ["path", "body"])
def test_a_deleted_project_takes_its_keys_along(door, receipts, way):
    path = f"{API}/projects/{PROJECT}"
    kept_key = door.new_key("another")
    kept = door.capture("Stays", project="another", user=USER, key=kept_key)
    answer = door.send("DELETE", path) if way == "path" else delete(door, target="project")
    assert counts(answer) == (4, 8, 4)
    assert door.send("GET", f"{API}/functions").status_code == 403
    new_key = door.new_key(PROJECT)
    assert door.call("tulips", key=new_key)["rawEntries"] == []
    assert door.call(project="another", key=kept_key)["rawEntries"][0]["id"] == kept["rawEntryId"]
    rows = door.dump()
    assert [len(rows[name]) for name in ("scopes", "exchanges", "messages", "vectors")] == [1, 1, 2, 2]


def test_a_topic_of_another_end_user_is_not_found_under_this_one(door, receipts):
    [topic] = door.send("GET", f"{API}/projects/{PROJECT}/scopes/other/topics").json()["topics"]
    before = door.dump()
    answers = [
        delete(door, target="topic", topicId=topic["topicId"], endUserKey=USER),
        delete(door, target="raw", rawEntryId=receipts["tulips"]["rawEntryId"], endUserKey="other"),
        door.send("DELETE", f"{API}/projects/{PROJECT}/topics/{topic['topicId']}?endUserKey={USER}"),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "NOT_FOUND")] * 3
    assert door.dump() == before


def test_a_late_retry_of_what_was_deleted_brings_nothing_back_and_is_told_so(door):
    first = door.capture("Hello", idempotency_key="turn-1")
    delete(door, target="raw", rawEntryId=first["rawEntryId"])
    before = door.dump()
    again = door.capture("Hello", idempotency_key="turn-1")
    assert {name: again.get(name) for name in ("captured", "rawEntryId", "forgotten", "duplicate")} == {
        "captured": False,
        "rawEntryId": None,
        "forgotten": True,
        "duplicate": None,
    }
    assert door.call()["rawEntries"] == []
    assert door.dump() == before
