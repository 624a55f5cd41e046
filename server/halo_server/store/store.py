"""All that may be asked of storage. The store is the truth; everything else can be rebuilt from it.

`Store.read` and `Store.write` hand a `Transaction` to the work they are given: reading sees one moment of the database,
writing is durable when it returns. Every method about memory takes `Scope` first and names it in its query. Rows do not
leave this file; domain values do.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import orjson
from sqlalchemy import (
    Connection,
    Engine,
    Integer,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from halo_server.domain import (
    JSON,
    Added,
    Change,
    Counts,
    Document,
    Exchange,
    Grant,
    Instant,
    Project,
    Scope,
    Sentence,
    Topic,
    Traits,
)
from halo_server.errors import StorageFull, Unavailable
from halo_server.store import tables as t
from halo_server.store.writer import DirectWriter, GroupWriter, LostTransactionError, Writer, lock_scope
from halo_server.threads import Place

__all__ = ["NewExchange", "Store", "Transaction"]

T = TypeVar("T")

_MANY = 500  # bound values in one statement; SQLite's oldest limit is 999


@dataclass(frozen=True, slots=True)
class NewExchange:
    """An exchange about to be written; its messages hang below `parent`."""

    id: str
    parent: Place | None
    added: Sequence[Added]
    has_response: bool
    sent: int
    state: Mapping[str, JSON]
    fingerprint: bytes
    topic_row: int
    occurred_at: Instant
    recorded_at: Instant


@dataclass(slots=True)
class Store:
    """A memory's database.

    Args:
        engine: From `engine.open_sqlite` or `engine.open_postgres`, with the schema of this version.
        embedder: Id of the embedder whose vectors are read and written.
    """

    engine: Engine
    embedder: str
    _writer: Writer = field(init=False)

    def __post_init__(self) -> None:
        grouped = self.engine.dialect.name == "sqlite"
        self._writer = GroupWriter(self.engine) if grouped else DirectWriter(self.engine)

    def read(self, work: Callable[["Transaction"], T]) -> T:
        """Return what `work` returns; all it reads belongs to one moment.

        Raises:
            Unavailable: The database did not answer.
        """
        try:
            with self.engine.connect() as connection:
                if connection.dialect.name == "postgresql":
                    connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    return work(Transaction(connection, self.embedder))
        except SQLAlchemyError as error:
            raise _translated(error) from error

    def write(self, work: Callable[["Transaction"], T]) -> T:
        """Return what `work` returns, once its writes are durable.

        `work` must have no other effect: the transaction may be undone and the work asked for again.

        Raises:
            StorageFull: No space is left; nothing was written.
            Unavailable: The database did not answer; whether the write happened is unknown.
        """
        try:
            return self._writer.run(lambda connection: work(Transaction(connection, self.embedder)))
        except (SQLAlchemyError, LostTransactionError) as error:
            raise _translated(error) from error

    def secret(self, name: str) -> bytes:
        """Return 32 random bytes that stay the same for the life of this database."""
        return self.write(lambda tx: tx.secret(name))

    def close(self) -> None:
        """Let go of every connection."""
        self._writer.close()
        self.engine.dispose()


@dataclass(frozen=True, slots=True)
class Transaction:
    """Queries inside one transaction."""

    connection: Connection
    embedder: str

    def first_embedder(self) -> str:
        """Return the id of the embedder this database was first written with: this one, if it is new."""
        self._insert_once(t.meta, {"key": "embedder", "value": self.embedder.encode()})
        return bytes(
            self.connection.scalars(select(t.meta.c.value).where(t.meta.c.key == "embedder")).one()
        ).decode()

    # -- meta, projects, keys ------------------------------------------------------------------------------------

    def secret(self, name: str) -> bytes:
        """Return the stored random value of that name, made at first use."""
        self._insert_once(t.meta, {"key": name, "value": secrets.token_bytes(32)})
        return bytes(self.connection.scalars(select(t.meta.c.value).where(t.meta.c.key == name)).one())

    def ping(self) -> None:
        """Do the least that shows the database answers."""
        self.connection.execute(select(literal(1)))

    def add_project(self, key: str, now: Instant) -> bool:
        """Make the project; return whether it is new."""
        return self._insert_once(t.projects, {"key": key, "created_at": now})

    def project(self, key: str) -> Project | None:
        """Return the project of that key, or None."""
        row = self.connection.execute(select(t.projects).where(t.projects.c.key == key)).one_or_none()
        return Project(row.key, row.created_at) if row else None

    def projects(self, *, after: str = "", limit: int = 100) -> list[Project]:
        """Return projects in order of their keys, those after `after`."""
        found = select(t.projects).where(t.projects.c.key > after).order_by(t.projects.c.key).limit(limit)
        return [Project(row.key, row.created_at) for row in self.connection.execute(found)]

    def count_project(self, key: str) -> Counts:
        """Return how much the project holds."""
        return self._count(select(t.scopes.c.id).where(t.scopes.c.project == key))

    def add_key(self, grant: Grant, digest: bytes) -> None:
        """Keep a key by its digest."""
        row = {
            "id": grant.key_id,
            "digest": digest,
            "project": grant.project,
            "end_user": grant.end_user,
            "admin": grant.admin,
            "label": grant.label,
            "created_at": grant.created_at,
            "expires_at": grant.expires_at,
        }
        self.connection.execute(insert(t.api_keys).values(row))

    def grant(self, digest: bytes) -> Grant | None:
        """Return what the key of that digest allows, or allowed, or None."""
        row = self.connection.execute(_GRANT, {"digest": digest}).one_or_none()
        return _grant(row) if row else None

    def grants(self) -> list[Grant]:
        """Return every key's grant, oldest first."""
        ordered = select(t.api_keys).order_by(t.api_keys.c.created_at, t.api_keys.c.id)
        return [_grant(row) for row in self.connection.execute(ordered)]

    def revoke_key(self, key_id: str, now: Instant) -> bool:
        """Make the key useless from now on; return whether it was of use."""
        live = and_(t.api_keys.c.id == key_id, t.api_keys.c.revoked_at.is_(None))
        return bool(self.connection.execute(update(t.api_keys).where(live).values(revoked_at=now)).rowcount)

    # -- threads -------------------------------------------------------------------------------------------------

    def deepest(self, scope: Scope, paths: Sequence[bytes]) -> Place | None:
        """Return the newest message at the deepest of `paths` that is stored, or None.

        `paths` run from the start of a conversation to its end, so the deepest known one is where the new part begins.
        """
        for part in _chunks(list(reversed(paths))):
            here = and_(t.messages.c.scope_id == scope.id, t.messages.c.path.in_(part))
            order = (t.messages.c.depth.desc(), t.messages.c.id.desc())
            row = self.connection.execute(select(*_PLACE).where(here).order_by(*order).limit(1)).one_or_none()
            if row:
                return _place(row)
        return None

    def place(self, scope: Scope, message_id: int) -> Place:
        """Return the place of a stored message."""
        here = and_(t.messages.c.scope_id == scope.id, t.messages.c.id == message_id)
        return _place(self.connection.execute(select(*_PLACE).where(here)).one())

    def alike(self, scope: Scope, digests: Iterable[bytes]) -> list[Place]:
        """Return the stored messages with one of these digests, newest first."""
        found: list[Place] = []
        for part in _chunks(list(dict.fromkeys(digests))):
            here = and_(t.messages.c.scope_id == scope.id, t.messages.c.digest.in_(part))
            found += map(_place, self.connection.execute(select(*_PLACE).where(here)))
        return sorted(found, key=lambda place: -place.id)

    # -- exchanges -----------------------------------------------------------------------------------------------

    def open_scope(self, scope: Scope, now: Instant) -> None:
        """Make the scope if it is new, and wait for its other writers."""
        lock_scope(self.connection, scope.id)
        row = {
            "id": scope.id,
            "project": scope.project,
            "end_user": scope.end_user,
            "summary": "",
            "created_at": now,
        }
        self._insert_once(t.scopes, row)

    def lock(self, scope: Scope) -> None:
        """Wait for the scope's other writers and keep them waiting until this transaction ends.

        What decides by what it reads takes this before it reads.
        """
        lock_scope(self.connection, scope.id)

    def has_scope(self, scope: Scope) -> bool:
        """Return whether anything was ever captured for this end user and not erased since."""
        return (
            self.connection.execute(select(t.scopes.c.id).where(t.scopes.c.id == scope.id)).first()
            is not None
        )

    def replay(self, scope: Scope, key: str) -> tuple[bytes, str] | None:
        """Return fingerprint and exchange id of the capture made with this idempotency key, or None."""
        here = and_(t.idempotency.c.scope_id == scope.id, t.idempotency.c.key == key)
        kept = select(t.idempotency.c.fingerprint, t.idempotency.c.exchange_id).where(here)
        row = self.connection.execute(kept).one_or_none()
        return (bytes(row.fingerprint), row.exchange_id) if row else None

    def remember_key(
        self, scope: Scope, key: str, fingerprint: bytes, exchange_id: str, now: Instant
    ) -> None:
        """Bind the idempotency key to the exchange."""
        row = {"scope_id": scope.id, "key": key, "fingerprint": fingerprint}
        self.connection.execute(insert(t.idempotency).values(**row, exchange_id=exchange_id, created_at=now))

    def newest(self, scope: Scope) -> tuple[str, bytes, Instant] | None:
        """Return id, fingerprint and time of the scope's newest exchange, or None."""
        columns = (t.exchanges.c.id, t.exchanges.c.fingerprint, t.exchanges.c.recorded_at)
        order = t.exchanges.c.seq.desc()
        found = select(*columns).where(t.exchanges.c.scope_id == scope.id).order_by(order).limit(1)
        row = self.connection.execute(found).one_or_none()
        return (row.id, bytes(row.fingerprint), row.recorded_at) if row else None

    def ending_at(self, scope: Scope, place: Place) -> str | None:
        """Return the id of the newest exchange that ends with all that was said up to `place`, or None."""
        joined = t.exchanges.join(t.messages, t.messages.c.id == t.exchanges.c.head_id)
        here = and_(t.messages.c.scope_id == scope.id, t.messages.c.path == place.path)
        newest = select(t.exchanges.c.id).select_from(joined).where(here).order_by(t.exchanges.c.seq.desc())
        return self.connection.scalars(newest.limit(1)).first()

    def topic_key_of(self, scope: Scope, exchange_id: str) -> str | None:
        """Return the key of the exchange's topic, or None when it has none."""
        joined = t.exchanges.join(t.topics, t.topics.c.row == t.exchanges.c.topic_id)
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.id == exchange_id)
        return self.connection.scalars(select(t.topics.c.key).select_from(joined).where(here)).first()

    def add_exchange(self, scope: Scope, new: NewExchange) -> int:
        """Write the exchange, its messages and its line in the change log; return its sequence number."""
        row = {
            "id": new.id,
            "scope_id": scope.id,
            "topic_id": new.topic_row,
            "sent": new.sent,
            "state": _dump(new.state),
            "fingerprint": new.fingerprint,
            "occurred_at": new.occurred_at,
            "recorded_at": new.recorded_at,
        }
        seq: int = self.connection.scalars(_ADD_EXCHANGE, row).one()
        last = new.parent
        for added in new.added:
            last = self._add_message(scope, seq, last, added)
        ends = {
            "head_id": last.id if last else None,
            "response_id": last.id if last and new.has_response else None,
        }
        self.connection.execute(update(t.exchanges).where(t.exchanges.c.seq == seq).values(ends))
        self._log(scope, "exchange", seq)
        return seq

    def _add_message(self, scope: Scope, seq: int, parent: Place | None, added: Added) -> Place:
        message = added.message
        row = {
            "scope_id": scope.id,
            "parent_id": parent.id if parent else None,
            "spoken_parent_id": parent.spoken_id if parent else None,
            "exchange_seq": seq,
            "digest": added.digest,
            "path": added.path,
            "depth": (parent.depth if parent else 0) + message.spoken,
            "spoken": message.spoken,
            "role": message.role,
            "raw": _dump(message.raw),
            "speaker": message.speaker,
            "occurred_at": message.occurred_at,
            "terms": added.terms.astype("<u4").tobytes() if message.spoken else None,
            **asdict(added.traits),
        }
        stored = self.connection.execute(_ADD_MESSAGE, row).one()
        if added.vector is not None:
            vector = {"message_id": stored.id, "embedder": self.embedder, "data": _pack(added.vector)}
            self.connection.execute(_ADD_VECTOR, vector)
        return _place(stored)

    def exchanges(self, scope: Scope, seqs: Sequence[int]) -> list[Exchange]:
        """Return those of the exchanges that exist, in the order asked for."""
        found: dict[int, Exchange] = {}
        for part in _chunks(seqs):
            rows = self.connection.execute(_EXCHANGES, {"scope_id": scope.id, "seqs": part})
            found |= {exchange.seq: exchange for exchange in self._with_messages(rows.all())}
        return [found[seq] for seq in seqs if seq in found]

    def exchange(self, scope: Scope, exchange_id: str, *, include_disabled: bool = True) -> Exchange | None:
        """Return the exchange of that id, or None."""
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.id == exchange_id)
        asked = _SUMMARY.where(here)
        return next(iter(self._load(asked if include_disabled else asked.where(_SHOWN))), None)

    def latest(
        self,
        scope: Scope,
        *,
        before: int | None = None,
        limit: int,
        topic_keys: Sequence[str] | None = None,
        include_disabled: bool = False,
    ) -> list[Exchange]:
        """Return exchanges newest first, those before sequence number `before`; only of these topics if given."""
        asked = _SUMMARY.where(t.exchanges.c.scope_id == scope.id)
        if before is not None:
            asked = asked.where(t.exchanges.c.seq < before)
        if topic_keys is not None:
            asked = asked.where(_of_keys(scope, topic_keys))
        if not include_disabled:
            asked = asked.where(_SHOWN)
        return self._load(asked.order_by(t.exchanges.c.seq.desc()).limit(limit))

    def scope_of(self, project: str, exchange_id: str) -> Scope | None:
        """Return the scope of an exchange of this project, or None."""
        joined = t.exchanges.join(t.scopes, t.scopes.c.id == t.exchanges.c.scope_id)
        here = and_(t.scopes.c.project == project, t.exchanges.c.id == exchange_id)
        found = self.connection.scalars(select(t.scopes.c.end_user).select_from(joined).where(here)).first()
        return None if found is None else Scope(project, found)

    def scope_of_topic(self, project: str, topic_id: str) -> tuple[Scope, str] | None:
        """Return the scope of a topic of this project and the topic's key, or None."""
        joined = t.topics.join(t.scopes, t.scopes.c.id == t.topics.c.scope_id)
        here = and_(t.scopes.c.project == project, t.topics.c.id == topic_id)
        row = self.connection.execute(
            select(t.scopes.c.end_user, t.topics.c.key).select_from(joined).where(here)
        ).first()
        return (Scope(project, row.end_user), row.key) if row else None

    def sent_messages(
        self, scope: Scope, exchange_id: str, *, include_disabled: bool = False
    ) -> list[Mapping[str, JSON]] | None:
        """Return the request's messages as they were sent, earlier ones of the thread included; None if unknown.

        A message that was erased shows its role and `"erased": true` in its place, one of a disabled topic `"hidden": true`.
        """
        joined = t.exchanges.join(t.messages, t.messages.c.id == t.exchanges.c.head_id)
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.id == exchange_id)
        columns = (t.exchanges.c.head_id, t.exchanges.c.response_id, t.exchanges.c.sent, t.messages.c.depth)
        row = self.connection.execute(select(*columns).select_from(joined).where(here)).one_or_none()
        if row is None:
            return None
        answered = row.response_id is not None
        chain = self._chain(row.head_id, row.depth - row.sent - answered)
        return [
            _raw(message) if include_disabled or message.shown else _hidden(message)
            for message in chain[: len(chain) - answered]
        ]

    def _chain(self, head_id: int, floor: int) -> list[Row[Any]]:
        """Return the messages up to `head_id` that are deeper than `floor`, oldest first; from 0 on the whole thread."""
        columns = (t.messages.c.id, t.messages.c.parent_id)
        start = select(*columns, literal(1).label("n")).where(t.messages.c.id == head_id)
        walk = start.cte("walk", recursive=True)
        up = select(*columns, (walk.c.n + 1).label("n")).where(t.messages.c.id == walk.c.parent_id)
        walk = walk.union_all(up.where(t.messages.c.depth > floor) if floor > 0 else up)
        joined = (
            t.messages.join(walk, walk.c.id == t.messages.c.id)
            .outerjoin(t.exchanges, t.exchanges.c.seq == t.messages.c.exchange_seq)
            .outerjoin(t.topics, t.topics.c.row == t.exchanges.c.topic_id)
        )
        shown = (t.messages.c.role, t.messages.c.raw, _SHOWN.label("shown"))
        return list(self.connection.execute(select(*shown).select_from(joined).order_by(walk.c.n.desc())))

    def _load(self, asked: Select[Any]) -> list[Exchange]:
        return self._with_messages(self.connection.execute(asked).all())

    def _with_messages(self, rows: Sequence[Any]) -> list[Exchange]:
        said: dict[int, list[Any]] = {}
        for part in _chunks([row.seq for row in rows]):
            for message in self.connection.execute(_SAID, {"seqs": part}):
                said.setdefault(message.exchange_seq, []).append(message)
        return [_exchange(row, said.get(row.seq, [])) for row in rows]

    # -- topics --------------------------------------------------------------------------------------------------

    def topics(self, scope: Scope, keys: Iterable[str] | None = None) -> list[Topic]:
        """Return the scope's topics, oldest first; only those of `keys`, present or former, if given."""
        asked = select(t.topics).where(t.topics.c.scope_id == scope.id).order_by(t.topics.c.row)
        if keys is not None:
            asked = asked.where(_of_keys(scope, list(keys)))
        return [self._topic(row) for row in self.connection.execute(asked)]

    def _topic(self, row: Row[Any]) -> Topic:
        own = row.embedder == self.embedder
        return Topic(
            id=row.id,
            key=row.key,
            label=row.label,
            aliases=tuple(orjson.loads(row.aliases)),
            summary=tuple(Sentence(*pair) for pair in orjson.loads(row.summary)),
            enabled=bool(row.enabled),
            exchanges=row.exchanges,
            vector_sum=_unpack(row.vector_sum) if own else np.zeros(0, dtype=np.float32),
            terms=orjson.loads(row.terms),
            updated_at=row.updated_at,
            row=row.row,
            pinned=frozenset(orjson.loads(row.pinned)),
            former_labels=tuple(orjson.loads(row.former_labels)),
        )

    def topic_page(
        self, scope: Scope, *, after: int = 0, limit: int, include_disabled: bool = False
    ) -> list[Topic]:
        """Return topics oldest first, those whose row is after `after`."""
        here = and_(t.topics.c.scope_id == scope.id, t.topics.c.row > after)
        asked = select(t.topics).where(here).order_by(t.topics.c.row).limit(limit)
        if not include_disabled:
            asked = asked.where(t.topics.c.enabled)
        return [self._topic(row) for row in self.connection.execute(asked)]

    def topics_by_row(self, scope: Scope, rows: Sequence[int]) -> list[Topic]:
        """Return those of the topics that exist."""
        found: list[Topic] = []
        for part in _chunks(rows):
            found += map(self._topic, self.connection.execute(_TOPICS, {"scope_id": scope.id, "rows": part}))
        return found

    def topic_vectors(self, scope: Scope) -> tuple[list[int], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Return rows, vector sums, shape (n, dim), and sizes of the scope's topics with vectors of this embedder."""
        columns = (t.topics.c.row, t.topics.c.vector_sum, t.topics.c.exchanges)
        mine = and_(t.topics.c.scope_id == scope.id, t.topics.c.embedder == self.embedder)
        asked = select(*columns).where(mine).order_by(t.topics.c.row)
        found = self.connection.execute(asked).all()
        packed = np.frombuffer(b"".join(row.vector_sum for row in found), dtype="<f4").astype(np.float32)
        sizes = np.array([row.exchanges for row in found], dtype=np.int64)
        return [row.row for row in found], packed.reshape(len(found), -1 if found else 0), sizes

    def topic_at(self, scope: Scope, place: Place) -> int | None:
        """Return the row of the topic of the exchange that added the message, or None when it is gone."""
        joined = t.messages.join(t.exchanges, t.exchanges.c.seq == t.messages.c.exchange_seq)
        here = and_(t.exchanges.c.scope_id == scope.id, t.messages.c.id == place.id)
        return self.connection.scalars(select(t.exchanges.c.topic_id).select_from(joined).where(here)).first()

    def topic_keys(self, scope: Scope) -> list[str]:
        """Return the keys of all topics of the scope, former ones too."""
        present = select(t.topics.c.key).where(t.topics.c.scope_id == scope.id)
        former = select(t.former_keys.c.key).where(t.former_keys.c.scope_id == scope.id)
        return list(self.connection.scalars(present.union_all(former)))

    def former_keys(self, scope: Scope, topic_row: int) -> list[str]:
        """Return the keys of the topics that were merged into this one."""
        here = and_(t.former_keys.c.scope_id == scope.id, t.former_keys.c.topic_row == topic_row)
        return list(self.connection.scalars(select(t.former_keys.c.key).where(here)))

    def succeed(self, scope: Scope, topic: Topic, by: Topic) -> None:
        """Let the key of `topic`, which is about to go, and all that led to it lead to `by`."""
        here = and_(t.former_keys.c.scope_id == scope.id, t.former_keys.c.topic_row == topic.row)
        self.connection.execute(update(t.former_keys).where(here).values(topic_row=by.row))
        row = {"scope_id": scope.id, "key": topic.key, "topic_row": by.row}
        self.connection.execute(insert(t.former_keys).values(row))

    def erase_former_keys(self, scope: Scope, keys: Sequence[str]) -> None:
        """Let these former keys lead nowhere."""
        for part in _chunks(keys):
            here = and_(t.former_keys.c.scope_id == scope.id, t.former_keys.c.key.in_(part))
            self.connection.execute(delete(t.former_keys).where(here))

    def largest_topics(self, scope: Scope, limit: int) -> list[Topic]:
        """Return the enabled topics with most exchanges, then the newest."""
        here = and_(t.topics.c.scope_id == scope.id, t.topics.c.enabled)
        order = (t.topics.c.exchanges.desc(), t.topics.c.updated_at.desc())
        asked = select(t.topics).where(here).order_by(*order).limit(limit)
        return [self._topic(row) for row in self.connection.execute(asked)]

    def put_topic(self, scope: Scope, topic: Topic) -> int:
        """Write the topic, new (`row` 0) or changed; return its row.

        A vector sum that is empty, since another embedder's, stays as it is.
        """
        own = bool(topic.vector_sum.size)
        row = {
            "id": topic.id,
            "scope_id": scope.id,
            "key": topic.key,
            "label": topic.label,
            "aliases": _dump(topic.aliases),
            "summary": _dump([[sentence.text, sentence.exchange_id] for sentence in topic.summary]),
            "terms": _dump(topic.terms),
            "enabled": topic.enabled,
            "exchanges": topic.exchanges,
            "embedder": self.embedder if own else "",
            "vector_sum": _pack(topic.vector_sum),
            "updated_at": topic.updated_at,
            "pinned": _dump(sorted(topic.pinned)),
            "former_labels": _dump(topic.former_labels),
        }
        number = topic.row
        if number:
            row = row if own else {k: v for k, v in row.items() if k not in ("embedder", "vector_sum")}
            self.connection.execute(
                update(t.topics).where(t.topics.c.scope_id == scope.id, t.topics.c.row == number).values(row)
            )
        else:
            number = self.connection.scalars(_ADD_TOPIC, row).one()
        self._log(scope, "topic", number)
        return number

    def exchanges_of_topic(self, scope: Scope, topic_row: int) -> list[str]:
        """Return the ids of a topic's exchanges, oldest first."""
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.topic_id == topic_row)
        return list(self.connection.scalars(select(t.exchanges.c.id).where(here).order_by(t.exchanges.c.seq)))

    def summary(self, scope: Scope) -> str:
        """Return the scope's overall summary; "" for an unknown scope."""
        return self.connection.scalars(_OVERALL, {"scope_id": scope.id}).first() or ""

    def put_summary(self, scope: Scope, summary: str) -> None:
        """Replace the scope's overall summary."""
        self.connection.execute(update(t.scopes).where(t.scopes.c.id == scope.id).values(summary=summary))

    # -- the index's view ----------------------------------------------------------------------------------------

    def position(self, scope: Scope) -> int:
        """Return the number of the scope's newest change; 0 before the first."""
        newest = select(func.max(t.changes.c.seq)).where(t.changes.c.scope_id == scope.id)
        return self.connection.scalars(newest).one() or 0

    def changes_since(self, scope: Scope, position: int, *, limit: int = 1000) -> list[Change]:
        """Return the scope's changes after `position`, in the order they were committed."""
        since = {"scope_id": scope.id, "position": position, "most": limit}
        return [Change(*row) for row in self.connection.execute(_CHANGES, since)]

    def documents(self, scope: Scope, seqs: Sequence[int] | None = None) -> list[Document]:
        """Return the searchable messages of these exchanges (of all, when None), in the order they were written."""
        if seqs is None:
            return self._documents(_DOCUMENT.where(t.messages.c.scope_id == scope.id))
        found: list[Document] = []
        for part in _chunks(seqs):
            found += self._documents(_DOCUMENT.where(_in_scope(scope, part)))
        return found

    def _documents(self, asked: Select[Any]) -> list[Document]:
        rows = self.connection.execute(asked.order_by(t.messages.c.id), {"embedder": self.embedder})
        return [_document(row) for row in rows]

    def vectors_of(self, scope: Scope, exchange_id: str) -> list[npt.NDArray[np.float32]]:
        """Return the vectors of the exchange's messages, of this embedder."""
        exchanged = t.messages.join(t.exchanges, t.exchanges.c.seq == t.messages.c.exchange_seq)
        joined = t.vectors.join(exchanged, t.messages.c.id == t.vectors.c.message_id)
        here = (t.exchanges.c.scope_id == scope.id, t.exchanges.c.id == exchange_id)
        found = (
            select(t.vectors.c.data).select_from(joined).where(*here, t.vectors.c.embedder == self.embedder)
        )
        return [_unpack(data) for data in self.connection.scalars(found)]

    def without_vector(self, scope: Scope, exchange_id: str) -> list[tuple[int, Mapping[str, JSON]]]:
        """Return id and content of the exchange's searchable messages that have no vector of this embedder."""
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.id == exchange_id)
        lacking = (here, t.messages.c.terms.is_not(None), t.vectors.c.message_id.is_(None))
        columns = (t.messages.c.id, t.messages.c.role, t.messages.c.raw)
        found: Select[Any] = select(*columns).select_from(_SEARCHABLE).where(*lacking)
        rows = self.connection.execute(found.order_by(t.messages.c.id), {"embedder": self.embedder})
        return [(row.id, _raw(row)) for row in rows]

    def add_vectors(
        self, scope: Scope, exchange: Exchange, vectors: Mapping[int, npt.NDArray[np.float32]]
    ) -> None:
        """Write the vectors of those messages of the exchange, by id, that are there and have none."""
        for message_id, _ in self.without_vector(scope, exchange.id):
            if message_id in vectors:
                data = _pack(vectors[message_id])
                row = {"message_id": message_id, "embedder": self.embedder, "data": data}
                self.connection.execute(_ADD_VECTOR, row)
        self._log(scope, "exchange", exchange.seq)

    def topic_before(self, scope: Scope, exchange: Exchange) -> int | None:
        """Return the row of the topic of the exchange this one follows in its thread, or None."""
        first = select(func.min(t.messages.c.id)).where(t.messages.c.exchange_seq == exchange.seq)
        parent = select(t.messages.c.parent_id).where(t.messages.c.id == first.scalar_subquery())
        joined = t.messages.join(t.exchanges, t.exchanges.c.seq == t.messages.c.exchange_seq)
        here = and_(t.exchanges.c.scope_id == scope.id, t.messages.c.id == parent.scalar_subquery())
        return self.connection.scalars(select(t.exchanges.c.topic_id).select_from(joined).where(here)).first()

    def move_exchange(self, scope: Scope, exchange: Exchange, to_row: int) -> None:
        """Give the exchange to another topic; both topics are the caller's."""
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.seq == exchange.seq)
        self.connection.execute(update(t.exchanges).where(here).values(topic_id=to_row))
        self._log(scope, "exchange", exchange.seq)

    # -- erasure -------------------------------------------------------------------------------------------------

    def erase_exchange(self, scope: Scope, exchange_id: str) -> Counts:
        """Erase the exchange and the messages it added, with everything derived from them; its topic is the caller's."""
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.id == exchange_id)
        seq = self.connection.scalars(select(t.exchanges.c.seq).where(here)).one_or_none()
        if seq is None:
            return Counts()
        mine = select(t.messages.c.id).where(t.messages.c.exchange_seq == seq)
        self.connection.execute(delete(t.vectors).where(t.vectors.c.message_id.in_(mine)))
        # The place in the thread stays, with a keyed hash and no content: a history sent again finds it and adds nothing.
        blank = {
            "raw": null(),
            "terms": null(),
            "speaker": null(),
            "occurred_at": null(),
            "exchange_seq": null(),
            **asdict(Traits()),
        }
        blanked = self.connection.execute(
            update(t.messages).where(t.messages.c.exchange_seq == seq).values(blank)
        )
        # The idempotency key stays bound to it: a late retry must not bring it back.
        self.connection.execute(delete(t.exchanges).where(t.exchanges.c.seq == seq))
        self._log(scope, "exchange", seq)
        return Counts(exchanges=1, messages=blanked.rowcount)

    def move_exchanges(self, scope: Scope, *, from_row: int, to_row: int) -> None:
        """Give the exchanges of one topic to another."""
        here = and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.topic_id == from_row)
        for seq in self.connection.scalars(select(t.exchanges.c.seq).where(here)).all():
            self._log(scope, "exchange", seq)
        self.connection.execute(update(t.exchanges).where(here).values(topic_id=to_row))

    def erase_topic(self, scope: Scope, topic_row: int) -> None:
        """Erase a topic that has no exchanges any more, and the keys that led to it."""
        self.erase_former_keys(scope, self.former_keys(scope, topic_row))
        here = and_(t.topics.c.scope_id == scope.id, t.topics.c.row == topic_row)
        self.connection.execute(delete(t.topics).where(here))
        self._log(scope, "topic", topic_row)

    def erase_scope(self, scope: Scope) -> Counts:
        """Erase everything of this end user."""
        lock_scope(self.connection, scope.id)
        mine = select(t.scopes.c.id).where(t.scopes.c.id == scope.id)
        counts = self._count(mine)
        if counts.end_users:
            self._erase_scopes(mine)
            self._log(scope, "scope", 0)
        return counts

    def erase_project(self, key: str) -> Counts:
        """Erase the project, its end users, and its keys."""
        mine = select(t.scopes.c.id).where(t.scopes.c.project == key)
        scopes = sorted(bytes(scope_id) for scope_id in self.connection.scalars(mine))
        for scope_id in scopes:  # in one order, so that two of us cannot wait for each other
            lock_scope(self.connection, scope_id)
        counts = self._count(mine)
        self._erase_scopes(mine)
        for scope_id in scopes:
            self.connection.execute(insert(t.changes).values(scope_id=scope_id, kind="scope", target=0))
        self.connection.execute(delete(t.api_keys).where(t.api_keys.c.project == key))
        self.connection.execute(delete(t.projects).where(t.projects.c.key == key))
        return counts

    def _erase_scopes(self, scope_ids: Select[Any]) -> None:
        mine = select(t.messages.c.id).where(t.messages.c.scope_id.in_(scope_ids))
        self.connection.execute(delete(t.vectors).where(t.vectors.c.message_id.in_(mine)))
        for table in (t.messages, t.idempotency, t.exchanges, t.topics, t.former_keys, t.jobs):
            self.connection.execute(delete(table).where(table.c.scope_id.in_(scope_ids)))
        self.connection.execute(delete(t.scopes).where(t.scopes.c.id.in_(scope_ids)))

    def _count(self, scope_ids: Select[Any]) -> Counts:
        def rows(table: Table, *more: Any) -> int:
            counted = select(func.count()).select_from(table).where(table.c.scope_id.in_(scope_ids), *more)
            return self.connection.scalars(counted).one()

        users = self.connection.scalars(select(func.count()).select_from(scope_ids.subquery())).one()
        said = rows(t.messages, t.messages.c.raw.is_not(None))
        return Counts(exchanges=rows(t.exchanges), messages=said, topics=rows(t.topics), end_users=users)

    # -- shared --------------------------------------------------------------------------------------------------

    def _log(self, scope: Scope, kind: str, target: int) -> None:
        self.connection.execute(_ADD_CHANGE, {"scope_id": scope.id, "kind": kind, "target": target})

    def _insert_once(self, table: Table, row: Mapping[str, Any]) -> bool:
        """Insert the row unless its key is taken; return whether it was inserted."""
        dialect = {"sqlite": sqlite, "postgresql": postgresql}[self.connection.dialect.name]
        statement = dialect.insert(table).values(row).on_conflict_do_nothing()
        # Without the option the count of an INSERT is -1 under psycopg.
        kept = self.connection.execute(statement, execution_options={"preserve_rowcount": True})
        return kept.rowcount == 1


# -- rows to values ----------------------------------------------------------------------------------------------

_PLACE = (
    t.messages.c.id,
    t.messages.c.parent_id,
    t.messages.c.spoken_parent_id,
    t.messages.c.digest,
    t.messages.c.path,
    t.messages.c.depth,
    t.messages.c.role,
    t.messages.c.spoken,
    t.messages.c.raw.is_(None).label("erased"),
)

_SUMMARY = select(
    t.exchanges.c.id,
    t.exchanges.c.seq,
    t.exchanges.c.response_id,
    t.exchanges.c.state,
    t.exchanges.c.occurred_at,
    t.exchanges.c.recorded_at,
    t.topics.c.key.label("topic_key"),
).select_from(t.exchanges.outerjoin(t.topics, t.topics.c.row == t.exchanges.c.topic_id))

# Where no topic is joined there is none to be disabled.
_SHOWN = func.coalesce(t.topics.c.enabled, literal(value=True))

_SEARCHABLE = t.messages.join(t.exchanges, t.exchanges.c.seq == t.messages.c.exchange_seq).outerjoin(
    t.vectors, and_(t.vectors.c.message_id == t.messages.c.id, t.vectors.c.embedder == bindparam("embedder"))
)

_DOCUMENT = (
    select(
        t.messages.c.id,
        t.messages.c.exchange_seq,
        t.exchanges.c.topic_id,
        t.messages.c.spoken_parent_id,
        t.messages.c.digest,
        t.messages.c.role,
        t.messages.c.speaker,
        t.vectors.c.data,
        t.messages.c.terms,
        t.messages.c.words,
        t.messages.c.asks,
        t.messages.c.personal,
        t.messages.c.specifics,
        t.messages.c.dated,
    )
    .select_from(_SEARCHABLE)
    .where(t.messages.c.terms.is_not(None))
)


# Run on every retrieval or capture, so built once: composing a statement costs more than running it.
_ADD_EXCHANGE = insert(t.exchanges).returning(t.exchanges.c.seq)
_ADD_MESSAGE = insert(t.messages).returning(*_PLACE)
_ADD_VECTOR = insert(t.vectors)
_ADD_TOPIC = insert(t.topics).returning(t.topics.c.row)
_ADD_CHANGE = insert(t.changes)
_GRANT = select(t.api_keys).where(t.api_keys.c.digest == bindparam("digest"))
_EXCHANGES = _SUMMARY.where(
    t.exchanges.c.scope_id == bindparam("scope_id"), t.exchanges.c.seq.in_(bindparam("seqs", expanding=True))
)
_SAID = (
    select(t.messages.c.id, t.messages.c.exchange_seq, t.messages.c.role, t.messages.c.raw)
    .where(t.messages.c.exchange_seq.in_(bindparam("seqs", expanding=True)))
    .order_by(t.messages.c.id)
)
_TOPICS = select(t.topics).where(
    t.topics.c.scope_id == bindparam("scope_id"), t.topics.c.row.in_(bindparam("rows", expanding=True))
)
_OVERALL = select(t.scopes.c.summary).where(t.scopes.c.id == bindparam("scope_id"))
_CHANGES = (
    select(t.changes.c.seq, t.changes.c.kind, t.changes.c.target)
    .where(t.changes.c.scope_id == bindparam("scope_id"), t.changes.c.seq > bindparam("position"))
    .order_by(t.changes.c.seq)
    .limit(bindparam("most", type_=Integer))
)


def _in_scope(scope: Scope, seqs: Sequence[int]) -> Any:
    return and_(t.exchanges.c.scope_id == scope.id, t.exchanges.c.seq.in_(seqs))


def _of_keys(scope: Scope, keys: Sequence[str]) -> Any:
    """Topics that have one of these keys, or had it before they were merged."""
    former = and_(t.former_keys.c.scope_id == scope.id, t.former_keys.c.key.in_(keys))
    return or_(t.topics.c.key.in_(keys), t.topics.c.row.in_(select(t.former_keys.c.topic_row).where(former)))


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[i : i + _MANY] for i in range(0, len(values), _MANY))


def _dump(value: object) -> str:
    return orjson.dumps(value).decode()


def _pack(vector: npt.NDArray[np.float32]) -> bytes:
    return vector.astype("<f4").tobytes()


def _unpack(data: bytes) -> npt.NDArray[np.float32]:
    return np.frombuffer(data, dtype="<f4").astype(np.float32)


def _place(row: Row[Any]) -> Place:
    return Place(
        id=row.id,
        parent_id=row.parent_id,
        parent_spoken_id=row.spoken_parent_id,
        spoken_id=row.id if row.spoken else row.spoken_parent_id,
        digest=bytes(row.digest),
        path=bytes(row.path),
        depth=row.depth,
        role=row.role,
        spoken=bool(row.spoken),
        erased=bool(row.erased),
    )


def _grant(row: Row[Any]) -> Grant:
    times = {"created_at": row.created_at, "expires_at": row.expires_at, "revoked_at": row.revoked_at}
    return Grant(row.id, row.project, row.end_user, bool(row.admin), row.label, **times)


def _raw(row: Row[Any]) -> Mapping[str, JSON]:
    if row.raw is None:
        return {"role": row.role, "content": None, "erased": True}
    return cast(Mapping[str, JSON], orjson.loads(row.raw))


def _hidden(row: Row[Any]) -> Mapping[str, JSON]:
    return {"role": row.role, "content": None, "hidden": True}


def _exchange(row: Row[Any], said: Sequence[Row[Any]]) -> Exchange:
    request = [message for message in said if message.id != row.response_id]
    return Exchange(
        id=row.id,
        seq=row.seq,
        topic_key=row.topic_key or "",
        request=tuple(_raw(message) for message in request),
        response=next((_raw(message) for message in said if message.id == row.response_id), None),
        state=orjson.loads(row.state),
        occurred_at=row.occurred_at,
        recorded_at=row.recorded_at,
        messages=tuple(message.id for message in request),
    )


def _document(row: Row[Any]) -> Document:
    return Document(
        message=row.id,
        exchange=row.exchange_seq,
        topic=row.topic_id or 0,
        parent=row.spoken_parent_id,
        digest=bytes(row.digest),
        role=row.role,
        speaker=row.speaker,
        vector=_unpack(row.data) if row.data is not None else None,
        terms=np.frombuffer(row.terms, dtype="<u4").astype(np.uint32),
        traits=Traits(row.words, bool(row.asks), row.personal, row.specifics, bool(row.dated)),
    )


def _translated(error: SQLAlchemyError | LostTransactionError) -> StorageFull | Unavailable:
    """Name a database failure as one of ours; the original stays as its cause."""
    original = str(error.orig).lower() if isinstance(error, DBAPIError) else ""
    lost = isinstance(error, LostTransactionError)
    return StorageFull() if lost or "full" in original or "no space" in original else Unavailable()
