"""Acceptance slides down slowly and steadily, long before an absolute threshold is crossed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from acceptance.query import Sum
from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict

PARTS = 24


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Kendall's tau of acc_len against time over equal parts of the evidence, and the fall from the first to the last.

    A fall of which one step makes the better half is not a slide but a step, as other traffic makes it.
    """
    if evidence.verifies_nothing:
        return NotEnough("a prefill server verifies nothing")
    windows = spans.with_steps(evidence.windows)
    if not spans.shortest(windows, limits.need):
        return NotEnough("too few windows over too short a time")
    parts = _parts(windows)
    lengths = [spans.acc_len(part) for part in parts]
    first, last, tau = lengths[0], lengths[-1], _kendall(lengths)
    steepest = max(before - after for before, after in pairwise(lengths))
    slides = tau <= -limits.thresholds["tau"] and steepest < (first - last) / 2
    if not slides or last > first * limits.thresholds["ratio"]:
        return Clear(f"acc_len {first:.2f} at first, {last:.2f} at last", recovered=last > first * 0.9 or tau > -0.3)
    counts = spans.added(parts[-1])
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=windows[0].first,
        source=evidence.source or "",
        value=last,
        threshold=first * limits.thresholds["ratio"],
        steps=counts.steps,
        requests=counts.requests,
        why=f"acc_len slid from {first:.2f} at {spans.clock(parts[0][0].last)} to {last:.2f} at "
        f"{spans.clock(windows[-1].last)} ({last / first - 1:+.0%}; Kendall's tau {tau:.2f})",
    )


def _parts(windows: Sequence[Sum]) -> list[Sequence[Sum]]:
    """At most ``PARTS`` runs of equally many windows, the last one perhaps shorter."""
    size = max(1, -(-len(windows) // PARTS))
    return [windows[index : index + size] for index in range(0, len(windows), size)]


def _kendall(values: Sequence[float]) -> float:
    """Tau-a of the values against their order, -1 (falls at every step) to 1."""
    pairs = list(combinations(values, 2))
    return sum((later > earlier) - (later < earlier) for earlier, later in pairs) / len(pairs)


DETECTOR = Detector(name="decay", about="source", judge=judge, thresholds=frozenset({"tau", "ratio"}))
