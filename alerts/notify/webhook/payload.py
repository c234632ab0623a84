"""A notice as Alertmanager's webhook JSON, version 4.

https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from acceptance.query import format_time
from alerts.notify.notice import Notice

NOT_ENDED = "0001-01-01T00:00:00Z"
"""How Alertmanager writes that an alert has not ended."""


def payload(notice: Notice, receiver: str, external_url: str) -> dict[str, Any]:
    """One group of one alert. ``groupKey`` and ``fingerprint`` stay the same from firing to resolved."""
    status = "resolved" if notice.resolved else "firing"
    labels, annotations = _labels(notice), _annotations(notice)
    group = {name: labels[name] for name in ("alertname", "target", "rank", "category") if name in labels}
    return {
        "version": "4",
        "groupKey": _group_key(group),
        "truncatedAlerts": 0,
        "status": status,
        "receiver": receiver,
        "groupLabels": group,
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": external_url,
        "alerts": [
            {
                "status": status,
                "labels": labels,
                "annotations": annotations,
                "startsAt": format_time(_started(notice)),
                "endsAt": format_time(_ended(notice)) if notice.resolved else NOT_ENDED,
                "generatorURL": notice.link or "",
                "fingerprint": blake2b(notice.alert_key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
            }
        ],
    }


def _labels(notice: Notice) -> dict[str, str]:
    labels = {
        "alertname": notice.finding,
        "severity": notice.severity,
        "target": notice.target,
        "group": notice.group,
        "rank": notice.rank,
        "category": notice.category,
        "model": notice.model,
        "drafter": notice.drafter,
        "engine": notice.engine,
    }
    return {name: value for name, value in labels.items() if value is not None}


def _annotations(notice: Notice) -> dict[str, str]:
    figures = {
        "value": notice.value,
        "lower": notice.lower,
        "upper": notice.upper,
        "threshold": notice.threshold,
        "steps": notice.steps,
        "requests": notice.requests,
    }
    annotations = {
        "summary": notice.title,
        "description": notice.why,
        "cause": notice.cause,
        "remedy": "\n".join(notice.remedy) or None,
        "measure": None if notice.value is None else notice.measure,
        **{name: None if value is None else f"{value:.15g}" for name, value in figures.items()},
        "source": notice.source,
        "since": None if notice.since is None else format_time(notice.since),
        "runbook_url": notice.runbook,
    }
    return {name: value for name, value in annotations.items() if value is not None}


def _started(notice: Notice) -> float:
    given = (notice.fired_at, notice.since)
    return next((at for at in given if at is not None), notice.created_at)


def _ended(notice: Notice) -> float:
    return notice.created_at if notice.resolved_at is None else notice.resolved_at


def _group_key(group: dict[str, str]) -> str:
    pairs = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in sorted(group.items()))
    return f"{{}}:{{{pairs}}}"
