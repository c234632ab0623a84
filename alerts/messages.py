"""Messages: what channels are told about an alert, complete in itself, so that nobody has to look it up at night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import quote, urlencode

from acceptance.query import AcceptanceQuery
from acceptance.series import Dimension
from alerts.findings import Entry
from alerts.states import Transition
from alerts.verdicts import Severity, severity_of
from store.state import AlertRecord, Message

KINDS = ("firing", "resolved")
"""The transitions that channels are told about; ``Message.kind``."""

BEFORE_SECONDS = 1800.0
"""How much of the time before the fault a link shows."""

_FIGURES = ("value", "lower", "upper", "threshold", "steps", "requests", "source", "since")


@dataclass(frozen=True, slots=True)
class Links:
    """Where links lead. ``trends`` takes the parameters of ``AcceptanceQuery``; no URL, no link."""

    external_url: str | None = None
    trends: str = "/trends"
    runbook: str = "/runbook"

    def to_trends(self, record: AlertRecord, now: float) -> str | None:
        """The series of an alert, from a while before its fault until ``now``."""
        if self.external_url is None:
            return None
        series = _series(record)
        where: dict[Dimension, tuple[str, ...]] = {"target": (record.target,)}
        dimension: Dimension
        for dimension in ("rank", "category"):
            if dimension in series:
                where[dimension] = (series[dimension],)
        start = min(record.detail.get("since") or record.active_since, record.active_since)
        query = AcceptanceQuery(start=start - BEFORE_SECONDS, end=now, by=tuple(where), where=where)
        return f"{self.external_url}{self.trends}?{urlencode(query.to_params())}"

    def to_runbook(self, finding: str) -> str | None:
        """The section of the runbook about a finding."""
        return None if self.external_url is None else f"{self.external_url}{self.runbook}#{quote(finding)}"


@dataclass(frozen=True, slots=True)
class Routes:
    """Which channels are told of which severity; what is not listed stays in the UI."""

    channels: Mapping[Severity, Sequence[str]] = field(default_factory=dict[Severity, Sequence[str]])

    @staticmethod
    def default(channels: Sequence[str]) -> Routes:
        """Every channel is told of warnings and critical findings."""
        return Routes({"warning": tuple(channels), "critical": tuple(channels)})

    def to(self, severity: str) -> Sequence[str]:
        """Names of the channels, each once."""
        return tuple(dict.fromkeys(self.channels.get(severity_of(severity), ())))


def messages(
    record: AlertRecord, transition: Transition, entry: Entry, routes: Routes, links: Links, now: float
) -> list[Message]:
    """The messages of a transition, one a channel; none for those that nobody is told about."""
    if transition.kind not in KINDS:
        return []
    told = body(record, transition, entry, links, now)
    return [
        Message(message_id(record, transition.kind, channel), channel, record.key, transition.kind, told, now)
        for channel in routes.to(record.severity)
    ]


def message_id(record: AlertRecord, kind: str, channel: str) -> str:
    """The same whenever the same is told: receivers drop repeats by it."""
    text = "\x1f".join((record.key, str(record.episode), kind, channel))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def body(record: AlertRecord, transition: Transition, entry: Entry, links: Links, now: float) -> dict[str, Any]:
    """JSON. Times are unix seconds; None is no data."""
    series = _series(record)
    return {
        "title": entry.title,
        "finding": record.finding,
        "severity": record.severity,
        "status": transition.kind,
        "episode": record.episode,
        "target": record.target,
        **{name: series.get(name) for name in ("group", "rank", "category", "model", "drafter", "engine", "revision")},
        "measure": entry.measure,
        **{name: record.detail.get(name) for name in _FIGURES},
        "fired_at": record.fired_at,
        "resolved_at": record.resolved_at,
        "why": transition.why if transition.kind == "resolved" else record.detail.get("why"),
        "cause": record.detail.get("cause") or entry.cause,
        "remedy": list(entry.remedy.lines(series.get("engine"))),
        "link": links.to_trends(record, now),
        "runbook": links.to_runbook(record.finding),
    }


def _series(record: AlertRecord) -> Mapping[str, str]:
    return record.detail.get("series", {})
