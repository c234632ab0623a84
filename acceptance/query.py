"""The one question asked of history: counts of which series, over which time, in which buckets, by which dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from typing import cast

from acceptance.counts import Counts
from acceptance.series import DIMENSIONS, Dimension
from acceptance.window import SOURCES, Source

MAX_BUCKETS = 11_000
"""Most buckets of one answer, as Prometheus's limit of points a series."""

DEFAULT_SPAN_SECONDS = 3600.0


class BadQuery(ValueError):
    """A parameter that cannot be answered: which one and why."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter = parameter
        self.reason = reason


@dataclass(frozen=True, slots=True)
class AcceptanceQuery:
    """Counts in (start, end], unix seconds.

    step     bucket width in seconds; None is one bucket. A window belongs to the bucket in which it ends, whole:
             counts are never split
    by       dimensions to tell apart
    where    dimension -> accepted values; a series whose source cannot tell the dimension does not match
    source   only this source; None chooses the best per target and bucket (``acceptance.sources``)
    offset   seconds by which the span is moved into the past (compare with an earlier time)
    """

    start: float
    end: float
    step: float | None = None
    by: tuple[Dimension, ...] = ("target",)
    where: Mapping[Dimension, tuple[str, ...]] = field(default_factory=dict[Dimension, tuple[str, ...]])
    source: Source | None = None
    offset: float = 0.0

    @staticmethod
    def parse(parameters: Mapping[str, Iterable[str]], now: float) -> AcceptanceQuery:
        """From URL parameters; raises ``BadQuery``. Times are ISO 8601, unix seconds or ``now-1h``.

        A parameter given empty is as good as absent, but for two: ``category=`` asks for unlabelled requests, and
        ``by=`` for one sum over everything.
        """
        given = {
            name: [value for value in values if value != "" or name == "category"]
            for name, values in parameters.items()
        }
        unknown = set(given) - {"from", "to", "step", "by", "source", "offset", *DIMENSIONS}
        if unknown:
            name = min(unknown)
            raise BadQuery(name[:40], "unknown parameter")
        end = parse_time("to", _one(given, "to") or "now", now)
        start_text = _one(given, "from")
        start = end - DEFAULT_SPAN_SECONDS if start_text is None else parse_time("from", start_text, now)
        if start >= end:
            raise BadQuery("from", "must lie before to")
        step_text = _one(given, "step")
        step = None if step_text is None else parse_duration("step", step_text)
        if step is not None and (end - start) / step > MAX_BUCKETS:
            raise BadQuery("step", f"gives more than {MAX_BUCKETS} buckets over this time")
        offset_text = _one(given, "offset")
        source = _one(given, "source")
        if source is not None and source not in SOURCES:
            raise BadQuery("source", f"must be one of {', '.join(SOURCES)}")
        return AcceptanceQuery(
            start=start,
            end=end,
            step=step,
            by=_dimensions(given.get("by", ["target"])),
            where={name: tuple(given[name]) for name in DIMENSIONS if given.get(name)},
            source=source,
            offset=0.0 if offset_text is None else parse_duration("offset", offset_text),
        )

    def to_params(self) -> list[tuple[str, str]]:
        """URL parameters that ``parse`` reads back as this query: the deep link."""
        parameters = [("from", format_time(self.start)), ("to", format_time(self.end)), ("by", ",".join(self.by))]
        if self.step is not None:
            parameters.append(("step", format_duration(self.step)))
        if self.source is not None:
            parameters.append(("source", self.source))
        if self.offset:
            parameters.append(("offset", format_duration(self.offset)))
        return parameters + [(name, value) for name, values in self.where.items() for value in values]


@dataclass(frozen=True, slots=True)
class Sum:
    """Counts of one source of one target in one bucket, for one combination of the dimensions asked for.

    key       value of each dimension of ``query.by``, in its order
    windows   how many windows were added up
    first, last   start of the earliest and end of the latest of them
    """

    target: str
    source: Source
    bucket: float
    key: tuple[str | None, ...]
    counts: Counts
    windows: int
    exact: bool
    first: float
    last: float


def bucket_start(query: AcceptanceQuery, end: float) -> float:
    """The start of the bucket to which a window that ends at ``end`` belongs; buckets are (start, start + step]."""
    start = query.start - query.offset
    if query.step is None:
        return start
    return start + (ceil((end - start) / query.step) - 1) * query.step


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|[smhdw]?)")
_RELATIVE = re.compile(r"now(?:(?P<sign>[+-])(?P<duration>\S+))?")


def parse_duration(parameter: str, text: str) -> float:
    """Seconds of ``90``, ``90s``, ``5m``, ``1h``; raises ``BadQuery`` unless it is above 0."""
    match = _DURATION.fullmatch(text)
    seconds = float(match["number"]) * _UNITS[match["unit"] or "s"] if match else 0.0
    if not 0.0 < seconds < 1e10:
        raise BadQuery(parameter, f"not a duration above 0: {text[:40]!r} (say 90, 30s, 5m, 1h)")
    return seconds


def format_duration(seconds: float) -> str:
    """What ``parse_duration`` reads back as ``seconds``, to the last bit."""
    return f"{Decimal(repr(float(seconds))):f}s"


def parse_time(parameter: str, text: str, now: float) -> float:
    """Unix seconds, to the microsecond, of ISO 8601 (UTC unless it names a zone), unix seconds, or ``now-1h``.

    Raises ``BadQuery``.
    """
    if relative := _RELATIVE.fullmatch(text):
        distance = parse_duration(parameter, relative["duration"]) if relative["duration"] else 0.0
        seconds = now - distance if relative["sign"] == "-" else now + distance
    else:
        seconds = _absolute(text)
    if not 0.0 <= seconds < 1e11:
        raise BadQuery(parameter, f"not a time: {text[:40]!r} (say 2026-12-01T03:00:00Z, 1796094000 or now-1h)")
    return round(seconds, 6)


def _absolute(text: str) -> float:
    """Not a number where the text is no time."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        # An unescaped "+" of a zone arrives as a blank.
        moment = datetime.fromisoformat(text.replace(" ", "+") if text.count(" ") == 1 and "T" in text else text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return float("nan")


def format_time(seconds: float) -> str:
    """ISO 8601 in UTC, with as many decimals as needed (at most six)."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    return text.rstrip("0").rstrip(".") + "Z"


def _one(given: Mapping[str, list[str]], name: str) -> str | None:
    values = given.get(name, [])
    if len(values) > 1:
        raise BadQuery(name, "given more than once")
    return values[0] if values else None


def _dimensions(values: Iterable[str]) -> tuple[Dimension, ...]:
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    for name in names:
        if name not in DIMENSIONS:
            raise BadQuery("by", f"{name[:40]!r} is not a dimension ({', '.join(DIMENSIONS)})")
    return cast("tuple[Dimension, ...]", tuple(dict.fromkeys(names)))
