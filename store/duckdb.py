"""History in a DuckDB file: one process, one writer at a time, any number of readers.

Windows and looks lie in a table per period, dropped whole (DELETE does not shrink a file); the views ``windows`` and
``health`` are the union of them. Rows go in as Arrow tables and come out whole: row inserts are 200 times slower, and
a connection with a result half fetched refuses the next query.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

import duckdb
import pyarrow as pa

from acceptance.health import Health
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import DIMENSIONS, Dimension, Series
from acceptance.window import Window
from store import codec, statements
from store.errors import StoreUnusable
from store.failpoints import failpoint
from store.history import PERIOD_SECONDS, Batch, Cursor, Looked, Timed, period_start
from store.text import encodable

SCHEMA_VERSION = 1
_KINDS = ("windows", "health")

_Row = TypeVar("_Row")
_Where = Mapping[Dimension, tuple[str, ...]]


class DuckHistory:
    """``store.history.History`` in a DuckDB file."""

    def __init__(self, path: str | Path, *, memory_limit: str = "512MB", period_seconds: int = PERIOD_SECONDS) -> None:
        """Open or create the file; raises ``StoreUnusable``. A file keeps the ``period_seconds`` it began with."""
        self._writer = Lock()
        self._open = partial(_open, str(path), memory_limit, period_seconds)
        self._connection = self._open()
        self._period_seconds, self._periods, self._series = _contents(self._connection)

    def append(self, batch: Batch) -> int:
        """As ``History.append``."""
        # Of repeats within the batch the first counts, as it would if they came one after the other.
        windows = {window.id: window for window in reversed(batch.windows) if window.busy}
        looks = {(look.target, look.surface, look.at): look for look in reversed(batch.health)}
        windows_in = self._by_period(windows.values(), lambda window: window.end)
        looks_in = self._by_period(looks.values(), lambda look: look.at)
        with self._writer:
            try:
                return self._append(windows_in, looks_in, batch.cursors)
            except (duckdb.FatalException, duckdb.ConnectionException):
                self._reopen()
                raise

    def _append(
        self, windows_in: Mapping[int, list[Window]], looks_in: Mapping[int, list[Health]], cursors: Sequence[Cursor]
    ) -> int:
        """Rows by period, which are not in the batch twice; the number of windows that were new."""
        periods = self._periods | set(windows_in) | set(looks_in)
        numbers = self._numbers(window.series for rows in windows_in.values() for window in rows)
        series = self._series | numbers
        with self._transaction() as cursor:
            _create_periods(cursor, periods, new=periods - self._periods)
            _insert(cursor, statements.ADD_SERIES, codec.series_table(numbers))
            added = sum(
                _insert(cursor, statements.ADD_WINDOWS.format(period=period), codec.windows_table(rows, series))
                for period, rows in windows_in.items()
            )
            for period, rows in looks_in.items():
                _insert(cursor, statements.ADD_HEALTH.format(period=period), codec.health_table(rows))
            _insert(cursor, statements.PUT_CURSORS, codec.cursors_table(cursors))
            failpoint("history.before_commit")
        failpoint("history.after_commit")
        self._periods, self._series = periods, series
        return added

    def _reopen(self) -> None:
        """After an error that leaves DuckDB's instance of no use: say, no room for a checkpoint. The file is sound."""
        self._connection.close()
        self._connection = self._open()
        _, self._periods, self._series = _contents(self._connection)

    def known(self, ids: Collection[int], start: float, end: float) -> set[int]:
        """As ``History.known``."""
        with self._cursor() as cursor:
            parameters = {"ids": list(ids), "after": float(start), "until": float(end)}
            return {int(row[0]) for row in cursor.execute(statements.KNOWN, parameters).fetchall()}

    def query(self, query: AcceptanceQuery) -> list[Sum]:
        """As ``History.query``."""
        step = {} if query.step is None else {"step": query.step}
        source = {} if query.source is None else {"source": query.source}
        return self._sums(
            query.start - query.offset,
            query.end - query.offset,
            query.where,
            {**step, **source},
            windows=statements.IN_SPAN,
            bucket=statements.BUCKETS if step else statements.ONE_BUCKET,
            by=query.by,
            one_source=bool(source),
        )

    def latest(self, where: _Where, at: float, within: float) -> list[Sum]:
        """As ``History.latest``."""
        return self._sums(
            at - within,
            at,
            where,
            {},
            windows=statements.NEWEST_IN_SPAN,
            bucket=statements.OWN_END,
            by=DIMENSIONS,
            one_source=False,
        )

    def health(self, start: float, end: float, target: str | None = None) -> list[Health]:
        """As ``History.health``."""
        parameters = {"after": start, "until": end, "target": None if target is None else encodable(target)}
        with self._cursor() as cursor:
            return codec.health_of(_table(cursor, statements.HEALTH, parameters))

    def looked(self, start: float, end: float, step: float, target: str | None = None) -> list[Looked]:
        """As ``History.looked``."""
        with self._cursor() as cursor:
            return codec.looked_of(_table(cursor, statements.LOOKED, _span(start, end, step, target)))

    def timed(self, start: float, end: float, step: float, target: str | None = None) -> list[Timed]:
        """As ``History.timed``."""
        with self._cursor() as cursor:
            return codec.timed_of(_table(cursor, statements.TIMED, _span(start, end, step, target)))

    def cursors(self) -> list[Cursor]:
        """As ``History.cursors``."""
        with self._cursor() as cursor:
            return codec.cursors_of(_table(cursor, "FROM cursors", {}))

    def drop_before(self, at: float) -> None:
        """As ``History.drop_before``."""
        with self._writer:
            ended = {period for period in self._periods if period + self._period_seconds <= at}
            if not ended:
                return
            with self._transaction() as cursor:
                _create_views(cursor, self._periods - ended)
                for kind in _KINDS:
                    for period in ended:
                        cursor.execute(statements.DROP_PERIOD.format(kind=kind, period=period))
                cursor.execute(statements.FORGET_SERIES)
            _, self._periods, self._series = _contents(self._connection)

    def close(self) -> None:
        """As ``History.close``."""
        with self._writer:
            self._connection.close()

    def _numbers(self, wanted: Iterable[Series]) -> dict[Series, int]:
        """Numbers for the series that have none yet."""
        unnumbered = dict.fromkeys(series for series in wanted if series not in self._series)
        first = max(self._series.values(), default=0) + 1 if unnumbered else 0
        return {series: number for number, series in enumerate(unnumbered, first)}

    def _by_period(self, rows: Iterable[_Row], time: Callable[[_Row], float]) -> dict[int, list[_Row]]:
        """Rows by the start of their period, in the order of their times."""
        ordered = sorted(rows, key=time)
        periods = groupby(ordered, lambda row: period_start(time(row), self._period_seconds))
        return {period: list(members) for period, members in periods}

    def _sums(
        self, after: float, until: float, where: _Where, parameters: Mapping[str, Any], **query: Any
    ) -> list[Sum]:
        values = {f"where_{name}": [encodable(value) for value in accepted] for name, accepted in where.items()}
        span = {"after": float(after), "until": float(until)}
        with self._cursor() as cursor:
            # One snapshot for both, or a window committed in between could have more positions than are summed.
            cursor.begin()
            widest: int | None = cursor.execute(statements.WIDEST, span).fetchall()[0][0]
            text = statements.sums(where=where, positions=widest or 0, **query)
            table = _table(cursor, text, {**span, **values, **parameters})
            cursor.rollback()
        return codec.sums_of(table, len(query["by"]))

    @contextmanager
    def _cursor(self) -> Generator[duckdb.DuckDBPyConnection]:
        """A connection of its own for one read (0.2 ms), so that any thread may read."""
        with self._connection.cursor() as cursor:
            yield cursor

    @contextmanager
    def _transaction(self) -> Generator[duckdb.DuckDBPyConnection]:
        with self._cursor() as cursor:
            cursor.begin()
            yield cursor
            cursor.commit()


def _open(path: str, memory_limit: str, period_seconds: int) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory_limit,
        "threads": 1,
        "enable_external_access": False,
        "python_enable_replacements": False,
        # Within one process DuckDB shares an open file among connections of one configuration. This one is ours alone:
        # two instances would number series differently.
        "custom_user_agent": f"draftgauge {uuid4()}",
    }
    try:
        connection = duckdb.connect(path, config=config)
    except duckdb.PermissionException as error:
        # By its first bytes DuckDB takes the file for one that an extension could read, and may not load that.
        raise StoreUnusable(path, "not a valid DuckDB database file") from error
    except duckdb.Error as error:
        raise StoreUnusable(path, str(error)) from error
    try:
        _prepare(connection, path, period_seconds)
    except duckdb.Error as error:
        connection.close()
        raise StoreUnusable(path, str(error)) from error
    except StoreUnusable:
        connection.close()
        raise
    return connection


def _prepare(connection: duckdb.DuckDBPyConnection, path: str, period_seconds: int) -> None:
    """Create what an empty file lacks; raises ``StoreUnusable`` for a file of another kind or a newer version."""
    tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if not tables:
        connection.begin()
        connection.execute(statements.CREATE)
        connection.execute("INSERT INTO about VALUES (?, ?)", [SCHEMA_VERSION, period_seconds])
        _create_views(connection, ())
        connection.commit()
    elif "about" not in tables:
        raise StoreUnusable(path, "a DuckDB file, but not one of Draftgauge's")
    elif (version := connection.execute("SELECT max(version) FROM about").fetchall()[0][0]) > SCHEMA_VERSION:
        raise StoreUnusable(
            path, f"written by a newer Draftgauge (schema {version}; this one knows up to {SCHEMA_VERSION})"
        )


def _contents(connection: duckdb.DuckDBPyConnection) -> tuple[int, set[int], dict[Series, int]]:
    """Length of a period, starts of the periods that have tables, and the number of each series."""
    ((period_seconds,),) = connection.execute("SELECT period_seconds FROM about").fetchall()
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE starts_with(table_name, 'windows_')")
    periods = {int(number) for (name,) in tables.fetchall() if (number := name.removeprefix("windows_")) != "none"}
    return period_seconds, periods, codec.series_of(_table(connection, "FROM series", {}))


def _create_periods(cursor: duckdb.DuckDBPyConnection, periods: set[int], *, new: set[int]) -> None:
    for kind in _KINDS:
        for period in new:
            cursor.execute(statements.CREATE_PERIOD.format(kind=kind, period=period))
    if new:
        _create_views(cursor, periods)


def _create_views(cursor: duckdb.DuckDBPyConnection, periods: Iterable[int]) -> None:
    for kind in _KINDS:
        parts = " UNION ALL ".join(f'FROM "{kind}_{period}"' for period in ("none", *sorted(periods)))
        cursor.execute(statements.CREATE_VIEW.format(kind=kind, parts=parts))


def _insert(cursor: duckdb.DuckDBPyConnection, statement: str, rows: pa.Table) -> int:
    """Run a statement that reads the relation ``rows``; the number of rows written."""
    if not rows.num_rows:
        return 0
    cursor.register("rows", rows)
    ((written,),) = cursor.execute(statement).fetchall()
    cursor.unregister("rows")
    return written


def _table(cursor: duckdb.DuckDBPyConnection, statement: str, parameters: Mapping[str, Any]) -> pa.Table:
    return cursor.sql(statement, params=dict(parameters)).to_arrow_table()


def _span(start: float, end: float, step: float, target: str | None) -> dict[str, Any]:
    of = None if target is None else encodable(target)
    return {"after": float(start), "until": float(end), "step": float(step), "target": of}
