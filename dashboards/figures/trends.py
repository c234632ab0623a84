"""The main figure of the trends page: acc_len by line, verify steps beneath, on one time axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dashboards.figures.chart import Chart, Look, segments
from dashboards.figures.marks import notes, shapes
from dashboards.figures.templates import TEMPLATES, rgba
from dashboards.figures.words import at_axis, escaped, evidence, per_bucket
from service.copy import amount
from service.trends import Line, TrendsView

HEIGHT = 556
MARGIN: Final[Mapping[str, int]] = MappingProxyType({"l": 40, "r": 12, "t": 44, "b": 26})
ACC_LEN_PANE = (0.265, 1.0)
STEPS_PANE = (0.0, 0.195)
LEAST_ACC_LEN = 0.8
BAR_SHARE = 0.88
RIBBON_OPACITY = 0.12
WIDE_PIXELS = 720
"""Narrower pages are touched: a finger that scrolls them must not zoom."""

DAY_SECONDS = 86400.0


def figure(chart: Chart, look: Look) -> dict[str, Any]:
    """A Plotly figure of plain values.

    Arrays are numpy's: Dash writes them as lists of JSON without a look at each number, and a ``Patch`` can add to
    them, which it cannot to those of ``plotly.graph_objects`` (base64). Traces: ``drawn``, in this order.
    """
    return {"data": _traces(chart, look), "layout": _layout(chart, look)}


def drawn(chart: Chart) -> list[tuple[str, Line | None]]:
    """What every trace shows: ribbons lie under lines, lines in the order in which the hover tells them."""
    coloured = in_order(chart.coloured())
    return [
        *(("ribbon", line) for line in coloured),
        *(("thin", line) for line in in_order(chart.thin())),
        *(("line", line) for line in coloured),
        ("lone", None),
        ("steps", None),
    ]


def in_order(lines: Iterable[Line]) -> list[Line]:
    """From the top of the chart down."""
    return sorted(lines, key=lambda line: (-anchor(line), line.name))


def anchor(line: Line) -> float:
    """The height at which a line is, while all is well."""
    if line.expected is not None:
        return line.expected
    told = [value for value in line.acc_len if value is not None]
    return sum(told) / len(told) if told else 1.0


def acc_len_range(chart: Chart) -> list[float]:
    """From 0.8 to what is drawn, in quarters, but not above k + 1; a line above that is a fault, and stays in sight."""
    view = chart.view
    least = max((value for line in view.lines for value in line.acc_len if value is not None), default=0.0)
    wanted = [least, view.floor[1], *(line.expected for line in chart.coloured() if line.expected is not None)]
    wanted += [value for line in chart.coloured() for value in line.upper if value is not None]
    top = ceil(4 * (max(wanted) + 0.05)) / 4
    if view.k is not None:
        top = max(min(top, view.k + 1.0), least)
    return [LEAST_ACC_LEN, top]


def steps_axis(chart: Chart) -> dict[str, Any]:
    """Range and ticks of the bars, in round numbers."""
    most = max((value for value in chart.view.steps if value is not None), default=0.0) or 1.0
    power = 10.0 ** floor(log10(most / 2))
    tick = next(size * power for size in (1, 2, 2.5, 5, 10) if 2 * size * power >= most / 1.35)
    values = [0.0, tick, 2 * tick]
    return {"range": [0.0, max(most, 2 * tick) * 1.12], "tickvals": values, "ticktext": [at_axis(at) for at in values]}


def time_range(view: TrendsView, look: Look) -> list[str]:
    return [look.moment(view.start), look.moment(view.end)]


def hover_texts(line: Line, since: int = 0) -> list[str | None]:
    """Of every bucket from ``since`` on what its figure rests on, None where there is no data."""
    told = zip(line.acc_len, line.lower, line.upper, line.steps, strict=True)
    return [
        None if value is None else evidence(lower, upper, line.expected, steps)
        for value, lower, upper, steps in list(told)[since:]
    ]


def steps_texts(view: TrendsView, since: int = 0) -> list[str | None]:
    return [None if steps is None else amount(steps) for steps in view.steps[since:]]


def ribbon(line: Line, view: TrendsView, look: Look, since: int = 0) -> tuple[list[str | None], list[float | None]]:
    """The interval around a line from bucket ``since`` on: a closed outline a segment, with a break between them.

    Where segments are not broken in x as well as in y, Plotly fills the gap. From a later bucket on, the outline begins
    at the bucket before, so that it joins what is drawn already.
    """
    known = [None if None in bounds else bounds for bounds in zip(line.lower, line.upper, strict=True)]
    xs: list[str | None] = []
    ys: list[float | None] = []
    for first, last in segments(known):
        places = range(max(first, since - 1), last + 1)
        if last < since or len(places) < 2:
            continue
        times = [look.moment(view.times[at]) for at in places]
        xs += [None, *times, *reversed(times)]
        ys += [None, *(rounded(line.upper[at]) for at in places), *(rounded(line.lower[at]) for at in reversed(places))]
    return xs, ys


def lone(chart: Chart, look: Look) -> tuple[list[str], list[float | None], list[str]]:
    """Values with gaps on both sides, as points with their colours: a line of one point would not be seen."""
    points = [
        (look.moment(chart.view.times[first]), rounded(line.acc_len[first]), colour_of(line, chart, look))
        for _, line in drawn(chart)
        if line is not None
        for first, last in segments(line.acc_len)
        if first == last
    ]
    unique = sorted(set(points), key=str)
    return [x for x, _, _ in unique], [y for _, y, _ in unique], [colour for _, _, colour in unique]


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _traces(chart: Chart, look: Look) -> list[dict[str, Any]]:
    of_lines = {"ribbon": _ribbon, "thin": _thin, "line": _line}
    of_all = {"lone": _lone, "steps": _bars}
    return [
        of_all[kind](chart, look) if line is None else of_lines[kind](line, chart, look) for kind, line in drawn(chart)
    ]


def _ribbon(line: Line, chart: Chart, look: Look) -> dict[str, Any]:
    xs, ys = ribbon(line, chart.view, look)
    return {
        "type": "scatter",
        "mode": "lines",
        "fill": "toself",
        "fillcolor": rgba(colour_of(line, chart, look), RIBBON_OPACITY),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "x": xs,
        "y": _array(ys),
    }


def _line(line: Line, chart: Chart, look: Look) -> dict[str, Any]:
    return {
        **_points(line, chart, look),
        "line": {"width": 1.75, "color": colour_of(line, chart, look)},
        "hovertemplate": "<b>%{y:.2f}</b>  %{hovertext}",
        "hovertext": hover_texts(line),
    }


def _thin(line: Line, chart: Chart, look: Look) -> dict[str, Any]:
    """A line beyond those that can be told apart by colour: the table and its label tell its figures."""
    return {
        **_points(line, chart, look),
        "line": {"width": 1, "color": rgba(look.palette.ink3, 0.6)},
        "hoverinfo": "skip",
    }


def _points(line: Line, chart: Chart, look: Look) -> dict[str, Any]:
    return {
        "type": "scatter",
        # Traces of less than 20 points would have markers.
        "mode": "lines",
        "name": escaped(line_name(line)),
        "connectgaps": False,
        **_time(chart.view, look),
        "y": np.round(_array(line.acc_len), 2),
    }


def _lone(chart: Chart, look: Look) -> dict[str, Any]:
    xs, ys, colours = lone(chart, look)
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {"size": 4, "color": colours},
        "hoverinfo": "skip",
        "x": xs,
        "y": ys,
    }


def _bars(chart: Chart, look: Look) -> dict[str, Any]:
    step = chart.view.step * 1000
    return {
        "type": "bar",
        "name": "all steps",
        "yaxis": "y2",
        "marker": {"color": rgba(look.palette.ink3, 0.38), "line": {"width": 0}},
        # A bucket is named by its end, and its bar ends there.
        "offset": -step * (1 + BAR_SHARE) / 2,
        "width": step * BAR_SHARE,
        "hovertemplate": f"<b>%{{hovertext}}</b> {per_bucket(chart.view.step)}",
        "hovertext": steps_texts(chart.view),
        **_time(chart.view, look),
        "y": np.round(_array(chart.view.steps)),
    }


def _time(view: TrendsView, look: Look) -> dict[str, Any]:
    return {"x0": look.moment(view.times[0]), "dx": view.step * 1000} if view.times else {}


def _layout(chart: Chart, look: Look) -> dict[str, Any]:
    view = chart.view
    return {
        "template": TEMPLATES[f"dg_{look.scheme}"],
        "height": HEIGHT,
        "margin": dict(MARGIN),
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "hoverdistance": -1,
        "dragmode": "zoom" if look.width >= WIDE_PIXELS - 60 else False,
        "bargap": 1 - BAR_SHARE,
        "xaxis": {
            "type": "date",
            "range": time_range(view, look),
            "anchor": "y2",
            "tickformat": _tick_format(view),
            "nticks": min(max(look.width // 90, 4), 10),
            "hoverformat": ("" if _is_day(view) else "%-d %b ") + ("%H:%M:%S" if view.step % 60 else "%H:%M"),
            "showspikes": True,
            "spikemode": "across",
            "spikethickness": 1,
            "spikedash": "solid",
            "spikecolor": look.palette.ink3,
        },
        "yaxis": {"domain": list(ACC_LEN_PANE), "range": acc_len_range(chart), "fixedrange": True, "dtick": 1},
        "yaxis2": {"domain": list(STEPS_PANE), "fixedrange": True, **steps_axis(chart)},
        "shapes": shapes(chart, look),
        "annotations": notes(chart, look),
    }


def _tick_format(view: TrendsView) -> str:
    if _is_day(view):
        return "%H:%M"
    return "%-d %b %H:%M" if view.end - view.start <= 3 * DAY_SECONDS else "%-d %b"


def _is_day(view: TrendsView) -> bool:
    return view.end - view.start <= DAY_SECONDS


def line_name(line: Line) -> str:
    return line.name or "unlabelled"


def colour_of(line: Line, chart: Chart, look: Look) -> str:
    colour = chart.colours.get(line.name)
    return look.palette.ink3 if colour is None else look.palette.series[colour]


def _array(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Not a number where there is no data, which is null in JSON."""
    return np.array(values, dtype=np.float64)
