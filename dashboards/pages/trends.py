"""The trends page: acc_len over time by one dimension, what it rests on, and what went wrong when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component

from acceptance.query import AcceptanceQuery
from dashboards.address import Address
from dashboards.components import trends_labels, trends_table
from dashboards.components.empty import empty, skeleton
from dashboards.components.trends_controls import controls
from dashboards.components.verdict import status, verdict
from dashboards.figures.chart import Chart, Look
from dashboards.figures.live import Drawings, news, patch
from dashboards.figures.trends import HEIGHT, figure
from dashboards.figures.words import clock, zone_words
from dashboards.pages.page import Page
from dashboards.views import Views
from service.copy import length
from service.trends import TrendsView

Parts = dict[str, Any]
"""Name of an output -> what it becomes."""


def layout(address: Address) -> Component:
    return html.Div(
        [
            # What the page was drawn last, and by whose clock and on how wide a screen: a tick is told against it.
            dcc.Store(id="trends-drawing"),
            dcc.Store(id="trends-tabled"),
            dcc.Store(id="trends-screen"),
            html.Div(controls(address, None), id="trends-controls", className="toolbar"),
            html.H1(skeleton("title"), id="trends-verdict", className="verdict small"),
            html.Div(skeleton("line"), id="trends-status", className="status"),
            html.Div(id="trends-empty"),
            html.Section(
                [_head(address), _figure(), _table()],
                id="trends-chart",
                className="trends-waiting",
                **_labelled_by("title"),
            ),
        ],
        id="trends",
    )


def _head(address: Address) -> Component:
    return html.Div(
        [
            html.H2(f"acc_len by {address.by}", id="trends-title"),
            html.Small("tokens per verify step", id="trends-unit"),
            html.Div(className="spring"),
            html.Div(id="trends-legend", className="legend"),
            html.Button("Show as table", id="trends-as-table", className="plain", **{"aria-controls": "trends-table"}),
        ],
        className="trends-head",
    )


def _figure() -> Component:
    graph = dcc.Graph(
        id="trends-figure",
        responsive=True,
        style={"height": HEIGHT},
        config={"displayModeBar": False, "doubleClick": False, "showTips": False, "showAxisDragHandles": False},
    )
    return html.Figure(
        [
            html.P(id="trends-sentence", className="visually-hidden"),
            html.Div(graph, id="trends-plot"),
            html.Div(id="trends-labels"),
        ],
        className="trends-figure",
        **_labelled_by("sentence"),
    )


def _table() -> Component:
    table = html.Table(
        [html.Caption(id="trends-caption"), html.Thead(id="trends-columns"), html.Tbody(id="trends-rows")],
        className="trends-table",
    )
    return html.Div(table, id="trends-table", hidden=True, tabIndex=0, role="region", **_labelled_by("caption"))


def _labelled_by(part: str) -> dict[str, str]:
    return {"aria-labelledby": f"trends-{part}"}


OUTPUTS: Mapping[str, str] = {
    "verdict": "children",
    "status": "children",
    "controls": "children",
    "empty": "children",
    "chart": "className",
    "title": "children",
    "unit": "children",
    "legend": "children",
    "sentence": "children",
    "figure": "figure",
    "labels": "children",
    "drawing": "data",
}
"""What a tick may change: component -> its property."""


def register(app: Dash, views: Views) -> None:
    drawings = Drawings()
    app.clientside_callback(
        ClientsideFunction("draftgauge", "screen"), Output("trends-screen", "data"), Input("url", "pathname")
    )
    app.clientside_callback(
        ClientsideFunction("draftgauge", "zoom"),
        Input("trends-figure", "relayoutData"),
        Input("trends-figure", "figure"),
        State("trends-screen", "data"),
    )

    @app.callback(
        [Output(f"trends-{name}", prop) for name, prop in OUTPUTS.items()],
        Input("pulse", "data"),
        Input("url", "search"),
        Input("scheme", "data"),
        Input("trends-screen", "data"),
        State("trends-drawing", "data"),
    )
    async def tick(_: object, search: str | None, scheme: object, screen: object, drawn: object) -> list[Any]:
        address, look, now = Address.parse(search), Look.of(scheme, screen), views.clock()
        query = address.query(now)
        key = f"{replace(address, refresh=0, opened=None, sort='').search()} {look}"
        drawing = drawings.known(drawn, key)
        if drawing is not None and not is_live(query, drawing.chart.view.step, now):
            return told({})
        view = await views.trends(query, look.zone)
        chart = Chart.of(view, now)
        at = now if is_live(query, view.step, now) else None
        since = None if drawing is None else news(drawing, chart, look)
        if drawing is None or since is None:
            kept = drawings.keep(key, chart, chart.view.times[0] if chart.view.times else 0.0)
            return told({**whole(chart, address, look), **said(chart, at), "drawing": kept.id})
        parts = said(chart, at, drawing.chart)
        if since < len(chart.view.times):
            parts |= newer(drawing.chart, chart, look, since)
        if parts.keys() - {"status"}:
            parts["drawing"] = drawings.keep(key, chart, drawing.first).id
        return told(parts)

    @app.callback(
        Output("trends-table", "hidden"),
        Output("trends-as-table", "children"),
        Output("trends-caption", "children"),
        Output("trends-columns", "children"),
        Output("trends-rows", "children"),
        Output("trends-tabled", "data"),
        Input("trends-as-table", "n_clicks"),
        Input("trends-drawing", "data"),
        State("trends-tabled", "data"),
        State("trends-screen", "data"),
        prevent_initial_call=True,
    )
    async def as_table(clicks: int | None, drawn: str | None, tabled: str | None, screen: object) -> tuple[Any, ...]:
        drawing, look = drawings.known(drawn), Look.of(None, screen)
        if not (clicks or 0) % 2 or drawing is None:
            return True, "Show as table", no_update, no_update, [], None
        shown = drawings.known(tabled, drawing.key)
        since = None if shown is None else news(shown, drawing.chart, look)
        if since is not None:
            head, rows = no_update, trends_table.newer(drawing.chart, look, since)
        else:
            head, rows = trends_table.columns(drawing.chart), trends_table.rows(drawing.chart, look)
        return False, "Hide table", sentence(drawing.chart.view, look), head, rows, drawing.id


def told(parts: Parts) -> list[Any]:
    """Every output, those that stay as they are included."""
    return [parts.get(name, no_update) for name in OUTPUTS]


def is_live(query: AcceptanceQuery, step: float, now: float) -> bool:
    """Whether the range reaches now, so that more is to come."""
    return query.end >= now - step


def said(chart: Chart, at: float | None, before: Chart | None = None) -> Parts:
    """The sentence at the top and what it rests on, as of ``at`` (None: of the past), less what ``before`` said."""
    view = chart.view
    parts: Parts = {"status": [html.Span(part) for part in view.status] if at is None else status(at, view.status)}
    if before is None or view.verdict != before.view.verdict:
        parts["verdict"] = verdict(view.verdict)
    return parts


def whole(chart: Chart, address: Address, look: Look) -> Parts:
    """The page drawn anew."""
    title = {
        "title": f"acc_len by {chart.view.by}",
        "unit": f"tokens per verify step, times in {zone_words(look.minutes_east)}",
        "legend": legend(chart),
        "controls": controls(address, chart),
        "sentence": sentence(chart.view, look),
    }
    if chart.is_empty:
        return {**title, "chart": "trends-empty", "empty": nothing(address), "labels": []}
    return {
        **title,
        "chart": "",
        "empty": [],
        "figure": figure(chart, look),
        "labels": trends_labels.labels(chart, address),
    }


def legend(chart: Chart) -> list[Component]:
    """What dashes and ribbons mean, where there are any."""
    lines = chart.coloured()
    dashes = any(line.expected is not None for line in lines)
    ribbons = any(value is not None for line in lines for value in line.lower)
    return [
        *([html.Span([html.I(className="legend-expected"), "expected"])] if dashes else []),
        *([html.Span([html.I(className="legend-interval"), "95 % interval"])] if ribbons else []),
    ]


def newer(before: Chart, chart: Chart, look: Look, since: int) -> Parts:
    """New buckets, and nothing else."""
    return {
        "figure": patch(before, chart, look, since),
        "labels": trends_labels.newer(before, chart),
        "sentence": sentence(chart.view, look),
    }


def sentence(view: TrendsView, look: Look) -> str:
    """The chart in words, for those who do not see it."""
    tell = clock(look.minutes_east, view.start, view.end)
    parts = [
        f"{line.name or 'unlabelled'} {length(line.now)}"
        + ("" if line.expected is None else f", expected {line.expected:.1f}")
        for line in view.lines[:12]
    ]
    return f"acc_len from {tell(view.start)} to {tell(view.end)}, now: {'; '.join(parts) or 'no data'}."


def nothing(address: Address) -> Component:
    """Where no verify step is in the range."""
    if address.where:
        clear = "&".join(f"{name}=" for name in address.where)
        action = html.Button("Clear filters", className="button", **{"data-go": clear})
        return empty("list-filter", "No data", "No verify step in this range passes the filters.", [action])
    action = html.Button("Last 24 hours", className="button", **{"data-go": "from=now-1d&to="})
    return empty("circle-dashed", "No data", "No verify step was told of in this range.", [action])


PAGE = Page("/trends", "Trends", cast("Any", layout), register)
