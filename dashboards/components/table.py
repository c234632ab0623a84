"""The fleet table: a row a target, worst first, cells coloured by how far they are below their own normal.

The browser draws it (assets/cells.js) and keeps its rows (assets/fleet.js): what is filtered, sorted and grouped there
needs no answer of the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_ag_grid as dag

from service.copy import age, counted
from service.fleet import FleetView

_GROUPS_SPAN = {"function": "columnSpan(params.data)"}
ROW_HEIGHT, HEADER_HEIGHT = 36, 46
_THEME = (
    "themeQuartz.withParams({"
    "backgroundColor: 'var(--canvas)', foregroundColor: 'var(--ink)', headerBackgroundColor: 'var(--canvas)', "
    "headerTextColor: 'var(--ink)', borderColor: 'var(--line)', rowHoverColor: 'var(--sunken)', "
    "accentColor: 'var(--accent)', fontFamily: 'var(--font)', fontSize: 13, wrapperBorder: false, "
    "wrapperBorderRadius: 0, cellHorizontalPadding: 8, columnBorder: false, headerColumnBorder: false, "
    "headerColumnResizeHandleDisplay: 'none', rangeSelectionBorderColor: 'transparent'})"
)


def table() -> dag.AgGrid:
    """The empty grid."""
    return dag.AgGrid(
        id="fleet-table",
        columnDefs=[],
        rowData=[],
        getRowId="params.data.n",
        defaultColDef={
            "sortable": False,
            "resizable": False,
            "suppressMovable": True,
            "suppressHeaderMenuButton": True,
        },
        dashGridOptions={
            "theme": {"function": _THEME},
            "domLayout": "autoHeight",
            "rowHeight": ROW_HEIGHT,
            "getRowHeight": {"function": "rowHeight(params.data)"},
            "headerHeight": HEADER_HEIGHT,
            "animateRows": False,
            "suppressColumnVirtualisation": True,
            "suppressNoRowsOverlay": True,
            "suppressCellFocus": False,
            "tooltipShowDelay": 300,
            "tooltipHideDelay": 60_000,
        },
        style={"height": None},
        className="fleet-table",
    )


def columns(view: FleetView) -> list[dict[str, Any]]:
    """Columns for the categories and the span of a view. Which of them fit is for the browser to say."""
    span = view.tick_seconds * max((len(row.heartbeat) for row in view.rows), default=0)
    return [
        # The only column of a narrow screen.
        _column("card", "TargetCard", "Target", "worst first", hide=True, flex=1),
        _column("order", None, "", "", hide=True, field="order", sort="asc"),
        _column("state", "StateCell", "State", "worst first", width=128, align="left", colSpan=_GROUPS_SPAN),
        _column("target", "TargetCell", "Target", "engine · GPU · parallel", width=238, align="left"),
        _heat_column("t", "acc_len", "all traffic", width=76),
        *(
            _heat_column(f"c{index}", name or "unlabelled", _expected(expected), width=88, value=name)
            for index, (name, expected) in enumerate(view.categories)
        ),
        _column("step", "StepCell", "Step time", "ms, p50", width=96),
        _column("output", "OutputCell", "Output", "tok/s", width=76),
        _column(
            "strip", "StripCell", _last(span), f"{age(view.tick_seconds)} a tick", flex=1, minWidth=100, align="left"
        ),
    ]


def _last(seconds: float) -> str:
    """As a heading says it: "Last 4 hours"."""
    for unit, length in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= length * (2 if unit == "day" else 1) and seconds % length == 0:
            return f"Last {counted(round(seconds / length), unit, f'{unit}s')}"
    return f"Last {age(seconds)}"


def _heat_column(name: str, title: str, below: str, *, width: int, value: str | None = None) -> dict[str, Any]:
    return _column(name, "HeatCell", title, below, width=width, cellClass="heat-cell", value=value)


def _expected(acc_len: float | None) -> str:
    return "" if acc_len is None else f"exp. {acc_len:.1f}"


def _column(
    name: str,
    renderer: str | None,
    title: str,
    below: str,
    *,
    align: str = "right",
    value: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """``value`` is the category as it is called in addresses."""
    tooltip: Mapping[str, Any] = {
        "tooltipComponent": "CellTooltip",
        "tooltipValueGetter": {"function": "params.data && params.data.n"},
    }
    return {
        "colId": name,
        "headerName": title,
        "headerComponent": "HeaderCell",
        "headerComponentParams": {"title": title, "below": below, "align": align, "value": value},
        # A cell is drawn from its whole row; this says that it changed.
        "valueGetter": {"function": f"rowPart(params.data, {name!r})"},
        **({"cellRenderer": renderer, **tooltip} if renderer else {}),
        **options,
    }
