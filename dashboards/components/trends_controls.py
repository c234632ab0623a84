"""Above the trends figure: what it is broken down by, filters, and its figures elsewhere."""

from __future__ import annotations

from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from acceptance.query import format_duration
from acceptance.series import DIMENSIONS
from dashboards.address import Address
from dashboards.components.controls import menu
from dashboards.components.icons import icon
from dashboards.figures.chart import Chart
from service.trends import ALL_TRAFFIC

MOST_CHOICES = 60


def controls(address: Address, chart: Chart | None) -> list[Component]:
    """``chart`` is what is shown, None before that is known."""
    by = address.by if chart is None else chart.view.by
    parts = [
        menu(
            ["Break down by ", html.B(by), icon("chevron-down")],
            [(name, {"data-go": urlencode({"by": name})}) for name in DIMENSIONS],
            label=f"Break down by {by}",
        ),
        *(_chip(name, value) for name, values in address.where.items() for value in values),
    ]
    if chart is not None:
        parts += _more_filters(address, chart)
    return [html.Div(parts, className="trends-filters"), html.Div(className="spring"), *_elsewhere(address, chart)]


def filter_by(chart: Chart, name: str) -> str | None:
    """The toggle of a filter to a line of this name, None where there is nothing to filter by."""
    return None if name in ("", ALL_TRAFFIC) else urlencode({chart.view.by: name})


def _chip(dimension: str, value: str) -> Component:
    words = value or "unlabelled"
    return html.Button(
        [f"{dimension}: ", html.B(words), icon("x")],
        className="chip chip-set",
        title=f"Take away {dimension}: {words}",
        # Toggles leave empty values out, so an empty one goes with all of its dimension.
        **({"data-toggle": urlencode({dimension: value})} if value else {"data-go": f"{dimension}="}),
    )


def _more_filters(address: Address, chart: Chart) -> list[Component]:
    by = chart.view.by
    names = [line.name for line in chart.view.lines if line.name not in address.where.get(by, ())]
    toggles = [(name, toggle) for name in names[:MOST_CHOICES] if (toggle := filter_by(chart, name)) is not None]
    if len(names) < 2:
        return []
    items = [(f"{by}: {name}", {"data-toggle": toggle}) for name, toggle in toggles]
    return [menu([icon("list-filter"), "Add filter"], items, label="Add filter", look="plain")]


def _elsewhere(address: Address, chart: Chart | None) -> list[Component]:
    csv = [] if chart is None else [html.A([icon("download"), "CSV"], href=_csv(address, chart), className="plain")]
    copy = html.Button(
        [icon("link"), icon("check"), "Copy link"],
        className="button copy-link",
        **{"data-act": "copy", "data-copy-link": ""},
    )
    return [*csv, copy]


def _csv(address: Address, chart: Chart) -> str:
    """The same question to the API, in the same buckets."""
    asked = [
        ("from", address.start),
        ("to", address.end),
        ("step", format_duration(chart.view.step)),
        ("by", chart.view.by),
    ]
    filters = [(name, value) for name, values in address.where.items() for value in values]
    return f"/api/acceptance?{urlencode([*asked, *filters, ('format', 'csv')])}"
