"""Figures that cannot be: they are named, never clipped."""

from __future__ import annotations

from math import ceil

from acceptance.query import Sum
from acceptance.window import Source
from alerts.detectors import Detector
from alerts.evidence import METRICS, Evidence
from alerts.limits import Enough, Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """What readers doubted, an acc_len over k + 1, or steps that emit many times what vLLM generated."""
    if evidence.doubts:
        return Finding(
            id=limits.finding,
            severity=limits.severity,
            series=evidence.series,
            since=evidence.now,
            source="health",
            why="; ".join(evidence.doubts[:3])[:500],
        )
    need = limits.need[0] if limits.need else Enough()
    enough = False
    for source, windows in evidence.others.items():
        for window in windows:
            # Every window for itself: one that cannot be is no better for its neighbours.
            if (window.counts.steps or window.counts.emitted or 0.0) >= need.min_steps:
                enough = True
                if why := _contradiction(evidence, window, limits):
                    return _finding(evidence, limits, source, window, why)
    return Clear("no contradiction") if enough else NotEnough("too few steps")


def _contradiction(evidence: Evidence, window: Sum, limits: Limits) -> str:
    counts, k = window.counts, evidence.subject.k
    if counts.steps and counts.slots is not None:
        k = max(k or 0, ceil(counts.slots / counts.steps))
    if k is not None and (counts.acc_len or 0.0) > k + 1 + limits.thresholds["tolerance"]:
        return f"acc_len {counts.acc_len:.2f} is more than k + 1 = {k + 1} allows"
    most = (counts.emitted or 0.0) / limits.thresholds["emitted_factor"]
    if most > 1000.0 and evidence.subject.text("engine") == "vllm":
        generated = _generated(evidence, window)
        if generated is not None and generated < most:
            return f"verify steps emitted {counts.emitted:.0f} tokens while {generated:.0f} were generated"
    return ""


def _generated(evidence: Evidence, window: Sum) -> float | None:
    """Tokens the metrics page counted over the time of a window."""
    told = [
        look.decode_tokens
        for look in evidence.health
        if look.decode_tokens is not None and look.surface == METRICS and window.first < look.at <= window.last
    ]
    return sum(told) if told else None


def _finding(evidence: Evidence, limits: Limits, source: Source, window: Sum, why: str) -> Finding:
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=window.first,
        source=source,
        value=window.counts.acc_len,
        steps=window.counts.steps,
        requests=window.counts.requests,
        why=why,
    )


DETECTOR = Detector(name="quality", about="target", judge=judge, thresholds=frozenset({"tolerance", "emitted_factor"}))
