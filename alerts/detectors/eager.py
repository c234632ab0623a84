"""Decode passes run outside CUDA graphs, though graphs were not turned off on purpose."""

from __future__ import annotations

from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """The share of eager passes over the shortest recent span that is enough evidence."""
    if evidence.subject.facts.get("cuda_graph_disabled") is True:
        return Clear("graphs were turned off on purpose")
    windows = [w for w in evidence.windows if w.counts.passes and w.counts.eager_passes is not None]
    judged = spans.shortest(windows, limits.need)
    if not judged:
        return NotEnough("too few decode passes")
    if evidence.now - judged[-1].last > limits.thresholds["recent_seconds"]:
        return NotEnough(f"no decode pass since {spans.clock(judged[-1].last)}")
    counts = spans.added(judged)
    share, threshold = counts.eager_share, limits.thresholds["eager_share"]
    assert share is not None
    if share < threshold:
        return Clear(f"{share:.0%} of decode passes outside graphs", recovered=share <= limits.thresholds["recovery"])
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=judged[0].first,
        source=evidence.source or "",
        value=share,
        threshold=threshold,
        steps=counts.steps,
        why=f"{share:.0%} of {counts.passes:.0f} decode passes ran outside graphs since {spans.clock(judged[0].first)}",
    )


DETECTOR = Detector(
    name="eager",
    about="source",
    judge=judge,
    thresholds=frozenset({"eager_share", "recovery", "recent_seconds"}),
)
