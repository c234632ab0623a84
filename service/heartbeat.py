"""Heartbeats: the past of a target as a strip of ticks, each in one word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from alerts.verdicts import as_severe, severity_of
from service.beats import Beat
from service.labels import Label
from service.states import StateName, TargetState
from store.state import AlertRecord

TickState = Literal["ok", "notice", "warning", "critical", "pending", "idle", "no-data", "off"]

_GRAVITY: tuple[TickState, ...] = ("notice", "pending", "warning", "critical")

_OF_STATE: Mapping[StateName, TickState] = MappingProxyType(
    {
        "removed": "no-data",
        "target-down": "no-data",
        "scrape-error": "no-data",
        "stale": "no-data",
        "no-data": "no-data",
        "ok": "ok",
        "alerting": "ok",
        "low-evidence": "ok",
        "idle": "idle",
        "spec-not-active": "off",
        "role-has-none": "off",
    }
)


@dataclass(frozen=True, slots=True)
class Tick:
    """One span of a heartbeat strip, (start, end] in unix seconds."""

    start: float
    end: float
    state: TickState


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time for which an alert tells the state of its target."""

    start: float
    end: float
    state: TickState


def stretches(alert: AlertRecord, now: float) -> Iterator[Stretch]:
    """When an alert fired and, where it is grave, waited to fire. Only its last episode is known."""
    severity = severity_of(alert.severity)
    if severity == "info":
        return
    waits = alert.phase == "pending"
    if alert.fired_at is not None:
        ended = alert.phase in ("resolved", "pending")
        yield Stretch(alert.fired_at, (alert.resolved_at or alert.fired_at) if ended else now, severity)
    if as_severe(severity, "warning") and alert.phase != "resolved":
        until = now if waits or alert.fired_at is None else alert.fired_at
        if alert.active_since < until:
            yield Stretch(alert.active_since, until, "pending")


def heartbeat(
    starts: Sequence[float],
    step: float,
    strip: Mapping[float, Beat],
    episodes: Sequence[Stretch],
    present: TickState,
    now: float,
) -> tuple[Tick, ...]:
    """A tick a span. The one that lasts says ``present``: it may have begun a second ago."""
    ticks: list[Tick] = []
    for start in starts:
        end = min(start + step, now)
        state: TickState = present if start + step >= now else _of_beat(strip.get(start))
        if episodes:
            told: list[TickState] = [item.state for item in episodes if item.start < end and item.end > start]
            state = max(told, key=_GRAVITY.index) if told else state
        ticks.append(Tick(start, end, state))
    return tuple(ticks)


def present_tick(state: TargetState, label: Label) -> TickState:
    """The tick that tells of now."""
    if label.pending:
        return "pending"
    if label.severity in ("notice", "warning", "critical"):
        return label.severity
    return _OF_STATE[state.name]


def _of_beat(beat: Beat | None) -> TickState:
    """``idle`` is an answer, ``no-data`` the lack of one: a target that runs requests and verifies nothing has none."""
    if beat is None:
        return "no-data"
    if beat.counts.steps:
        return "ok"
    if not beat.up:
        return "no-data"
    if beat.speculating is False:
        return "off"
    return "idle" if beat.running == 0.0 else "no-data"
