"""The state of a target in one word and one sentence, from what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from acceptance.health import Health
from collectors.scrape import MOST_BACK_OFF, Unreadable
from service.catalog import TargetStatus
from store.state import AlertRecord

StateName = Literal[
    "removed",
    "target-down",
    "scrape-error",
    "stale",
    "role-has-none",
    "spec-not-active",
    "alerting",
    "no-data",
    "idle",
    "low-evidence",
    "ok",
]

RECENT_SECONDS = 900.0
"""How far back steps count as recent."""

ENOUGH_STEPS = 200
"""Fewer recent steps than this say little about an acceptance length."""

IDLE_SECONDS = 120.0
"""A target without running requests is idle once its last step is this old."""

SILENT_LOG_SECONDS = 600.0
"""A log without a line for this long is stale. A page is, once three looks at its slowest pace are missing."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Verify steps of the last ``RECENT_SECONDS``, and the end of the newest window of them."""

    steps: float
    last: float


@dataclass(frozen=True, slots=True)
class TargetState:
    """``why`` is a sentence for people; ``since`` unix seconds, None where nobody can tell."""

    name: StateName
    why: str
    since: float | None = None


def state_of(status: TargetStatus, recent: Recent | None, alerts: Sequence[AlertRecord], now: float) -> TargetState:
    """The first of these that holds: gone, unseen, without speculation, alerting, without evidence, ok.

    ``recent`` is None where no step was seen. Unknown is never ok.
    """
    unseen = _gone(status) or _unreached(status) or _stale(status, recent, now)
    return unseen or _without(status, recent, now) or _alerting(alerts) or _evidence(status, recent, now)


def fresh_seconds(status: TargetStatus) -> float:
    """Older than this, what the target's page told is no longer about now."""
    return max(60.0, 1.5 * MOST_BACK_OFF * status.target.scrape_interval_seconds)


def _gone(status: TargetStatus) -> TargetState | None:
    if status.removed_at is None:
        return None
    return TargetState("removed", "it is no longer listed", status.removed_at)


def _unreached(status: TargetStatus) -> TargetState | None:
    look = status.look
    if look is None or look.up:
        return None
    error = look.error or "no answer"
    answered = status.target.url is None or error.startswith(f"{Unreadable.__name__}:")
    return TargetState("scrape-error" if answered else "target-down", error, status.told_at)


def _stale(status: TargetStatus, recent: Recent | None, now: float) -> TargetState | None:
    told_at = status.told_at
    if told_at is None:
        return None if recent is not None else TargetState("no-data", "nothing was read of it yet")
    limit = 2 * fresh_seconds(status) if status.target.url is not None else SILENT_LOG_SECONDS
    if now - told_at <= limit:
        return None
    return TargetState("stale", f"nothing new for {(now - told_at) / 60:.0f} min", told_at)


def _without(status: TargetStatus, recent: Recent | None, now: float) -> TargetState | None:
    if recent is not None and now - recent.last <= IDLE_SECONDS:
        return None
    if status.fact("role") == "prefill":
        return TargetState("role-has-none", "a prefill server verifies nothing")
    if status.fact("speculative") is False:
        return TargetState("spec-not-active", "it was started without speculation")
    look = _latest_about_speculation(status)
    # Before its first decode pass SGLang looks as if it had none: only under load that says something.
    if look is None or look.speculating or not (look.running or look.decode_tokens):
        return None
    asked = "speculation was asked for, but " if status.fact("speculative") else ""
    return TargetState("spec-not-active", f"{asked}its {look.surface} shows none")


def _latest_about_speculation(status: TargetStatus) -> Health | None:
    looks = [look for look in status.looks.values() if look.speculating is not None]
    return max(looks, key=lambda look: look.at, default=None)


def _alerting(alerts: Sequence[AlertRecord]) -> TargetState | None:
    firing = [
        alert
        for alert in alerts
        if alert.phase in ("firing", "recovering") and alert.severity in ("warning", "critical")
    ]
    if not firing:
        return None
    since = min((alert.fired_at for alert in firing if alert.fired_at is not None), default=None)
    return TargetState("alerting", ", ".join(sorted({alert.finding for alert in firing})), since)


def _evidence(status: TargetStatus, recent: Recent | None, now: float) -> TargetState:
    look = status.look
    running = None if look is None else look.running
    if running == 0 and (recent is None or now - recent.last > IDLE_SECONDS):
        return TargetState("idle", "no request is running", None if recent is None else recent.last)
    if recent is None:
        running_text = "" if running is None else f", though {running:g} requests run"
        return TargetState("no-data", f"no verify step in {RECENT_SECONDS / 60:.0f} min{running_text}")
    if recent.steps < ENOUGH_STEPS:
        return TargetState(
            "low-evidence", f"{recent.steps:g} verify steps in {RECENT_SECONDS / 60:.0f} min, of {ENOUGH_STEPS}"
        )
    return TargetState("ok", f"{recent.steps:g} verify steps in {RECENT_SECONDS / 60:.0f} min")
