"""Scope: which targets a query may be about, and what is expected of them and held against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from acceptance.query import AcceptanceQuery
from acceptance.series import Dimension, Series
from alerts.rules import Rulebook
from service.catalog import TargetStatus
from service.cells import published
from store.state import AlertRecord

_NOT_OF_A_TARGET = ("category", "rank", "context", "revision")
"""A target has many of these, or had another at another time."""


def matches(status: TargetStatus, query: AcceptanceQuery) -> bool:
    """Whether a target may be in what is asked for."""
    target = status.target
    series = target.subject({name: fact.value for name, fact in status.facts.items()}).series()
    return all(getattr(series, name) in values for name, values in query.where.items() if name not in _NOT_OF_A_TARGET)


def is_about(alert: AlertRecord, query: AcceptanceQuery) -> bool:
    """Whether an alert is about what the filters leave: one about another category or rank is not."""
    series: Mapping[str, str] = alert.detail.get("series", {})
    return all(
        series[name] in query.where[name] for name in ("category", "rank") if name in series and name in query.where
    )


def expected_of(
    name: str | None, by: Dimension, query: AcceptanceQuery, statuses: Sequence[TargetStatus]
) -> float | None:
    """What was published for a line, where it is of one category and all its targets have the same value."""
    filtered = query.where.get("category", ())
    category = name if by == "category" else filtered[0] if len(filtered) == 1 else None
    if by in ("target", "group", "model", "drafter", "engine"):
        statuses = [status for status in statuses if matches(status, replace(query, where={by: (name or "",)}))]
    values = {published(status, category) for status in statuses}
    return values.pop() if len(values) == 1 else None


def limits_of(
    rulebook: Rulebook, query: AcceptanceQuery, statuses: Sequence[TargetStatus]
) -> tuple[int | None, float, tuple[float, float]]:
    """k, where a drafter is dead, and the band of notices, as they are configured for what is shown."""
    known = {status.fact("k") for status in statuses}
    only = known.pop() if len(known) == 1 else None
    k = int(only) if isinstance(only, int | float) and not isinstance(only, bool) else None
    one: dict[str, Any] = {name: values[0] for name, values in query.where.items() if len(values) == 1}
    if len(statuses) == 1:
        one = {"group": statuses[0].target.group, **one, "target": statuses[0].target.name}
    series = Series(**{"target": "", **one})
    dead = rulebook.resolve("dead-drafter", series, "look").limits.thresholds["acc_len"]
    limits = rulebook.resolve("low-acceptance", series, "look").limits.thresholds
    usual = limits["default_acc_len"] if k is None else min(limits["default_acc_len"], 1 + limits["default_yield"] * k)
    low = limits.get("acc_len", usual)
    noticed = k is None or k >= limits["notice_min_k"]
    return k, dead, (low, max(low, limits["notice_acc_len"]) if noticed else low)
