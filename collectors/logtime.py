"""Times in logs: none names a zone, some name no year, and both have to be resolved against a clock.

A time without a zone is taken as UTC. Where the carrier of a line (container runtime, journal) stamped it with a zone,
``collectors.unwrap`` gives that time, which is preferred.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_FULL = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"\s?(?P<zone>Z|[+-]\d\d:?\d\d)?(?!\d)"
)
_YEARLESS = re.compile(r"(?P<month>\d\d)-(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?!\d)")

DAY_SECONDS = 86400.0
LEAP_CYCLE_YEARS = 9
"""A 29 February lies at most eight years back (1896 to 1904, and again around 2100)."""


def full_time(text: str) -> float | None:
    """Unix seconds of a time with a date at the start of ``text``; None where there is none.

    ``2026-12-01 07:07:29``, also with ``T``, with a fraction after a point or a comma, with a zone.
    """
    match = _FULL.match(text)
    if match is None:
        return None
    seconds = _second(match["day"], match["time"], match["zone"] or "Z")
    if seconds is None or match["fraction"] is None:
        return seconds
    return seconds + float("0." + match["fraction"])


def yearless_time(text: str, now: float) -> float | None:
    """Unix seconds of ``12-01 06:50:12`` at the start of ``text``: in the newest year that does not put it more than
    a day after ``now`` (a day: the log's zone is unknown, and clocks differ).
    """
    match = _YEARLESS.match(text)
    if match is None:
        return None
    month, day, hour, minute, second = (int(part) for part in match.groups())
    this_year = datetime.fromtimestamp(now, UTC).year
    for year in range(this_year + 1, this_year + 1 - LEAP_CYCLE_YEARS, -1):
        try:
            seconds = datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        except ValueError:
            continue
        if seconds <= now + DAY_SECONDS:
            return seconds
    return None


@lru_cache(maxsize=1024)
def _second(day: str, time: str, zone: str) -> float | None:
    """Cached: a log has many lines a second."""
    try:
        return datetime.fromisoformat(f"{day}T{time}{'+00:00' if zone == 'Z' else zone}").timestamp()
    except ValueError:
        return None


class LineClock:
    """Gives every line a time: its own, else the last one seen, else the time at which it was read."""

    def __init__(self, seen: float | None, read_at: float) -> None:
        self.seen = seen
        self._read_at = read_at

    def at(self, own: float | None) -> float:
        """Time of the next line, whose own is ``own`` where it has one."""
        if own is not None:
            self.seen = own
        return self._read_at if self.seen is None else self.seen
