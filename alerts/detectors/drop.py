"""Acceptance fell below what is normal for this series."""

from __future__ import annotations

from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Against the stated baseline; at ``look`` also against the evidence's own earlier part, far more cautiously.

    A fall within one log may be other traffic (published healthy values of one drafter go from 2.5 to 5.5), so the
    ratio asked for there is lower, and such a fall is never critical.
    """
    if evidence.verifies_nothing:
        return NotEnough("a prefill server verifies nothing")
    stated = evidence.baseline is not None
    normal = evidence.baseline if stated else evidence.reference
    if normal is None:
        return NotEnough("no baseline")
    judged = spans.held(spans.with_steps(evidence.windows), evidence.now, limits)
    if not judged:
        return NotEnough("too few steps or requests")
    counts = spans.added(judged)
    estimate, interval = counts.acc_len, spans.interval(judged, counts)
    assert estimate is not None
    if limits.level == "page" and interval is None:
        return NotEnough("too few requests or windows for a bound")
    upper = (estimate if limits.level == "look" or interval is None else interval.upper) + (counts.bias_bound or 0.0)
    warning = normal * limits.thresholds["ratio" if stated else "own_ratio"]
    newest = spans.newest_acc_len(judged, evidence.now, limits)
    recovered = newest >= warning * limits.thresholds["recovery_factor"]
    if upper >= warning or recovered:
        return Clear(f"acc_len {newest:.2f} of normally {normal:.2f}", recovered)
    critical = stated and upper < normal * limits.thresholds["critical_ratio"]
    bound = "" if interval is None else f" ({interval.lower:.2f} to {interval.upper:.2f} at 95 %)"
    return Finding(
        id=limits.finding,
        severity="critical" if critical else limits.severity,
        series=evidence.series,
        since=judged[0].first,
        source=evidence.source or "",
        value=estimate,
        lower=interval and interval.lower,
        upper=interval and interval.upper,
        threshold=warning,
        steps=counts.steps,
        requests=counts.requests,
        why=f"acc_len {estimate:.2f}{bound} is {estimate / normal - 1:+.0%} against "
        f"{'the baseline' if stated else 'the time before'} of {normal:.2f}, over {spans.amount(judged, counts)}, "
        f"last at {spans.clock(judged[-1].last)}",
    )


DETECTOR = Detector(
    name="drop",
    about="source",
    judge=judge,
    thresholds=spans.HELD | frozenset({"ratio", "critical_ratio", "own_ratio", "recovery_factor"}),
)
