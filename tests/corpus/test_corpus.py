"""Every shape the public corpus holds is read as its list of expectations says, through the doors each shape comes in by.

What may not be stored is expected to be left out: the words of the system, and what HALO's own functions returned, are in the
corpus' list because an application sends them, and here nowhere.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from halo_server.domain import Message
from halo_server.errors import InvalidRequest
from halo_server.transcript import natural_query, read_document, read_message, read_session
from halo_server.transcript.messages import FUNCTION_PREFIX, calls, media
from tests.api.door import API, FUNCTION, PROJECT, USER, Door
from tests.parts import require

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FILES: list[dict[str, Any]] = (
    json.loads((CORPUS / "EXPECTED.json").read_text(encoding="utf-8"))["files"] if CORPUS.exists() else []
)
HTTP_REFUSES = (
    "133",
    "134",
    "136",
    "137",
    "140",
)  # not JSON, or not what a database can hold, as a key with NUL
HTTP_REFUSES_A_LIST = ("103",)
SDK_ALONE = ("arguments-list",)

Json = dict[str, Any]

pytestmark = pytest.mark.data


def of_use(*uses: str, but: Sequence[str] = ()) -> pytest.MarkDecorator:
    """Parametrize by the files that are passed in one of these ways."""
    files = [file for file in FILES if file["use"] in uses and number(file) not in but]
    return pytest.mark.parametrize("file", files, ids=lambda file: file["file"].rpartition(".")[0])


def number(file: Json) -> str:
    return file["file"][:3]


def content(file: Json) -> bytes:
    return (CORPUS / file["file"]).read_bytes()


def cleaned(text: str) -> str:
    """Return the text as the input rules leave it: no half characters, no NUL."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "")


# -- comparing ---------------------------------------------------------------------------------------------------


def test_the_corpus_is_there() -> None:
    require("The corpus", CORPUS.exists(), "the corpus of message shapes beside the checkout")
    assert len(FILES) == 68
    assert {file["use"] for file in FILES} <= {
        "sessionData", "sessionData-list", "response", "request", "import", *SDK_ALONE,
    }  # fmt: skip


def says_anything(message: Message) -> bool:
    return bool(message.text or media(message.raw) or names(message) or "recalled memory" in str(message.raw))


def names(message: Message) -> list[str]:
    return [call.name for call in calls(message.raw)]


def left_out(expected: list[Json]) -> list[bool]:
    """Return of each expected row whether it is a call of HALO's alone, or what such a call returned."""
    found, called = [], []
    for row in expected:
        if row.get("tool_calls"):
            called = list(row["tool_calls"])
            found.append(not row["text"] and all(name.startswith(FUNCTION_PREFIX) for name in called))
        elif row["role"] == "tool":
            found.append(bool(called) and called.pop(0).startswith(FUNCTION_PREFIX))
        else:
            found.append(False)
    return found


def assert_read(messages: Sequence[Message], expected: list[Json], *, timed: bool = True) -> None:
    """Assert that these are the messages, of which none that was said is missing or too many."""
    read = [message for message in messages if says_anything(message) and message.role != "system"]
    rows = [
        (row, ours) for row, ours in zip(expected, left_out(expected), strict=True) if row["role"] != "system"
    ]
    assert [message.role for message in read] == [row["role"] for row, _ in rows]
    for message, (row, ours) in zip(read, rows, strict=True):
        assert_row(message, row, ours=ours)
        assert not timed or ours or same_time(message.occurred_at, row["ts"]), (message, row)
        assert "speaker" not in row or message.speaker == row["speaker"]
    kept = json.dumps([dict(message.raw) for message in messages], ensure_ascii=False)
    for row, ours in zip(expected, left_out(expected), strict=True):
        if row["text"] if "text" in row and (row["role"] == "system" or ours) else False:
            assert all(line not in kept for line in row["text"].split("\n"))
    assert "hidden" not in kept
    assert "iVBOR" not in kept


def assert_row(message: Message, row: Json, *, ours: bool) -> None:
    if ours:
        assert (message.text, message.spoken) == ("", False)
        assert "recalled memory" in json.dumps(dict(message.raw))
        return
    if "text" in row:
        assert message.text == cleaned(row["text"])
    else:
        assert (len(message.text), sha256(message.text.encode()).hexdigest()) == (
            row["chars"],
            row["text_sha256"],
        )
    assert message.spoken == (bool(message.text.strip()) and row["role"] in ("user", "assistant"))
    assert names(message) == row.get("tool_calls", [])
    shown = media(message.raw)
    assert len(shown) == len(row.get("media", []))
    assert all(map(shows, shown, row.get("media", [])))


def shows(placeholder: Any, label: str) -> bool:
    """Whether a placeholder tells what a label says: a kind, a media type, or a name, "kind:name" for both."""
    kind, _, name = label.rpartition(":")
    said = str(placeholder.get("name", "")).lower()
    told = (placeholder["type"], placeholder.get("mimeType"), "omitted" if placeholder["omitted"] else "")
    return label.partition("/")[0] in told or label in told or kind in told or (bool(name) and name in said)


def same_time(read: int | None, stated: str | None) -> bool:
    """Whether it is the same millisecond; what a file calls local is compared as if that were UTC."""
    if stated is None or read is None:
        return stated is None and read is None
    instant = datetime.fromisoformat(stated.replace(" (local)", "+00:00"))
    return abs(read - instant.timestamp() * 1000) <= 1


# -- sessionData -------------------------------------------------------------------------------------------------


def session_of(file: Json) -> Json:
    found = json.loads(
        content(file), parse_int=lambda digits: int(digits[:20]), parse_constant=lambda _: None
    )
    return {"messages": found} if isinstance(found, list) else found


@of_use("sessionData", but=("136", "160"))
def test_a_session_is_read_as_its_messages_and_its_question(file: Json) -> None:
    transcript = read_session(json.loads(cleaned_json(session_of(file))))

    assert_read(transcript.messages, file["messages"])
    assert natural_query(transcript) == cleaned(file["query"])


def cleaned_json(value: Any) -> str:
    if isinstance(value, dict):
        value = {cleaned(key): json.loads(cleaned_json(one)) for key, one in value.items()}
    elif isinstance(value, list):
        value = [json.loads(cleaned_json(one)) for one in value]
    return json.dumps(cleaned(value) if isinstance(value, str) else value)


@of_use("sessionData")
def test_what_an_application_sends_is_stored_as_it_was_read(file: Json, door: Door) -> None:
    sent = b'{"projectKey": "%b", "endUserKey": "%b", "sessionData": %b}' % (
        PROJECT.encode(), USER.encode(), content(file),
    )  # fmt: skip
    answer = door.send("POST", f"{API}/capture", content=sent)
    if number(file) in (*HTTP_REFUSES, *HTTP_REFUSES_A_LIST):
        assert answer.status_code == 400
        return
    if not any(row["text"].strip() for row in file["messages"] if "text" in row):
        assert answer.status_code == 400
        assert "nothing to capture" in answer.json()["error"]
        return
    assert answer.status_code == 201, answer.text
    stored = door.send("GET", f"{API}/projects/{PROJECT}/raw/{answer.json()['rawEntryId']}?full=true").json()
    raws = [*stored["requestRaw"]["messages"], *([stored["responseRaw"]] if stored["responseRaw"] else [])]
    again = [read_message(raw) for raw in raws]
    if number(file) == "160":
        again = [[message for message in again if message.role == "user"][-1]]
    assert_read(again, file["messages"], timed=False)


@of_use("sessionData", "sessionData-list")
def test_a_question_without_memory_is_answered_with_nothing(file: Json, door: Door) -> None:
    sessions = [content(file)]
    if file["use"] == "sessionData-list":
        sessions = [json.dumps(session).encode() for session in json.loads(content(file))]
    for session in sessions:
        sent = b'{"projectKey": "%b", "endUserKey": "%b", "arguments": {"sessionData": %b}}' % (
            PROJECT.encode(), USER.encode(), session,
        )  # fmt: skip
        answer = door.send("POST", FUNCTION, content=sent)
        if number(file) in (*HTTP_REFUSES, *HTTP_REFUSES_A_LIST):
            assert answer.status_code == 400
        else:
            assert answer.status_code == 200, answer.text
            assert (answer.json()["topics"], answer.json()["rawEntries"]) == ([], [])


@of_use("sessionData-list")
def test_an_odd_container_holds_no_messages_and_no_question(file: Json, door: Door) -> None:
    for session in json.loads(content(file)):
        transcript = read_session(session)
        assert [message for message in transcript.messages if message.text.strip()] == []
        assert natural_query(transcript) == file["query"]
        body = {"projectKey": PROJECT, "endUserKey": USER, "sessionData": session}
        assert door.send("POST", f"{API}/capture", body).status_code == 400


# -- a whole request, an answer ----------------------------------------------------------------------------------


@of_use("request")
def test_a_request_is_captured_and_may_come_back_as_a_document(file: Json, door: Door) -> None:
    body = json.loads(content(file))
    key = door.new_key(body["projectKey"])
    answer = door.send("POST", f"{API}/capture", body, key=key)
    assert answer.status_code == 201, answer.text
    entry = f"{API}/projects/{body['projectKey']}/raw/{answer.json()['rawEntryId']}"
    stored = door.send("GET", entry, key=key).json()
    again = [read_message(raw) for raw in (*stored["requestRaw"]["messages"], stored["responseRaw"])]

    assert_read(again, file["messages"])
    assert_read(said(read_document(content(file)).conversations), file["messages"])


@of_use("response")
def test_an_answer_may_be_the_whole_object_a_provider_gave(file: Json, door: Door) -> None:
    response = json.loads(content(file))

    assert_read([read_message(response)], file["messages"])
    body = {
        "projectKey": PROJECT,
        "endUserKey": USER,
        "sessionData": {"messages": ["Go on."]},
        "response": response,
    }
    answer = door.send("POST", f"{API}/capture", body)
    assert answer.status_code == 201, answer.text
    stored = door.send("GET", f"{API}/projects/{PROJECT}/raw/{answer.json()['rawEntryId']}").json()
    assert_read([read_message(stored["responseRaw"])], file["messages"], timed=False)


# -- documents ---------------------------------------------------------------------------------------------------


def said(conversations: Sequence[Any]) -> list[Message]:
    return [message for conversation in conversations for message in conversation.messages]


def who(conversations: Sequence[Any]) -> Iterator[tuple[Message, str | None]]:
    for conversation in conversations:
        yield from zip(conversation.messages, conversation.authors, strict=True)


@of_use("import", but=("140",))
def test_a_document_is_read_whole(file: Json) -> None:
    conversations = read_document(content(file)).conversations
    spoken = [row for row in file["messages"] if row["role"] != "fact"]

    assert_read(said(conversations), spoken)
    assert [fact for one in conversations for fact in one.facts] == [
        row["text"] for row in file["messages"] if row["role"] == "fact"
    ]
    writers = [
        writer
        for message, writer in who(conversations)
        if says_anything(message) and message.role != "system"
    ]
    for row, writer in zip([row for row in spoken if row["role"] != "system"], writers, strict=True):
        assert "scope" not in row or row["scope"] == writer
    if file["query"]:
        assert (
            natural_query(read_session({"messages": [dict(one.raw) for one in said(conversations)]}))
            == file["query"]
        )


@of_use("import", but=("140",))
def test_what_a_document_was_read_as_is_read_the_same_again(file: Json) -> None:
    for message in said(read_document(content(file)).conversations):
        again = read_message(dict(message.raw))
        assert (again.role, again.text, again.speaker, again.raw) == (
            message.role, message.text, message.speaker, message.raw,
        )  # fmt: skip


@of_use("sessionData", but=("101", "136", "160"))
def test_a_session_in_a_file_is_a_document(file: Json) -> None:
    found = read_document(content(file))
    if number(file) != "150":  # in a document a time without an offset is read as the zone says
        assert_read(said(found.conversations), file["messages"])
    for row, (message, writer) in zip(file["messages"], who(found.conversations), strict=False):
        assert "scope" not in row or (row["scope"], row["text"]) == (writer, message.text)


@pytest.mark.parametrize("file", [file for file in FILES if number(file) in ("136", "140")], ids=number)
def test_what_is_no_text_or_too_deep_is_refused_with_a_reason(file: Json) -> None:
    with pytest.raises(InvalidRequest, match=r"too deeply|byte \d+ is wrong"):
        read_document(content(file))


@pytest.mark.parametrize(
    "file", [file for file in FILES if file["parse"] == "jsonl-with-bad-line"], ids=number
)
def test_a_line_that_is_no_json_is_named_and_costs_no_other(file: Json) -> None:
    assert read_document(content(file)).problems == ("Line 3 is not JSON.",)
