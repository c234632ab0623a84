"""What is written in charts beside the words that all pages share (``service.copy``)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from service.copy import MINUS, NARROW_SPACE, age

DAY_SECONDS = 86400.0


def escaped(text: str, most: int = 60) -> str:
    """A name as Plotly shows it literally: it reads some HTML in all of its texts. Cut where it is too long."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def evidence(lower: float | None, upper: float | None, expected: float | None, steps: float | None) -> str:
    """What an acc_len rests on: its 95 % interval, what is expected, and verify steps; what is unknown is left out."""
    parts = [] if lower is None or upper is None else [f"{lower:.2f}–{upper:.2f}"]
    parts += [] if expected is None else [f"expected {expected:.1f}"]
    parts += [] if steps is None else [f"{round(steps):,} steps"]
    return ", ".join(parts)


def at_axis(value: float) -> str:
    """A number at an axis: ``500``, ``4 k``, ``2.5 M``."""
    for least, unit in ((1e6, "M"), (1e3, "k")):
        if value >= least:
            return f"{value / least:g}{NARROW_SPACE}{unit}"
    return f"{value:g}"


def per_bucket(step: float) -> str:
    """``per minute``, ``per 30 s``, ``per 2 h``: of a count in buckets of so many seconds."""
    units = {60.0: "minute", 3600.0: "hour", DAY_SECONDS: "day"}
    return f"per {units.get(step) or age(step)}"


def zone_words(minutes_east: int) -> str:
    """The zone that lies so far east of UTC: ``UTC``, ``UTC+1``, ``UTC−3:30``."""
    if not minutes_east:
        return "UTC"
    hours, rest = divmod(abs(minutes_east), 60)
    return f"UTC{'+' if minutes_east > 0 else MINUS}{hours}" + (f":{rest:02}" if rest else "")


def clock(minutes_east: int, start: float, end: float, step: float = 60.0) -> Callable[[float], str]:
    """How times of a range are told in a zone: the day too where it holds more than one, seconds where buckets do."""
    zone_seconds = 60 * minutes_east
    form = "%H:%M:%S" if step % 60 else "%H:%M"
    one_day = (start + zone_seconds) // DAY_SECONDS == (end + zone_seconds) // DAY_SECONDS

    def tell(at: float) -> str:
        local = datetime.fromtimestamp(at, UTC) + timedelta(seconds=zone_seconds)
        time = local.strftime(form)
        return time if one_day else f"{local.day} {_MONTHS[local.month - 1]} {time}"

    return tell


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
