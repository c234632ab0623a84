"""States: what a verdict does to an alert. Pure; the clock is passed in, and may jump.

    inactive (no record) -> pending -> firing -> recovering -> resolved, and back to pending

Time is counted, not compared: an evaluation adds the time since the last one that could tell, but at most one
interval after a gap longer than two (nobody looked: a restart, an outage, a clock set forward), and nothing where the
clock was set back. So downtime neither fires nor resolves anything, and a restart keeps the time already counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from alerts.rules import Rule
from alerts.verdicts import Clear, Finding, NotEnough, Verdict, as_severe, detail, severity_of
from store.state import AlertRecord

TransitionKind = Literal["pending", "firing", "recovering", "resumed", "resolved", "forgotten"]

GAP_INTERVALS = 2.0
FLAPPING, BEFORE = "flapping", "before"
"""Keys of ``AlertRecord.detail`` beside those of the finding: whether it fires again soon after its resolution, and
what a pending alert showed when it was resolved last."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of phase. ``why`` is the verdict's."""

    kind: TransitionKind
    why: str


Stepped = tuple[AlertRecord | None, Transition | None]


def step(record: AlertRecord | None, verdict: Verdict, rule: Rule, now: float, key: str = "") -> Stepped:
    """The alert after ``verdict``, and what that changed. None is inactive: the record is to be forgotten.

    ``key`` names an alert that has no record yet.
    """
    if isinstance(verdict, NotEnough):
        return _unknown(record, verdict, rule, now)
    if isinstance(verdict, Finding):
        return _true(record, verdict, rule, now, key)
    return _false(record, verdict, rule, now)


def _unknown(record: AlertRecord | None, verdict: NotEnough, rule: Rule, now: float) -> Stepped:
    """Nothing changes, until nothing was known for so long that keeping the alert would claim too much."""
    if record is None or record.phase == "resolved":
        return record, None
    silence = now - record.evaluated_at
    if record.phase == "pending":
        return _forgotten(record, verdict.why) if silence >= rule.pending_lapse else (record, None)
    if silence < rule.firing_lapse:
        return record, None
    return _resolved(record, f"nothing was seen of it for {silence / 3600:.0f} hours", now)


def _true(record: AlertRecord | None, finding: Finding, rule: Rule, now: float, key: str) -> Stepped:
    if record is None or record.phase == "resolved":
        return _pending(record, finding, rule, now, key)
    if record.phase == "pending":
        return _still_pending(record, finding, rule, now)
    fires_at = severity_of(record.severity)
    if not as_severe(finding.severity, fires_at):
        return _false(record, Clear(f"now only {finding.severity}: {finding.why}"), rule, now)
    if not as_severe(fires_at, finding.severity):
        return _fired(replace(record, severity=finding.severity), finding, rule, now)
    resumed = record.phase == "recovering"
    kept = {name: record.detail[name] for name in (FLAPPING,) if name in record.detail}
    record = replace(record, phase="firing", clear_since=None, evaluated_at=now, detail={**detail(finding), **kept})
    return record, Transition("resumed", finding.why) if resumed else None


def _pending(record: AlertRecord | None, finding: Finding, rule: Rule, now: float, key: str) -> Stepped:
    before = {} if record is None else {BEFORE: {"severity": record.severity, "detail": record.detail}}
    pending = AlertRecord(
        key=record.key if record else key,
        finding=finding.id,
        severity=finding.severity,
        target=finding.series.target,
        phase="pending",
        active_since=now,
        evaluated_at=now,
        fired_at=record.fired_at if record else None,
        resolved_at=record.resolved_at if record else None,
        episode=record.episode if record else 0,
        detail={**detail(finding), **before},
    )
    if rule.hold <= 0:
        return _fired(pending, finding, rule, now)
    return pending, Transition("pending", finding.why)


def _still_pending(record: AlertRecord, finding: Finding, rule: Rule, now: float) -> Stepped:
    if now - record.evaluated_at >= rule.pending_lapse:
        restarted = replace(record, severity=finding.severity, active_since=now, evaluated_at=now, true_seconds=0.0)
        return restarted, None
    seconds = record.true_seconds + _counted(record.evaluated_at, now, rule)
    kept = {name: record.detail[name] for name in (BEFORE,) if name in record.detail}
    record = replace(
        record,
        severity=finding.severity,
        active_since=min(record.active_since, now),
        evaluated_at=now,
        true_seconds=seconds,
        detail={**detail(finding), **kept},
    )
    return _fired(record, finding, rule, now) if seconds >= rule.hold else (record, None)


def _fired(record: AlertRecord, finding: Finding, rule: Rule, now: float) -> Stepped:
    """Episodes are numbered by the minute in which they begin, so that no forgotten one's number comes again."""
    flapping = record.resolved_at is not None and now - record.resolved_at < rule.flap_window
    record = replace(
        record,
        phase="firing",
        evaluated_at=now,
        fired_at=now,
        clear_since=None,
        resolved_at=None,
        episode=max(record.episode + 1, int(now // 60)),
        detail={**detail(finding), **({FLAPPING: True} if flapping else {})},
    )
    return record, Transition("firing", finding.why)


def _false(record: AlertRecord | None, verdict: Clear, rule: Rule, now: float) -> Stepped:
    if record is None or record.phase == "resolved":
        return record, None
    if record.phase == "pending":
        return _forgotten(record, verdict.why)
    if not verdict.recovered:
        resumed = record.phase == "recovering"
        record = replace(record, phase="firing", clear_since=None, evaluated_at=now)
        return record, Transition("resumed", verdict.why) if resumed else None
    since = now
    if record.phase == "recovering" and record.clear_since is not None:
        uncounted = (now - record.evaluated_at) - _counted(record.evaluated_at, now, rule)
        since = record.clear_since + uncounted
    keep = rule.keep * (rule.flap_factor if record.detail.get(FLAPPING) else 1.0)
    if now - since >= keep:
        return _resolved(replace(record, clear_since=since), verdict.why, now)
    recovering = record.phase == "firing"
    record = replace(record, phase="recovering", clear_since=since, evaluated_at=now)
    return record, Transition("recovering", verdict.why) if recovering else None


def _resolved(record: AlertRecord, why: str, now: float) -> Stepped:
    return replace(record, phase="resolved", evaluated_at=now, resolved_at=now), Transition("resolved", why)


def _forgotten(record: AlertRecord, why: str) -> Stepped:
    """A pending alert ends without a word; one that had fired before is again what it was when it was resolved."""
    before: Mapping[str, Any] | None = record.detail.get(BEFORE)
    if before is None:
        return None, Transition("forgotten", why)
    restored = replace(record, phase="resolved", severity=before["severity"], true_seconds=0.0, detail=before["detail"])
    return restored, Transition("forgotten", why)


def _counted(before: float, now: float, rule: Rule) -> float:
    elapsed = now - before
    if elapsed <= 0.0:
        return 0.0
    return elapsed if elapsed <= GAP_INTERVALS * rule.interval else rule.interval
