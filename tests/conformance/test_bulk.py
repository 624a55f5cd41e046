"""A conversation captured at once is the conversation captured turn by turn."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Table, select

from halo_server.api.intake import submission
from halo_server.domain import Scope, Submission, Vectors
from halo_server.embedders.hashing import HashingEmbedder
from halo_server.errors import InvalidRequest
from halo_server.store import tables as t
from halo_server.store.store import Store, Transaction
from tests.memory import Memory, assistant, user

ONE, MANY = Scope("p", "one after another"), Scope("p", "at once")

TIME = "2025-04-01T18:20:00Z"
GARDEN = (
    user("The cherry tree in our garden is in blossom.", name="Ann", createdAt=TIME),
    assistant("Cherry blossom seldom lasts two weeks."),
    user("Which cherry tree grows in a small garden?"),
    assistant("The cherry tree called Amanogawa stays narrow."),
)
WORK = (user("My contract with the bank ends in May."), assistant("Shall we look for another contract?"))
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "weather"}}]}

HAYSTACK: tuple[tuple[Any, ...], ...] = (
    GARDEN[:2],
    GARDEN,
    WORK,
    (*GARDEN, CALL, {"role": "tool", "content": "12 °C"}, user("And today?"), assistant("12 °C, no rain.")),
    (*GARDEN[:3], assistant("Ask the nursery.")),  # its last answer given anew
    GARDEN,  # sent again
    (*GARDEN[2:], user("The nursery has none left."), assistant("Try in autumn.")),  # cut at the front
    (user("…"),),
    (user("我的合同五月到期。", createdAt="yesterday"), user("帮我找一份新工作。")),
)


def _taken(memory: Memory, haystack: Sequence[Sequence[Any]]) -> list[Submission]:
    return [
        submission(memory.settings, {"messages": list(messages), "page": page}, None)
        for page, messages in enumerate(haystack)
    ]


class CountingEmbedder(HashingEmbedder):
    """Remembers how much it was asked at once."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(len(texts))
        return super().encode(texts)


def test_what_is_stored_at_once_is_what_is_stored_one_after_another(memory: Memory) -> None:
    taken = _taken(memory, HAYSTACK)
    one = [memory.captures(ONE, each) for each in taken]
    many = memory.captures.many(MANY, taken)
    place = {receipt.exchange_id: at for receipts in (one, many) for at, receipt in enumerate(receipts)}
    plain = [
        [
            (place[r.exchange_id], r.topic_keys, r.index, r.duplicate, r.forgotten, r.sanitized)
            for r in receipts
        ]
        for receipts in (one, many)
    ]
    assert plain[0] == plain[1]
    assert [receipt.duplicate for receipt in many].count(True) == 1
    assert _rows(memory, ONE) == _rows(memory, MANY)
    for alone, together in zip(_vectors(memory, ONE), _vectors(memory, MANY), strict=True):
        np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)


def test_a_haystack_captured_at_once_joins_what_was_there_before(memory: Memory) -> None:
    for scope in (ONE, MANY):
        memory.capture(scope, *WORK)
        memory.capture(scope, *GARDEN[:2])
    taken = _taken(memory, HAYSTACK[1:4])
    for each in taken:
        memory.captures(ONE, each)
    memory.captures.many(MANY, taken)
    assert _rows(memory, ONE) == _rows(memory, MANY)


def test_what_was_captured_at_once_is_found_by_the_next_retrieval(memory: Memory) -> None:
    memory.found(MANY, "cherry tree")
    receipts = memory.captures.many(MANY, _taken(memory, HAYSTACK[:3]))
    assert (
        memory.find(MANY, "When does the contract with the bank end?").exchanges[0].id
        == receipts[2].exchange_id
    )


def test_each_text_is_embedded_once_and_many_at_a_time(store: Store) -> None:
    embedder = CountingEmbedder()
    memory = Memory(store, embedder)
    growing = [[user(f"Note {at}.") for at in range(end)] for end in range(1, 101)]
    memory.captures.many(MANY, _taken(memory, growing))
    assert sum(embedder.asked) == 100
    assert len(embedder.asked) == 2


def test_of_a_haystack_with_one_that_holds_nothing_nothing_is_stored(memory: Memory) -> None:
    with pytest.raises(InvalidRequest, match="nothing to capture"):
        memory.captures.many(MANY, _taken(memory, [GARDEN, ({"role": "tool", "content": "12"},)]))
    assert memory.exchanges(MANY) == []


def test_of_a_haystack_that_cannot_be_written_to_its_end_nothing_is_stored(store: Store) -> None:
    memory = Memory(store, new_id=iter(["exchange", "topic", "another exchange"]).__next__)
    with pytest.raises(StopIteration):
        memory.captures.many(MANY, _taken(memory, [GARDEN, WORK]))
    assert memory.exchanges(MANY) == []


def test_an_empty_haystack_makes_no_end_user(memory: Memory) -> None:
    assert memory.captures.many(MANY, []) == []
    assert memory.store.read(lambda tx: tx.has_scope(MANY)) is False


# -- every row of a scope, its ids replaced by their order -------------------------------------------------------------

_POINTERS = {
    t.messages: {
        "id": "message",
        "parent_id": "message",
        "spoken_parent_id": "message",
        "exchange_seq": "exchange",
    },
    t.exchanges: {"seq": "exchange", "topic_id": "topic", "head_id": "message", "response_id": "message"},
    t.topics: {"row": "topic"},
    t.scopes: {},
}
_FREE = {
    t.messages: {"scope_id"},
    t.exchanges: {"scope_id", "id", "recorded_at"},
    t.topics: {"scope_id", "id", "updated_at", "vector_sum"},
    t.scopes: {"id", "end_user", "created_at"},
}


def _rows(memory: Memory, scope: Scope) -> dict[str, list[dict[str, Any]]]:
    found = memory.store.read(lambda tx: {table: _all(tx, table, scope) for table in _POINTERS})
    order = {
        kind: {row[key]: at for at, row in enumerate(found[table])}
        for table, key, kind in (
            (t.messages, "id", "message"),
            (t.exchanges, "seq", "exchange"),
            (t.topics, "row", "topic"),
        )
    }
    plain: dict[str, list[dict[str, Any]]] = {}
    for table, rows in found.items():
        for row in rows:
            for column, kind in _POINTERS[table].items():
                row[column] = None if row[column] is None else order[kind][row[column]]
            for column in _FREE[table]:
                del row[column]
        plain[table.name] = rows
    names = [exchange.id for exchange in memory.exchanges(scope)]
    for topic in plain["topics"]:
        topic["summary"] = [(text, names.index(source)) for text, source in json.loads(topic["summary"])]
    return plain


def _all(tx: Transaction, table: Table, scope: Scope) -> list[dict[str, Any]]:
    mine = table.c.id if table is t.scopes else table.c.scope_id
    found = select(table).where(mine == scope.id).order_by(*table.primary_key)
    return [dict(row._mapping) for row in tx.connection.execute(found)]


def _vectors(memory: Memory, scope: Scope) -> tuple[Vectors, Vectors]:
    def read(tx: Transaction) -> tuple[Vectors, Vectors]:
        said = [one.vector for one in tx.documents(scope) if one.vector is not None]
        return np.stack(said), np.stack([topic.vector_sum for topic in tx.topics(scope)])

    return memory.store.read(read)
