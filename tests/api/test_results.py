"""How much is answered, page by page and within the budget; and what is said when something is wrong."""

import base64
import json

import pytest
from sqlalchemy.exc import OperationalError

from halo_server import app as composition
from halo_server.embedders import open_embedder
from halo_server.errors import StorageFull, Unavailable
from tests.api.door import API, FUNCTION, PROJECT, USER

SCOPE = f"{API}/projects/{PROJECT}/scopes/{USER}"
WHO = {"projectKey": PROJECT, "endUserKey": USER}


def fill(door, number, *, size=400):
    for n in range(number):
        door.capture(f"Tulips, note {n}. " + f"word{n} " * (size // 7), "Noted.", idempotency_key=str(n))


def response_size(body):
    """Return the length of what a model reads, as compact JSON."""
    return len(json.dumps(body["functionResponse"], ensure_ascii=False, separators=(",", ":")))


# -- the budget of what a model reads ---------------------------------------------------------------------------


def test_what_fits_the_budget_to_the_character_is_whole_and_one_less_is_cut(open_door, tmp_path):
    door = open_door()
    fill(door, 3)
    headers = {"X-Request-Id": "same"}
    body = {**WHO, "arguments": {"sessionData": {}, "query": "tulips", "limit": 3}}
    whole = door.send("POST", FUNCTION, body, headers=headers).json()
    assert len(whole["rawEntries"]) == 3
    assert "truncated" not in whole["functionResponse"]
    most = response_size(whole) + len(',"truncated":true,')  # room to say so is always kept
    found = {}
    for room in (most, most - 1):
        smaller = open_door(max_result_chars=room)
        fill(smaller, 3)
        answer = smaller.send("POST", FUNCTION, body, headers=headers).json()
        found[room] = len(answer["rawEntries"])
        assert answer["functionResponse"].get("truncated", False) is (room < most)
        assert response_size(answer) <= room
    assert found == {most: 3, most - 1: 2}


def test_whole_entries_go_first_from_the_worst(open_door):
    door, all_of_it = open_door(max_result_chars=3_000), open_door()
    for each in (door, all_of_it):
        fill(each, 5, size=900)
    full, cut = all_of_it.call("tulips word3"), door.call("tulips word3")
    said = [[entry["requestRaw"] for entry in answer["rawEntries"]] for answer in (full, cut)]
    assert 1 <= len(said[1]) < len(said[0])
    assert said[1] == said[0][: len(said[1])]
    assert cut["functionResponse"]["truncated"] is True
    assert all("truncated" not in entry for entry in cut["functionResponse"]["rawEntries"])
    assert response_size(cut) <= 3_000


@pytest.mark.parametrize("room", [1_000, 2_000, 5_000])
@pytest.mark.parametrize("text", ["word " * 4_000, "日本語の文章" * 2_000, '"\\' * 4_000, "🙂" * 8_000])
def test_the_last_entry_left_is_cut_inside_its_text_and_says_so(open_door, room, text):
    door = open_door(max_result_chars=room)
    receipt = door.capture(text, "Short answer.")
    answer = door.call()
    [entry] = answer["functionResponse"]["rawEntries"]
    [message] = entry["requestRaw"]["messages"]
    assert (entry["id"], entry["truncated"]) == (receipt["rawEntryId"], True)
    assert message["content"].endswith("…")
    assert text.startswith(message["content"][:-1])
    assert entry["responseRaw"] == {"role": "assistant", "content": "Short answer."}
    assert response_size(answer) <= room
    # The full words are one request away.
    assert answer["rawEntries"][0]["requestRaw"]["messages"] == [{"role": "user", "content": text}]


def test_application_state_counts_in_the_budget(open_door):
    door = open_door(max_result_chars=1_500)
    body = {**WHO, "sessionData": {"log": ["line of state"] * 500, "messages": ["Hi"]}, "response": "Hello."}
    door.send("POST", f"{API}/capture", body)
    answer = door.call()
    [entry] = answer["functionResponse"]["rawEntries"]
    assert (entry["truncated"], entry["requestRaw"]) == (
        True,
        {"messages": [{"role": "user", "content": "Hi"}]},
    )
    assert response_size(answer) <= 1_500


def test_of_very_many_short_messages_the_newest_stay_in_the_budget(open_door):
    door = open_door(max_result_chars=1_500)
    messages = [{"role": "user", "content": f"line {n}"} for n in range(500)]
    door.capture(messages, "Noted.")
    answer = door.call()
    kept = answer["functionResponse"]["rawEntries"][0]["requestRaw"]["messages"]
    assert kept == messages[-len(kept) :]
    assert len(kept) > 5
    assert response_size(answer) <= 1_500


# -- the bound of what any answer holds -------------------------------------------------------------------------

MOST = 64 * 1024


@pytest.fixture
def bounded(open_door):
    """A server of small answers, with five exchanges of which two fit into one."""
    door = open_door(max_answer_bytes=MOST)
    fill(door, 5, size=30_000)
    return door


def send(door, path, body=None):
    """Return the answer, which is never longer than allowed."""
    answer = door.send("POST" if body else "GET", path, body)
    assert answer.status_code == 200
    assert len(answer.content) <= MOST
    return answer.json()


@pytest.mark.parametrize("query", [None, "tulips word3"])
@pytest.mark.parametrize("limit", [1, 4, 50])
def test_a_page_of_a_search_ends_where_the_answer_is_full_and_the_next_goes_on(bounded, query, limit):
    walked, cursor, sizes = [], None, []
    while not sizes or cursor is not None:
        body = {**WHO, "query": query, "limit": limit, "cursor": cursor}
        page = send(bounded, f"{API}/retrieve", body)
        walked += [entry["id"] for entry in page["rawEntries"]]
        sizes.append(len(page["rawEntries"]))
        cursor = page["nextCursor"]
        assert not any("truncated" in entry for entry in page["rawEntries"])
    topics_only = bounded.retrieve(query, limit=50, includeRaw=False)
    assert topics_only["nextCursor"] is None
    assert (len(walked), len(set(walked))) == (5, 5)
    assert sizes == ([1] * 5 if limit == 1 else [2, 2, 1])


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_a_page_of_a_list_ends_where_the_answer_is_full_and_the_next_goes_on(bounded, limit):
    walked, cursor, sizes = [], "", []
    while cursor is not None:
        page = send(bounded, f"{SCOPE}/raw?limit={limit}{cursor and f'&cursor={cursor}'}")
        walked += page["rawEntries"]
        sizes.append(len(page["rawEntries"]))
        cursor = page["nextCursor"]
    assert sizes == ([1] * 5 if limit == 1 else [2, 2, 1])
    assert [entry["requestRaw"]["messages"][0]["content"][:15] for entry in walked] == [
        f"Tulips, note {n}." for n in (4, 3, 2, 1, 0)
    ]


def test_both_lists_of_a_call_end_at_the_same_entry_and_say_so(open_door):
    """What a model reads leaves out placeholders, so that it may all fit where the whole entries do not."""
    door = open_door(max_answer_bytes=MOST)
    for n in range(5):
        said = [
            {"role": "user", "content": f"Tulips, note {n}."},
            *[{"role": "system", "content": "Be kind."}] * 300,
        ]
        door.capture(said, f"Noted {n}.", idempotency_key=str(n))
    answer = send(door, FUNCTION, {**WHO, "arguments": {"sessionData": {}, "query": "tulips", "limit": 5}})
    # That they agree in ids and order is checked of every answer.
    assert 1 < len(answer["rawEntries"]) < 5
    assert answer["functionResponse"]["truncated"] is True


@pytest.mark.parametrize("text", ["word " * 40_000, "日本語の文章" * 10_000, "🙂" * 30_000])
def test_an_entry_longer_than_any_answer_is_cut_and_says_so_and_is_whole_when_asked_for_alone(
    open_door, text
):
    door = open_door(max_answer_bytes=MOST)
    receipt = door.capture(text, "Short answer.")
    body = {**WHO, "arguments": {"sessionData": {}}}
    answers = [
        send(door, f"{API}/retrieve", WHO),
        send(door, f"{SCOPE}/raw"),
        send(door, FUNCTION, body),
    ]
    for answer in answers:
        [entry] = answer["rawEntries"]
        [message] = entry["requestRaw"]["messages"]
        assert (entry["id"], entry["truncated"]) == (receipt["rawEntryId"], True)
        assert text.startswith(message["content"].removesuffix("…"))
        assert message["content"].endswith("…")
        assert answer.get("nextCursor") is None
    path = f"{API}/projects/{PROJECT}/raw/{receipt['rawEntryId']}"
    assert door.send("GET", path).json()["requestRaw"]["messages"][0]["content"] == text


def test_two_captures_of_the_largest_size_are_answered_in_what_a_client_takes(open_door):
    door = open_door()
    for word in ("tulips", "violin"):
        door.capture([{"role": "user", "content": f"{word} " * 700_000}], "Noted.")
    answer = door.send("POST", f"{API}/retrieve", {**WHO, "query": "tulips"})
    assert len(answer.content) <= 4 * 1024 * 1024
    assert answer.json()["nextCursor"] is not None


# -- the question -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("messages", [["tulips " * 20_000], ["tulips"], []])
def test_a_question_is_never_longer_than_a_query_may_be(door, monkeypatch, messages):
    asked, retrieve = [], type(door.memory.services.retrieve)
    answered = retrieve.__call__

    def listen(self, scope, question):
        asked.append(question.text)
        return answered(self, scope, question)

    monkeypatch.setattr(retrieve, "__call__", listen)
    door.call(sessionData={"messages": messages})
    assert asked == ["".join(messages)[:32_768]]


# -- pages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [None, "tulips word3"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_of_a_search_hold_every_exchange_once(door, query, limit):
    fill(door, 7, size=30)
    walked, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = door.retrieve(query, limit=limit, cursor=cursor)
        assert len(page["rawEntries"]) <= limit
        walked += [entry["id"] for entry in page["rawEntries"]]
        cursor, pages = page["nextCursor"], pages + 1
    assert walked == [entry["id"] for entry in door.retrieve(query, limit=50)["rawEntries"]]
    assert (len(walked), len(set(walked)), pages) == (7, 7, -(-7 // limit))


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_a_list_hold_everything_once(door, limit):
    for word in ("tulips", "bicycle", "violin", "report", "candle"):
        door.capture(f"{word} {word} {word}", f"{word}")
    for name, field, identity in (("raw", "rawEntries", "id"), ("topics", "topics", "topicId")):
        whole = door.send("GET", f"{SCOPE}/{name}").json()
        walked, cursor = [], ""
        while cursor is not None:
            more = f"&cursor={cursor}" if cursor else ""
            page = door.send("GET", f"{SCOPE}/{name}?limit={limit}{more}").json()
            assert len(page[field]) <= limit
            walked += page[field]
            cursor = page["nextCursor"]
        assert walked == whole[field]
        assert len({entry[identity] for entry in walked}) == len(walked) > 1


def test_a_page_taken_while_others_write_loses_nothing(door):
    fill(door, 6, size=30)
    first = door.send("GET", f"{SCOPE}/raw?limit=3").json()
    before = [entry["id"] for entry in door.send("GET", f"{SCOPE}/raw").json()["rawEntries"]]
    door.capture("Said between the pages.")
    rest = door.send("GET", f"{SCOPE}/raw?cursor={first['nextCursor']}").json()
    assert [entry["id"] for entry in (*first["rawEntries"], *rest["rawEntries"])] == before


def test_the_end_of_a_search_is_an_empty_page(door):
    fill(door, 2, size=30)
    beyond = base64.urlsafe_b64encode(b"o10000").decode().rstrip("=")
    page = door.retrieve("tulips", cursor=beyond)
    assert (page["rawEntries"], page["topics"], page["nextCursor"]) == ([], [], None)


def test_without_raw_the_topics_come_alone(door):
    receipt = door.capture("Tulips tulips.")
    page = door.retrieve("tulips", includeRaw=False)
    assert (page["rawEntries"], page["selectedTopicKeys"]) == ([], receipt["topicKeys"])


def test_a_search_keeps_to_the_topics_it_names(door):
    receipts = {word: door.capture(f"{word} {word} {word}", word) for word in ("tulips", "bicycle", "violin")}
    keys = [receipts[word]["topicKeys"][0] for word in ("tulips", "violin")]
    for query in (None, "bicycle"):
        page = door.retrieve(query, topics=keys)
        assert {entry["topic"]["topicKey"] for entry in page["rawEntries"]} == set(keys)
    assert door.retrieve("bicycle", topics=["no_such_topic"])["rawEntries"] == []
    assert door.retrieve("bicycle", topics=[])["rawEntries"] == []


def test_a_disabled_topic_is_hidden_unless_asked_for(door):
    shown = door.capture("Bicycle bicycle bicycle.", "bicycle")
    hidden = door.capture("Tulips tulips tulips.", "tulips")
    [key] = hidden["topicKeys"]
    door.disable(key)
    for answer in (door.call("tulips"), door.call(), door.retrieve("tulips"), door.retrieve(topics=[key])):
        assert hidden["rawEntryId"] not in [entry["id"] for entry in answer["rawEntries"]]
        assert key not in answer["selectedTopicKeys"]
    assert [entry["id"] for entry in door.call("tulips")["rawEntries"]] == [shown["rawEntryId"]]
    for query in ("tulips", None):
        answer = door.retrieve(query, includeDisabledTopics=True)
        topic = next(topic for topic in answer["topics"] if topic["topicKey"] == key)
        assert topic["enabled"] is False
        assert answer["rawEntries"][0]["id"] == hidden["rawEntryId"]
    for query, enabled in (("", [True]), ("?includeDisabledTopics=true", [True, False])):
        topics = door.send("GET", f"{SCOPE}/topics{query}").json()["topics"]
        assert [topic["enabled"] for topic in topics] == enabled
        assert len(door.send("GET", f"{SCOPE}/raw{query}").json()["rawEntries"]) == len(enabled)


# -- below its best ---------------------------------------------------------------------------------------------


@pytest.fixture
def degraded(open_door, monkeypatch):
    """A server whose embedder's wheel is missing."""

    def missing(name, _settings=None):
        if name == "hashing":
            return open_embedder(name)
        raise ImportError(name)

    monkeypatch.setattr(composition, "open_embedder", missing)
    return open_door(embedder="use")


def test_a_server_without_its_embedder_works_and_says_so(degraded, door):
    ready = degraded.send("GET", "/readyz", key=None)
    assert (ready.status_code, ready.json()) == (
        200,
        {"ready": True, "embedder": open_embedder("hashing").id, "degraded": ["embedder"]},
    )
    receipt = degraded.capture("Tulips tulips.")
    answers = [receipt, degraded.call("tulips"), degraded.retrieve("tulips")]
    assert [answer["degraded"] for answer in answers] == [["embedder"]] * 3
    assert answers[1]["rawEntries"][0]["id"] == receipt["rawEntryId"]
    assert door.send("GET", "/readyz", key=None).json()["degraded"] == []
    whole = [door.capture("Tulips tulips."), door.call("tulips"), door.retrieve("tulips")]
    assert ["degraded" in answer for answer in whole] == [False] * 3


FAILURES = {
    "fault of ours": (RuntimeError("heliotrope at /srv/secret.py"), 500, "INTERNAL", None),
    "assertion": (AssertionError("heliotrope"), 500, "INTERNAL", None),
    "database away": (Unavailable(), 503, "UNAVAILABLE", "1"),
    "disk full": (StorageFull(), 507, "STORAGE_FULL", None),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_service_is_answered_in_the_envelope_without_its_words(door, monkeypatch, failure):
    error, status, code, retry_after = FAILURES[failure]

    def fail(*args, **kwargs):
        raise error

    for service, method in (("retrieve", "__call__"), ("capture", "__call__")):
        monkeypatch.setattr(type(getattr(door.memory.services, service)), method, fail)
    said = {"messages": [{"role": "user", "content": "heliotrope"}]}
    for path, body in (
        (FUNCTION, {**WHO, "arguments": {"sessionData": said}}),
        (f"{API}/retrieve", {**WHO, "query": "heliotrope"}),
        (f"{API}/capture", {**WHO, "sessionData": said}),
    ):
        answer = door.send("POST", path, body)
        assert (answer.status_code, answer.json()["code"], answer.headers.get("Retry-After")) == (
            status,
            code,
            retry_after,
        )
        assert "heliotrope" not in answer.text
        assert "secret" not in answer.text
    assert door.send("GET", f"{API}/functions").status_code == 200


def test_a_database_that_does_not_answer_is_not_ready(door, monkeypatch):
    def fail(*args):
        raise OperationalError("SELECT heliotrope", {}, Exception("disk I/O error"))

    monkeypatch.setattr(type(door.memory.store.engine), "connect", fail)
    for method, path, body in (
        ("GET", "/readyz", None),
        ("GET", f"{API}/functions", None),
        ("POST", FUNCTION, {**WHO, "arguments": {"sessionData": {}}}),
    ):
        answer = door.send(method, path, body)
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
        assert "heliotrope" not in answer.text
    assert door.send("GET", "/healthz", key=None).json() == {"ok": True}


def test_an_entry_says_which_of_its_messages_the_question_found_and_why(door):
    door.capture(
        [{"role": "user", "content": "My cat is called Miso.", "name": "Ana"}],
        "Miso is a lovely name for a cat.",
    )
    door.capture("I bought a green bicycle.", "Enjoy the ride.")
    (entry, *_) = door.retrieve("What is Ana's cat called?", limit=1)["rawEntries"]
    found = {match["message"]: match["why"] for match in entry["matched"]}
    assert {"words", "speaker"} <= set(found[0])
    assert "words" in found[None]
    assert "matched" not in door.call("What is Ana's cat called?")["functionResponse"]["rawEntries"][0]


def test_a_taste_that_changed_is_not_taken_for_the_same_words_said_again(door):
    door.capture("I like coffee.", "Noted.")
    door.capture("I don't like coffee any more.", "Noted, no coffee.")
    for n in range(3):
        door.capture(f"My bicycle number {n} is green.", "Nice.")
    found = door.retrieve("Do I like coffee?", limit=2)["rawEntries"]
    said = {entry["requestRaw"]["messages"][0]["content"] for entry in found}
    assert said == {"I like coffee.", "I don't like coffee any more."}
