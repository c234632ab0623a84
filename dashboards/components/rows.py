"""Rows of the fleet table as they travel: small, and field by field, so that a tick sends what changed and no more.

A row is a mapping of short names, read by assets/fleet.js and assets/cells.js:

    n, i, s, w      target, its place (worst first), its state (``STATES``) and what is said of it
    a, g, e, m      about, group, engine, model
    t, tb, c0, c0b, ...   acc_len of all traffic and of each category: what moves, and what rarely does
    p, pb, o        step time (ms) with its ratio to normal, its heat, output (tok/s)
    h, h0           heartbeat, a letter a tick, and when it begins (unix seconds)

Missing fields are None. What moves is [acc_len, lower, upper, steps], the rest [source, expected, heat].
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from service.fleet import Cell, FleetRow, FleetView, TickState

Row = Mapping[str, Any]

DEAD_ACC_LEN = 1.10
_HEAT_FROM = (0.12, 0.25, 0.40, 0.60)
UNTRUSTED = -1
"""The heat of a value that rests on too little: it is shown, but says nothing."""

TICKS: Mapping[TickState, str] = MappingProxyType(
    {
        "ok": "o",
        "notice": "n",
        "warning": "w",
        "critical": "c",
        "pending": "p",
        "idle": "i",
        "no-data": "-",
        "off": "f",
    }
)


@dataclass(frozen=True, slots=True)
class State:
    """What a row is in: its icon, and what the filter calls it. A row has words of its own."""

    words: str
    icon: str


STATES: Mapping[str, State] = MappingProxyType(
    {
        "critical": State("Critical", "octagon-alert"),
        "warning": State("Warning", "triangle-alert"),
        "notice": State("Notice", "info"),
        "recovering": State("Recovering", "arrow-up-from-line"),
        "pending": State("Pending", "hourglass"),
        "unreachable": State("Not readable", "unplug"),
        "stale": State("Stale", "clock-alert"),
        "off": State("No speculation", "circle-minus"),
        "no-data": State("No data", "circle-dashed"),
        "low-evidence": State("Few steps", "circle-dot-dashed"),
        "ok": State("OK", "circle-check"),
        "idle": State("Idle", "moon"),
        "removed": State("Removed", "x"),
    }
)
_OF_TARGETS: Mapping[str, str] = MappingProxyType(
    {
        "target-down": "unreachable",
        "scrape-error": "unreachable",
        "spec-not-active": "off",
        "role-has-none": "off",
        "alerting": "warning",
    }
)


def state(row: FleetRow) -> str:
    """One of ``STATES``: that of the alert its label is about, else what its target is in."""
    if row.severity in ("critical", "warning", "notice"):
        return "pending" if row.pending else "recovering" if row.recovering else row.severity
    name = _OF_TARGETS.get(row.state.name, row.state.name)
    return name if name in STATES else "no-data"


def heat(cell: Cell) -> int:
    """From 0 (as expected) to 4 (under less than half), ``UNTRUSTED`` where the evidence is too small."""
    if not cell.trusted:
        return UNTRUSTED
    if cell.acc_len is not None and cell.acc_len <= DEAD_ACC_LEN:
        return len(_HEAT_FROM)
    return _heat(cell.below)


def step_heat(ratio: float | None) -> int:
    """The same scale for a step time: by how much it is over its normal."""
    return _heat(None if ratio is None else ratio - 1.0)


def rows(view: FleetView) -> dict[str, Row]:
    """Every row by its target, in the order of the view."""
    categories = [name for name, _ in view.categories]
    return {row.target: _row(row, place, categories) for place, row in enumerate(view.rows)}


def changed(before: Mapping[str, Row], after: Mapping[str, Row]) -> dict[str, Row]:
    """Of every row the fields that are new or others than before; rows that are all the same are left out."""
    deltas = {target: _delta(before.get(target), row) for target, row in after.items()}
    return {target: delta for target, delta in deltas.items() if delta}


def _delta(before: Row | None, row: Row) -> Row:
    return row if before is None else {name: value for name, value in row.items() if before.get(name) != value}


def _row(row: FleetRow, place: int, categories: Sequence[str]) -> Row:
    fields: dict[str, Any] = {
        "n": row.target,
        "i": place,
        "s": state(row),
        "w": row.label,
        "a": row.about,
        "g": row.group,
        "e": row.engine,
        "m": row.model,
        "p": None
        if row.step_time_seconds is None
        else [_rounded(row.step_time_seconds * 1000, 1), row.step_time_ratio],
        "pb": step_heat(row.step_time_ratio),
        "o": _rounded(row.output_tokens_per_second, 0),
        "h": "".join(TICKS[tick.state] for tick in row.heartbeat),
        "h0": round(row.heartbeat[0].start) if row.heartbeat else None,
    }
    cells = {"t": row.acc_len, **{f"c{index}": row.categories.get(name) for index, name in enumerate(categories)}}
    for name, cell in cells.items():
        known = cell is not None and cell.acc_len is not None
        fields[name] = _figures(cell) if known else None
        fields[f"{name}b"] = [cell.source, cell.expected, heat(cell)] if known else None
    return fields


def _figures(cell: Cell) -> list[float | None]:
    return [_rounded(cell.acc_len, 2), _rounded(cell.lower, 2), _rounded(cell.upper, 2), _rounded(cell.steps, 0)]


def _heat(share: float | None) -> int:
    return 0 if share is None else bisect_right(_HEAT_FROM, share)


def _rounded(value: float | None, digits: int) -> float | int | None:
    if value is None:
        return None
    return round(value, digits) if digits else round(value)
