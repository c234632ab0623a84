"""Live: what a drawn figure lacks of a newer view, as a patch of a few new buckets, or that it must be drawn anew."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from uuid import uuid4

from dash import Patch

from dashboards.figures.chart import Chart, Look
from dashboards.figures.marks import began_before, lasts, own_gap_words, shown
from dashboards.figures.trends import (
    acc_len_range,
    drawn,
    hover_texts,
    lone,
    ribbon,
    rounded,
    steps_axis,
    steps_texts,
    time_range,
)
from service.trends import Line

MOST_KEPT = 64
GROWN_SHARE = 0.25
"""Buckets that have left the range stay in a figure, out of sight, until they are so large a part of it."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart as a page has it. ``first``: the end of its oldest bucket, ``key``: what was asked and how it looks."""

    id: str
    key: str
    chart: Chart
    first: float


class Drawings:
    """The newest drawings by their ids; pages that ask and look alike share one. Ids of other processes are unknown."""

    def __init__(self) -> None:
        self._process = uuid4().hex[:8]
        self._count = 0
        self._kept: OrderedDict[str, Drawing] = OrderedDict()

    def keep(self, key: str, chart: Chart, first: float) -> Drawing:
        for kept in self._kept.values():
            if kept.key == key and kept.first == first and kept.chart == chart:
                return kept
        self._count += 1
        drawing = Drawing(f"{self._process}.{self._count}", key, chart, first)
        self._kept[drawing.id] = drawing
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return drawing

    def known(self, drawing_id: object, key: str | None = None) -> Drawing | None:
        """The drawing that a page has, None where it is forgotten or shows something else than ``key``."""
        kept = self._kept.get(drawing_id) if isinstance(drawing_id, str) else None
        if kept is None or (key is not None and kept.key != key):
            return None
        self._kept.move_to_end(kept.id)
        return kept


def news(drawing: Drawing, chart: Chart, look: Look) -> int | None:
    """The place in ``chart`` of the first bucket that the drawing lacks, the number of buckets where it lacks none.

    None: it must be drawn anew, since something else differs than what a patch adds: its lines, gaps or marks, or a
    bucket that is drawn already, for which something came late.
    """
    old, new = drawing.chart.view, chart.view
    if not old.times or not new.times or _frame(drawing.chart, look) != _frame(chart, look):
        return None
    if new.times[0] - drawing.first > GROWN_SHARE * (new.end - new.start) or new.times[0] not in old.times:
        return None
    gone = old.times.index(new.times[0])
    shared = len(old.times) - gone
    if old.times[gone:] != new.times[:shared] or old.steps[gone:] != new.steps[:shared]:
        return None
    told = zip(old.lines, new.lines, strict=True)
    return shared if all(_values(a, gone, len(old.times)) == _values(b, 0, shared) for a, b in told) else None


def patch(before: Chart, chart: Chart, look: Look, since: int) -> Patch:
    """Adds the buckets of ``chart`` from the place ``since`` on to the figure of ``before``."""
    figure = Patch()
    for place, (kind, line) in enumerate(drawn(chart)):
        trace = figure["data"][place]
        if line is not None:
            _extend(trace, kind, line, chart, look, since)
        elif kind == "steps":
            trace["y"].extend([None if steps is None else round(steps) for steps in chart.view.steps[since:]])
            trace["hovertext"].extend(steps_texts(chart.view, since))
        elif lone(chart, look) != lone(before, look):
            trace["x"], trace["y"], trace["marker"]["color"] = lone(chart, look)
    layout = figure["layout"]
    layout["xaxis"]["range"] = time_range(chart.view, look)
    if acc_len_range(chart) != acc_len_range(before):
        layout["yaxis"]["range"] = acc_len_range(chart)
    if steps_axis(chart) != steps_axis(before):
        layout["yaxis2"].update(steps_axis(chart))
    return figure


def _extend(trace: Patch, kind: str, line: Line, chart: Chart, look: Look, since: int) -> None:
    if kind == "ribbon":
        xs, ys = ribbon(line, chart.view, look, since)
        if xs:
            trace["x"].extend(xs)
            trace["y"].extend(ys)
        return
    trace["y"].extend([rounded(value) for value in line.acc_len[since:]])
    if kind == "line":
        trace["hovertext"].extend(hover_texts(line, since))


def _frame(chart: Chart, look: Look) -> object:
    """Everything drawn but the buckets."""
    view = chart.view
    gaps = [
        (gap.why, None if began_before(gap.start, view) else gap.start, None if lasts(gap, view) else gap.end)
        for gap in view.gaps
    ]
    marks = [
        (None if began_before(mark.start, view) else mark.start, mark.end, mark.title, mark.severity, mark.target)
        for mark in shown(view)
    ]
    lines = [(kind, line and (line.name, line.expected and round(line.expected, 1))) for kind, line in drawn(chart)]
    return view.step, view.k, view.dead, view.floor, gaps, marks, lines, chart.colours, own_gap_words(chart, look)


def _values(line: Line, start: int, end: int) -> tuple[tuple[float | None, ...], ...]:
    return line.acc_len[start:end], line.lower[start:end], line.upper[start:end], line.steps[start:end]
