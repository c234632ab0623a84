"""Trends as a page shows them: acc_len over time by one dimension, with evidence, floors, gaps and alerts."""

from __future__ import annotations

from dataclasses import dataclass

from alerts.verdicts import Severity


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
class Gap:
    """Time in which nothing verified: ``why`` is "no data" or "idle"."""

    start: float
    end: float
    why: str


@dataclass(frozen=True, slots=True)
class TrendsView:
    """What the trends page shows.

    times    ends of the buckets, unix seconds
    steps    verify steps per bucket over all lines, None where there is no data
    k        draft tokens a step can have accepted, where all targets shown agree
    dead, floor   where a drafter counts as dead, and the band in which acceptance is a notice (low, high)
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
