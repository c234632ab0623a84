"""The drafter yields nothing: every verify step emits its bonus token and hardly ever a draft token."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.counts import Counts
from acceptance.query import Sum
from acceptance.statistics import bounds
from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import METRICS, Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict

STILL_SECONDS = 60.0
STILL_LOOKS = 2


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """The estimate over the shortest recent span that is enough evidence, so that death is seen fast."""
    if evidence.verifies_nothing:
        return NotEnough("a prefill server verifies nothing")
    windows = spans.with_steps(evidence.windows)
    judged = spans.shortest(windows, limits.need) or _conclusive(windows, limits)
    if not judged:
        return NotEnough(f"{len(windows)} windows with steps are too few")
    if evidence.now - judged[-1].last > limits.thresholds["recent_seconds"]:
        return NotEnough(f"no verify step since {spans.clock(judged[-1].last)}")
    counts, threshold = spans.added(judged), limits.thresholds["acc_len"]
    value = counts.acc_len
    assert value is not None
    if _throttled(evidence, counts):
        return NotEnough("speculation is throttled: the scheduler leaves fewer than half a draft token to verify")
    if value > threshold:
        return Clear(f"acc_len {value:.2f}", recovered=value >= limits.thresholds["recovery"])
    if _trimming_hides(counts, threshold):
        return NotEnough("outputs are so short that end-of-text trimming may hide accepted draft tokens")
    return _finding(evidence, limits, windows, judged, counts)


def _conclusive(windows: Sequence[Sum], limits: Limits) -> Sequence[Sum]:
    """One window is enough where a source that counts saw not one first draft token accepted."""
    steps = limits.thresholds["conclusive_steps"]
    if limits.level == "page" or not windows:
        return ()
    newest = windows[-1]
    first = newest.counts.by_position[0] if newest.counts.by_position else None
    return (newest,) if first == 0.0 and (newest.counts.steps or 0.0) >= steps else ()


def _throttled(evidence: Evidence, counts: Counts) -> bool:
    """DSpark's compact mode verifies fewer draft tokens the higher the load: none accepted of none is no fault."""
    if evidence.subject.text("verify_mode") != "compact" or counts.slots is None or not counts.steps:
        return False
    return counts.slots / counts.steps < 0.5


def _trimming_hides(counts: Counts, threshold: float) -> bool:
    """Whether draft tokens may have been accepted and cut off at the ends of outputs.

    Only a request's last step is ever cut, and it keeps at least one token: the other steps yielded at most
    (emitted - requests) / (steps - requests).
    """
    if not counts.trim_bound or counts.requests is None:
        return False
    assert counts.steps is not None
    assert counts.emitted is not None
    uncut = counts.steps - counts.requests
    return uncut < counts.steps / 2 or (counts.emitted - counts.requests) / uncut > threshold


def _finding(
    evidence: Evidence, limits: Limits, windows: Sequence[Sum], judged: Sequence[Sum], counts: Counts
) -> Finding:
    threshold = limits.thresholds["acc_len"]
    run = spans.run_below(windows, threshold + 1e-9)
    run = run if len(run) > len(judged) else judged
    interval = bounds(counts)
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=run[0].first,
        source=evidence.source or "",
        value=counts.acc_len,
        lower=interval and interval.lower,
        upper=interval and interval.upper,
        threshold=threshold,
        steps=counts.steps,
        requests=counts.requests,
        why=f"acc_len {counts.acc_len:.2f} over {spans.amount(judged, counts)}"
        + _before(windows[: len(windows) - len(run)], run)
        + _still_counters(evidence, judged),
    )


def _before(earlier: Sequence[Sum], run: Sequence[Sum]) -> str:
    if not earlier:
        return ""
    return f"; {spans.acc_len(earlier):.2f} before, until {spans.clock(min(earlier[-1].last, run[0].last))}"


def _still_counters(evidence: Evidence, judged: Sequence[Sum]) -> str:
    """A fresher source speaks while the counters wait for requests to finish: say so, or nobody believes it.

    Only where it is so: nothing moved them for ``STILL_SECONDS``, and they were looked at since.
    """
    if evidence.source not in ("log", "gauge") or evidence.subject.text("engine") == "vllm":
        return ""
    counters, looks = evidence.others.get("counter", ()), [look for look in evidence.health if look.surface == METRICS]
    moved = counters[-1].last if counters else float("-inf")
    since = [look for look in looks if look.up and look.at > moved]
    if moved > judged[-1].last - STILL_SECONDS or (len(since) < STILL_LOOKS if looks else not counters):
        return ""
    told = f" since {spans.clock(moved)}" if counters else ""
    return f"; the counters have not moved{told}, since they wait for requests to finish"


DETECTOR = Detector(
    name="dead",
    about="source",
    judge=judge,
    thresholds=frozenset({"acc_len", "recovery", "recent_seconds", "conclusive_steps"}),
)
