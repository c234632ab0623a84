"""The verdict of a page: a sentence first, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from alerts.verdicts import Severity
from dashboards.components.texts import Texts
from dashboards.components.times import age


def verdict(sentence: str, alarm: str = "", severity: Severity | None = None) -> list[Component | str]:
    """Children of a heading of class ``verdict``; ``alarm`` is the sentence that wants somebody."""
    return [sentence, *([" ", html.Span(alarm, className=f"alarm alarm-{severity or 'none'}")] if alarm else [])]


def status(at: float, parts: Sequence[str]) -> list[Component]:
    """Children of a line of class ``status``: when something was told last, and how much the page rests on."""
    live = html.Span(
        [
            html.I(className="live-dot", **{"aria-hidden": "true"}),
            html.Span(**{"data-live-word": ""}),
            ", ",
            age(at),
            " ago",
        ],
        className="live",
    )
    return [live, *(html.Span(part, id=f"status-{number}") for number, part in enumerate(parts))]


def status_texts(before: Sequence[str], after: Sequence[str]) -> Texts | None:
    """What changed in the parts of a line of status, None where it has to be drawn anew."""
    if len(before) != len(after):
        return None
    return {f"status-{number}": new for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
