"""What chat programs and messengers export: one function a program. It changes when a program exports in another way.

Source:
    LibreChat, `api/server/utils/import` (its readers and samples of ChatGPT's, Open WebUI's and its own exports); Telegram
    Desktop, `export_output_json.cpp`; DiscordChatExporter; Slack's export of a channel's day; Google Takeout, "My Activity".
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from halo_server.domain import JSON, Instant, Message
from halo_server.errors import InvalidRequest
from halo_server.transcript.messages import author, calls, media, read_message, stated_role
from halo_server.transcript.texts import from_html
from halo_server.transcript.times import stated_time

__all__ = [
    "Conversation",
    "Record",
    "Work",
    "chatgpt",
    "claude",
    "clean_text",
    "conversation",
    "discord",
    "is_slack",
    "is_takeout",
    "letta",
    "librechat",
    "open_webui",
    "slack",
    "takeout",
    "telegram",
]

Record = Mapping[str, JSON]

_MOST_DEPTH = 64
_IDS = ("id", "uuid", "conversation_id", "conversationId", "sessionId", "session_id")
_TITLES = ("title", "name")
_END_USERS = ("endUserKey", "user_id", "userId", "end_user_id")
_PARENTS = ("parent", "parentId", "parentMessageId", "parent_message_uuid")
_MESSAGE_IDS = ("id", "messageId", "uuid")
_CHATGPT_THOUGHTS = ("thoughts", "reasoning_recap")
_CHATGPT_PROFILES = ("user_editable_context", "model_editable_context")
_SERVICE = (
    "GuildMemberJoin", "ChannelPinnedMessage", "RecipientAdd", "RecipientRemove", "Call", "ChannelNameChange",
    "ChannelIconChange", "ThreadCreated", "UserPremiumGuildSubscription",
)  # fmt: skip
_SLACK_SAID = (None, "bot_message", "thread_broadcast", "file_share", "me_message")
_SLACK_LINK = re.compile(r"<([^<>|\s]{1,2000})(?:\|([^<>]{0,1000}))?>")
# What stands before a prompt in the title of an activity, in the language of the account.
_PROMPTED = ("Prompted ", "Said ", "Asked ", "Eingegebener Prompt: ", "Requête envoyée : ", "Petición: ")


class Said(NamedTuple):
    """A message and the stable id of who wrote it."""

    message: Message
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said in one thread, oldest first.

    Attributes:
        authors: For each message the stable id of who wrote it, None where the document states none. Several people may
            speak under the role of the user.
        end_user: Whose conversation it is, where the document states it for the whole.
        facts: What the document knows of the end user without a message that says so.
    """

    messages: tuple[Message, ...] = ()
    authors: tuple[str | None, ...] = ()
    id: str = ""
    title: str = ""
    end_user: str | None = None
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """The reading of one document.

    Attributes:
        zone: Where a time without an offset was written.
        assistants: Names or ids of those in a messenger who are the assistant.
        problems: What could not be read, in words for a person.
    """

    zone: tzinfo = UTC
    assistants: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)

    def records(self, records: Iterable[JSON]) -> Iterator[Record]:
        """Yield the objects among `records`, free of what no database can hold; the others are problems."""
        for number, record in enumerate(records, 1):
            try:
                if isinstance(record, dict):
                    yield clean(record)
                elif record is not None:
                    self.problems.append(f"Message {number} is no message.")
            except InvalidRequest as error:
                self.problems.append(f"Message {number}: {error}")

    def said(
        self,
        role: str,
        text: str,
        at: Instant | None,
        *,
        speaker: str | None = None,
        writer: str | None = None,
        shown: Sequence[JSON] = (),
        called: Sequence[str] = (),
    ) -> Said:
        """Return a message as an application would send it: an export's own fields would cost every retrieval room.

        Args:
            role: Of whom; what an assistant of this work says under the user's name is the assistant's.
            text: The words.
            at: When.
            speaker: The name of who said it.
            writer: The stable id of who said it.
            shown: Placeholders of media.
            called: Names of the functions it calls.
        """
        if role == "user" and not self.assistants.isdisjoint((speaker, writer)):
            role = "assistant"
        words = [{"type": "text", "text": text}] if text else []
        raw: dict[str, JSON] = {"role": role, "content": [*words, *shown] if shown else text}
        if speaker:
            raw["name"] = speaker
        if at is not None:
            stamp = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
            raw["timestamp"] = stamp.replace("+00:00", "Z")
        if called:
            raw["tool_calls"] = [{"type": "function", "function": {"name": name}} for name in called]
        return Said(read_message(raw), writer)

    def read(self, record: Record) -> Said:
        """Return the message in a record that says all of itself."""
        read = read_message(dict(record), zone=self.zone)
        if "omitted" in read.raw:
            return Said(read, author(record))
        return self.said(
            read.role,
            read.text,
            read.occurred_at,
            speaker=read.speaker,
            writer=author(record),
            shown=media(read.raw),
            called=[call.name for call in calls(read.raw)],
        )


def clean(value: JSON, depth: int = 0) -> JSON:
    """Return a record free of lone surrogates and NUL, as a request is.

    Raises:
        InvalidRequest: It is nested too deeply.
    """
    if depth > _MOST_DEPTH:
        raise InvalidRequest("It is nested too deeply.")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [clean(one, depth + 1) for one in value]
    return value


def clean_text(text: str) -> str:
    """Return `text` free of lone surrogates and NUL, which no database can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "")


def conversation(about: Record, said: Iterable[Said], *, facts: Sequence[str] = ()) -> Conversation:
    """Return what was said, with what the record `about` it says."""
    found = list(said)
    account = about.get("account")
    end_user = _stated(about, _END_USERS) or (
        _stated(account, ("uuid",)) if isinstance(account, dict) else ""
    )
    return Conversation(
        tuple(one.message for one in found),
        tuple(one.author for one in found),
        _stated(about, _IDS),
        _stated(about, _TITLES),
        end_user or None,
        tuple(facts),
    )


def _stated(record: Record, keys: tuple[str, ...]) -> str:
    found = next((record[key] for key in keys if isinstance(record.get(key), str | int)), "")
    return clean_text(str(found))


# -- branches ----------------------------------------------------------------------------------------------------


def _parent(record: Record) -> str | None:
    return next((record[key] for key in _PARENTS if isinstance(record.get(key), str)), None)


def _branch(nodes: Mapping[str, JSON], current: JSON) -> list[Record]:
    """Return the messages from the first to the current one: what was tried beside them is not what was said.

    Where none is current, the newest that nobody answered is.
    """
    known = {name: node for name, node in nodes.items() if isinstance(node, dict)}
    if not isinstance(current, str) or current not in known:
        parents = set(map(_parent, known.values()))
        current = next((name for name in reversed(known) if name not in parents), None)
    path: dict[str, Record] = {}
    while isinstance(current, str) and current in known and current not in path:
        path[current] = known[current]
        current = _parent(known[current])
    return list(reversed(path.values()))


def _main_line(listed: list[JSON]) -> list[JSON]:
    """Return a list of messages without those of other branches than the last message's.

    What hangs below no message of that branch stays: its parent was not exported.
    """
    parents = {
        identifier: _parent(record)
        for record in listed
        if isinstance(record, dict)
        for identifier in [
            next((record[key] for key in _MESSAGE_IDS if isinstance(record.get(key), str)), None)
        ]
        if identifier
    }
    if len(parents) != len(listed) or not any(parents.values()):
        return listed
    branch: set[str] = set()
    above: str | None = list(parents)[-1]
    while above is not None and above not in branch:
        branch.add(above)
        above = parents.get(above)
    off: set[str] = set()
    for name, parent in parents.items():
        if name not in branch and (parent in branch or parent in off):
            off.add(name)
    return [record for record, name in zip(listed, parents, strict=True) if name not in off]


def _flat(tree: list[JSON]) -> list[JSON]:
    """Return the messages of nested lists in the order they were written, each before its answers."""
    flat: list[JSON] = []
    waiting = list(reversed(tree))
    while waiting:
        record = waiting.pop()
        if isinstance(record, dict) and isinstance(record.get("children"), list):
            waiting += reversed(record["children"])
            record = {key: value for key, value in record.items() if key != "children"}
        flat.append(record)
    return flat


# -- chat programs -----------------------------------------------------------------------------------------------


def chatgpt(work: Work, record: Record) -> Iterator[Conversation]:
    """ChatGPT: a tree of messages; custom instructions and profile are nodes of it."""
    messages = [node.get("message") for node in _branch(record["mapping"], record.get("current_node"))]
    said = (_chatgpt_message(work, message) for message in work.records(messages))
    yield conversation(record, (one for one in said if one))


def _chatgpt_message(work: Work, message: Record) -> Said | None:
    content, about, who = (_object(message, key) for key in ("content", "metadata", "author"))
    kind, role = content.get("content_type"), stated_role({"role": who.get("role")}) or "user"
    if kind in _CHATGPT_THOUGHTS:
        return None
    if kind in _CHATGPT_PROFILES or about.get("is_user_system_message") is True:
        return Said(read_message({"role": "system"}))
    parts = content.get("parts") if isinstance(content.get("parts"), list) else content
    read = read_message({"role": role, "content": parts, "attachments": about.get("attachments")})
    if about.get("is_visually_hidden_from_conversation") is True or (role == "system" and not _words(parts)):
        return None
    if role == "system":
        return Said(read)
    recipient, at = message.get("recipient"), stated_time(message.get("create_time"), work.zone)
    name = who["name"] if isinstance(who.get("name"), str) else None
    called = [recipient] if role == "assistant" and isinstance(recipient, str) and recipient != "all" else []
    return work.said(
        role, "" if called else read.text, at, speaker=name, shown=media(read.raw), called=called
    )


def _object(record: Record, key: str) -> Record:
    found = record.get(key)
    return found if isinstance(found, dict) else {}


def _words(parts: JSON) -> bool:
    return bool(read_message({"role": "user", "content": parts}).text.strip())


def claude(work: Work, record: Record) -> Iterator[Conversation]:
    """Claude.ai: a list of messages; `text` repeats what `content` says."""
    yield conversation(record, map(work.read, work.records(_main_line(record["chat_messages"]))))


def open_webui(work: Work, record: Record) -> Iterator[Conversation]:
    """Open WebUI: a tree of messages by their ids."""
    history = record["history"]
    nodes = _branch(history["messages"], history.get("currentId"))
    yield conversation(record, map(work.read, work.records(nodes or record.get("messages") or [])))


def librechat(work: Work, record: Record) -> Iterator[Conversation]:
    """LibreChat: a list of messages that name their parents, or a tree of them."""
    listed = record["messagesTree"] if isinstance(record.get("messagesTree"), list) else record["messages"]
    yield conversation(record, map(work.read, work.records(_main_line(_flat(listed)))))


def letta(work: Work, record: Record) -> Iterator[Conversation]:
    """Letta's agent file: messages of agents, and memory blocks; those labelled human are about the end user."""
    blocks = record.get("blocks") if isinstance(record.get("blocks"), list) else []
    for agent in work.records(record["agents"]):
        own = agent.get("block_ids")
        held = agent.get("core_memory") or agent.get("blocks")
        known = [*work.records(blocks or []), *work.records(held if isinstance(held, list) else [])]
        facts = [
            block["value"]
            for block in known
            if block.get("label") == "human"
            and isinstance(block.get("value"), str)
            and not (isinstance(own, list) and "id" in block and block["id"] not in own)
        ]
        messages = agent.get("messages")
        said = map(work.read, work.records(messages if isinstance(messages, list) else []))
        yield conversation(agent, said, facts=facts)


def is_takeout(record: Record) -> bool:
    """Whether it is an activity of Google Takeout."""
    return isinstance(record.get("title"), str) and all(key in record for key in ("header", "time"))


def takeout(work: Work, activities: list[JSON]) -> Iterator[Conversation]:
    """Gemini in Google Takeout: activities, newest first, each a prompt and its answer; no conversations."""
    said: list[tuple[Instant, list[Said]]] = []
    for activity in work.records(activities):
        title, at = str(activity.get("title")), stated_time(activity.get("time"), work.zone)
        pages = activity.get("safeHtmlItem")
        answers = [
            page["html"] for page in work.records(pages if isinstance(pages, list) else []) if _html(page)
        ]
        prefix = next((prefix for prefix in _PROMPTED if title.startswith(prefix)), "")
        if not answers and not prefix:
            continue
        turn = [work.said("user", title.removeprefix(prefix), at)]
        turn += [work.said("assistant", from_html(answer), at) for answer in answers]
        said.append((at or 0, turn))
    said.reverse()
    said.sort(key=lambda one: one[0])
    yield conversation({}, (one for _, turn in said for one in turn))


def _html(page: Record) -> bool:
    return isinstance(page.get("html"), str)


# -- messengers --------------------------------------------------------------------------------------------------


def is_slack(record: Record) -> bool:
    """Whether it is a line of a channel in Slack's export."""
    return (
        record.get("type") == "message"
        and isinstance(record.get("ts"), str)
        and "role" not in record
        and any(key in record for key in ("user", "bot_id", "subtype"))
    )


def slack(work: Work, records: list[JSON]) -> Iterator[Conversation]:
    """Slack: what was written in a channel on a day."""
    said = (record for record in work.records(records) if is_slack(record))
    yield conversation({}, (_slack_message(work, one) for one in said if one.get("subtype") in _SLACK_SAID))


def _slack_message(work: Work, record: Record) -> Said:
    bot = record.get("subtype") == "bot_message" or "bot_id" in record
    profile = _object(record, "user_profile")
    names = (
        *(profile.get(key) for key in ("display_name", "real_name", "name")),
        record.get("username"),
        record.get("user"),
    )
    writer = next((record[key] for key in ("user", "bot_id") if isinstance(record.get(key), str)), None)
    read = read_message({"role": "user", "content": "", "files": record.get("files")})
    return work.said(
        "assistant" if bot else "user",
        _slack_text(record["text"]) if isinstance(record.get("text"), str) else "",
        stated_time(record.get("ts"), work.zone),
        speaker=next((name for name in names if isinstance(name, str) and name), None),
        writer=writer,
        shown=media(read.raw),
    )


def _slack_text(text: str) -> str:
    """Return the words of Slack's markup.

    Source:
        docs.slack.dev, "Formatting message text".
    """
    text = _SLACK_LINK.sub(_slack_link, text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _slack_link(found: re.Match[str]) -> str:
    target, label = found[1], found[2]
    if target[0] in "#@!":
        sign = "@" if target[0] == "!" else target[0]
        return f"{sign}{label}" if label else f"@{target[1:]}" if target[0] == "!" else found[0]
    return f"{label} ({target})" if label and not target.endswith(label) else target.removeprefix("mailto:")


def telegram(work: Work, record: Record) -> Iterator[Conversation]:
    """Telegram Desktop: a chat; its texts are lists where a part of them is marked."""
    said = (one for one in work.records(record["messages"]) if one.get("type") != "service")
    yield conversation(record, (_telegram_message(work, one) for one in said))


def _telegram_message(work: Work, record: Record) -> Said:
    read = read_message({"role": "assistant", "content": record.get("text")})  # its parts stand side by side
    times = (stated_time(record.get(key), work.zone) for key in ("date_unixtime", "date"))
    shown: list[JSON] = []
    kind = record.get("media_type") or (
        "photo" if "photo" in record else "file" if "file" in record else None
    )
    if isinstance(kind, str):
        mime = str(record.get("mime_type") or ("image/" if kind == "photo" else "")).partition("/")[0]
        name = record.get("file_name")
        sort = mime if mime in ("image", "audio", "video") else "file"
        shown = [{"type": sort, "omitted": True, "name": name if isinstance(name, str) else kind}]
    return work.said(
        "user",
        read.text,
        next((time for time in times if time is not None), None),
        speaker=record["from"] if isinstance(record.get("from"), str) else None,
        writer=author(record),
        shown=shown,
    )


def discord(work: Work, record: Record) -> Iterator[Conversation]:
    """DiscordChatExporter: a channel."""
    said = (one for one in work.records(record["messages"]) if one.get("type") not in _SERVICE)
    channel = record["channel"]
    yield conversation(channel, map(work.read, said))
