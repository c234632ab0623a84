"""Windows, looks and cursors as Arrow tables, and sums out of them: the columns of the DuckDB file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from acceptance.counts import COUNT_FIELDS, Counts, Spread
from acceptance.health import Health
from acceptance.query import Sum
from acceptance.series import DIMENSIONS, Series
from acceptance.window import Window
from store.history import Cursor
from store.text import encodable

SCALARS: tuple[str, ...] = tuple(name for name in COUNT_FIELDS if name not in ("by_position", "spread"))
SPREAD: tuple[str, ...] = ("emitted_squared", "emitted_steps", "steps_squared", "clusters")

WINDOWS = pa.schema(
    [
        ("id", pa.int64()),
        ("series", pa.int32()),
        ("started", pa.float64()),
        ("ended", pa.float64()),
        ("source", pa.string()),
        ("exact", pa.bool_()),
        *((name, pa.float64()) for name in (*SCALARS, *SPREAD)),
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
        **{name: [None if item is None else float(getattr(item, name)) for item in spreads] for name in SPREAD},
        "by_position": [item.by_position for item in counts],
        "reported_length": [window.reported_length for window in windows],
        "reported_rate": [window.reported_rate for window in windows],
    }
    return pa.table(columns, schema=WINDOWS)


def series_table(ids: Mapping[Series, int]) -> pa.Table:
    """Rows of ``SERIES``."""
    dimensions = {name: [_text(getattr(series, name)) for series in ids] for name in DIMENSIONS}
    return pa.table({"id": list(ids.values()), **dimensions}, schema=SERIES)


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
    return pa.table(columns, schema=HEALTH)


def health_of(table: pa.Table) -> list[Health]:
    """The looks in rows of ``HEALTH``."""
    return [Health(*row) for row in _rows(table)]


def cursors_table(cursors: Iterable[Cursor]) -> pa.Table:
    """Rows of ``CURSORS``, the last cursor of each surface."""
    last = {(encodable(cursor.target), encodable(cursor.surface)): cursor for cursor in cursors}
    columns: dict[str, Iterable[Any]] = {
        "target": [target for target, _ in last],
        "surface": [surface for _, surface in last],
        "state": [json.dumps(dict(cursor.state)) for cursor in last.values()],
        "read_at": [cursor.at for cursor in last.values()],
    }
    return pa.table(columns, schema=CURSORS)


def cursors_of(table: pa.Table) -> list[Cursor]:
    """The cursors in rows of ``CURSORS``."""
    return [Cursor(target, surface, json.loads(state), at) for target, surface, state, at in _rows(table)]


def sums_of(table: pa.Table, keys: int) -> list[Sum]:
    """Sums out of the rows of ``store.duckdb``'s query: target, source, bucket, ``keys`` dimensions, and figures."""
    return [_sum(row[:3], tuple(row[3 : 3 + keys]), row[3 + keys :]) for row in _rows(table)]


def _sum(place: Sequence[Any], key: tuple[str | None, ...], figures: Sequence[Any]) -> Sum:
    target, source, bucket = place
    windows, exact, first, last, *numbers, positions = figures
    scalars, (squared, product, steps_squared, clusters) = numbers[: len(SCALARS)], numbers[len(SCALARS) :]
    return Sum(
        target=target,
        source=source,
        bucket=bucket,
        key=key,
        counts=Counts(
            **dict(zip(SCALARS, scalars, strict=True)),
            by_position=None if positions is None else tuple(positions),
            spread=None if clusters is None else Spread(squared, product, steps_squared, int(clusters)),
        ),
        windows=windows,
        exact=exact,
        first=first,
        last=last,
    )


def _rows(table: pa.Table) -> Iterator[Sequence[Any]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _number(value: float | None) -> float | None:
    """Arrow refuses integers that a double cannot hold exactly; they are rounded here."""
    return None if value is None else float(value)


def _text(value: str | None) -> str | None:
    return None if value is None else encodable(value)
