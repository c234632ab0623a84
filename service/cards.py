"""Cards of findings: an alert with its evidence, its cause and everything there is to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from alerts.findings import Entry
from alerts.verdicts import SEVERITIES, Severity, severity_of
from service.incidents import Incident, scope_of, title_of
from service.remedy import flag_of
from store.state import AlertRecord, Phase


@dataclass(frozen=True, slots=True)
class FindingCard:
    """A finding of this target, as it is or was.

    ended     when it was resolved, None while it lasts
    why       the evidence in one sentence; may hold a line of a log, so hostile
    remedy    what to do, first things first, for the target's engine
    flag, flag_verb   the part of the first line to copy, and what to do about it
    figures   label -> value, as text; only of what fires
    scope     rank or category that it is about, "" for the whole target
    """

    key: str
    finding: str
    title: str
    severity: Severity
    phase: Phase
    since: float
    ended: float | None
    why: str
    cause: str
    remedy: tuple[str, ...] = ()
    flag: str | None = None
    flag_verb: str = ""
    figures: tuple[tuple[str, str], ...] = ()
    scope: str = ""
    told: tuple[str, ...] = ()


def card_of(alert: AlertRecord, entry: Entry | None, incidents: Iterable[Incident]) -> FindingCard:
    """The card of an alert, with the figures of its incident where it is one."""
    incident = next((item for item in incidents if item.key == alert.key), None)
    series: Mapping[str, str] = alert.detail.get("series", {})
    remedy = () if entry is None else entry.remedy.lines(series.get("engine"))
    flag = flag_of(remedy[0]) if remedy else None
    began_at = alert.active_since if alert.fired_at is None or alert.phase == "pending" else alert.fired_at
    return FindingCard(
        key=alert.key,
        finding=alert.finding,
        title=title_of(alert, entry),
        severity=severity_of(alert.severity),
        phase=alert.phase,
        since=began_at,
        ended=alert.resolved_at if alert.phase == "resolved" else None,
        why=str(alert.detail.get("why") or ""),
        cause=str(alert.detail.get("cause") or ("" if entry is None else entry.cause)),
        remedy=remedy,
        flag=None if flag is None else flag[1],
        flag_verb="" if flag is None else flag[0],
        figures=() if incident is None else incident.figures,
        scope=scope_of(alert),
        told=() if incident is None else incident.told,
    )


def gravest_first(card: FindingCard) -> tuple[bool, int, float, str]:
    """Sorts what fires before what waits to fire."""
    return card.phase == "pending", -SEVERITIES.index(card.severity), -card.since, card.key
