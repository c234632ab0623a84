"""The verdict on one target, in a sentence or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo

from alerts.findings import Entry
from alerts.verdicts import as_severe, severity_of
from service import copy
from service.cells import NORMAL_BELOW
from service.incidents import Incident
from service.labels import UNREACHED, gravest
from service.present import Present
from service.states import ENOUGH_STEPS

SLOWER = 1.1
"""Step times within this factor of the normal one are normal."""


def target_verdict(
    present: Present,
    incidents: Sequence[Incident],
    entries: Mapping[str, Entry],
    normal_step_time: float | None,
    now: float,
    zone: tzinfo,
) -> str:
    """What fires and since when, with what it does to steps and acc_len; else what waits to fire; else the state."""
    if incidents:
        worst = incidents[0]
        title = entries[worst.finding].title if worst.finding in entries else worst.finding
        since = f"since {copy.clock(worst.since, now, zone)}"
        return ", ".join(part for part in (title, worst.scope, since) if part) + _effects(
            present, worst, normal_step_time
        )
    waiting = gravest(present.alerts, "pending")
    if waiting is None or not as_severe(severity_of(waiting.severity), "warning") or present.state.name in UNREACHED:
        return _of_state(present)
    title = entries[waiting.finding].title if waiting.finding in entries else waiting.finding
    age = copy.age(now - waiting.active_since)
    return f"{title}, it seems: seen for {age}, and not yet for long enough."


def _effects(present: Present, incident: Incident, normal_step_time: float | None) -> str:
    """The end of the sentence, or one of its own: ``. Steps take 2.3 times longer; acc_len is normal.``"""
    now = present.beat.step_time_seconds
    ratio = now / normal_step_time if now is not None and normal_step_time else 1.0
    acc_len = dict(incident.figures).get("acc_len", "")
    told = "acc_len is normal" if acc_len.endswith(" normal") else f"acc_len {acc_len}" if acc_len else ""
    slower = f". Steps take {ratio:.1f} times longer" if ratio >= SLOWER else ""
    return f"{slower}{'; ' if told else ''}{told}."


def _of_state(present: Present) -> str:
    why = present.state.why
    match present.state.name:
        case "removed":
            return "No longer listed."
        case "target-down":
            return f"Does not answer: {why}."
        case "scrape-error":
            return f"Answers, and cannot be read: {why}."
        case "role-has-none":
            return "Verifies nothing: it only prefills."
        case "spec-not-active":
            return f"Speculation is off: {why}."
        case "low-evidence":
            return f"Too few steps to judge: {present.counts.steps or 0:.0f} of {ENOUGH_STEPS}."
        case "stale" | "no-data" | "idle":
            return f"{copy.sentence(why)}."
        case "ok" | "alerting":
            return _acc_len(present)


def _acc_len(present: Present) -> str:
    cell = present.acc_len
    if cell.acc_len is None:
        return "No verify step lately."
    if cell.below is None:
        return f"acc_len is {copy.length(cell.acc_len)}."
    if cell.below < NORMAL_BELOW:
        return f"acc_len is as expected: {copy.length(cell.acc_len)} of {copy.length(cell.expected)}."
    return f"acc_len {copy.length(cell.acc_len)} is {copy.whole_percent(cell.below)} below what was published."
