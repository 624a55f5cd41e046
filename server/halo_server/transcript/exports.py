"""Whole documents people bring along: exports of programs, lists and lines of messages, transcripts, chats of messengers.

What kind a document is shows in it. One record that cannot be read never costs the others: it is named among the problems.
It changes when documents come in another form; what one program writes is in `programs`.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from halo_server.domain import JSON, Message
from halo_server.errors import InvalidRequest
from halo_server.transcript import programs
from halo_server.transcript.messages import author, is_notice, read_message
from halo_server.transcript.programs import Conversation, Record, Work, clean_text, conversation
from halo_server.transcript.session import find_messages, one_by_one, read_messages, split_response
from halo_server.transcript.texts import Line, chat_log, turns
from halo_server.transcript.times import stated_time

__all__ = ["Conversation", "Export", "read_document"]

_Reader = Callable[[Work, Record], Iterator[Conversation]]

_MOST_PROBLEMS = 1000
_BYTE_ORDERS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# Telegram Desktop writes control characters so, which is not JSON.
_HEX_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9A-Fa-f]{2})")
_THREADS = (
    "sessionId", "session_id", "conversationId", "conversation_id", "threadId", "thread_id", "channel_id", "channelId",
)  # fmt: skip
_CONVERSATIONS = (
    "mapping", "chat_messages", "chat", "messagesTree", "messages", "conversations", "agents", "sessionData", "requestRaw",
    "history", "chat_history", "contents", "events", "turns",
)  # fmt: skip
_SESSIONS = ("sessionData", "requestRaw", "requestBody")
_ANSWERS = ("response", "responseRaw", "responseBody")
_MANY = ("conversations", "rawEntries", "memories", "results", "history")
_FACTS = ("memory", "fact")
_ASIDE = ("isMeta", "isSidechain", "isCompactSummary")


@dataclass(frozen=True, slots=True)
class Export:
    """The conversations of a document in its order, and what could not be read, in words for a person."""

    conversations: tuple[Conversation, ...]
    problems: tuple[str, ...] = ()


def read_document(content: JSON | bytes, *, zone: tzinfo = UTC, assistants: Collection[str] = ()) -> Export:
    """Return the conversations in a document, whatever program wrote it.

    Args:
        content: The bytes or the text of a file (JSON, JSON lines, a transcript, a messenger's chat), or JSON already parsed.
        zone: Where a time without an offset was written.
        assistants: Names or ids of those in a messenger's export who are the assistant; everybody else there is a user.

    Raises:
        InvalidRequest: It is no text, or no conversation is found in it.
    """
    work = Work(zone, frozenset(assistants))
    if isinstance(content, bytes):
        content = _decoded(content)
    found = _of_text(work, content) if isinstance(content, str) else list(_of_value(work, content))
    conversations = tuple(one for one in found if one.messages or one.facts)
    if not conversations:
        raise InvalidRequest(" ".join(["No conversation was found in the document.", *work.problems[:1]]))
    return Export(conversations, tuple(work.problems[:_MOST_PROBLEMS]))


# -- text --------------------------------------------------------------------------------------------------------


def _decoded(content: bytes) -> str:
    encoding = next((name for mark, name in _BYTE_ORDERS if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"The document is not {encoding.upper()} text: byte {error.start} is wrong."
        ) from None


def _of_text(work: Work, text: str) -> list[Conversation]:
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "[", '"'):
        try:
            return list(_of_value(work, _parsed(text)))
        except json.JSONDecodeError:
            lines = _of_lines(work, text)
            if lines is not None:
                return lines
    return list(_of_written(work, clean_text(text)))


def _parsed(text: str) -> JSON:
    """Return the JSON value in `text`; numbers no database can hold become null.

    Raises:
        JSONDecodeError: It is not JSON.
        InvalidRequest: It is nested too deeply.
    """

    def parse(given: str) -> JSON:
        return json.loads(given, parse_constant=lambda _: None, parse_int=_whole, parse_float=_finite)

    try:
        try:
            return parse(text)
        except json.JSONDecodeError:
            if "\\x" not in text:
                raise
            return parse(_HEX_ESCAPE.sub(r"\1\\u00\2", text))
    except RecursionError:
        raise InvalidRequest("The document is nested too deeply.") from None


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= 20 else None


def _finite(digits: str) -> float | None:
    return float(digits) if math.isfinite(float(digits)) else None


def _of_lines(work: Work, text: str) -> list[Conversation] | None:
    """Return what stands in lines of JSON; None if no line is."""
    values: list[JSON] = []
    wrong: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(_parsed(line))
            except json.JSONDecodeError:
                wrong.append(f"Line {number} is not JSON.")
    if not any(isinstance(value, dict) for value in values):
        return None
    work.problems.extend(wrong)
    return list(_of_list(work, values))


def _of_written(work: Work, text: str) -> Iterator[Conversation]:
    if lines := chat_log(text, work.zone):
        yield conversation({}, (_wrote(work, line) for line in lines))
    elif found := turns(text):
        yield conversation({}, (work.said(role, words, None) for role, words in found))


def _wrote(work: Work, line: Line) -> programs.Said:
    kind, name = line.media or ("", "")
    shown = [{"type": kind, "omitted": True, **({"name": name} if name else {})}] if kind else []
    at = round(line.at.timestamp() * 1000)
    return work.said("user", line.text, at, speaker=line.speaker, shown=shown)


# -- values ------------------------------------------------------------------------------------------------------


def _of_value(work: Work, value: JSON) -> Iterator[Conversation]:
    if isinstance(value, dict):
        yield from _of_record(work, value)
    elif isinstance(value, list):
        yield from _of_list(work, value)
    elif isinstance(value, str):
        yield from _of_written(work, clean_text(value))


def _of_list(work: Work, values: list[JSON]) -> Iterator[Conversation]:
    records = [value for value in values if isinstance(value, dict)]
    if any(map(programs.is_takeout, records)):
        yield from programs.takeout(work, values)
    elif any(map(programs.is_slack, records)):
        yield from programs.slack(work, values)
    elif records and all(_fact(record) for record in records):
        yield from _remembered(records)
    elif any(isinstance(record.get(key), dict | list) for record in records for key in _CONVERSATIONS):
        for number, value in enumerate(values, 1):
            yield from _one_of_many(work, value, number)
    else:
        yield from _listed(work, values, {})


def _one_of_many(work: Work, value: JSON, number: int) -> Iterator[Conversation]:
    try:
        found = list(_of_record(work, value)) if isinstance(value, dict) else []
    except InvalidRequest as error:
        work.problems.append(f"Conversation {number}: {error}")
    else:
        if not found:
            work.problems.append(f"Conversation {number} holds no messages.")
        yield from found


def _of_record(work: Work, record: Record) -> Iterator[Conversation]:
    reader = next((reader for fits, reader in _SHAPES if fits(record)), _session)
    yield from reader(work, record)


def _session(work: Work, record: Record) -> Iterator[Conversation]:
    names, listed = find_messages(record)
    if names:
        yield from _listed(work, listed, record)


def _listed(work: Work, values: Iterable[JSON], about: Record) -> Iterator[Conversation]:
    """Yield the conversations in a list of messages: one, or one for each thread that the messages name."""
    threads: dict[str, list[JSON]] = {}
    for number, value in enumerate(values, 1):
        try:
            raw = _opened(programs.clean(value))
            for one in one_by_one([raw]):
                read_message(one)
        except InvalidRequest as error:
            work.problems.append(f"Message {number}: {error}")
            continue
        if isinstance(raw, dict) and (is_notice(raw) or any(raw.get(key) is True for key in _ASIDE)):
            continue
        threads.setdefault(_thread(raw), []).append(raw)
    for thread, raws in threads.items():
        spread = list(one_by_one(raws))
        messages = read_messages(spread, zone=work.zone)
        authors = (author(raw) if isinstance(raw, dict) else None for raw in spread)
        said = [programs.Said(message, writer) for message, writer in zip(messages, authors, strict=True)]
        found = conversation(about, said)
        yield replace(found, id=thread or found.id)


def _opened(value: JSON) -> JSON:
    """Return the message in a line that a coding agent logs around it."""
    if (
        isinstance(value, dict)
        and value.get("type") == "response_item"
        and isinstance(value.get("payload"), dict)
    ):
        return {"timestamp": value.get("timestamp"), **value["payload"]}
    return value


def _thread(value: JSON) -> str:
    if not isinstance(value, dict):
        return ""
    return next((str(value[key]) for key in _THREADS if isinstance(value.get(key), str | int)), "")


def _fact(record: Record) -> str:
    return next((record[key] for key in _FACTS if isinstance(record.get(key), str)), "")


def _remembered(records: Iterable[Record]) -> Iterator[Conversation]:
    """Yield what another memory knows, a conversation without messages for each end user."""
    known: dict[str | None, list[str]] = {}
    for record in records:
        known.setdefault(author(record), []).append(clean_text(_fact(record)))
    for end_user, facts in known.items():
        yield Conversation(end_user=end_user, facts=tuple(facts))


def _captured(work: Work, record: Record) -> Iterator[Conversation]:
    """Yield what was once captured: the conversation and the answer to it."""
    session = next(record[key] for key in _SESSIONS if isinstance(record.get(key), dict | list))
    found = list(_of_value(work, session if isinstance(session, dict) else {"messages": session}))
    response = next((record[key] for key in _ANSWERS if isinstance(record.get(key), dict | str)), None)
    messages = tuple(message for one in found for message in one.messages)
    if response is not None:
        sent = {"role": "assistant", "content": response} if isinstance(response, str) else response
        messages, answer = split_response(messages, read_message(programs.clean(sent), zone=work.zone))
        messages += (answer,) if answer else ()
    at = stated_time(record.get("occurredAt"), work.zone)
    authors = tuple(writer for one in found for writer in one.authors)
    said = (
        programs.Said(_at(message, at), writer)
        for message, writer in zip(messages, (*authors, None), strict=False)
    )
    yield conversation(record, said)


def _at(message: Message, at: int | None) -> Message:
    return replace(message, occurred_at=at) if message.occurred_at is None else message


def _chats(work: Work, record: Record) -> Iterator[Conversation]:
    for key in ("chats", "left_chats"):
        chats = record.get(key)
        if isinstance(chats, dict) and isinstance(chats.get("list"), list):
            yield from _of_list(work, chats["list"])


def _chat(work: Work, record: Record) -> Iterator[Conversation]:
    about = {key: value for key, value in record.items() if key != "chat"}
    yield from _of_record(
        work, {**about, **record["chat"], **{key: about[key] for key in ("id", "title") if key in about}}
    )


def _many(work: Work, record: Record) -> Iterator[Conversation]:
    for key in _MANY:
        if isinstance(record.get(key), list):
            yield from _of_list(work, record[key])


def _holds(record: Record, key: str, kind: type) -> bool:
    return isinstance(record.get(key), kind)


def _any(record: Record, key: str, *names: str) -> bool:
    listed = record.get(key)
    return isinstance(listed, list) and any(
        isinstance(one, dict) and name in one for one in listed for name in names
    )


_SHAPES: tuple[tuple[Callable[[Record], bool], _Reader], ...] = (
    (lambda record: _holds(record, "mapping", dict), programs.chatgpt),
    (lambda record: _holds(record, "chat_messages", list), programs.claude),
    (lambda record: _holds(record, "chat", dict), _chat),
    (
        lambda record: _holds(record, "history", dict) and _holds(record["history"], "messages", dict),
        programs.open_webui,
    ),
    (
        lambda record: _holds(record, "messagesTree", list) or _any(record, "messages", "parentMessageId"),
        programs.librechat,
    ),
    (lambda record: _holds(record, "agents", list), programs.letta),
    (lambda record: _holds(record, "chats", dict), _chats),
    (lambda record: _any(record, "messages", "text_entities", "from_id", "date_unixtime"), programs.telegram),
    (lambda record: _holds(record, "channel", dict) and _holds(record, "messages", list), programs.discord),
    (
        lambda record: any(_holds(record, key, dict) or _holds(record, key, list) for key in _SESSIONS),
        _captured,
    ),
    (lambda record: any(_any(record, key, *_CONVERSATIONS, *_FACTS) for key in _MANY), _many),
)
