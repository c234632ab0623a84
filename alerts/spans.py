"""Spans of windows: how much of the newest past is enough evidence, and what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acceptance.counts import Counts, Spread, total
from acceptance.query import Sum, format_time
from acceptance.statistics import MIN_CLUSTERS, Bounds, bounds
from alerts.limits import Enough, Limits


def with_steps(windows: Sequence[Sum]) -> list[Sum]:
    """The windows that tell of verify steps."""
    return [window for window in windows if window.counts.steps]


def number_of(windows: Sequence[Sum]) -> int:
    """How many windows were added up in these."""
    return sum(window.windows for window in windows)


def shortest(windows: Sequence[Sum], need: Sequence[Enough]) -> Sequence[Sum]:
    """The fewest newest windows that are enough evidence; empty where all together are not."""
    usable = [enough for enough in need if _applies(enough, windows)]
    if not usable:
        return ()
    existing, steps, requests = 0, 0.0, 0.0
    for index in range(len(windows) - 1, -1, -1):
        window = windows[index]
        existing += window.windows
        steps += window.counts.steps or 0.0
        requests += window.counts.requests or 0.0
        span = windows[-1].last - window.first
        if any(_met(enough, existing, steps, requests, span) for enough in usable):
            return windows[index:]
    return ()


BLOCKS = 10
"""Parts of a span that are taken to be independent of each other."""

HELD = frozenset({"window_seconds", "recent_seconds"})
"""Thresholds that ``held`` and ``newest_acc_len`` use."""


def held(windows: Sequence[Sum], now: float, limits: Limits) -> Sequence[Sum]:
    """What is judged of a lasting fault; empty where it is not enough.

    ``look`` takes the shortest span that is enough. ``page`` takes all of ``window_seconds``, since more evidence is
    a narrower bound, and nothing where the newest window is older than ``recent_seconds``: idle is no evidence.
    """
    enough = shortest(windows, limits.need)
    if limits.level == "look" or not enough:
        return enough
    if windows[-1].last <= now - limits.thresholds["recent_seconds"]:
        return ()
    judged = since(windows, now - limits.thresholds["window_seconds"])
    return judged if len(judged) >= len(enough) else ()


def newest_acc_len(judged: Sequence[Sum], now: float, limits: Limits) -> float:
    """acc_len of the newest part of what is judged: of a page its last ``recent_seconds``."""
    newest = judged
    if limits.level == "page":
        newest = since(judged, now - limits.thresholds["recent_seconds"]) or judged[-1:]
    return acc_len(newest)


def since(windows: Sequence[Sum], at: float) -> Sequence[Sum]:
    """The windows that ended after ``at``."""
    first = len(windows)
    while first and windows[first - 1].last > at:
        first -= 1
    return windows[first:]


def run_below(windows: Sequence[Sum], threshold: float) -> Sequence[Sum]:
    """The newest windows, back to the last one at or above ``threshold``."""
    first = len(windows)
    while first and (windows[first - 1].counts.acc_len or 0.0) < threshold:
        first -= 1
    return windows[first:]


def coarser(windows: Sequence[Sum], most: int) -> Sequence[Sum]:
    """The same windows in at most ``most`` spans, neighbours added up."""
    size = -(-len(windows) // most)
    if size <= 1:
        return windows
    return [_joined(windows[index : index + size]) for index in range(0, len(windows), size)]


def _joined(windows: Sequence[Sum]) -> Sum:
    return replace(
        windows[0],
        counts=added(windows),
        windows=number_of(windows),
        exact=all(window.exact for window in windows),
        first=min(window.first for window in windows),
        last=max(window.last for window in windows),
    )


def added(windows: Sequence[Sum]) -> Counts:
    """Their counts, added."""
    return total(window.counts for window in windows)


def clock(seconds: float) -> str:
    """ISO 8601 to the second: what people read at night."""
    return format_time(round(seconds))


def acc_len(windows: Sequence[Sum]) -> float:
    """Of windows with steps, their acc_len and nothing else: far quicker than adding all counts."""
    steps = sum(window.counts.steps or 0.0 for window in windows)
    return sum(window.counts.emitted or 0.0 for window in windows) / steps


def interval(windows: Sequence[Sum], counts: Counts) -> Bounds | None:
    """Confidence interval of their acc_len; ``counts`` is their sum.

    Where spread is over requests, those are the clusters. Windows next to each other share their requests, so that
    clusters of single windows would err on the narrow side: there ``BLOCKS`` equal parts of the time are the clusters.
    """
    if not windows or windows[0].source == "request":
        return bounds(counts)
    began, width = windows[0].first, (windows[-1].last - windows[0].first) / BLOCKS
    steps, emitted = [0.0] * BLOCKS, [0.0] * BLOCKS
    for window in windows:
        block = min(BLOCKS - 1, int(((window.first + window.last) / 2 - began) / width)) if width else 0
        steps[block] += window.counts.steps or 0.0
        emitted[block] += window.counts.emitted or 0.0
    told = [Spread.of(e, s) for e, s in zip(emitted, steps, strict=True) if s]
    return bounds(replace(counts, spread=sum(told[1:], start=told[0]))) if len(told) >= MIN_CLUSTERS else bounds(counts)


def amount(windows: Sequence[Sum], counts: Counts) -> str:
    """``640 steps of 12 requests in 16 windows since 2026-12-01T03:12:05Z``."""
    requests = "" if counts.requests is None else f" of {counts.requests:.0f} requests"
    number = number_of(windows)
    plural = "window" if number == 1 else "windows"
    return f"{counts.steps or 0:.0f} steps{requests} in {number} {plural} since {clock(windows[0].first)}"


def _applies(enough: Enough, windows: Sequence[Sum]) -> bool:
    if enough.where_requests_unknown and any(window.counts.requests is not None for window in windows):
        return False
    return enough.where_windows_below is None or number_of(windows) < enough.where_windows_below


def _met(enough: Enough, windows: int, steps: float, requests: float, span: float) -> bool:
    return (
        windows >= enough.min_windows
        and steps >= enough.min_steps
        and requests >= enough.min_requests
        and span >= enough.min_span_seconds
    )
