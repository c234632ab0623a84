"""Times, written by the browser: in the reader's zone, and true also a minute later (assets/words.js)."""

from __future__ import annotations

from datetime import UTC, datetime

from dash import html


def age(since: float) -> html.Span:
    """How long ago ``since`` was, unix seconds: "23 min"."""
    return html.Span(title=_iso(since), **{"data-since": f"{since:.0f}"})


def clock(at: float) -> html.Time:
    """The time of day, "11:42"; of another day with its date."""
    return html.Time(dateTime=_iso(at), title=_iso(at), **{"data-clock": f"{at:.0f}"})


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
