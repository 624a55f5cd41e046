"""What programs export, in small: which of it was said, by whom and when, and what is left out."""

import json
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from halo_server.errors import InvalidRequest
from halo_server.transcript import Export, read_document
from halo_server.transcript.messages import calls, media

NOON = 1_793_534_400_000  # 2026-11-01T12:00:00Z


def rows(export: Export) -> list[tuple[str, str]]:
    return [(message.role, message.text) for one in export.conversations for message in one.messages]


def node(name: str, parent: str | None, role: str, said: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    """Return a node of ChatGPT's tree."""
    content = said if isinstance(said, dict) else {"content_type": "text", "parts": [said]}
    message = {
        "author": {"role": role},
        "content": content,
        "recipient": "all",
        "create_time": NOON / 1000,
        **more,
    }
    return name, {"message": message, "parent": parent}


def test_of_a_tree_only_the_branch_that_is_shown_was_said() -> None:
    profile = {"content_type": "user_editable_context", "user_profile": "An engineer."}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}
    mapping = dict(
        [
            ("root", {"message": None, "parent": None}),
            node("p", "root", "user", profile),
            node("h", "p", "user", "unseen", metadata={"is_visually_hidden_from_conversation": True}),
            node("q", "h", "user", {"content_type": "multimodal_text", "parts": [image, "What is this?"]}),
            node("t", "q", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "Hm"}]}),
            node("c", "t", "assistant", {"content_type": "code", "text": "look()"}, recipient="browser"),
            node("r", "c", "tool", {"content_type": "execution_output", "text": "a cat"}),
            node("a1", "r", "assistant", "A dog."),
            node("a2", "r", "assistant", "A cat."),
            ("circle", {"message": None, "parent": "circle"}),
        ]
    )
    document = [{"id": "c1", "title": "Pets", "mapping": mapping, "current_node": "a2"}]
    export = read_document(document)
    (found,) = export.conversations

    assert (found.id, found.title) == ("c1", "Pets")
    assert rows(export) == [
        ("system", ""),
        ("user", "What is this?"),
        ("assistant", ""),
        ("tool", "a cat"),
        ("assistant", "A cat."),
    ]
    assert [call.name for call in calls(found.messages[2].raw)] == ["browser"]
    assert [one["type"] for one in media(found.messages[1].raw)] == ["image"]
    assert {message.occurred_at for message in found.messages[1:]} == {NOON}
    assert "engineer" not in repr(export)
    del document[0]["current_node"]
    assert rows(read_document(document))[-1] == ("assistant", "A cat.")


@pytest.mark.parametrize(
    "document",
    [
        {"messages": [
            {"messageId": "1", "parentMessageId": "0", "isCreatedByUser": True, "sender": "User", "text": "Why?"},
            {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "sender": "Bob", "text": "No."},
            {"messageId": "3", "parentMessageId": "2", "isCreatedByUser": True, "sender": "User", "text": "Off."},
            {"messageId": "4", "parentMessageId": "1", "isCreatedByUser": False, "sender": "GPT", "text": "So."},
        ]},
        {"messagesTree": [
            {"messageId": "1", "parentMessageId": "0", "isCreatedByUser": True, "text": "Why?", "children": [
                {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "text": "No.", "children": []},
                {"messageId": "4", "parentMessageId": "1", "isCreatedByUser": False, "text": "So.", "children": []},
            ]},
        ]},
        {"chat": {"history": {"currentId": "4", "messages": {
            "1": {"id": "1", "parentId": None, "role": "user", "content": "Why?"},
            "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "No."},
            "4": {"id": "4", "parentId": "1", "role": "assistant", "content": "<think>Hm</think>\n\nSo."},
        }}}},
        {"chat": {"history": {"messages": {}}, "messages": [
            {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."},
        ]}},
        [{"chat_messages": [
            {"uuid": "1", "sender": "human", "text": "Why?", "content": []},
            {"uuid": "2", "parent_message_uuid": "1", "sender": "assistant", "text": "No."},
            {"uuid": "4", "parent_message_uuid": "1", "sender": "assistant", "text": "So."},
        ]}],
        {"messages": [
            {"messageId": "1", "parentMessageId": "lost", "isCreatedByUser": True, "text": "Why?"},
            {"messageId": "4", "parentMessageId": "also lost", "isCreatedByUser": False, "text": "So."},
        ]},
    ],
    ids=["list with parents", "tree", "open web ui", "open web ui without a tree", "claude", "parents not exported"],
)  # fmt: skip
def test_an_answer_made_anew_replaces_the_one_before(document: Any) -> None:
    assert rows(read_document(document)) == [("user", "Why?"), ("assistant", "So.")]


def test_a_channel_tells_who_wrote_what_and_its_notices_are_nobodys() -> None:
    document = {
        "guild": {"name": "G"},
        "channel": {"id": "9", "name": "garden"},
        "messages": [
            {"id": "1", "type": "GuildMemberJoin", "content": "Joined.", "author": {"id": "7", "name": "mara"}},
            {
                "id": "2", "type": "Default", "timestamp": "2026-11-01T13:00:00+01:00", "content": "Figs!",
                "author": {"id": "7", "name": "mara", "nickname": "Mara", "isBot": False},
                "attachments": [{"fileName": "fig.png", "url": "https://x.example/fig.png"}],
            },
            {"id": "3", "type": "Reply", "content": "Nice.", "author": {"id": "8", "name": "halo", "isBot": True}},
        ],
    }  # fmt: skip
    export = read_document(document)
    (found,) = export.conversations

    assert rows(export) == [("user", "Figs!"), ("assistant", "Nice.")]
    assert (found.id, found.title, found.authors) == ("9", "garden", ("7", "8"))
    assert [message.speaker for message in found.messages] == ["Mara", "halo"]
    assert found.messages[0].raw == {
        "role": "user",
        "content": [{"type": "text", "text": "Figs!"}, {"type": "file", "omitted": True, "name": "fig.png"}],
        "name": "Mara",
        "timestamp": "2026-11-01T12:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a &amp; b &lt;c&gt; &amp;lt;", "a & b <c> &lt;"),
        ("<https://a.example|a page> <https://a.example> <https://a.example|a.example>",
         "a page (https://a.example) https://a.example https://a.example"),
        ("<#C1|general> <@U1> <@U1|mara> <!here> <!subteam^S1|@cooks>", "#general <@U1> @mara @here @@cooks"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
    ],
)  # fmt: skip
def test_markup_of_a_channel_is_read_as_it_is_shown(written: str, read: str) -> None:
    document = [
        {"type": "message", "user": "U2", "ts": "1793534400.000100", "text": written},
        {
            "type": "message",
            "subtype": "channel_topic",
            "user": "U2",
            "ts": "1793534401.0",
            "text": "New topic.",
        },
        {"type": "message", "bot_id": "B1", "username": "halo", "ts": "1793534402.0", "text": None},
    ]
    export = read_document(document)

    assert rows(export) == [("user", read), ("assistant", "")]
    assert export.conversations[0].authors == ("U2", "B1")


def test_a_messenger_does_not_know_the_assistant_but_the_person_who_exports_does() -> None:
    chat = {
        "id": 5,
        "name": "Plans",
        "messages": [
            {"type": "message", "from": "Mara", "from_id": "user1", "date_unixtime": "1793534400", "text": ["a ", {"type": "bold", "text": "b"}]},
            {"type": "message", "from": "Helper", "from_id": "user2", "date": "2026-11-01T13:00:00", "text": "c", "photo": "p.jpg"},
            {"type": "service", "from_id": "user1", "action": "pin_message", "text": "d"},
        ],
    }  # fmt: skip
    export = read_document({"chats": {"list": [chat]}}, zone=ZoneInfo("Europe/Lisbon"), assistants=["user2"])
    (found,) = export.conversations

    assert rows(export) == [("user", "a b"), ("assistant", "c")]
    assert (found.id, found.title, found.authors) == ("5", "Plans", ("user1", "user2"))
    assert [message.occurred_at for message in found.messages] == [NOON, NOON + 3_600_000]
    assert [one["name"] for one in media(found.messages[1].raw)] == ["photo"]


def test_control_characters_written_against_the_rules_of_json_cost_nothing() -> None:
    text = '{"messages": [{"from_id": "user1", "text": "a\\x07b \\\\x41"}]}'
    assert rows(read_document(text)) == [("user", "a\x07b \\x41")]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("13/02/2026, 09:00 - A: x", [13]),
        ("02/13/26, 9:00 PM - A: x", [13]),
        ("[1/2/26, 9:00:00 AM] A: x\n[1/3/26, 9:00:00 AM] A: y", [2, 3]),  # closer together as month and day
        ("01.02.26, 09:00 - A: x\n02.02.26, 09:00 - A: y", [1, 2]),
        ("2026-02-13, 09:00 - A: x", [13]),
        ("05/02/2026, 09:00 - A: x\n04/03/2026, 09:00 - A: y", [5, 4]),  # else they would run backwards
    ],
)
def test_day_and_month_are_told_apart_by_what_they_can_be(text: str, days: list[int]) -> None:
    (found,) = read_document(text).conversations
    assert [int(message.raw["timestamp"][8:10]) for message in found.messages] == days


def test_what_nobody_wrote_in_a_chat_is_left_out() -> None:
    text = (
        "\u200e[13.11.26, 12:00:09 AM] Teo: \u200eIMG-1.jpg (file attached)\nthe fence\n"
        "[13.11.26, 12:01:00 AM] Teo changed the subject\n"
        "[13.11.26, 12:02:00 AM] Teo: You deleted this message\n"
        "[13.11.26, 12:03:00 AM] Ana: \u200evideo omitted\n"
        "[13.11.26, 12:04:00 AM] Ana: see: this \u200e<This message was edited>\r\n"
        "[13.11.26, 12:05:00 AM] Ana: <Medien ausgeschlossen>\n"
    )
    export = read_document(text.encode("utf-16"), zone=ZoneInfo("Asia/Tokyo"), assistants={"Ana"})
    (found,) = export.conversations

    assert rows(export) == [
        ("user", "the fence"),
        ("assistant", ""),
        ("assistant", "see: this"),
        ("assistant", ""),
    ]
    assert [media(message.raw) for message in found.messages] == [
        [{"type": "image", "omitted": True, "name": "IMG-1.jpg"}],
        [{"type": "video", "omitted": True}],
        [],
        [{"type": "file", "omitted": True}],
    ]
    assert found.messages[0].raw["timestamp"] == "2026-11-12T15:00:09.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "User: Hi,\nall\nAssistant: Ho",
        "**User:** Hi,\nall\n\n**Assistant:** Ho",
        "Human： Hi,\nall\nAI： Ho",
        "Q: Hi,\nall\nA: Ho",
        "You said:\nHi,\nall\nChatGPT said:\nHo",
        '"User: Hi,\\nall\\nAssistant: Ho"',
        "\ufeff\nUser: Hi,\r\nall\r\nAssistant: Ho",
    ],
)
def test_a_conversation_may_be_one_text(text: str) -> None:
    assert rows(read_document(text)) == [("user", "Hi,\nall"), ("assistant", "Ho")]


@pytest.mark.parametrize(
    "text",
    ["", "Just a note.", "Note: buy figs\nUser: hi\nAssistant: ho", "Customer: ACME\nOrder: 5", "A: 1", "[]", "{}", "7", "[1, 2]",
     '{"cart": [{"title": "figs"}]}', '{"messages": []}', '[{"title": "Corrupt", "messages": {}}]', "12:00", "<p>User: hi</p>"],
)  # fmt: skip
def test_what_holds_no_conversation_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="No conversation was found"):
        read_document(text)


def test_lines_of_a_coding_agent_are_read_without_what_it_noted_for_itself() -> None:
    def line(kind: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"type": kind, "message": {"role": role, "content": content}, "sessionId": "s1", "timestamp": "2026-11-01T12:00:00Z", **more}  # fmt: skip

    result = [{"type": "tool_result", "tool_use_id": "t", "content": "3 files"}]
    call = [
        {"type": "thinking", "thinking": "Hm"},
        {"type": "tool_use", "id": "t", "name": "Glob", "input": {}},
    ]
    lines = [
        {"type": "summary", "summary": "Files", "leafUuid": "x"},
        line("user", "user", "How many files?"),
        line("user", "user", "Caveat: not mine.", isMeta=True),
        line("assistant", "assistant", call),
        line("user", "user", result),
        line("assistant", "assistant", [{"type": "text", "text": "Three."}]),
        line("user", "user", "Of another.", isSidechain=True),
    ]
    export = read_document("\n".join(map(json.dumps, lines)))

    assert rows(export) == [
        ("user", "How many files?"),
        ("assistant", ""),
        ("tool", "3 files"),
        ("assistant", "Three."),
    ]
    assert [(one.id, one.messages[0].occurred_at) for one in export.conversations] == [("s1", NOON)]
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    codex = [{"type": "session_meta", "payload": {"id": "s"}}, {"timestamp": "2026-11-01T12:00:00Z", "type": "response_item", "payload": said}]  # fmt: skip
    found = read_document("\n".join(map(json.dumps, codex))).conversations[0].messages
    assert [(message.text, message.occurred_at) for message in found if message.spoken] == [("Hi", NOON)]


def test_threads_that_stand_in_one_list_are_conversations_of_their_own() -> None:
    said = [("c1", "a"), ("c2", "b"), ("c1", "c")]
    document = {
        "messages": [{"role": "user", "content": text, "channel_id": channel} for channel, text in said]
    }
    found = read_document(document).conversations

    assert [(one.id, [message.text for message in one.messages]) for one in found] == [
        ("c1", ["a", "c"]),
        ("c2", ["b"]),
    ]


def test_a_record_that_cannot_be_read_is_named_and_costs_no_other() -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    conversations = [
        {"messages": [{"role": "user", "content": "a"}, 7, {"role": "user", "content": deep}, {"role": "user", "content": "b"}]},
        {"title": "Corrupt", "messages": 3},
        {"chat_messages": [{"sender": "human", "text": "c"}, "lost", {"sender": "human", "content": deep}]},
    ]  # fmt: skip
    export = read_document(conversations)

    assert rows(export) == [("user", "a"), ("user", "b"), ("user", "c")]
    assert export.problems == (
        "Message 2: Each message must be an object or a string.",
        "Message 3: It is nested too deeply.",
        "Conversation 2 holds no messages.",
        "Message 2 is no message.",
        "Message 3: It is nested too deeply.",
    )


@pytest.mark.parametrize(
    ("document", "read"),
    [
        ({"sessionData": {"messages": ["Hi"]}, "response": "Ho", "endUserKey": "eu"}, [("user", "Hi"), ("assistant", "Ho")]),
        ({"sessionData": ["Hi"], "response": {"choices": [{"message": {"content": "Ho"}}]}}, [("user", "Hi"), ("assistant", "Ho")]),
        ({"rawEntries": [{"requestRaw": {"messages": ["Hi"]}, "responseRaw": {"role": "assistant", "content": "Ho"}, "occurredAt": "2026-11-01T12:00:00Z"}]},
         [("user", "Hi"), ("assistant", "Ho")]),
        ({"sessionData": {"messages": ["Hi", {"role": "assistant", "content": "Ho"}]}, "response": "Ho"}, [("user", "Hi"), ("assistant", "Ho")]),
        ({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}, [("user", "Hi"), ("assistant", "Ho")]),
        ([{"prompt": "Hi", "response": "Ho"}], [("user", "Hi"), ("assistant", "Ho")]),
        ([["Hi", "Ho"]], [("user", "Hi"), ("assistant", "Ho")]),
        ({"version": 4, "history": [{"messages": [{"role": "user", "content": "Hi"}]}, {"messages": ["Ho"]}]},
         [("user", "Hi"), ("user", "Ho")]),
        ({"messages": [{"role": "assistant", "content": "Ho", "output": [{"type": "reasoning", "content": [{"text": "hm"}]}]}]}, [("assistant", "Ho")]),
        ({"chat_history": [["Hi", "Ho"]], "input": "And?"}, [("user", "Hi"), ("assistant", "Ho"), ("user", "And?")]),
        ({"history": "Human: Hi\nAI: Ho", "input": "And?"}, [("user", "Hi"), ("assistant", "Ho"), ("user", "And?")]),
    ],
)  # fmt: skip
def test_a_conversation_is_found_wherever_it_is_kept(document: Any, read: Sequence[tuple[str, str]]) -> None:
    export = read_document(document)

    assert rows(export) == read
    assert all(len(one.authors) == len(one.messages) for one in export.conversations)


def test_an_entry_of_memory_keeps_its_time_and_whose_it_is() -> None:
    entry = {
        "requestRaw": {"messages": ["Hi"]},
        "responseRaw": None,
        "occurredAt": "2026-11-01T12:00:00Z",
        "endUserKey": "eu",
    }
    (found,) = read_document(entry).conversations

    assert (found.end_user, [message.occurred_at for message in found.messages]) == ("eu", [NOON])


def test_what_another_memory_knows_are_facts_of_its_end_users() -> None:
    memories = [
        {"id": "1", "memory": "Likes figs.", "user_id": "u1"},
        {"memory": "Has a dog.", "user_id": "u2"},
    ]
    known = [(one.end_user, one.facts) for one in read_document({"results": memories}).conversations]
    assert known == [("u1", ("Likes figs.",)), ("u2", ("Has a dog.",))]
    blocks = [{"id": "b1", "label": "human", "value": "Name: Ada"}, {"id": "b2", "label": "persona", "value": "Kind."},
              {"id": "b3", "label": "human", "value": "Another's"}]  # fmt: skip
    agent = {"name": "helper", "block_ids": ["b1", "b2"], "messages": []}
    (found,) = read_document({"agents": [agent], "blocks": blocks}).conversations
    assert (found.messages, found.facts) == ((), ("Name: Ada",))


def test_activities_are_put_in_the_order_they_were_done() -> None:
    def activity(title: str, at: str, *answers: str) -> dict[str, Any]:
        html = {"safeHtmlItem": [{"html": answer} for answer in answers]} if answers else {}
        return {"header": "Gemini Apps", "title": title, "time": at, **html}

    document = [
        activity("Prompted Why?", "2026-11-01T12:00:01Z", "<p>So &amp;<br>so.</p><ul><li>a < b</li></ul>"),
        activity("Used a feature", "2026-11-01T12:00:00.5Z"),
        activity("Prompted Hi", "2026-11-01T12:00:00Z"),
    ]
    assert rows(read_document(document)) == [
        ("user", "Hi"),
        ("user", "Why?"),
        ("assistant", "So &\nso.\na < b"),
    ]


def test_numbers_no_database_holds_cost_nothing() -> None:
    text = '{"messages": [{"role": "user", "content": "a", "n": %s, "f": 1e400, "x": NaN}]}' % ("7" * 5000)
    (found,) = read_document(text).conversations
    assert found.messages[0].raw == {"role": "user", "content": "a", "n": None, "f": None, "x": None}


def test_halos_own_words_in_an_export_are_not_new_memory() -> None:
    document = [{"chat_messages": [
        {"sender": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "halo_retrieve_end_user_memory", "input": {}}]},
        {"sender": "human", "content": [{"type": "tool_result", "name": "halo_retrieve_end_user_memory", "content": "recalled words"}]},
        {"sender": "human", "text": "Thanks."},
    ]}]  # fmt: skip
    export = read_document(document)

    assert rows(export) == [("assistant", ""), ("tool", ""), ("user", "Thanks.")]
    assert "recalled words" not in repr(export)
