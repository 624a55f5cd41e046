"""Alembic's entry: runs the steps over the connection that `migrate` hands in."""

from alembic import context

from halo_server.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True
)
with context.begin_transaction():
    context.run_migrations()
