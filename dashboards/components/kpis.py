"""Figures of the whole fleet, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from dashboards.components.sparkline import sparkline
from dashboards.components.texts import Texts
from service.fleet import Kpi


def kpis(figures: Sequence[Kpi]) -> list[Component]:
    """A tile a figure."""
    return [_tile(figure, number) for number, figure in enumerate(figures)]


def kpi_texts(before: Sequence[Kpi], after: Sequence[Kpi]) -> Texts | None:
    """What changed, None where tiles have to be drawn anew."""
    if [_drawn(figure) for figure in before] != [_drawn(figure) for figure in after]:
        return None
    texts: Texts = {}
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.value != new.value:
            texts[f"kpi-{number}-value"] = new.value
        if old.note != new.note:
            texts[f"kpi-{number}-note"] = new.note
    return texts


def _drawn(figure: Kpi) -> tuple[object, ...]:
    return figure.label, figure.unit, figure.trend


def _tile(figure: Kpi, number: int) -> Component:
    known = html.Span(figure.value, id=f"kpi-{number}-value", className="figure")
    return html.Div(
        [
            html.Div(figure.label, className="label"),
            html.Div([known, *([html.Span(figure.unit, className="unit")] if figure.unit else [])]),
            html.Div(figure.note, id=f"kpi-{number}-note", className="note"),
            sparkline(figure.trend),
        ],
        className="kpi",
    )
