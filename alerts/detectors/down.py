"""A listed target does not answer."""

from __future__ import annotations

from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import METRICS, Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """The newest looks at the metrics page in a row failed."""
    looks = [look for look in evidence.health if look.surface == METRICS]
    if not looks or evidence.now - looks[-1].at > limits.thresholds["recent_seconds"]:
        return NotEnough("the metrics page was not looked at")
    if looks[-1].up:
        return Clear(f"answered at {spans.clock(looks[-1].at)}")
    first = len(looks)
    while first and not looks[first - 1].up:
        first -= 1
    failed = looks[first:]
    span = failed[-1].at - failed[0].at
    if not any(len(failed) >= enough.min_windows and span >= enough.min_span_seconds for enough in limits.need):
        return NotEnough(f"{len(failed)} failed looks are too few")
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=failed[0].at,
        source="health",
        why=f"{len(failed)} looks in a row failed since {spans.clock(failed[0].at)}: {(failed[-1].error or '')[:200]}",
    )


DETECTOR = Detector(name="down", about="target", judge=judge, thresholds=frozenset({"recent_seconds"}), live=True)
