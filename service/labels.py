"""Labels: the state of a target in the two words a table has room for, and how far up the table it belongs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from alerts.findings import Entry
from alerts.verdicts import SEVERITIES, Severity, as_severe, severity_of
from service.copy import age
from service.states import StateName, TargetState
from store.state import AlertRecord

UNREACHED: frozenset[StateName] = frozenset({"removed", "target-down", "scrape-error", "stale"})
"""Where nothing new is told, what waits to fire is no news."""

TOLD: frozenset[StateName] = frozenset({"ok", "alerting", "low-evidence"})

_WORDS: Mapping[StateName, str] = MappingProxyType(
    {
        "removed": "Removed",
        "target-down": "No answer",
        "scrape-error": "Scrape error",
        "stale": "Stale",
        "role-has-none": "Prefill only",
        "spec-not-active": "No speculation",
        "alerting": "Alerting",
        "no-data": "No data",
        "idle": "Idle",
        "low-evidence": "Few steps",
        "ok": "OK",
    }
)
_AGED: frozenset[StateName] = frozenset({"stale", "idle"})

_SEVERITY_RANKS: Mapping[Severity, int] = MappingProxyType({"critical": 0, "warning": 1, "notice": 2})
_PENDING_RANK = 3
_RANKS: Mapping[StateName, int] = MappingProxyType(
    {
        "target-down": 4,
        "scrape-error": 4,
        "stale": 5,
        "no-data": 6,
        "spec-not-active": 7,
        "low-evidence": 9,
        "ok": 10,
        "alerting": 10,
        "role-has-none": 11,
        "idle": 12,
        "removed": 13,
    }
)


@dataclass(frozen=True, slots=True)
class Label:
    """``rank`` sorts worst first; ``severity`` is that of the alert whose label it is, None where it is the state's.

    recovering   that alert is no longer true, but kept firing for a while
    """

    text: str
    severity: Severity | None
    pending: bool
    rank: int
    recovering: bool = False


def label(
    state: TargetState, alerts: Sequence[AlertRecord], entries: Mapping[str, Entry], last_step: float | None, now: float
) -> Label:
    """The gravest thing that is known. ``alerts`` are those that show (``service.showing``) and are not resolved.

    ``last_step`` is when the target last verified. A notice does not hide that a target is idle, and what is pending
    does not hide that it is unreachable.
    """
    grave, waiting = gravest(alerts, "firing", "recovering"), gravest(alerts, "pending")
    if grave is not None and as_severe(severity_of(grave.severity), "warning"):
        return _firing(grave, entries)
    if waiting is not None and as_severe(severity_of(waiting.severity), "warning") and state.name not in UNREACHED:
        return Label(f"Pending {age(now - waiting.active_since)}", severity_of(waiting.severity), True, _PENDING_RANK)
    if grave is not None and grave.severity == "notice" and state.name in TOLD:
        return _firing(grave, entries)
    return Label(_of_state(state, last_step, now), None, False, _RANKS[state.name])


def gravest(alerts: Sequence[AlertRecord], *phases: str) -> AlertRecord | None:
    """The gravest alert in one of these phases; of several, one that has not begun to recover, then the oldest."""
    return max(
        (alert for alert in alerts if alert.phase in phases),
        key=lambda alert: (
            SEVERITIES.index(severity_of(alert.severity)),
            alert.phase != "recovering",
            -alert.active_since,
        ),
        default=None,
    )


def short_name(finding: str, severity: str, entries: Mapping[str, Entry]) -> str:
    """The finding in two words; its severity where it has none."""
    entry = entries.get(finding)
    return severity.capitalize() if entry is None or entry.short is None else entry.short


def _firing(alert: AlertRecord, entries: Mapping[str, Entry]) -> Label:
    severity, recovering = severity_of(alert.severity), alert.phase == "recovering"
    text = "Recovering" if recovering else short_name(alert.finding, alert.severity, entries)
    return Label(text, severity, False, _SEVERITY_RANKS[severity], recovering)


def _of_state(state: TargetState, last_step: float | None, now: float) -> str:
    since = last_step if state.name == "idle" else state.since
    if state.name not in _AGED or since is None:
        return _WORDS[state.name]
    return f"{_WORDS[state.name]} {age(now - since)}"
