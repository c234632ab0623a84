"""Answers as documents: values in, JSON or CSV out. Times are ISO 8601 in UTC; what is not known is null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

import orjson
from starlette.responses import Response

from acceptance.facts import Fact
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.query import AcceptanceQuery, format_time
from acceptance.series import Dimension
from alerts.verdicts import SEVERITIES
from app.api.schemas import Figures
from service.reads import AcceptanceRow, TargetView
from store.state import AlertRecord, Delivery

FIGURES = tuple(Figures.model_fields)
_SEVERITY_RANK = {severity: rank for rank, severity in enumerate(SEVERITIES)}


def json_response(document: Mapping[str, Any]) -> Response:
    """JSON without NaN or infinity: both are null."""
    return Response(orjson.dumps(document), media_type="application/json")


def acceptance_json(query: AcceptanceQuery, rows: Iterable[AcceptanceRow]) -> Response:
    """The answer to a query."""
    echo = {
        "from": format_time(query.start),
        "to": format_time(query.end),
        "step_seconds": query.step,
        "offset_seconds": query.offset,
        "by": query.by,
        "where": query.where,
        "source": query.source,
    }
    return json_response({"query": echo, "rows": [_row(row) for row in rows]})


def latest_json(at: float, rows: Iterable[AcceptanceRow]) -> Response:
    """The newest window of every series."""
    return json_response({"at": format_time(at), "rows": [_row(row) for row in rows]})


def acceptance_csv(by: Sequence[Dimension], rows: Iterable[AcceptanceRow]) -> Response:
    """The same rows as a table: text in quotes, numbers bare, no data an empty cell."""
    columns = ("start", "end", *by, *FIGURES)
    lines = [",".join(columns), *(_csv_line(columns, _row(row)) for row in rows)]
    headers = {"content-disposition": 'attachment; filename="acceptance.csv"'}
    return Response("\r\n".join(lines) + "\r\n", headers=headers, media_type="text/csv")


def target_document(view: TargetView) -> dict[str, Any]:
    """A target with its state, facts, and what cannot be seen of it."""
    status = view.status
    return {
        "name": status.target.name,
        "url": status.target.url,
        "group": status.target.group,
        "engine": status.fact("engine"),
        "state": {"name": view.state.name, "why": view.state.why, "since": _time(view.state.since)},
        "alerts": sorted({alert.finding for alert in view.alerts if alert.phase in ("firing", "recovering")}),
        "recent": _figures(view.recent),
        "facts": {name: _fact(fact) for name, fact in sorted(status.facts.items())},
        "unseen": [{"what": gap.what, "needs": gap.needs} for gap in view.unseen],
        "looks": {surface: _look(look) for surface, look in sorted(status.looks.items())},
        "rejected": status.rejected,
    }


def target_detail(view: TargetView, hits: Iterable[Hit]) -> dict[str, Any]:
    """A target with what its logs showed."""
    return target_document(view) | {"logs": view.status.target.logs, "hits": [_hit(hit) for hit in hits]}


def alert_documents(alerts: Iterable[AlertRecord]) -> list[dict[str, Any]]:
    """Alerts, worst and then newest first."""
    ordered = sorted(alerts, key=lambda alert: (-_SEVERITY_RANK.get(alert.severity, 0), -alert.active_since, alert.key))
    return [_alert(alert) for alert in ordered]


def delivery_document(delivery: Delivery) -> dict[str, Any]:
    """A message with its fate."""
    message = delivery.message
    return {
        "id": message.id,
        "channel": message.channel,
        "alert": message.alert_key,
        "kind": message.kind,
        "created_at": format_time(message.created_at),
        "status": delivery.status,
        "next_at": _time(delivery.next_at),
        "attempts": [
            {
                "at": format_time(attempt.at),
                "outcome": attempt.outcome,
                "detail": attempt.detail,
                "seconds": attempt.seconds,
            }
            for attempt in delivery.attempts
        ],
        "body": message.body,
    }


def _row(row: AcceptanceRow) -> dict[str, Any]:
    return {"start": _time(row.start), "end": _time(row.end), **row.key, **_figures(row)}


def _figures(row: AcceptanceRow) -> dict[str, Any]:
    return {
        "acc_len": row.acc_len,
        "lower": row.lower,
        "upper": row.upper,
        "bias_bound": row.bias_bound,
        "accept_rate": row.accept_rate,
        "draft_yield": row.draft_yield,
        "step_time_seconds": row.step_time_seconds,
        "steps": _count(row.steps),
        "emitted": _count(row.emitted),
        "proposed": _count(row.proposed),
        "requests": _count(row.requests),
        "source": row.source,
        "exact": row.exact,
        "windows": row.windows,
        "first": _time(row.first),
        "last": _time(row.last),
        "note": row.note,
    }


_EXACT = 2.0**53
"""From here on a float is no count any more, and JSON's writer takes no whole number of more than 64 bits."""


def _count(value: float | None) -> float | None:
    """Whole where it is: 160, not 160.0."""
    return int(value) if value is not None and abs(value) < _EXACT and float(value).is_integer() else value


def _csv_line(columns: Sequence[str], row: Mapping[str, Any]) -> str:
    return ",".join(_cell(row[column]) for column in columns)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""A spreadsheet computes a cell that begins with one of these, and names come from outside."""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not isfinite(value):
        return ""
    if isinstance(value, str):
        text = f"'{value}" if value.startswith(_FORMULA) else value
        return '"' + text.replace('"', '""') + '"'
    return str(value)


def _fact(fact: Fact) -> dict[str, Any]:
    return {"value": fact.value, "source": fact.source, "at": format_time(fact.at)}


def _look(look: Health) -> dict[str, Any]:
    return {
        "at": format_time(look.at),
        "up": look.up,
        "error": look.error,
        "running": look.running,
        "queued": look.queued,
        "speculating": look.speculating,
        "seconds": look.seconds,
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "signature": hit.signature,
        "at": format_time(hit.at),
        "rank": hit.rank,
        "incarnation": hit.incarnation,
        "excerpt": hit.excerpt,
        "captures": dict(hit.captures),
        "count": hit.count,
    }


def _alert(alert: AlertRecord) -> dict[str, Any]:
    return {
        "key": alert.key,
        "finding": alert.finding,
        "severity": alert.severity,
        "target": alert.target,
        "phase": alert.phase,
        "active_since": format_time(alert.active_since),
        "fired_at": _time(alert.fired_at),
        "clear_since": _time(alert.clear_since),
        "resolved_at": _time(alert.resolved_at),
        "evaluated_at": format_time(alert.evaluated_at),
        "episode": alert.episode,
        "detail": dict(alert.detail),
    }


@lru_cache(4096)
def _time(seconds: float | None) -> str | None:
    """Cached: the rows of an answer share their buckets, and nothing takes longer than to write a time."""
    return None if seconds is None else format_time(seconds)
