"""Findings over a log that lies whole before us. The courses are those of operators' reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from acceptance.counts import Counts, Spread
from acceptance.facts import Subject
from acceptance.series import Series
from acceptance.window import Source, Window
from alerts.episodes import inspect_findings
from alerts.evidence import Beside, Evidence, from_windows
from alerts.rules import Rulebook

BEGAN = 1_783_000_000.0


def log(
    lengths: Sequence[float],
    *,
    k: int | None = 3,
    running: int = 4,
    minutes: float = 1.0,
    source: Source = "log",
    baseline: float | None = None,
    began: float = BEGAN,
    **series: Any,
) -> list[Evidence]:
    windows = course(lengths, k=k, running=running, minutes=minutes, source=source, began=began, **series)
    return evidence(windows, k=k, baseline=baseline)


def evidence(windows: Sequence[Window], *, k: int | None = 3, baseline: float | None = None) -> list[Evidence]:
    subject = Subject("bundle", facts={"engine": "sglang", "k": k})
    beside = Beside(baseline=None if baseline is None else lambda series: baseline)
    return from_windows(windows, [subject], [], beside, BEGAN + 86400)


def course(
    lengths: Sequence[float],
    *,
    k: int | None = 3,
    running: int = 4,
    minutes: float = 1.0,
    source: Source = "log",
    began: float = BEGAN,
    **series: Any,
) -> list[Window]:
    steps = running * 40.0
    return [
        Window(
            id=number,
            series=Series("bundle", **series),
            start=began + 60 * minutes * number - 3,
            end=began + 60 * minutes * number,
            source=source,
            exact=False,
            counts=Counts(
                steps=steps,
                emitted=steps * length,
                slots=None if k is None else k * steps,
                spread=Spread.of(steps * length, steps),
            ),
        )
        for number, length in enumerate(lengths)
    ]


@pytest.fixture
def found(rulebook: Callable[..., Rulebook]) -> Callable[..., set[tuple[str, str, bool]]]:
    def find(items: list[Evidence], **more: Any) -> set[tuple[str, str, bool]]:
        return {(f.id, f.severity, f.resolved) for f in inspect_findings(items, rulebook(), **more)}

    return find


def test_death_after_hours_of_health_is_one_open_episode(rulebook: Callable[..., Rulebook]) -> None:
    healthy, dead = (
        course([3.5, 3.58, 3.66, 3.74, 3.82, 3.9], running=1),
        course([1.0] * 8, running=1, began=BEGAN + 57600),
    )
    (only,) = inspect_findings(evidence([*healthy, *dead]), rulebook())
    assert (only.id, only.severity, only.resolved) == ("dead-drafter", "critical", False)
    assert only.since == dead[0].start
    assert "3.70 before, until" in only.why
    assert "in all acc_len 1.00 over 320 steps in 8 windows" in only.why


def test_an_episode_closes_when_it_recovers(found: Any) -> None:
    assert found(log([3.1] * 4 + [1.0] * 7 + [3.0] * 4)) == {("dead-drafter", "critical", True)}


def test_a_collapse_and_its_recovery(found: Any) -> None:
    lengths = [4.51, 4.47, 4.49, 4.46, 4.52, 4.47, 1.57, 1.6, 1.61, 1.58, 1.59, 1.58, 4.3, 4.35, 4.34, 4.33, 4.32, 4.35]
    assert found(log(lengths, k=5, running=1)) == {("low-acceptance", "warning", True)}


def test_a_slide_is_found_before_and_after_it_crosses_the_threshold(found: Any) -> None:
    lengths = [3.4, 3.36, 3.31, 3.25, 3.16, 3.07, 2.98, 2.86, 2.7, 2.47, 2.22, 1.98, 1.89, 1.83]
    assert found(log(lengths, running=8, minutes=10)) == {
        ("acceptance-decay", "warning", False),
        ("low-acceptance", "warning", False),
    }
    assert found(log(lengths[:11], running=8, minutes=10)) == {("acceptance-decay", "warning", False)}


def test_two_episodes_are_two_findings(rulebook: Callable[..., Rulebook]) -> None:
    findings = inspect_findings(log([3.0] * 5 + [1.0] * 5 + [3.0] * 5 + [1.0] * 5), rulebook())
    assert [(f.id, f.resolved) for f in findings] == [("dead-drafter", True), ("dead-drafter", False)]
    assert findings[0].since < findings[1].since


@pytest.mark.parametrize(
    "lengths",
    [[3.05, 2.63, 2.83], [5.06, 5.06], [3.62, 3.4, 3.51, 3.71], [3.3] * 50 + [1.4] + [3.3] * 50, []],
    ids=["2 to 3 at k 3", "two windows", "high", "one bad window", "nothing"],
)
def test_healthy_logs_are_quiet(found: Any, lengths: list[float]) -> None:
    assert found(log(lengths, k=5 if max(lengths, default=0) > 4 else 3)) == set()


def test_a_short_log_with_few_steps_is_quiet(found: Any) -> None:
    assert found(log([1.77, 1.8], k=5, running=0)) == set()


def test_an_operator_may_say_that_fewer_windows_are_enough(found: Any) -> None:
    assert found(log([3.49, 1.46], running=1)) == set()
    assert found(log([3.49, 1.46], running=1), min_windows=1) == {("low-acceptance", "warning", False)}


def test_one_window_of_200_steps_where_there_are_no_three(found: Any) -> None:
    assert found(log([1.46], running=5)) == {("low-acceptance", "warning", False)}
    assert found(log([1.46, 3.5, 3.5], running=5)) == set()


def test_a_dead_rank_is_told_once_and_of_the_rank(rulebook: Callable[..., Rulebook]) -> None:
    windows = [*course([3.0] * 8, rank="0"), *course([1.0] * 8, rank="1"), *course([3.0] * 8, rank="2")]
    (only,) = inspect_findings(evidence(windows), rulebook())
    assert (only.id, only.series.rank) == ("dead-drafter", "1")


def test_where_all_ranks_are_dead_the_target_is(rulebook: Callable[..., Rulebook]) -> None:
    (only,) = inspect_findings(evidence([*course([1.0] * 8, rank="0"), *course([1.0] * 8, rank="1")]), rulebook())
    assert (only.id, only.series.rank) == ("dead-drafter", None)


def test_two_sources_of_one_fault_are_one_finding(rulebook: Callable[..., Rulebook]) -> None:
    windows = [*course([1.0] * 8), *course([1.0] * 8, source="counter", running=40)]
    (only,) = inspect_findings(evidence(windows), rulebook())
    assert only.source == "counter"


def test_a_stated_baseline(found: Any) -> None:
    assert found(log([2.2] * 8, baseline=3.19)) == {("acceptance-drop", "warning", False)}
    assert found(log([3.0] * 8, baseline=3.19)) == set()
    assert found(log([1.0] * 8, baseline=3.19)) == {("dead-drafter", "critical", False)}


def test_a_fall_against_its_own_past_stays_open_however_long_it_lasts(found: Any) -> None:
    """The reference is what was before the fall: it does not sink with it."""
    assert found(log([6.8] * 5 + [2.6] * 40, k=7)) == {
        ("low-acceptance", "notice", False),
        ("acceptance-drop", "warning", False),
    }


def test_what_cannot_be_is_named_wherever_in_the_log_it_stands(found: Any) -> None:
    assert found(log([3.1] * 5 + [4.6] + [3.1] * 5, k=3)) == {("data-quality", "notice", False)}


def test_what_means_something_only_while_time_passes_is_not_asked(rulebook: Callable[..., Rulebook]) -> None:
    assert not {f.id for f in inspect_findings(log([3.0] * 8), rulebook())} & {"target-down", "telemetry-stale"}


def test_a_long_log_is_judged_in_coarser_spans(rulebook: Callable[..., Rulebook]) -> None:
    items = log([3.0] * 15_000 + [1.0] * 2_000 + [3.0] * 5_000, minutes=1 / 60)
    (only,) = inspect_findings(items, rulebook())
    assert (only.id, only.resolved) == ("dead-drafter", True)
    assert abs(only.since - (BEGAN + 15_000)) < 30


def test_order_of_evidence_does_not_matter(found: Any) -> None:
    items = log([3.1] * 4 + [1.0] * 7 + [3.0] * 4)
    assert found(items[::-1]) == found(items)
    other = [replace(item, series=replace(item.series, target="other")) for item in items]
    assert len(found([*items, *other])) == 1
