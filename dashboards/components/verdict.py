"""The verdict of a page: a sentence first, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from dashboards.components.times import age


def verdict(sentence: str, alarm: str = "") -> list[Component | str]:
    """Children of a heading of class ``verdict``; ``alarm`` is the sentence that wants somebody."""
    return [sentence, *([" ", html.Span(alarm, className="alarm")] if alarm else [])]


def status(at: float, parts: Sequence[str]) -> list[Component]:
    """Children of a line of class ``status``: how live the page is, and how much it rests on."""
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
    return [live, *(html.Span(part) for part in parts)]
