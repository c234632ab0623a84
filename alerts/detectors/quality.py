"""Figures that cannot be: they are named, never clipped."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.query import Sum
from acceptance.window import Source
from alerts import spans
from alerts.detectors import Detector
from alerts.detectors.low import draft_tokens
from alerts.evidence import METRICS, Evidence
from alerts.limits import Limits
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
    enough = False
    for source, windows in evidence.others.items():
        judged = spans.shortest(windows, limits.need)
        enough = enough or bool(judged)
        why = _contradiction(evidence, judged, limits) if judged else ""
        if why:
            return _finding(evidence, limits, source, judged, why)
    return Clear("no contradiction") if enough else NotEnough("too few steps")


def _contradiction(evidence: Evidence, judged: Sequence[Sum], limits: Limits) -> str:
    counts = spans.added(judged)
    k = evidence.subject.k if evidence.subject.k is not None else draft_tokens(evidence, counts)
    if k is not None and (counts.acc_len or 0.0) > k + 1 + limits.thresholds["tolerance"]:
        return f"acc_len {counts.acc_len:.2f} is more than k + 1 = {k + 1:.0f} allows"
    generated = _generated(evidence, judged[0].first, judged[-1].last)
    if generated is None or counts.emitted is None or evidence.subject.text("engine") != "vllm":
        return ""
    if counts.emitted > limits.thresholds["emitted_factor"] * max(generated, 1000.0):
        return f"verify steps emitted {counts.emitted:.0f} tokens while {generated:.0f} were generated"
    return ""


def _generated(evidence: Evidence, start: float, end: float) -> float | None:
    """Tokens the metrics page counted over the time of the windows."""
    told = [look.decode_tokens for look in evidence.health if look.surface == METRICS and start < look.at <= end]
    known = [tokens for tokens in told if tokens is not None]
    return sum(known) if known else None


def _finding(evidence: Evidence, limits: Limits, source: Source, judged: Sequence[Sum], why: str) -> Finding:
    counts = spans.added(judged)
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=judged[0].first,
        source=source,
        value=counts.acc_len,
        steps=counts.steps,
        requests=counts.requests,
        why=why,
    )


DETECTOR = Detector(name="quality", about="target", judge=judge, thresholds=frozenset({"tolerance", "emitted_factor"}))
