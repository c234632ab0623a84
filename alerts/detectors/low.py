"""Acceptance is low: speculation costs more than it should, or no longer pays."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from acceptance.counts import Counts
from acceptance.query import Sum
from acceptance.statistics import Bounds
from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Severity, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """``look`` judges the estimate over the shortest span, ``page`` the upper bound over ``window_seconds``.

    For a page the newest ``recent_seconds`` must not have recovered, or an alert would outlive its fault by that span.
    """
    if evidence.verifies_nothing:
        return NotEnough("a prefill server verifies nothing")
    windows = spans.with_steps(evidence.windows)
    judged = spans.held(windows, evidence.now, limits)
    if not judged:
        return NotEnough("too few steps or requests")
    estimate, recent = spans.acc_len(judged), spans.newest_acc_len(judged, evidence.now, limits)
    highest = limits.thresholds.get("acc_len", limits.thresholds["default_acc_len"])
    if estimate >= max(highest, limits.thresholds["notice_acc_len"]):
        # No bound lies under its estimate: most evidence is told to be healthy without adding up all its counts.
        return Clear(f"acc_len {recent:.2f}", recent >= highest * limits.thresholds["recovery_factor"])
    return _held(evidence, limits, windows, judged, recent)


def _held(evidence: Evidence, limits: Limits, windows: Sequence[Sum], judged: Sequence[Sum], recent: float) -> Verdict:
    counts = spans.added(judged)
    k, interval = draft_tokens(evidence, counts), spans.interval(judged, counts)
    if _trimmed_by_load(evidence, k):
        return NotEnough("compact verification trims by load, and this source does not tell by how much")
    if limits.level == "page" and interval is None:
        return NotEnough("too few requests or windows for a bound")
    threshold = _threshold(limits, k if k is not None else _least_draft_tokens(windows))
    upper = spans.acc_len(judged) if limits.level == "look" or interval is None else interval.upper
    upper += counts.bias_bound or 0.0
    recovered = recent >= threshold * limits.thresholds["recovery_factor"]
    if upper < threshold and not recovered:
        return _finding(evidence, limits, limits.severity, threshold, windows, judged, counts, interval)
    band = limits.thresholds["notice_acc_len"]
    if k is not None and k >= limits.thresholds["notice_min_k"] and max(upper, recent) < band:
        return _finding(evidence, limits, "notice", band, windows, judged, counts, interval)
    return Clear(f"acc_len {recent:.2f}", recovered)


def draft_tokens(evidence: Evidence, counts: Counts) -> float | None:
    """k: what the counts themselves say, else the facts."""
    if counts.slots is not None and counts.steps:
        return counts.slots / counts.steps
    return evidence.subject.k


def _threshold(limits: Limits, k: float) -> float:
    """min(2, 1 + 0.35 k): an acc_len of 1.9 is a failure at k = 7, and near the ceiling at k = 1."""
    given = limits.thresholds.get("acc_len")
    if given is not None:
        return given
    return min(limits.thresholds["default_acc_len"], 1.0 + limits.thresholds["default_yield"] * k)


def _least_draft_tokens(windows: Sequence[Sum]) -> int:
    """The smallest k that the figures allow: where k is unknown, a threshold must not be too high."""
    return max(1, ceil(max(window.counts.acc_len or 0.0 for window in windows) - 0.01) - 1)


def _trimmed_by_load(evidence: Evidence, k: float | None) -> bool:
    if evidence.subject.text("verify_mode") != "compact":
        return False
    return k is None or evidence.subject.k is None or k >= evidence.subject.k


def _finding(
    evidence: Evidence,
    limits: Limits,
    severity: Severity,
    threshold: float,
    windows: Sequence[Sum],
    judged: Sequence[Sum],
    counts: Counts,
    interval: Bounds | None,
) -> Finding:
    run = spans.run_below(windows, threshold)
    bound = "" if interval is None else f" ({interval.lower:.2f} to {interval.upper:.2f} at 95 %)"
    return Finding(
        id=limits.finding,
        severity=severity,
        series=evidence.series,
        since=(run or judged)[0].first,
        source=evidence.source or "",
        value=counts.acc_len,
        lower=interval and interval.lower,
        upper=interval and interval.upper,
        threshold=threshold,
        steps=counts.steps,
        requests=counts.requests,
        why=f"acc_len {counts.acc_len:.2f}{bound} is under {threshold:.2f} over {spans.amount(judged, counts)}, "
        f"and {run[-1].counts.acc_len if run else counts.acc_len:.2f} at {spans.clock(judged[-1].last)}",
    )


DETECTOR = Detector(
    name="low",
    about="source",
    judge=judge,
    thresholds=spans.HELD
    | frozenset({"default_acc_len", "default_yield", "notice_acc_len", "notice_min_k", "recovery_factor"}),
    optional=frozenset({"acc_len"}),
)
