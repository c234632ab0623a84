"""Opens SQL databases, and makes SQLite keep what was committed and begin transactions when it is told to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from store.errors import StoreUnusable

# A database in memory lives as long as its one connection, for which threads wait in turn.
_ONE_CONNECTION: Mapping[str, Any] = MappingProxyType(
    {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0, "connect_args": {"check_same_thread": False}}
)
_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 10000")


def open_engine(url: str) -> Engine:
    """An engine for ``url``; raises ``StoreUnusable`` for a URL that is none, or whose driver is not installed.

    A connection with the execution option ``writes`` takes SQLite's write lock when its transaction begins: one that
    takes it later fails at once, without waiting, if somebody else wrote in between.
    """
    try:
        parsed = make_url(url)
        in_memory = parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:")
        engine = create_engine(parsed, **(_ONE_CONNECTION if in_memory else {}))
    except (SQLAlchemyError, ImportError) as error:
        raise StoreUnusable("the URL of the state database", str(error)) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _connected)
        event.listen(engine, "begin", _begin)
    return engine


def _connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # Python's driver would begin transactions late, and none at all for CREATE TABLE: migrations would not be atomic.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")
