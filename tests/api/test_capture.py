"""What a capture keeps, what it recognises as known, and what it must never keep."""

import pytest

from tests.api.door import API, PROJECT, USER

RAW = f"{API}/projects/{PROJECT}/raw"


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def capture(door, session, *, key=None, **more):
    body = {"projectKey": PROJECT, "endUserKey": USER, "sessionData": session, **more}
    return door.send("POST", f"{API}/capture", body, headers={"Idempotency-Key": key} if key else {})


def raw(door, receipt, *, full=False):
    return door.send("GET", f"{RAW}/{receipt['rawEntryId']}?full={full}").json()


def listed(door):
    return door.send("GET", f"{API}/projects/{PROJECT}/scopes/{USER}/raw").json()["rawEntries"]


@pytest.mark.parametrize("key", [None, "turn-1"])
def test_the_same_capture_again_is_the_same_receipt(door, key):
    session = {"messages": [user("I moved to Oslo.")]}
    first = capture(door, session, response=assistant("Noted."), key=key)
    again = capture(door, session, response=assistant("Noted."), key=key)
    assert (first.status_code, first.headers.get("Idempotency-Replayed")) == (201, None)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert again.json() == {**first.json(), "requestId": again.json()["requestId"], "duplicate": True}
    assert len(listed(door)) == 1


def test_an_idempotency_key_belongs_to_one_body(door):
    capture(door, {"messages": [user("I moved to Oslo.")]}, response="Noted.", key="turn-1")
    before = door.dump()
    other = capture(door, {"messages": [user("I moved to Rome.")]}, response="Noted.", key="turn-1")
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert door.dump() == before


def test_an_idempotency_key_of_one_end_user_says_nothing_about_anothers(door):
    first = door.capture("I moved to Oslo.", idempotency_key="turn-1")
    other = door.capture("I moved to Rome.", idempotency_key="turn-1", user="other")
    assert "duplicate" not in other
    assert other["rawEntryId"] != first["rawEntryId"]


def test_words_said_again_under_a_new_key_are_a_new_exchange(door):
    receipts = [door.capture("Good morning.", idempotency_key=f"turn-{n}") for n in range(2)]
    assert [entry["id"] for entry in listed(door)] == [
        receipt["rawEntryId"] for receipt in reversed(receipts)
    ]


def test_without_a_key_identical_words_are_a_retry_for_ten_minutes(open_door):
    now = [1_800_000_000_000]
    door = open_door(clock=lambda: now[0])
    first = door.capture("Good morning.")
    now[0] += 600_000
    assert door.capture("Good morning.")["rawEntryId"] == first["rawEntryId"]
    now[0] += 1
    assert "duplicate" not in door.capture("Good morning.")


def test_of_a_growing_history_each_exchange_keeps_what_it_added(door):
    history, receipts = [], []
    for n in range(4):
        history.append(user(f"Question {n}?"))
        receipts.append(capture(door, {"messages": history}, response=assistant(f"Answer {n}.")).json())
        history.append(assistant(f"Answer {n}."))
    for n, receipt in enumerate(receipts):
        added = raw(door, receipt)
        assert added["requestRaw"] == {"messages": [user(f"Question {n}?")]}
        assert added["responseRaw"] == assistant(f"Answer {n}.")
        assert raw(door, receipt, full=True) == {**added, "requestRaw": {"messages": history[: 2 * n + 1]}}
    again = capture(door, {"messages": history[:-1]}, response=history[-1])
    assert (again.status_code, again.json()["rawEntryId"]) == (200, receipts[-1]["rawEntryId"])
    assert len(listed(door)) == 4


def test_a_history_cut_at_the_front_continues_its_thread(door):
    history = [message for n in range(5) for message in (user(f"Question {n}?"), assistant(f"Answer {n}."))]
    capture(door, {"messages": history[:-1]}, response=history[-1])
    cut = capture(door, {"messages": [*history[4:], user("And now?")]}, response="Now this.").json()
    assert raw(door, cut)["requestRaw"] == {"messages": [user("And now?")]}


def test_without_a_response_the_trailing_assistant_message_is_the_answer(door):
    receipt = capture(door, {"messages": [user("Hello?"), assistant("Hi.")]}).json()
    entry = raw(door, receipt)
    assert (entry["requestRaw"], entry["responseRaw"]) == ({"messages": [user("Hello?")]}, assistant("Hi."))


@pytest.mark.parametrize(
    ("response", "kept"),
    [
        ("Hi.", assistant("Hi.")),
        (None, None),
        ({"role": "model", "parts": [{"text": "Hi."}]}, {"role": "model", "parts": [{"text": "Hi."}]}),
        ({"choices": [{"message": {"role": "assistant", "content": "Hi."}}], "id": "x"}, assistant("Hi.")),
    ],
)
def test_an_answer_is_kept_as_it_came(door, response, kept):
    receipt = capture(door, {"messages": [user("Hello?")]}, response=response).json()
    assert raw(door, receipt)["responseRaw"] == kept


def test_the_older_names_of_the_fields_mean_the_same_and_win(door):
    older = {"requestRaw": {"messages": [user("Older?")]}, "responseRaw": assistant("Older.")}
    body = {"projectKey": PROJECT, "endUserKey": USER, **older}
    receipt = door.send("POST", f"{API}/capture", body).json()
    both = capture(door, {"messages": [user("Newer?")]}, response=assistant("Newer."), **older)
    assert (both.status_code, both.json()["rawEntryId"]) == (200, receipt["rawEntryId"])
    entry = raw(door, receipt)
    assert {name: entry[name] for name in older} == older


def test_application_state_comes_back_with_the_exchange(door):
    state = {"plan": "pro", "cart": [1, 2.5, None, True, {"sku": "a/b"}], "empty": {}}
    receipt = capture(door, {**state, "messages": [user("Is my cart saved?")]}, response="Yes.").json()
    whole = {**state, "messages": [user("Is my cart saved?")]}
    assert raw(door, receipt)["requestRaw"] == whole
    assert raw(door, receipt, full=True)["requestRaw"] == whole
    assert door.call("cart")["functionResponse"]["rawEntries"][0]["requestRaw"] == whole


def test_verbatim_is_every_character(door):
    text = '  Tabs\tand\r\nlines,  e\u0301 and é, 日本語 🙂 \u200d \ufffd, "quotes" \\ and trailing space \n'
    receipt = door.capture(text, assistant(text))
    entry = raw(door, receipt)
    assert (entry["requestRaw"], entry["responseRaw"]) == ({"messages": [user(text)]}, assistant(text))
    assert "sanitized" not in receipt


def test_half_characters_and_nul_are_mended_and_counted(door):
    content = (
        b'{"projectKey":"customer-product","endUserKey":"user_123","sessionData":{"messages":'
        b'[{"role":"user","content":"half \\ud83d, nul \\u0000, whole \\ud83d\\ude42"}]},"response":"ok \\udc00"}'
    )
    receipt = door.send("POST", f"{API}/capture", content=content).json()
    entry = raw(door, receipt)
    assert receipt["sanitized"] == 3
    assert entry["requestRaw"] == {"messages": [user("half \ufffd, nul , whole 🙂")]}
    assert entry["responseRaw"] == assistant("ok \ufffd")


SECRETS = {
    "sk-proj-abcdefghijklmnopqrstuvwxyz": "[masked: api key]",
    "AKIAIOSFODNN7EXAMPLE": "[masked: access key]",
    "ghp_0123456789abcdefghijABCDEFGHIJ0123": "[masked: token]",
    "Bearer abcdefghijklmnopqrstuvwx": "[masked: token]",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl": "[masked: token]",
    "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----": "[masked: private key]",
}


@pytest.mark.parametrize(("secret", "mask"), SECRETS.items())
def test_a_credential_is_masked_wherever_it_stands(door, secret, mask):
    text = f"My login is {secret} and it works"
    session = {"settings": {"env": [text]}, "messages": [user(text)]}
    receipt = capture(door, session, response=assistant(text)).json()
    masked = f"My login is {mask} and it works"
    entry = raw(door, receipt)
    assert entry["requestRaw"] == {"settings": {"env": [masked]}, "messages": [user(masked)]}
    assert entry["responseRaw"] == assistant(masked)
    assert secret not in repr(door.dump())
    assert secret not in repr(door.call("login"))


def test_a_card_number_is_masked_only_when_asked_for(open_door):
    text = "Card 4111 1111 1111 1111, order 4111 1111 1111 1112."
    strict, usual = open_door(redact="strict"), open_door()
    for door, kept in ((strict, text.replace("4111 1111 1111 1111", "[masked: card number]")), (usual, text)):
        assert raw(door, door.capture(text))["requestRaw"]["messages"] == [user(kept)]


def test_instructions_reasoning_and_binary_data_become_placeholders(door):
    image = "aGVsbG8gd29ybGQ="
    messages = [
        {"role": "system", "content": "SECRET-INSTRUCTIONS"},
        {"role": "developer", "content": [{"type": "text", "text": "SECRET-INSTRUCTIONS"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is in this picture?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
            ],
        },
        {
            "role": "assistant",
            "reasoning_content": "SECRET-THOUGHT",
            "content": [
                {"type": "thinking", "thinking": "SECRET-THOUGHT", "signature": "SECRET-SIGNATURE"},
                {"type": "text", "text": "A cat."},
            ],
        },
        user(f"And inline data:image/png;base64,{image} here?"),
    ]
    receipt = capture(door, {"messages": messages}, response="A dog.").json()
    kept = raw(door, receipt, full=True)["requestRaw"]["messages"]
    hidden = {"role": "system", "content": None, "omitted": "instructions"}
    size = kept[2]["content"][1].pop("bytes")
    assert 0 < size < 100
    assert kept == [
        hidden,
        hidden,
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is in this picture?"},
                {"type": "image", "omitted": True},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "omitted": True}, {"type": "text", "text": "A cat."}],
        },
        user("And inline [image/png omitted] here?"),
    ]
    stored = repr(door.dump())
    assert [word for word in ("SECRET", image) if word in stored] == []


def test_halos_own_calls_and_results_are_not_new_memory(door):
    door.capture("My canary-word is heliotrope.")
    recalled = door.send(
        "POST",
        f"{API}/functions/halo_retrieve_end_user_memory",
        {"projectKey": PROJECT, "endUserKey": USER, "arguments": {"sessionData": {}, "query": "canary-word"}},
    ).json()["functionResponse"]
    messages = [
        user("Which word did I choose?"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "halo_retrieve_end_user_memory", "arguments": '{"sessionData":{}}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": repr(recalled).replace("'", '"')},
    ]
    receipt = capture(door, {"messages": messages}, response="You chose it last week.").json()
    placeholder = {"content": None, "omitted": "recalled memory"}
    assert raw(door, receipt)["requestRaw"]["messages"] == [
        user("Which word did I choose?"),
        {"role": "assistant", **placeholder},
        {"role": "tool", **placeholder},
    ]
    shown = door.call("which word did I choose")["functionResponse"]["rawEntries"]
    mine = next(entry for entry in shown if entry["id"] == receipt["rawEntryId"])
    assert mine["requestRaw"] == {"messages": [user("Which word did I choose?")]}
    assert (
        repr(door.dump()).count("canary-word is heliotrope") == 3
    )  # the message, its topic's summary, the overall one


def test_a_client_that_left_out_history_is_told_that_we_know(door):
    receipt = capture(door, {"messages": [user("Hi")]}, response="Hello.", truncatedHistory=True).json()
    assert receipt["truncatedHistory"] is True


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2024-02-29T12:00:00+02:00", "2024-02-29T10:00:00.000Z"),
        ("2024-02-29T12:00:00", "2024-02-29T12:00:00.000Z"),
        (1_709_200_800, "2024-02-29T10:00:00.000Z"),
        (1_709_200_800_123, "2024-02-29T10:00:00.123Z"),
        (None, "2027-01-15T08:00:00.000Z"),
    ],
)
def test_when_it_was_said_is_kept_beside_when_it_was_learned(open_door, given, kept):
    door = open_door(clock=lambda: 1_800_000_000_000)
    entry = raw(door, door.capture("Hi", occurredAt=given))
    assert (entry["occurredAt"], entry["recordedAt"]) == (kept, "2027-01-15T08:00:00.000Z")


def test_an_unusable_message_time_is_no_error(door):
    messages = [{"role": "user", "content": "Hi", "timestamp": "next tuesday, perhaps"}]
    assert raw(door, door.capture(messages))["requestRaw"]["messages"] == messages


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("My sister Ada plays the cello.", "cello"),
        ("私は京都に住んでいます。", "京都"),
        ("Ich wohne in Österreich.", "österreich"),
        ("🙂 emoji zebra", "zebra"),
    ],
)
def test_a_capture_is_found_by_the_next_retrieve(door, said, query):
    for n in range(6):
        door.capture(f"Something else entirely, number {n}.", "Fine.")
    receipt = door.capture(said, "I see.")
    assert door.call(query, limit=1)["rawEntries"][0]["id"] == receipt["rawEntryId"]
    assert door.retrieve(query, limit=1)["rawEntries"][0]["id"] == receipt["rawEntryId"]


@pytest.mark.parametrize("session", [{}, {"messages": []}, {"plan": "pro"}, {"messages": [user("   ")]}])
def test_a_capture_of_nothing_is_refused(door, session):
    answer = capture(door, session)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
    assert listed(door) == []


@pytest.mark.parametrize(
    "session", [{}, {"plan": "pro"}, {"messages": []}, {"contents": "Hi"}, {"messages": ["Hi"]}]
)
def test_an_answer_alone_or_a_bare_string_is_an_exchange(door, session):
    assert capture(door, session, response="Hello.").status_code == 201
    assert len(listed(door)) == 1


def test_somebody_who_goes_on_speaking_is_heard_once(door):
    """Without an answer between them, each message sent after those before it is an exchange of its own."""
    said = [{"role": "user", "content": f"My cat Miso is {n} years old."} for n in (1, 2, 3)]
    for end in (1, 2, 3):
        door.capture(said[:end], None)
    entries = listed(door)
    assert [entry["requestRaw"]["messages"] for entry in entries] == [[said[2]], [said[1]], [said[0]]]
    again = door.capture(said, None)
    assert again["duplicate"] is True
