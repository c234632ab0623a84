"""Overrides of the configuration, resolved for a series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acceptance.series import Series
from alerts.rules import Override, Rulebook

SERIES = Series(
    "decode-1", group="prod", model="moonshotai/Kimi-K3", drafter="RadixArk/Kimi-K3-DSpark", category="code"
)


def threshold(rulebook: Rulebook, series: Series = SERIES, **more: Any) -> float | None:
    return rulebook.resolve("low-acceptance", series, "page", **more).limits.thresholds.get("acc_len")


def low(value: float, **where: str) -> Override:
    return Override("low-acceptance", {name: (text,) for name, text in where.items()}, thresholds={"acc_len": value})  # type: ignore[misc]


def test_without_overrides_the_entry_counts(rulebook: Callable[..., Rulebook]) -> None:
    resolved = rulebook().resolve("dead-drafter", SERIES, "page")
    assert resolved.enabled
    assert (resolved.limits.severity, resolved.limits.thresholds["acc_len"]) == ("critical", 1.10)
    assert (resolved.rule.hold, resolved.rule.keep, resolved.rule.interval) == (120.0, 180.0, 15.0)
    assert resolved.limits.need != rulebook().resolve("dead-drafter", SERIES, "look").limits.need


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([low(1.5)], 1.5),
        ([low(1.5), low(1.6, group="prod")], 1.6),
        ([low(1.6, group="prod"), low(1.7, model="moonshotai/*")], 1.7),
        ([low(1.7, model="moonshotai/*"), low(1.8, drafter="RadixArk/*")], 1.8),
        ([low(1.8, drafter="RadixArk/*"), low(1.9, category="code")], 1.9),
        ([low(1.9, category="code"), low(1.2, group="prod", model="moonshotai/Kimi-K3")], 1.2),
        ([low(1.9, category="chat")], None),
        ([low(1.9, category="code", group="test")], None),
    ],
    ids=["any", "group", "model", "drafter", "category", "two before one", "another category", "one of two"],
)
def test_the_most_specific_wins_whatever_the_order(
    rulebook: Callable[..., Rulebook], overrides: list[Override], expected: float | None
) -> None:
    assert threshold(rulebook(*overrides)) == expected
    assert threshold(rulebook(*reversed(overrides))) == expected


def test_values_are_replaced_one_by_one(rulebook: Callable[..., Rulebook]) -> None:
    book = rulebook(
        Override("low-acceptance", {"group": ("prod",)}, severity="critical", for_seconds=600.0),
        Override("low-acceptance", {"category": ("code",)}, thresholds={"acc_len": 3.5}, keep_firing_seconds=60.0),
    )
    resolved = book.resolve("low-acceptance", SERIES, "page")
    assert (resolved.limits.severity, resolved.limits.thresholds["acc_len"]) == ("critical", 3.5)
    assert (resolved.rule.hold, resolved.rule.keep) == (600.0, 60.0)
    assert resolved.limits.thresholds["default_yield"] == 0.35


def test_a_series_that_does_not_tell_the_dimension_is_not_meant(rulebook: Callable[..., Rulebook]) -> None:
    assert threshold(rulebook(low(3.5, category="code")), Series("decode-1")) is None


def test_a_target_is_held_to_the_most_lenient_of_its_categories(rulebook: Callable[..., Rulebook]) -> None:
    """Whoever said that creative writing may be at 1.5 is not paged because all of the traffic is creative writing."""
    whole = Series("decode-1")
    lenient = rulebook(low(1.5, category="creative"))
    assert threshold(lenient, whole, categories={"creative", "code"}) == 1.5
    assert threshold(lenient, whole, categories={"chat", "code"}) is None
    strict = rulebook(low(3.5, category="code"))
    assert threshold(strict, whole, categories={"creative", "code"}) is None
    assert threshold(strict, whole, categories={"code"}) == 3.5
    off = rulebook(Override("low-acceptance", {"category": ("creative",)}, enabled=False))
    assert not off.resolve("low-acceptance", whole, "page", {"creative"}).enabled


def test_turned_off(rulebook: Callable[..., Rulebook]) -> None:
    assert not rulebook(Override("target-down", enabled=False)).resolve("target-down", SERIES, "page").enabled


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        (Override("low-acceptence"), "low-acceptence: no such finding"),
        (Override("dead-drafter", thresholds={"acc_lne": 1.2}), r"dead-drafter.thresholds.acc_lne: no such threshold"),
    ],
)
def test_an_override_of_nothing_is_refused(rulebook: Callable[..., Rulebook], override: Override, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        rulebook(override)
