"""Labels at the ends of the lines: which is which, what is expected of it and what it does now; a click isolates it."""

from __future__ import annotations

from dash import Patch, html
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.components.trends_controls import filter_by
from dashboards.figures.chart import Chart
from dashboards.figures.labels import placed
from dashboards.figures.trends import line_name
from service.copy import length
from service.trends import Line

_NOW = 2
"""Place of the figure that a tick replaces among the children of a label."""


def labels(chart: Chart, address: Address) -> list[Component]:
    """One a line, from the top down."""
    found = placed(chart)
    shown = [_label(line, top, chart, address) for line, top in found]
    more = len(chart.view.lines) + chart.view.hidden - len(found)
    return shown if not more else [*shown, html.Div(f"and {more:,} more", className="trends-more")]


def newer(before: Chart, chart: Chart) -> Patch:
    """What the labels of ``before`` say otherwise once newer buckets were added to its figure."""
    children = Patch()
    known = {line.name: line for line in before.view.lines}
    for place, (line, _) in enumerate(placed(chart)):
        if length(line.now) != length(known[line.name].now):
            children[place]["props"]["children"][_NOW]["props"]["children"] = length(line.now)
    return children


def _label(line: Line, top: int, chart: Chart, address: Address) -> Component:
    colour = chart.colours.get(line.name)
    swatch = f"line-swatch line-{colour.replace(' ', '-')}" if colour else "line-swatch"
    children = [
        html.I(className=swatch, **{"aria-hidden": "true"}),
        html.Span([html.Span(line_name(line), className="trends-name"), _expected(line)], className="trends-expected"),
        html.B(length(line.now)),
    ]
    name = line_name(line)
    toggle = filter_by(chart, line.name)
    if toggle is None:
        return html.Div(children, className="trends-label", style={"top": top}, title=name)
    isolated = line.name in address.where.get(chart.view.by, ())
    does = f"{name}: show all again" if isolated else f"{name}: show only this"
    return html.Button(children, className="trends-label", style={"top": top}, title=does, **{"data-toggle": toggle})


def _expected(line: Line) -> str:
    return "" if line.expected is None else f"{line.expected:.1f} →"
