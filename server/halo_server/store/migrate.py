"""Brings a database to the schema of this version: numbered steps, applied in order, each in one transaction."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from halo_server.errors import SchemaTooNew

__all__ = ["head", "migrate"]

_STEPS = Path(__file__).parent / "migrations"


def migrate(engine: Engine) -> None:
    """Apply the steps that are missing; do nothing when there are none.

    Raises:
        SchemaTooNew: The database is at a step this version does not know.
    """
    with engine.begin() as connection:
        at = MigrationContext.configure(connection).get_current_revision()
        if at == head():
            return
        if at is not None and at not in _known():
            raise SchemaTooNew
        command.upgrade(_config(connection), "head")


def head() -> str:
    """Return the number of this version's newest step."""
    return str(_script().get_current_head())


def _known() -> set[str]:
    return {step.revision for step in _script().walk_revisions()}


def _script() -> ScriptDirectory:
    return ScriptDirectory(_STEPS)


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_STEPS))
    config.attributes["connection"] = connection
    return config
