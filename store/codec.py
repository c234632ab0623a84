"""Windows, looks and cursors as Arrow tables, and sums out of them: the columns of the DuckDB file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa

from acceptance.counts import COUNT_FIELDS, Counts, Spread
from acceptance.health import Health
from acceptance.query import Sum
from acceptance.series import DIMENSIONS, Series
from acceptance.window import Window
from store.columns import table_of
from store.history import Cursor, Looked, Timed
from store.text import encodable

SCALARS: tuple[str, ...] = tuple(name for name in COUNT_FIELDS if name not in ("by_position", "spread"))
MOMENTS: tuple[str, ...] = ("emitted_squared", "emitted_steps", "steps_squared")

WINDOWS = pa.schema(
    [
        ("id", pa.int64()),
        ("series", pa.int32()),
        ("started", pa.float64()),
        ("ended", pa.float64()),
        ("source", pa.string()),
        ("exact", pa.bool_()),
        *((name, pa.float64()) for name in (*SCALARS, *MOMENTS)),
        ("clusters", pa.int64()),
        ("by_position", pa.list_(pa.float64())),
        ("reported_length", pa.float64()),
        ("reported_rate", pa.float64()),
    ]
)
SERIES = pa.schema([("id", pa.int32()), *((name, pa.string()) for name in DIMENSIONS)])
HEALTH = pa.schema(
    [
        ("target", pa.string()),
        ("surface", pa.string()),
        ("looked_at", pa.float64()),
        ("up", pa.bool_()),
        ("error", pa.string()),
        ("running", pa.float64()),
        ("queued", pa.float64()),
        ("speculating", pa.bool_()),
        ("decode_tokens", pa.float64()),
        ("seconds", pa.float64()),
    ]
)
CURSORS = pa.schema(
    [("target", pa.string()), ("surface", pa.string()), ("state", pa.string()), ("read_at", pa.float64())]
)


def windows_table(windows: Sequence[Window], ids: Mapping[Series, int]) -> pa.Table:
    """Rows of ``WINDOWS``; ``ids`` gives the row of each series."""
    counts = [window.counts for window in windows]
    spreads = [item.spread for item in counts]
    columns: dict[str, Iterable[Any]] = {
        "id": [window.id for window in windows],
        "series": [ids[window.series] for window in windows],
        "started": [window.start for window in windows],
        "ended": [window.end for window in windows],
        "source": [window.source for window in windows],
        "exact": [window.exact for window in windows],
        **{name: [_number(getattr(item, name)) for item in counts] for name in SCALARS},
        **{name: [None if item is None else _number(getattr(item, name)) for item in spreads] for name in MOMENTS},
        "clusters": [None if item is None else item.clusters for item in spreads],
        "by_position": [item.by_position for item in counts],
        "reported_length": [window.reported_length for window in windows],
        "reported_rate": [window.reported_rate for window in windows],
    }
    return table_of(columns, WINDOWS)


def series_table(ids: Mapping[Series, int]) -> pa.Table:
    """Rows of ``SERIES``."""
    dimensions = {name: [_text(getattr(series, name)) for series in ids] for name in DIMENSIONS}
    return table_of({"id": ids.values(), **dimensions}, SERIES)


def series_of(table: pa.Table) -> dict[Series, int]:
    """The mapping that ``series_table`` wrote."""
    return {Series(*values): number for number, *values in _rows(table)}


def health_table(looks: Sequence[Health]) -> pa.Table:
    """Rows of ``HEALTH``."""
    columns: dict[str, Iterable[Any]] = {
        "target": [encodable(look.target) for look in looks],
        "surface": [encodable(look.surface) for look in looks],
        "looked_at": [look.at for look in looks],
        "up": [look.up for look in looks],
        "error": [_text(look.error) for look in looks],
        "running": [_number(look.running) for look in looks],
        "queued": [_number(look.queued) for look in looks],
        "speculating": [look.speculating for look in looks],
        "decode_tokens": [_number(look.decode_tokens) for look in looks],
        "seconds": [look.seconds for look in looks],
    }
    return table_of(columns, HEALTH)


def health_of(table: pa.Table) -> list[Health]:
    """The looks in rows of ``HEALTH``."""
    return [Health(*row) for row in _rows(table)]


def looked_of(table: pa.Table) -> list[Looked]:
    """Looks added up, out of the rows of ``statements.LOOKED``."""
    return [Looked(*row) for row in _rows(table)]


def timed_of(table: pa.Table) -> list[Timed]:
    """Timed passes, out of the rows of ``statements.TIMED``."""
    return [Timed(*row) for row in _rows(table)]


def cursors_table(cursors: Iterable[Cursor]) -> pa.Table:
    """Rows of ``CURSORS``, the last cursor of each surface."""
    last = {(encodable(cursor.target), encodable(cursor.surface)): cursor for cursor in cursors}
    columns: dict[str, Iterable[Any]] = {
        "target": [target for target, _ in last],
        "surface": [surface for _, surface in last],
        "state": [json.dumps(dict(cursor.state)) for cursor in last.values()],
        "read_at": [cursor.at for cursor in last.values()],
    }
    return table_of(columns, CURSORS)


def cursors_of(table: pa.Table) -> list[Cursor]:
    """The cursors in rows of ``CURSORS``."""
    return [Cursor(target, surface, json.loads(state), at) for target, surface, state, at in _rows(table)]


def sums_of(table: pa.Table, keys: int) -> list[Sum]:
    """Sums out of the rows of ``statements.sums``, which tell ``keys`` dimensions. Column by column: there are many."""
    columns = [column.to_pylist() for column in table.columns]
    (targets, sources, buckets), columns = columns[:3], columns[3:]
    of_key, columns = columns[:keys], columns[keys:]
    (windows, exact, first, last), columns = columns[:4], columns[4:]
    scalars, (squared, products, steps_squared, clusters, positions) = columns[: len(SCALARS)], columns[len(SCALARS) :]
    told: dict[str, Iterable[Any]] = dict(zip(SCALARS, scalars, strict=True))
    told["by_position"] = (None if each is None else tuple(each) for each in positions)
    told["spread"] = (
        None if moments[3] is None else Spread(*moments)
        for moments in zip(squared, products, steps_squared, clusters, strict=True)
    )
    counts = map(Counts, *(told[name] for name in COUNT_FIELDS))
    key = zip(*of_key, strict=True) if keys else repeat(())
    return list(map(Sum, targets, sources, buckets, key, counts, windows, exact, first, last))


def _rows(table: pa.Table) -> Iterator[Sequence[Any]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _number(value: float | None) -> float | None:
    """Arrow refuses integers that a double cannot hold exactly; they are rounded here."""
    return None if value is None else float(value)


def _text(value: str | None) -> str | None:
    return None if value is None else encodable(value)
