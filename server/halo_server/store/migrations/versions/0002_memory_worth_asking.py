"""What ranking reads of a message, what a person set of a topic, keys of merged topics, and the queue of jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for counted in ("personal", "specifics"):
        op.add_column("messages", sa.Column(counted, sa.Integer(), server_default="0", nullable=False))
    op.add_column("messages", sa.Column("dated", sa.Boolean(), server_default=sa.false(), nullable=False))
    for listed in ("pinned", "former_labels"):
        op.add_column("topics", sa.Column(listed, sa.Text(), server_default="[]", nullable=False))
    op.create_table(
        "former_keys",
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("topic_row", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scope_id"], ["scopes.id"], name=op.f("fk_former_keys_scope_id_scopes"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("scope_id", "key", name=op.f("pk_former_keys")),
    )
    op.create_table(
        "jobs",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.LargeBinary(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("dead", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_jobs_dead_due_at"), "jobs", ["dead", "due_at"], unique=False)
    op.create_index(op.f("ix_jobs_scope_id_kind"), "jobs", ["scope_id", "kind"], unique=False)
