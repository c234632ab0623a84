"""A state database is brought to this version's schema, or refused with a reason."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from store.engine import open_engine
from store.errors import StoreUnusable
from store.schema import migrate
from store.sql import SqlState
from store.tables import metadata


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def refusal(url: str) -> StoreUnusable:
    with pytest.raises(StoreUnusable) as refused:
        SqlState(url)
    return refused.value


def test_migrations_make_the_tables_that_the_code_uses() -> None:
    engine = open_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        migrate(connection)
    engine.dispose()


def test_a_migration_that_fails_leaves_nothing_behind(path: Path) -> None:
    engine = open_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        migrate(connection)
        assert inspect(connection).get_table_names()
        connection.rollback()
    assert inspect(engine).get_table_names() == []
    engine.dispose()
    SqlState(f"sqlite:///{path}").close()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    SqlState(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    refused = refusal(f"sqlite:///{path}")
    assert str(path) in refused.where
    assert "newer Draftgauge (schema 9999; this one knows up to 0001)" in refused.reason


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sales (amount INTEGER)")
    connection.close()
    assert "not Draftgauge's" in refusal(f"sqlite:///{path}").reason
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("sales",)]
    connection.close()


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)
    refused = refusal(f"sqlite:///{path}")
    assert str(path) in refused.where
    assert "not a database" in refused.reason


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    refused = refusal(f"sqlite:///{tmp_path}/nowhere/state.db")
    assert "nowhere" in refused.where
    assert "unable to open" in refused.reason


@pytest.mark.parametrize("url", ["", "state.db", "nosuch://host/db"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    assert refusal(url).reason


@pytest.mark.parametrize("url", ["nosuch://me:secret@host/db", "://me:secret@host", "sqlite://me:secret@host/x"])
def test_a_password_is_never_told(url: str) -> None:
    assert "secret" not in str(refusal(url))
