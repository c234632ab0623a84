"""The figures of the trends figure as a table, newest first."""

from __future__ import annotations

from dash import Patch, html
from dash.development.base_component import Component

from dashboards.figures.chart import Chart, Look
from dashboards.figures.trends import in_order, line_name
from dashboards.figures.words import clock, evidence
from service.copy import NO_DATA, length, whole
from service.trends import Line


def columns(chart: Chart) -> Component:
    """The header: a column a line, and all steps."""
    heads = [html.Th("Until", scope="col")]
    heads += [html.Th([line_name(line), _expected(line)], scope="col") for line in _lines(chart)]
    return html.Tr([*heads, html.Th("all steps", scope="col")])


def rows(chart: Chart, look: Look, since: int = 0) -> list[Component]:
    """A row a bucket, from the place ``since`` on: acc_len and what it rests on."""
    view = chart.view
    tell = clock(look.minutes_east, view.start, view.end, view.step)
    return [_row(place, chart, tell(view.times[place])) for place in reversed(range(since, len(view.times)))]


def newer(chart: Chart, look: Look, since: int) -> Patch:
    """The rows that a table lacks, on top of it."""
    children = Patch()
    for row in reversed(rows(chart, look, since)):
        children.prepend(row)
    return children


def _lines(chart: Chart) -> list[Line]:
    return in_order(chart.coloured()) + in_order(chart.thin())


def _row(place: int, chart: Chart, time: str) -> Component:
    cells = [html.Td(_figures(line, place)) for line in _lines(chart)]
    return html.Tr([html.Th(time, scope="row"), *cells, html.Td(whole(chart.view.steps[place]))])


def _figures(line: Line, place: int) -> str:
    value = line.acc_len[place]
    if value is None:
        return NO_DATA
    rests_on = evidence(line.lower[place], line.upper[place], None, line.steps[place])
    return f"{length(value)} ({rests_on})" if rests_on else length(value)


def _expected(line: Line) -> str:
    return "" if line.expected is None else f", expected {line.expected:.1f}"
