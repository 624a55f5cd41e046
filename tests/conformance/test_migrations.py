"""The numbered steps and the tables describe the same database."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, inspect, text

from halo_server.errors import SchemaTooNew
from halo_server.store.migrate import head, migrate
from halo_server.store.tables import metadata


def _differences(engine: Engine) -> list[object]:
    with engine.connect() as connection:
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata)


def test_a_migrated_database_has_exactly_the_tables_of_this_version(engine: Engine) -> None:
    migrate(engine)

    assert _differences(engine) == []


def test_a_database_made_from_the_tables_has_the_same_columns_keys_and_indexes(engine: Engine) -> None:
    migrate(engine)
    migrated = _shape(engine)
    metadata.drop_all(engine)
    metadata.create_all(engine)

    assert _shape(engine) == migrated


def _shape(engine: Engine) -> dict[str, object]:
    seen = inspect(engine)
    return {
        table: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(table)],
            seen.get_pk_constraint(table),
            sorted(str(index) for index in seen.get_indexes(table)),
            sorted(str(unique) for unique in seen.get_unique_constraints(table)),
            sorted(str(key) for key in seen.get_foreign_keys(table)),
        )
        for table in metadata.tables
    }


def test_migrating_twice_changes_nothing(engine: Engine) -> None:
    migrate(engine)
    before = _shape(engine)
    migrate(engine)

    assert _shape(engine) == before
    with engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == head()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(engine: Engine) -> None:
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(SchemaTooNew, match="newer HALO"):
        migrate(engine)

    with engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == "9999"


def test_a_step_that_fails_leaves_nothing_of_itself(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE vectors (message_id INTEGER)")
        )  # the last step of all stumbles here

    with pytest.raises(Exception, match="vectors"):
        migrate(engine)

    assert inspect(engine).get_table_names() == ["vectors"]
