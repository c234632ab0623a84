"""Numbers, times and amounts as people read them. One place, so that every page and sentence says them alike.

Nothing here ever writes "NaN" or a zero for what is not known: a missing figure is ``NO_DATA``.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from math import floor, log10

NO_DATA = "no data"
MINUS = "\N{MINUS SIGN}"
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
ARROW = " \N{RIGHTWARDS ARROW} "

_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def length(acc_len: float | None) -> str:
    """An acc_len: ``4.16``."""
    return NO_DATA if acc_len is None else f"{acc_len:.2f}"


def milliseconds(seconds: float | None) -> str:
    """A step time without its unit: ``41.6``."""
    return NO_DATA if seconds is None else f"{seconds * 1000:.1f}"


def step_time(seconds: float | None) -> str:
    """A step time: ``41.6 ms``."""
    return NO_DATA if seconds is None else f"{milliseconds(seconds)} ms"


def percent(share: float | None, *, signed: bool = False) -> str:
    """A share from 0 to 1: ``45.1 %``; signed, as a change is: ``−2.6 %``."""
    if share is None:
        return NO_DATA
    number = f"{abs(share) * 100:.1f}"
    return f"{_sign(share, number, signed=signed)}{number}{NARROW_SPACE}%"


def whole_percent(share: float) -> str:
    """A share in a sentence, where a decimal would pretend to more than is known: ``32 %``."""
    return f"{share * 100:.0f}{NARROW_SPACE}%"


def ratio(value: float) -> str:
    """How many times as much: ``×2.3``."""
    return f"\N{MULTIPLICATION SIGN}{value:.1f}"


def rate(tokens_per_second: float | None, *, signed: bool = False) -> str:
    """Tokens per second without the unit: ``2,940``, from 10 thousand on ``53.1 k``; signed, as gains and costs are."""
    if tokens_per_second is None:
        return NO_DATA
    size = round(abs(tokens_per_second))
    number = f"{size:,}" if size < 10_000 else _short(abs(tokens_per_second))
    return f"{_sign(tokens_per_second, number, signed=signed)}{number}"


def whole(number: float | None) -> str:
    """A count where there is room: ``1,424``."""
    return NO_DATA if number is None else f"{round(number):,}"


def amount(number: float | None) -> str:
    """A count in a line of status: ``412``, ``38.4 k``, ``214 k``, ``1.42 M``."""
    if number is None:
        return NO_DATA
    return f"{round(number):,}" if round(number) < 10_000 else _short(number)


def age(seconds: float) -> str:
    """``2 s``, ``23 min``, ``1 h 4 min``, ``3 d 2 h``."""
    left = max(0, floor(seconds))
    if left < 60:
        return f"{left} s"
    minutes = left // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def width(seconds: float) -> str:
    """How long something always lasts: ``30-second``, ``1-minute``, ``3-hour``."""
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds // unit:.0f}-{name}"
    return f"{seconds:.0f}-second"


def clock(at: float, now: float, zone: tzinfo = UTC) -> str:
    """The time of day, ``11:42``; of another day than today ``3 Nov 11:42``."""
    moment, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone).date()
    time = f"{moment:%H:%M}"
    if moment.date() == today:
        return time
    year = "" if moment.year == today.year else f" {moment.year}"
    return f"{moment.day} {_MONTHS[moment.month - 1]}{year} {time}"


def number(count: int) -> str:
    """A number in a sentence: in words to nine."""
    return _WORDS[count] if 0 <= count < len(_WORDS) else f"{count:,}"


def sentence(text: str) -> str:
    """With a capital at the front."""
    return text[:1].upper() + text[1:]


def listed(items: Sequence[str]) -> str:
    """``code, math and chat``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def counted(count: int, one: str, many: str) -> str:
    """``1 target``, ``24 targets``."""
    return f"{count:,} {one if count == 1 else many}"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""Not by the locale of the process: what a page says must not depend on where it runs."""

_SUFFIXES = ("", " k", " M", " G", " T")


def _short(size: float) -> str:
    """Three significant digits and a suffix; from 10 thousand on ``10.0 k``."""
    power = min(max(floor(log10(size)) // 3, 0), len(_SUFFIXES) - 1)
    scaled = size / 1000**power
    decimals = max(0, 2 - floor(log10(scaled)))
    if round(scaled, decimals) >= 1000 and power + 1 < len(_SUFFIXES):
        return _short(1000.0 ** (power + 1))
    if round(scaled, decimals) >= 10 ** (3 - decimals):
        decimals -= 1
    return f"{scaled:.{max(decimals, 0)}f}{_SUFFIXES[power]}"


def _sign(value: float, number: str, *, signed: bool) -> str:
    if not number.strip("0.,"):
        return ""
    return MINUS if value < 0 else "+" if signed else ""
