"""What lies under and over the lines of the trends figure: floors, what is expected, gaps, alerts, and their words.

Everything that lasts until now reaches beyond the figure's end, and what began before it beyond its start: when time
goes on, nothing of it has to be drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from alerts.verdicts import SEVERITIES, Severity
from dashboards.figures.chart import Chart, Look, segments
from dashboards.figures.templates import Palette, rgba
from dashboards.figures.words import clock, escaped, per_bucket
from service.copy import age
from service.trends import Gap, Line, Mark, TrendsView

MOST_MARKS = 40
CHARACTER_PIXELS = 6.2
"""Mean width of a character of the charts' font."""
LINE_PIXELS = 14
BAR_FROM, BAR_TO, WORDS_AT = 1.013, 1.021, 1.024
"""Heights above the plot, as a share of it: the bar of an alert for as long as it fires, and its words."""

_RANKS: Mapping[Severity, int] = MappingProxyType({severity: rank for rank, severity in enumerate(SEVERITIES)})


def shapes(chart: Chart, look: Look) -> list[dict[str, Any]]:
    """All of them lie under the lines, but for the bars of alerts, which lie above the plot."""
    view, palette = chart.view, look.palette
    low, high = view.floor
    floor = [_band(palette.notice_solid, palette.floor_opacity, yref="y", y0=low, y1=high)] if high > low else []
    dead = _level(view.dead, palette.crit_solid, "4px,3px")
    expected = [
        _level(line.expected, rgba(palette.series[chart.colours[line.name]], 0.55), "5px,4px")
        for line in chart.coloured()
        if line.expected is not None
    ]
    gaps = [
        _band(palette.ink3, 0.09, xref="x", yref=pane, x0=x0, x1=x1)
        for gap in view.gaps
        for x0, x1 in [_reach(gap.start, None if lasts(gap, view) else gap.end, view, look)]
        for pane in ("y domain", "y2 domain")
    ]
    return [
        *floor,
        *gaps,
        *expected,
        dead,
        *(shape for mark in shown(view) for shape in _mark_shapes(mark, view, look)),
    ]


def notes(chart: Chart, look: Look) -> list[dict[str, Any]]:
    """Words at the floors, the panes, the gaps and the alerts."""
    view, palette = chart.view, look.palette
    low, high = view.floor
    floor = [_at_left(f"notice {low:g}–{high:g}", low, palette.notice)] if high > low else []
    return [
        *floor,
        _at_left(f"dead ≤ {view.dead:.2f}", view.dead, palette.crit),
        {**_at_left(f"verify steps {per_bucket(view.step)}", 1, palette.ink3), "yref": "y2 domain"},
        *_gap_words(view, look),
        *own_gap_words(chart, look),
        *_mark_words(view, look),
    ]


def shown(view: TrendsView) -> list[Mark]:
    """The gravest ``MOST_MARKS`` of what is in the range and not mere information, gravest last: it lies on top."""
    inside = [
        mark
        for mark in view.marks
        if mark.severity != "info" and mark.start < view.end and (mark.end is None or mark.end > view.start)
    ]
    return sorted(inside, key=lambda mark: (_RANKS[mark.severity], mark.start))[-MOST_MARKS:]


def lasts(gap: Gap, view: TrendsView) -> bool:
    """Whether nothing was verified since; the newest empty bucket may not count as a gap yet."""
    return not any(steps for at, steps in zip(view.times, view.steps, strict=True) if at > gap.end)


def began_before(start: float, view: TrendsView) -> bool:
    return not view.times or start <= view.times[0] - view.step


def gap_words(gap: Gap, view: TrendsView, look: Look) -> str:
    """``no data, 6 min``; where one of its ends is not in the range, the other is told instead of how long it lasts."""
    tell = clock(look.minutes_east, view.start, view.end)
    still, cut = lasts(gap, view), began_before(gap.start, view)
    if still and cut:
        return gap.why
    if still:
        return f"{gap.why} since {tell(gap.start)}"
    return f"{gap.why} until {tell(gap.end)}" if cut else f"{gap.why}, {age(gap.end - gap.start)}"


def own_gap_words(chart: Chart, look: Look) -> list[dict[str, Any]]:
    """``creative: no traffic``, where one line has a gap between its ends that is not everybody's."""
    return [words for line in chart.coloured() for words in _own_gap_words(line, chart, look)]


def mark_words(mark: Mark) -> str:
    ended = "firing" if mark.end is None else age(mark.end - mark.start)
    return f"alert: {escaped(mark.title, 80)}, {ended}"


def _mark_shapes(mark: Mark, view: TrendsView, look: Look) -> list[dict[str, Any]]:
    _, solid = _severity_colours(mark.severity, look.palette)
    x0, x1 = _reach(mark.start, mark.end, view, look)
    bar = {
        **_band(solid, 1, xref="x", yref="paper", x0=x0, x1=x1, y0=BAR_FROM, y1=BAR_TO),
        "layer": "above",
    }
    line = {"width": 1.25, "color": solid, "dash": "2px,2px"}
    at = {"xref": "x", "yref": "paper", "x0": x0, "x1": x0, "y0": 0, "y1": 1}
    return [{"type": "line", "layer": "below", "line": line, **at}, bar]


def _reach(start: float, end: float | None, view: TrendsView, look: Look) -> tuple[str, str]:
    span = view.end - view.start
    first = view.start - span if began_before(start, view) else start
    last = view.end + span if end is None else end
    return look.moment(first), look.moment(last)


def _band(colour: str, opacity: float, **place: Any) -> dict[str, Any]:
    return {
        "type": "rect",
        "layer": "below",
        "fillcolor": rgba(colour, opacity),
        "line": {"width": 0},
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 0,
        "y1": 1,
        **place,
    }


def _level(at: float, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line",
        "layer": "below",
        "line": {"width": 1, "color": colour, "dash": dash},
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": at,
        "y1": at,
    }


def _words(text: str, colour: str, **place: Any) -> dict[str, Any]:
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": colour}, **place}


def _at_left(text: str, at: float, colour: str) -> dict[str, Any]:
    place = {"xref": "paper", "yref": "y", "x": 0, "y": at, "xanchor": "left", "yanchor": "bottom", "xshift": 4}
    return _words(text, colour, **place)


def _gap_words(view: TrendsView, look: Look) -> list[dict[str, Any]]:
    """Upright, where the band is wide enough for a line of text."""
    words: list[dict[str, Any]] = []
    for gap in view.gaps:
        start, end = max(gap.start, view.start), min(gap.end, view.end)
        if _pixels(end - start, view, look) >= LINE_PIXELS:
            place = {"xref": "x", "yref": "y domain", "x": look.moment((start + end) / 2), "y": 0.5}
            words.append(_words(gap_words(gap, view, look), look.palette.ink3, textangle=-90, **place))
    return words


def _own_gap_words(line: Line, chart: Chart, look: Look) -> list[dict[str, Any]]:
    view, name = chart.view, escaped(line.name or "unlabelled", 24)
    words: list[dict[str, Any]] = []
    for (_, before), (after, _) in pairwise(segments(line.acc_len)):
        start, end = view.times[before], view.times[after] - view.step
        if any(gap.start < end and gap.end > start for gap in view.gaps):
            continue
        text = f"{name}: no traffic"
        if _pixels(end - start, view, look) >= len(text) * CHARACTER_PIXELS:
            levels = [value for value in (line.acc_len[before], line.acc_len[after]) if value is not None]
            place = {"x": look.moment((start + end) / 2), "y": sum(levels) / len(levels)}
            colour, ground = look.palette.series[chart.colours[line.name]], rgba(look.palette.canvas, 0.8)
            words.append(_words(text, colour, bgcolor=ground, xref="x", yref="y", **place))
    return words


def _mark_words(view: TrendsView, look: Look) -> list[dict[str, Any]]:
    """Words above the plot for the gravest and earliest that have room; others are points that tell on hover."""
    taken: list[tuple[float, float]] = []
    words: list[dict[str, Any]] = []
    for mark in sorted(shown(view), key=lambda mark: (-_RANKS[mark.severity], mark.start, mark.target)):
        text = mark_words(mark)
        start = max(mark.start, view.start)
        left = _pixels(start - view.start, view, look)
        width = (len(text) + 3) * CHARACTER_PIXELS
        # Words that would reach beyond the end of the plot begin earlier.
        first = min(left, look.width - width)
        place = (first, first + width)
        colour, _ = _severity_colours(mark.severity, look.palette)
        has_room = place[0] >= 0 and all(place[1] < other[0] or place[0] > other[1] for other in taken)
        if has_room:
            taken.append(place)
        words.append(
            _words(
                f"● {text}" if has_room else "●",
                colour,
                xref="x",
                yref="paper",
                x=look.moment(start),
                y=WORDS_AT,
                xanchor="left",
                xshift=round(first - left) if has_room else 0,
                yanchor="bottom",
                hovertext=_mark_hover(mark, view, look),
            )
        )
    return words


def _mark_hover(mark: Mark, view: TrendsView, look: Look) -> str:
    tell = clock(look.minutes_east, view.start, view.end)
    until = "" if mark.end is None else f", until {tell(mark.end)}"
    return f"{mark_words(mark)}<br>since {tell(mark.start)}{until}"


def _severity_colours(severity: Severity, palette: Palette) -> tuple[str, str]:
    """Of text and of areas."""
    if severity == "critical":
        return palette.crit, palette.crit_solid
    return (palette.warn, palette.warn_solid) if severity == "warning" else (palette.notice, palette.notice_solid)


def _pixels(seconds: float, view: TrendsView, look: Look) -> float:
    return seconds / (view.end - view.start) * look.width
