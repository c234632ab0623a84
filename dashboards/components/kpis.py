"""Figures of the whole fleet, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from dashboards.components.sparkline import sparkline
from service.fleet import Kpi


def kpis(figures: Sequence[Kpi]) -> list[Component]:
    """A tile a figure."""
    return [_tile(figure) for figure in figures]


def _tile(figure: Kpi) -> Component:
    known = html.Span(figure.value, className="figure")
    return html.Div(
        [
            html.Div(figure.label, className="label"),
            html.Div([known, *([html.Span(figure.unit, className="unit")] if figure.unit else [])]),
            html.Div(figure.note, className="note"),
            sparkline(figure.trend),
        ],
        className="kpi",
    )
