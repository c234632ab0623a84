"""Trends as a page shows them: acc_len over time by one dimension, with evidence, floors, gaps and alerts."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from math import ceil
from threading import Lock

from acceptance.counts import NO_COUNTS, Counts, total
from acceptance.query import AcceptanceQuery
from acceptance.series import Dimension
from acceptance.sources import Answer, choose
from acceptance.statistics import bounds
from acceptance.window import SOURCES
from alerts.rules import Rulebook
from alerts.verdicts import Severity, as_severe, severity_of
from service import copy
from service.about import what_runs
from service.beats import loads
from service.buckets import Buckets, bucket_starts, bucket_width
from service.catalog import Catalog, TargetStatus
from service.falls import Course, Grid, trends_verdict
from service.gaps import Gap, gaps
from service.incidents import title_of
from service.scope import expected_of, is_about, limits_of, matches
from store.history import History
from store.state import StateStore

__all__ = ["Gap", "Line", "Mark", "TrendsReads", "TrendsView"]

MOST_BUCKETS = 240
MOST_LINES = 40
QUESTIONS_KEPT = 16
"""So many different charts may be looked at in turn without reading their past again."""

ALL_TRAFFIC = "all traffic"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the chart; a value per bucket of ``TrendsView.times``, None where there is no data.

    name       the value of the dimension broken down by ("code"), or "" for unlabelled, or "all traffic"
    expected   what is normal, None where nobody knows
    first, now   acc_len over the first and the last tenth of the range, None without data
    """

    name: str
    acc_len: tuple[float | None, ...]
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    steps: tuple[float | None, ...]
    expected: float | None
    first: float | None
    now: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """An alert on the time axis; ``end`` is None while it lasts."""

    start: float
    end: float | None
    title: str
    severity: Severity
    target: str


@dataclass(frozen=True, slots=True)
class TrendsView:
    """What the trends page shows.

    times    ends of the buckets, unix seconds
    lines    those with most steps first
    steps    verify steps per bucket over all lines, None where there is no data
    k        draft tokens a step can have accepted, where all targets shown agree
    dead, floor   where a drafter counts as dead, and the band in which acceptance is a notice (low, high)
    by       the dimension broken down by
    hidden   lines that are left out, those with fewest steps
    """

    verdict: str
    status: tuple[str, ...]
    start: float
    end: float
    step: float
    times: tuple[float, ...]
    lines: tuple[Line, ...]
    steps: tuple[float | None, ...]
    gaps: tuple[Gap, ...]
    marks: tuple[Mark, ...]
    k: int | None
    dead: float
    floor: tuple[float, float]
    sources: tuple[str, ...]
    by: Dimension = "category"
    hidden: int = 0


class TrendsReads:
    """Reads trends for their page. Blocks; any thread may ask, one at a time is answered.

    ``rulebook`` gives the rules as they are configured now.
    """

    def __init__(self, history: History, state: StateStore, catalog: Catalog, rulebook: Callable[[], Rulebook]) -> None:
        self._history = history
        self._state = state
        self._catalog = catalog
        self._rulebook = rulebook
        self._kept: OrderedDict[object, Buckets[Answer]] = OrderedDict()
        self._lock = Lock()

    def view(self, query: AcceptanceQuery, now: float, zone: tzinfo = UTC) -> TrendsView:
        """What ``query`` asks for, by one dimension (``dimension_of``); its step is chosen where it gives none.

        Buckets lie on multiples of the step, so that they are the same from call to call; the first may begin a
        little before the range. ``zone`` is that of the times in words.
        """
        by = dimension_of(query)
        statuses = [status for status in self._catalog.statuses() if matches(status, query)]
        asked = _on_grid(replace(query, by=(by,), offset=0.0), query.offset, statuses, now)
        step = asked.step or 1.0
        starts = bucket_starts(asked.start, asked.end, step)
        with self._lock:
            answers = self._buckets(asked).between(starts, now)
        counts = _by_name([answer for start in starts for answer in answers[start]], starts, step)
        totals = [total(answer.counts for answer in answers[start] if answer.counts.steps) for start in starts]
        names = {status.target.name for status in statuses} | set(query.where.get("target", ()))
        courses = _courses(counts, by, query, statuses)
        k, dead, floor = limits_of(self._rulebook(), query, statuses)
        return TrendsView(
            verdict=trends_verdict(courses, by, Grid(starts, step, dead, now, zone)),
            status=_status(statuses, totals, counts, by, k, step),
            start=asked.start,
            end=asked.end,
            step=step,
            times=tuple(start + step for start in starts),
            lines=tuple(_line(course) for course in courses[:MOST_LINES]),
            steps=tuple(item.steps for item in totals),
            gaps=gaps(
                starts,
                step,
                {start for start, item in zip(starts, totals, strict=True) if item.steps},
                lambda start, end: loads(self._history, start, end, step),
                names,
                asked.end,
                now,
            ),
            marks=tuple(self._marks(names, query, asked)),
            k=k,
            dead=dead,
            floor=floor,
            sources=tuple(
                source
                for source in SOURCES
                if any(source in item.sources for each in answers.values() for item in each)
            ),
            by=by,
            hidden=max(0, len(courses) - MOST_LINES),
        )

    def _buckets(self, asked: AcceptanceQuery) -> Buckets[Answer]:
        key = asked.step, asked.by, tuple(sorted(asked.where.items())), asked.source
        buckets = self._kept.pop(key, None)
        if buckets is None:
            buckets = Buckets(asked.step or 1.0, lambda start, end: self._read(asked, start, end), _bucket)
            if len(self._kept) >= QUESTIONS_KEPT:
                self._kept.popitem(last=False)
        self._kept[key] = buckets
        return buckets

    def _read(self, asked: AcceptanceQuery, start: float, end: float) -> Iterable[Answer]:
        query = replace(asked, start=start, end=end)
        return choose(self._history.query(query), query)

    def _marks(self, names: Collection[str], query: AcceptanceQuery, asked: AcceptanceQuery) -> Iterator[Mark]:
        """Warnings and critical alerts of what is shown, clipped to the range."""
        entries = self._rulebook().entries
        for alert in self._state.alerts(resolved_since=asked.start):
            severity, start = severity_of(alert.severity), alert.fired_at
            if start is None or alert.target not in names or not as_severe(severity, "warning"):
                continue
            lasts = alert.phase in ("firing", "recovering")
            end = None if lasts else alert.resolved_at or start
            if start < asked.end and (end is None or end > asked.start) and is_about(alert, query):
                title = title_of(alert, entries.get(alert.finding))
                yield Mark(
                    max(start, asked.start), None if end is None else min(end, asked.end), title, severity, alert.target
                )


def dimension_of(query: AcceptanceQuery) -> Dimension:
    """The dimension to break down by: the last of ``query.by`` that is not filtered to one value, else the category."""
    free: list[Dimension] = [name for name in query.by if len(query.where.get(name, ())) != 1]
    return free[-1] if free else "category"


def _on_grid(query: AcceptanceQuery, offset: float, statuses: Sequence[TargetStatus], now: float) -> AcceptanceQuery:
    """The query with a step, and with its range on whole buckets, but never after ``now``."""
    start, end = query.start - offset, min(query.end - offset, now)
    interval = max((status.target.scrape_interval_seconds for status in statuses), default=0.0)
    step = bucket_width(max(end - start, 1.0), MOST_BUCKETS, interval)
    if query.step is not None and (end - start) / query.step <= MOST_BUCKETS:
        step = max(1.0, round(query.step))
    first = start // step * step
    return replace(query, start=first, end=max(min(ceil(end / step) * step, now), first + 1.0), step=step)


def _bucket(answer: Answer) -> float:
    return answer.bucket


def _by_name(answers: Iterable[Answer], starts: Sequence[float], step: float) -> dict[str | None, list[Counts]]:
    """Counts by bucket, of every value that has steps."""
    counts: dict[str | None, list[Counts]] = defaultdict(lambda: [NO_COUNTS] * len(starts))
    first = starts[0]
    for answer in answers:
        if answer.counts.steps:
            counts[answer.key[0]][round((answer.bucket - first) / step)] = answer.counts
    return counts


def _courses(
    counts: Mapping[str | None, Sequence[Counts]],
    by: Dimension,
    query: AcceptanceQuery,
    statuses: Sequence[TargetStatus],
) -> list[Course]:
    """The lines, those with most steps first. What no source tells apart is a line only where nothing else is."""
    named = [name for name in counts if name is not None] or list(counts)
    courses = [
        Course(ALL_TRAFFIC if name is None else name, counts[name], expected_of(name, by, query, statuses))
        for name in named
    ]
    return sorted(courses, key=lambda course: (-sum(item.steps or 0.0 for item in course.counts), course.name))


def _line(course: Course) -> Line:
    tenth = max(1, len(course.counts) // 10)
    intervals = [bounds(item) for item in course.counts]
    return Line(
        name=course.name,
        acc_len=tuple(item.acc_len for item in course.counts),
        lower=tuple(None if interval is None else interval.lower for interval in intervals),
        upper=tuple(None if interval is None else interval.upper for interval in intervals),
        steps=tuple(item.steps for item in course.counts),
        expected=course.expected,
        first=total(item for item in course.counts[:tenth] if item.steps).acc_len,
        now=total(item for item in course.counts[-tenth:] if item.steps).acc_len,
    )


def _status(
    statuses: Sequence[TargetStatus],
    totals: Sequence[Counts],
    counts: Mapping[str | None, Sequence[Counts]],
    by: Dimension,
    k: int | None,
    step: float,
) -> tuple[str, ...]:
    steps = sum(item.steps or 0.0 for item in totals)
    told = f"{copy.amount(steps)} verify steps"
    if by == "category" and steps:
        named = sum(item.steps or 0.0 for name, items in counts.items() if name for item in items)
        told += f", {copy.percent(named / steps)} with a category"
    return (_who(statuses, k), told, f"{copy.width(step)} windows")


def _who(statuses: Sequence[TargetStatus], k: int | None) -> str:
    """``k3-h200-03 · SGLang 0.5.23 · Kimi-K3 + Kimi-K3-DSpark, k = 7``, or how many targets there are."""
    if len(statuses) != 1:
        return copy.counted(len(statuses), "target", "targets")
    return " · ".join([statuses[0].target.name, *what_runs(statuses[0], k)])
