"""What a person says of a topic holds: against every job, under its old key, and until they say otherwise."""

import json

import pytest

from tests.api.door import API, FUNCTION, PROJECT, USER, segment, served

SCOPE = f"{API}/projects/{PROJECT}/scopes/{USER}"
EVERYTHING = "includeDisabledTopics=true"
ABOUT = {
    "tulips": "Tulips tulips tulips in the garden.",
    "bicycle": "The bicycle bicycle bicycle needs oil.",
    "violin": "A violin violin violin lesson.",
}


@pytest.fixture
def receipts(door):
    """Three subjects of one end user."""
    return {word: door.capture(text, f"{word} {word}, yes.") for word, text in ABOUT.items()}


@pytest.fixture
def keys(receipts):
    found = {word: receipt["topicKeys"][0] for word, receipt in receipts.items()}
    assert len(set(found.values())) == 3
    return found


def patch(door, key, body, **more):
    return door.send("PATCH", f"{SCOPE}/topics/{segment(key)}", body, **more)


def merge(door, key, into):
    return door.send("POST", f"{SCOPE}/topics/{segment(key)}/merge", {"into": into})


def listed(door, query=EVERYTHING):
    return {
        topic["topicKey"]: topic for topic in door.send("GET", f"{SCOPE}/topics?{query}").json()["topics"]
    }


def more_about(door, word, number):
    """Capture something else about the word, and return its topic's key."""
    return door.capture(f"{word} {word} {word}, again {number}.", f"{word} {word}.")["topicKeys"][0]


def refusal(answer):
    return answer.status_code, answer.json()["code"]


# -- a person's own words ---------------------------------------------------------------------------------------


def test_what_a_person_sets_is_shown_by_every_route_under_the_same_key(door, keys):
    before = listed(door)[keys["tulips"]]
    answer = patch(door, keys["tulips"], {"label": " Mia's garden ", "aliases": ["beds", " Beete ", "beds"]})
    set_by_a_person = {
        "displayName": "Mia's garden",
        "aliases": ["beds", "Beete"],
        "pinned": ["aliases", "label"],
    }
    assert answer.status_code == 200
    assert answer.json() == {**before, **set_by_a_person, "updatedAt": answer.json()["updatedAt"]}
    assert listed(door)[keys["tulips"]] == answer.json()
    for found in (door.call("tulips"), door.retrieve("tulips"), door.retrieve(topics=[keys["tulips"]])):
        assert found["topics"][0] == answer.json()
        assert "“Mia's garden”" in found["selectionReason"]


@pytest.mark.parametrize(
    ("body", "pinned"), [({"label": "Beds"}, ["label"]), ({"aliases": ["beds"]}, ["aliases"])]
)
def test_what_a_person_set_outlives_what_is_captured_and_forgotten_later(door, keys, body, pinned):
    key, fields = keys["tulips"], ("displayName", "aliases")
    mine = patch(door, key, body).json()
    words = {
        name: mine[name] for name, set_by in zip(fields, ("label", "aliases"), strict=True) if set_by in body
    }
    for number in range(4):
        assert more_about(door, "tulips", number) == key
    shown = listed(door)[key]
    assert (shown["rawCount"], shown["pinned"], {name: shown[name] for name in words}) == (5, pinned, words)
    newest = door.retrieve(topics=[key])["rawEntries"][0]["id"]
    door.send("DELETE", f"{API}/projects/{PROJECT}/raw/{newest}")
    shown = listed(door)[key]
    assert (shown["rawCount"], shown["pinned"], {name: shown[name] for name in words}) == (4, pinned, words)


def test_a_label_stays_the_persons_though_whoever_said_it_is_forgotten_and_a_key_made_from_it_does_not(door):
    first = door.capture("Zebrafish quarantine!", "Zebrafish quarantine.")
    [key] = first["topicKeys"]
    patch(door, key, {"label": "Aquarium"})
    second = door.capture("Zebrafish tank, zebrafish food.", "Zebrafish tank.")
    assert second["topicKeys"] == [key]
    assert "quarantine" in key
    door.send("DELETE", f"{API}/projects/{PROJECT}/raw/{first['rawEntryId']}")
    [topic] = listed(door).values()
    assert (topic["displayName"], topic["topicKey"], topic["rawCount"]) == ("Aquarium", "aquarium", 1)
    assert "quarantine" not in repr(door.dump()).lower()
    third = door.capture("Zebrafish tank, zebrafish water.", "Zebrafish tank.")
    patch(door, "aquarium", {"label": "zebrafish tank"})
    for receipt in (second, third):
        assert listed(door)["aquarium"]["displayName"] == "zebrafish tank"
        door.send("DELETE", f"{API}/projects/{PROJECT}/raw/{receipt['rawEntryId']}")
    assert listed(door) == {}


def test_a_name_a_person_agrees_with_is_theirs_from_then_on(door, keys):
    topic = listed(door)[keys["tulips"]]
    answer = patch(door, keys["tulips"], {"label": topic["displayName"], "enabled": True})
    assert answer.json()["pinned"] == ["enabled", "label"]


def test_a_patch_sent_again_changes_nothing(door, keys):
    for body in (
        {"label": "Beds"},
        {"aliases": []},
        {"enabled": False},
        {"enabled": True, "label": "Garden"},
    ):
        answer = patch(door, keys["tulips"], body)
        before = door.dump()
        again = patch(door, keys["tulips"], body)
        assert (again.status_code, again.content) == (200, answer.content)
        assert door.dump() == before
    assert answer.json()["pinned"] == ["aliases", "enabled", "label"]


def test_a_patch_changes_no_other_topic(door, keys):
    before = listed(door)
    patch(door, keys["tulips"], {"label": "Beds", "aliases": ["b"], "enabled": False})
    after = listed(door)
    assert [after[keys[word]] for word in ("bicycle", "violin")] == [
        before[keys[word]] for word in ("bicycle", "violin")
    ]


# -- what may be sent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"label": "x" * 120},
        {"label": f"  {'日' * 120}\n"},
        {"label": "👩‍👩‍👧"},
        {"label": "نص عربي"},
        {"aliases": [f"{number:0>120}" for number in range(16)]},
        {"aliases": [" x "] * 16},
        {"aliases": []},
        {"enabled": None, "label": "x", "aliases": None},
        {"label": "x", "key": "another", "exchanges": 7, "pinned": ["enabled"]},
    ],
)
def test_what_is_just_within_the_limits_is_taken(door, keys, body):
    before = listed(door)[keys["tulips"]]
    answer = patch(door, keys["tulips"], body)
    assert answer.status_code == 200
    shown, given = (
        answer.json(),
        {name: body[name] for name in ("label", "aliases") if body.get(name) is not None},
    )
    assert shown["pinned"] == sorted(given)
    assert shown["displayName"] == body.get("label", before["displayName"]).strip()
    if "aliases" in given:
        assert shown["aliases"] == list(dict.fromkeys(alias.strip() for alias in body["aliases"]))
    assert (shown["topicKey"], shown["rawCount"]) == (before["topicKey"], before["rawCount"])


def test_a_label_is_cleaned_as_every_text_is(door, keys):
    for sent, kept in ((r"Tu\u0000lips", "Tulips"), (r"Tulips \ud83d", "Tulips �")):
        answer = door.send(
            "PATCH", f"{SCOPE}/topics/{keys['tulips']}", content=f'{{"label":"{sent}"}}'.encode()
        )
        assert (answer.status_code, answer.json()["displayName"]) == (200, kept)


def test_no_credential_is_kept_as_a_name(door, keys):
    secret = "sk-abcdefghijklmnopqrstuvwxyz"
    shown = patch(door, keys["tulips"], {"label": f"Key {secret}", "aliases": [secret]}).json()
    assert (shown["displayName"], shown["aliases"]) == ("Key [masked: api key]", ["[masked: api key]"])
    assert secret not in repr(door.dump())


NO_NAME = [
    "",
    "  ",
    "x" * 121,
    "\u200b",
    "a\nb",
    "a\tb",
    "a\x1bb",
    "a\x7fb",
    "a\x9fb",
    "a\u2028b",
    "a\u2029b",
    5,
    True,
    {},
    ["x"],
]
NO_PATCH = [
    {},
    {"colour": "red"},
    {"displayName": "Tulips"},
    {"label": None},
    {"enabled": None, "label": None, "aliases": None},
    {"enabled": "false"},
    {"enabled": 0},
    {"aliases": "x"},
    {"aliases": {}},
    {"aliases": [None]},
    {"aliases": [f"{number}" for number in range(17)]},
    {"label": "x", "aliases": ["x"] * 17},
    *({"label": name} for name in NO_NAME),
    *({"aliases": ["x", name]} for name in NO_NAME),
]


@pytest.mark.parametrize("body", NO_PATCH)
def test_what_sets_nothing_or_is_no_name_is_refused_whole(door, keys, body):
    before = door.dump()
    assert refusal(patch(door, keys["tulips"], {"canary7f3a": 1, **body})) == (400, "INVALID_REQUEST")
    assert door.dump() == before


@pytest.mark.parametrize(
    "body",
    [{}, {"into": None}, {"into": ""}, {"into": 5}, {"into": ["x"]}, {"into": "x" * 201}, {"key": "x"}],
)
def test_a_merge_names_one_topic(door, keys, body):
    before = door.dump()
    answer = door.send("POST", f"{SCOPE}/topics/{keys['tulips']}/merge", body)
    assert refusal(answer) == (400, "INVALID_REQUEST")
    assert "into" in answer.json()["error"]
    assert door.dump() == before


def test_a_body_that_is_no_json_object_is_refused(door, keys):
    for method, rest in (("PATCH", ""), ("POST", "/merge")):
        for content in (b"", b"[]", b'{"label":"a","label":"b"}', b'{"into":NaN}'):
            answer = door.send(method, f"{SCOPE}/topics/{keys['tulips']}{rest}", content=content)
            assert refusal(answer) == (400, "INVALID_JSON")


def test_what_is_unknown_and_what_is_anothers_is_not_found_and_not_told_apart(door, keys):
    other = door.capture("Orchids orchids.", "Orchids.", user="other")["topicKeys"][0]
    before, tulips = door.dump(), f"{SCOPE}/topics/{keys['tulips']}"
    elsewhere = f"{API}/projects/{PROJECT}/scopes/nobody/topics/{keys['tulips']}"
    asked = [
        *(
            ("PATCH", path, {"label": "x"})
            for path in (f"{SCOPE}/topics/nothing", f"{SCOPE}/topics/{other}", elsewhere)
        ),
        *(("POST", f"{SCOPE}/topics/{key}/merge", {"into": keys["tulips"]}) for key in ("nothing", other)),
        *(("POST", f"{tulips}/merge", {"into": key}) for key in ("nothing", other)),
        ("POST", f"{elsewhere}/merge", {"into": keys["violin"]}),
    ]
    answers = {
        (answer.status_code, answer.content)
        for answer in (door.send(*request, headers={"X-Request-Id": "same"}) for request in asked)
    }
    [(status, content)] = answers
    assert (status, json.loads(content)["code"]) == (404, "NOT_FOUND")
    foreign = door.send("PATCH", f"{API}/projects/another/scopes/{USER}/topics/x", {"label": "x"})
    assert refusal(foreign) == (404, "PROJECT_NOT_FOUND")
    assert door.dump() == before


# -- two that are one -------------------------------------------------------------------------------------------


def test_a_merged_topic_gives_its_exchanges_its_name_and_its_key_to_the_other(door, receipts, keys):
    before = listed(door)
    answer = merge(door, keys["tulips"], keys["bicycle"])
    assert answer.status_code == 200
    assert listed(door) == {keys["bicycle"]: answer.json(), keys["violin"]: before[keys["violin"]]}
    shown = answer.json()
    assert (shown["displayName"], shown["rawCount"]) == (before[keys["bicycle"]]["displayName"], 2)
    assert before[keys["tulips"]]["displayName"] in shown["aliases"]
    assert set(shown["summarySources"]) == {receipts[word]["rawEntryId"] for word in ("tulips", "bicycle")}
    ids = {receipts[word]["rawEntryId"] for word in ("tulips", "bicycle")}
    for key in (keys["tulips"], keys["bicycle"]):
        for query in (None, "tulips bicycle violin"):
            found = door.retrieve(query, topics=[key])
            assert {entry["id"] for entry in found["rawEntries"]} == ids
            assert found["selectedTopicKeys"] == [keys["bicycle"]]
    assert len(door.call()["rawEntries"]) == 3


def test_the_name_of_a_merged_topic_stays_an_alias_whatever_is_said_later(door, keys):
    label = listed(door)[keys["tulips"]]["displayName"]
    assert label in merge(door, keys["tulips"], keys["bicycle"]).json()["aliases"]
    for number in range(6):
        text = ", ".join(f"bicycle part{letter}{number} bicycle" for letter in "abcdefgh")
        door.capture(f"bicycle bicycle {text}", "bicycle bicycle.")
    assert listed(door)[keys["bicycle"]]["rawCount"] > 2
    assert label in listed(door)[keys["bicycle"]]["aliases"]
    patch(door, keys["bicycle"], {"aliases": ["velo"]})
    assert more_about(door, "bicycle", 7) == keys["bicycle"]
    assert listed(door)[keys["bicycle"]]["aliases"] == ["velo"]


def test_a_persons_words_come_along_when_their_topic_is_merged(door, keys):
    patch(door, keys["tulips"], {"label": "Mia's beds", "aliases": ["Beete"]})
    patch(door, keys["bicycle"], {"aliases": ["velo"]})
    assert merge(door, keys["tulips"], keys["bicycle"]).json()["aliases"] == ["velo", "Mia's beds", "Beete"]
    shown = merge(door, keys["bicycle"], keys["violin"]).json()
    assert {"velo", "Mia's beds", "Beete"} < set(shown["aliases"])
    assert shown["pinned"] == []


def test_a_person_reads_back_no_more_aliases_than_they_may_send(door, keys):
    mine = [f"name {number}" for number in range(16)]
    patch(door, keys["tulips"], {"aliases": mine})
    shown = merge(door, keys["bicycle"], keys["tulips"]).json()
    assert shown["aliases"] == mine
    assert patch(door, keys["tulips"], {"aliases": shown["aliases"]}).status_code == 200


def test_a_former_key_leads_to_its_topic_everywhere_through_every_merge(door, keys):
    merge(door, keys["tulips"], keys["bicycle"])
    merge(door, keys["bicycle"], keys["violin"])
    for key in keys.values():
        assert len(door.retrieve(topics=[key])["rawEntries"]) == 3
        shown = patch(door, key, {"label": f"By {key}"}).json()
        assert (shown["topicKey"], shown["displayName"], shown["rawCount"]) == (
            keys["violin"],
            f"By {key}",
            3,
        )
    door.capture("Marathon marathon marathon.", "Marathon marathon.")
    [other] = set(listed(door)) - set(keys.values())
    assert merge(door, other, keys["tulips"]).json()["topicKey"] == keys["violin"]
    gone = door.send(
        "DELETE", f"{API}/projects/{PROJECT}/topics/{keys['tulips']}?endUserKey={USER}&includeRaw=true"
    )
    assert (gone.status_code, gone.json()["counts"]) == (202, {"exchanges": 4, "messages": 8, "topics": 1})
    for key in (*keys.values(), other):
        assert refusal(patch(door, key, {"label": "x"})) == (404, "NOT_FOUND")
    assert door.dump()["former_keys"] == []


def test_no_new_topic_takes_the_key_of_a_merged_one(door, keys):
    for word in ("marathon", "invoice", "lisbon"):
        merge(door, more_about(door, word, 0), keys["violin"])
    merge(door, keys["tulips"], keys["violin"])
    # Among so many subjects the words are near to none.
    new = door.capture(f"{ABOUT['tulips']} Again.", "tulips tulips, yes.")["topicKeys"]
    assert new != [keys["tulips"]]
    assert door.retrieve(topics=[keys["tulips"]], limit=9)["selectedTopicKeys"] == [keys["violin"]]


def test_a_merge_sent_again_changes_nothing_and_one_into_itself_is_refused(door, keys):
    answer = merge(door, keys["tulips"], keys["bicycle"])
    before = door.dump()
    assert merge(door, keys["tulips"], keys["bicycle"]).content == answer.content
    for key, into in (
        (keys["violin"], keys["violin"]),
        (keys["bicycle"], keys["bicycle"]),
        (keys["bicycle"], keys["tulips"]),
        (keys["tulips"], keys["tulips"]),
    ):
        refused = merge(door, key, into)
        assert refusal(refused) == (400, "INVALID_REQUEST")
        assert refused.json()["error"] == "A topic cannot be merged into itself."
    assert door.dump() == before


@pytest.mark.parametrize("person", [False, True])
def test_what_was_forgotten_is_read_off_no_name_of_a_merged_topic(door, keys, receipts, person):
    if person:
        patch(door, keys["bicycle"], {"aliases": ["velo"], "label": "Wheels"})
    label = listed(door)[keys["bicycle"]]["displayName"]
    merge(door, keys["tulips"], keys["bicycle"])
    assert "tulips" in repr(listed(door))
    door.send("DELETE", f"{API}/projects/{PROJECT}/raw/{receipts['tulips']['rawEntryId']}")
    assert "tulips" not in repr(door.dump()).lower()
    assert refusal(patch(door, keys["tulips"], {"label": "x"})) == (404, "NOT_FOUND")
    shown = listed(door)[keys["bicycle"]]
    assert (shown["displayName"], person and shown["aliases"]) == (label, person and ["velo"])


def test_of_an_end_user_or_project_that_is_deleted_no_former_key_stays(door, keys):
    merge(door, keys["tulips"], keys["bicycle"])
    assert len(door.dump()["former_keys"]) == 1
    door.send("DELETE", SCOPE)
    assert door.dump()["former_keys"] == []
    again = door.capture(ABOUT["tulips"], "tulips tulips, yes.")
    assert again["topicKeys"] == [keys["tulips"]]


# -- what a person hides ----------------------------------------------------------------------------------------

CANARY = "heliotrope"


@pytest.fixture
def hidden(door):
    """A topic about the canary, disabled; its exchange begins a thread that goes on about something else."""
    said = [{"role": "user", "content": f"{CANARY} {CANARY} {CANARY}!", "name": "Heliotropia"}]
    first = door.capture(said, f"{CANARY} {CANARY}.")
    said += [
        {"role": "assistant", "content": f"{CANARY} {CANARY}."},
        {"role": "user", "content": "A bicycle bicycle bicycle bicycle needs oil and a bicycle bell."},
    ]
    second = door.capture(said, "Bicycle bicycle bicycle.")
    assert first["topicKeys"] != second["topicKeys"]
    assert patch(door, first["topicKeys"][0], {"enabled": False}).json()["enabled"] is False
    return {"key": first["topicKeys"][0], "id": first["rawEntryId"], "next": second["rawEntryId"]}


WHO = {"projectKey": PROJECT, "endUserKey": USER}
OF_A_SCOPE = f"{API}/projects/{{project_key:key}}/scopes/{{end_user_key:key}}"
QUERIES = (None, CANARY, "bicycle", "Heliotropia")

READS = {
    ("GET", f"{OF_A_SCOPE}/topics"): lambda hidden, asked: [(f"{SCOPE}/topics?{asked}", None)],
    ("GET", f"{OF_A_SCOPE}/raw"): lambda hidden, asked: [(f"{SCOPE}/raw?{asked}", None)],
    ("GET", f"{API}/projects/{{project_key:key}}/raw/{{raw_entry_id:key}}"): lambda hidden, asked: [
        (f"{API}/projects/{PROJECT}/raw/{entry}?full={full}&{asked}", None)
        for entry in (hidden["id"], hidden["next"])
        for full in ("true", "false")
    ],
    ("POST", f"{API}/retrieve"): lambda hidden, asked: [
        (f"{API}/retrieve", {**WHO, "query": query, "topics": topics, "includeDisabledTopics": bool(asked)})
        for query in QUERIES
        for topics in (None, [hidden["key"]])
    ],
    ("POST", f"{API}/functions/{{name:key}}"): lambda hidden, asked: [
        (FUNCTION, {**WHO, "arguments": {"sessionData": {}, "query": query}}) for query in QUERIES
    ],
}
"""Every route that gives back what somebody said, asked for everything it can."""

SILENT = {
    ("GET", path)
    for path in (
        f"{API}/functions",
        f"{API}/projects",
        f"{API}/projects/{{project_key:key}}",
        "/metrics",
        "/healthz",
        "/readyz",
        "/openapi.json",
    )
}


def seen(door, hidden, asked):
    """Return route -> everything it says."""
    found = {}
    for (method, path), requests in READS.items():
        answers = [door.send(method, *request) for request in requests(hidden, asked)]
        found[path] = "\n".join(answer.text for answer in answers).lower()
    return found


def said_by(found, hidden):
    # What a request itself named is no news.
    return {path for path, text in found.items() if CANARY in text or hidden["id"] in text}


def test_every_reading_route_is_asked_here(door):
    reading = {case for case in served(door.app) if case[0] == "GET"} - SILENT
    assert reading | {case for case in READS if case[0] == "POST"} == set(READS)


def test_what_a_person_hid_leaves_through_no_route(door, hidden):
    """The first page is no shorter for it, and the summary and the reason know nothing of it either."""
    assert said_by(seen(door, hidden, ""), hidden) == set()
    by_function = f"{API}/functions/{{name:key}}"
    paths = {path for _, path in READS}
    assert said_by(seen(door, hidden, EVERYTHING), hidden) == paths - {by_function}

    assert patch(door, hidden["key"], {"enabled": True}).json()["pinned"] == ["enabled"]
    assert said_by(seen(door, hidden, ""), hidden) == paths


def test_where_a_hidden_exchange_stood_its_thread_says_so(door, hidden):
    path = f"{API}/projects/{PROJECT}/raw/{hidden['next']}?full=true"
    messages = door.send("GET", path).json()["requestRaw"]["messages"]
    blank = {"content": None, "hidden": True}
    assert messages[:2] == [{"role": "user", **blank}, {"role": "assistant", **blank}]
    assert "bicycle bell" in messages[2]["content"]
    shown = door.send("GET", f"{path}&{EVERYTHING}").json()["requestRaw"]["messages"]
    assert [CANARY in message["content"] for message in shown] == [True, True, False]
    alone = door.send("GET", f"{API}/projects/{PROJECT}/raw/{hidden['id']}")
    assert refusal(alone) == (404, "NOT_FOUND")


def test_pages_are_as_full_as_if_what_is_hidden_were_not_there(door, hidden):
    for name in ("raw", "topics"):
        page = door.send("GET", f"{SCOPE}/{name}?limit=1").json()
        [entry] = page["rawEntries" if name == "raw" else "topics"]
        assert page["nextCursor"] is None
    for query in (None, "bicycle"):
        found = door.retrieve(query, limit=1)
        assert ([entry["id"] for entry in found["rawEntries"]], found["nextCursor"]) == (
            [hidden["next"]],
            None,
        )
    assert entry["rawCount"] == 1


def test_what_is_said_later_about_a_hidden_topic_is_hidden_too(door, hidden):
    later = door.capture(f"{CANARY} {CANARY} {CANARY}, once more.", f"{CANARY}.")
    assert later["topicKeys"] == [hidden["key"]]
    assert said_by(seen(door, {**hidden, "id": later["rawEntryId"]}, ""), hidden) == set()
    assert listed(door)[hidden["key"]]["enabled"] is False


def test_deleting_a_hidden_topic_shows_nothing_of_what_it_held(door, hidden):
    shown = door.capture("Tulips tulips tulips.", "Tulips.")["topicKeys"][0]
    for key in (shown, hidden["key"]):
        door.send("DELETE", f"{API}/projects/{PROJECT}/topics/{key}?endUserKey={USER}")
    assert said_by(seen(door, hidden, ""), hidden) == set()
    assert len(door.call()["rawEntries"]) == 2
    places = {
        key: topic["enabled"] for key, topic in listed(door).items() if topic["displayName"] == "unsorted"
    }
    assert places == {"unsorted": True, "unsorted_2": False}
    more = door.capture(f"{CANARY} {CANARY} {CANARY}?", f"{CANARY}.")["topicKeys"][0]
    patch(door, more, {"enabled": False})
    door.send("DELETE", f"{API}/projects/{PROJECT}/topics/{more}?endUserKey={USER}")
    assert said_by(seen(door, hidden, ""), hidden) == set()
    assert set(listed(door)) >= set(places)


def test_a_topic_that_takes_another_in_decides_whether_both_are_shown(door, hidden):
    [bicycle] = listed(door, "")
    merge(door, bicycle, hidden["key"])
    for query in (None, "bicycle"):
        found = door.call(query)
        assert (found["rawEntries"], found["overallSummary"]) == ([], "")
    assert listed(door, "") == {}
    patch(door, bicycle, {"enabled": True})
    assert len(door.call()["rawEntries"]) == 2
