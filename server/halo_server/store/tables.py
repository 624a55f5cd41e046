"""The schema: what is kept, in which columns, under which keys. The migrations build exactly this (tested).

Every table of memory carries `scope_id`, and every query names it: isolation is a column of the primary path, not a filter
somebody may forget. Times are Unix milliseconds. JSON is text: it is never searched inside the database.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
)

__all__ = [
    "api_keys",
    "changes",
    "exchanges",
    "former_keys",
    "idempotency",
    "jobs",
    "messages",
    "meta",
    "metadata",
    "projects",
    "scopes",
    "topics",
    "vectors",
]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column of the very type INTEGER.
_RowId = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

projects = Table(
    "projects",
    metadata,
    Column("key", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column(
        "digest", LargeBinary, nullable=False, unique=True
    ),  # SHA-256 of the key; the key itself is shown once
    Column("project", Text, ForeignKey("projects.key", ondelete="CASCADE")),
    Column("end_user", Text),
    Column("admin", Boolean, nullable=False),
    Column("label", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
)

scopes = Table(
    "scopes",
    metadata,
    Column("id", LargeBinary, primary_key=True),  # Scope.id
    Column("project", Text, ForeignKey("projects.key", ondelete="CASCADE"), nullable=False),
    Column("end_user", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("project", "end_user"),
)

messages = Table(
    "messages",
    metadata,
    Column("id", _RowId, primary_key=True, autoincrement=True),
    Column("scope_id", LargeBinary, ForeignKey("scopes.id", ondelete="CASCADE"), nullable=False),
    Column("parent_id", BigInteger),  # the message before it in its thread
    Column("spoken_parent_id", BigInteger),  # the nearest one before it that somebody said
    Column("exchange_seq", BigInteger),  # the exchange that added it; null once that is erased
    Column("digest", LargeBinary, nullable=False),  # keyed hash of role and words; empty: nobody said it
    Column("path", LargeBinary, nullable=False),  # keyed hash of all that was said up to it
    Column("depth", Integer, nullable=False),  # how many messages were said up to it
    Column("spoken", Boolean, nullable=False),
    Column("role", Text, nullable=False),
    Column("raw", Text),  # JSON as received; null once erased
    Column("speaker", Text),
    Column("occurred_at", BigInteger),
    Column("terms", LargeBinary),  # uint32 little-endian token ids; null: not searchable
    Column("words", Integer, nullable=False),
    Column("asks", Boolean, nullable=False),
    Column("personal", Integer, nullable=False, server_default="0"),  # words for the speaker's own person
    Column("specifics", Integer, nullable=False, server_default="0"),  # names and numbers
    Column("dated", Boolean, nullable=False, server_default=false()),  # says when something was or will be
    Index(None, "scope_id", "path"),
    Index(None, "scope_id", "digest"),
    Index(None, "exchange_seq"),
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    metadata,
    Column(
        "message_id",
        BigInteger,
        ForeignKey("messages.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("embedder", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),  # float32 little-endian, unit length
)

exchanges = Table(
    "exchanges",
    metadata,
    Column("seq", _RowId, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("scope_id", LargeBinary, ForeignKey("scopes.id", ondelete="CASCADE"), nullable=False),
    Column("topic_id", BigInteger),
    Column("head_id", BigInteger),  # its last message
    Column("response_id", BigInteger),  # the answer; null when it has none
    Column(
        "sent", Integer, nullable=False
    ),  # how many messages said were sent with it, earlier ones included
    Column("state", Text, nullable=False),  # JSON object: what came beside the messages
    Column("fingerprint", LargeBinary, nullable=False),  # keyed hash of the request
    Column("occurred_at", BigInteger, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    Index(None, "scope_id", "seq"),
    Index(None, "topic_id"),
    sqlite_autoincrement=True,
)

topics = Table(
    "topics",
    metadata,
    Column("row", _RowId, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("scope_id", LargeBinary, ForeignKey("scopes.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("aliases", Text, nullable=False),  # JSON list
    Column("summary", Text, nullable=False),  # JSON list of [sentence, exchange id]
    Column("terms", Text, nullable=False),  # JSON object: phrase -> count
    Column("enabled", Boolean, nullable=False),
    Column("exchanges", Integer, nullable=False),
    Column("embedder", Text, nullable=False),  # whose vectors were summed
    Column("vector_sum", LargeBinary, nullable=False),  # float32 little-endian
    Column("updated_at", BigInteger, nullable=False),
    Column("pinned", Text, nullable=False, server_default="[]"),  # JSON list: the fields a person set
    Column("former_labels", Text, nullable=False, server_default="[]"),  # JSON list: of topics merged into it
    UniqueConstraint("scope_id", "key"),
    sqlite_autoincrement=True,
)

former_keys = Table(
    "former_keys",
    metadata,
    Column("scope_id", LargeBinary, ForeignKey("scopes.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),  # of a topic that was merged into another
    Column("topic_row", BigInteger, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", _RowId, primary_key=True, autoincrement=True),
    Column("kind", Text, nullable=False),
    Column(
        "scope_id", LargeBinary, nullable=False
    ),  # no foreign key: a job outlives its scope and finds nothing
    Column("payload", Text, nullable=False),  # JSON object: ids, never text of anybody
    Column("attempts", Integer, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("leased_until", BigInteger),
    Column("lease", Text),  # who holds it; a worker that lost its lease changes nothing
    Column("failure", Text),  # why the last attempt failed: a code, no text
    Column("dead", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index(None, "dead", "due_at"),
    Index(None, "scope_id", "kind"),
    sqlite_autoincrement=True,
)

changes = Table(
    "changes",
    metadata,
    Column("seq", _RowId, primary_key=True, autoincrement=True),
    Column("scope_id", LargeBinary, nullable=False),  # no foreign key: the erasure of a scope is a change too
    Column("kind", Text, nullable=False),
    Column("target", BigInteger, nullable=False),
    Index(None, "scope_id", "seq"),
    sqlite_autoincrement=True,
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope_id", LargeBinary, ForeignKey("scopes.id", ondelete="CASCADE"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", LargeBinary, nullable=False),
    Column("exchange_id", Text, nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
)
