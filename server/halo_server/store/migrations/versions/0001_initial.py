"""The first schema: projects, keys, scopes, messages, vectors, exchanges, topics, the change log, idempotency keys."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "changes",
        sa.Column(
            "seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_changes_scope_id_seq"), "changes", ["scope_id", "seq"], unique=False)
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "projects",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_projects")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("end_user", sa.Text(), nullable=True),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project"], ["projects.key"], name=op.f("fk_api_keys_project_projects"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("digest", name=op.f("uq_api_keys_digest")),
    )
    op.create_table(
        "scopes",
        sa.Column("id", sa.LargeBinary(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("end_user", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project"], ["projects.key"], name=op.f("fk_scopes_project_projects"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scopes")),
        sa.UniqueConstraint("project", "end_user", name=op.f("uq_scopes_project_end_user")),
    )
    op.create_table(
        "exchanges",
        sa.Column(
            "seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("topic_id", sa.BigInteger(), nullable=True),
        sa.Column("head_id", sa.BigInteger(), nullable=True),
        sa.Column("response_id", sa.BigInteger(), nullable=True),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scope_id"], ["scopes.id"], name=op.f("fk_exchanges_scope_id_scopes"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_exchanges")),
        sa.UniqueConstraint("id", name=op.f("uq_exchanges_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_exchanges_scope_id_seq"), "exchanges", ["scope_id", "seq"], unique=False)
    op.create_index(op.f("ix_exchanges_topic_id"), "exchanges", ["topic_id"], unique=False)
    op.create_table(
        "idempotency",
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("exchange_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scope_id"], ["scopes.id"], name=op.f("fk_idempotency_scope_id_scopes"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("scope_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_exchange_id"), "idempotency", ["exchange_id"], unique=False)
    op.create_table(
        "messages",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("parent_id", sa.BigInteger(), nullable=True),
        sa.Column("spoken_parent_id", sa.BigInteger(), nullable=True),
        sa.Column("exchange_seq", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("path", sa.LargeBinary(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("spoken", sa.Boolean(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("raw", sa.Text(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("occurred_at", sa.BigInteger(), nullable=True),
        sa.Column("terms", sa.LargeBinary(), nullable=True),
        sa.Column("words", sa.Integer(), nullable=False),
        sa.Column("asks", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scope_id"], ["scopes.id"], name=op.f("fk_messages_scope_id_scopes"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_messages")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_messages_exchange_seq"), "messages", ["exchange_seq"], unique=False)
    op.create_index(op.f("ix_messages_scope_id_digest"), "messages", ["scope_id", "digest"], unique=False)
    op.create_index(op.f("ix_messages_scope_id_path"), "messages", ["scope_id", "path"], unique=False)
    op.create_table(
        "topics",
        sa.Column(
            "row", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("exchanges", sa.Integer(), nullable=False),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.Column("vector_sum", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scope_id"], ["scopes.id"], name=op.f("fk_topics_scope_id_scopes"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("row", name=op.f("pk_topics")),
        sa.UniqueConstraint("id", name=op.f("uq_topics_id")),
        sa.UniqueConstraint("scope_id", "key", name=op.f("uq_topics_scope_id_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "vectors",
        sa.Column("message_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("embedder", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name=op.f("fk_vectors_message_id_messages"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", "embedder", name=op.f("pk_vectors")),
    )
    # ### end Alembic commands ###
