"""The last draft positions are never accepted: draft tokens that cost and cannot pay."""

from __future__ import annotations

from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Trailing positions at exactly zero, while earlier ones are accepted (a dead drafter is another finding)."""
    if evidence.verifies_nothing:
        return NotEnough("a prefill server verifies nothing")
    windows = [window for window in spans.with_steps(evidence.windows) if window.counts.by_position]
    judged = spans.shortest(windows, limits.need)
    if not judged:
        return NotEnough("too few steps told by position")
    counts = spans.added(judged)
    rates = counts.position_rates or ()
    k = max(len(rates), evidence.subject.k or 0)
    if counts.proposed is not None and counts.proposed < 0.95 * k * (counts.steps or 0.0):
        return NotEnough("drafts differ in length: the last positions are seldom proposed")
    reached = max((index + 1 for index, rate in enumerate(rates) if rate > 0.0), default=0)
    silent = k - reached
    if not reached or silent < limits.thresholds["min_positions"] or silent < limits.thresholds["min_share"] * k:
        return Clear(f"{reached} of {k} draft positions are accepted")
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=judged[0].first,
        source=evidence.source or "",
        value=counts.acc_len,
        steps=counts.steps,
        requests=counts.requests,
        why=f"draft positions {reached + 1} to {k} were accepted not once in {spans.amount(judged, counts)}; "
        f"position {reached} in {rates[reached - 1]:.1%} of them",
    )


DETECTOR = Detector(name="cliff", about="source", judge=judge, thresholds=frozenset({"min_positions", "min_share"}))
