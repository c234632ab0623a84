"""Verdicts by scope: which are told, and which keep quiet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from acceptance.counts import Counts, Spread
from acceptance.facts import Subject
from acceptance.series import Series
from acceptance.window import Source, Window
from alerts.evidence import Beside, Evidence, from_windows
from alerts.rules import Override, Rulebook
from alerts.scopes import Judgement, alert_key, judge, merged
from alerts.verdicts import Clear, Finding, NotEnough, Severity, Verdict

NOW = 1_796_000_000.0
SUBJECT = Subject("decode-1", "prod", facts={"engine": "sglang", "k": 3})


def evidence(lengths: dict[str | None, float], source: Source = "counter", by: str = "rank") -> list[Evidence]:
    return from_windows(windows(lengths, source, by), [SUBJECT], [], Beside(), NOW)


def windows(lengths: dict[str | None, float], source: Source = "counter", by: str = "rank") -> list[Window]:
    return [
        Window(
            id=hash((source, value, at)) & 0x7FFFFFFFFFFFFFFF,
            series=Series("decode-1", **{by: value}),
            start=NOW - 15 * at - 15,
            end=NOW - 15 * at,
            source=source,
            exact=True,
            counts=Counts(
                steps=400.0,
                emitted=400 * length,
                slots=1200.0,
                requests=4.0,
                spread=Spread.of(400 * length, 400.0),
            ),
        )
        for value, length in lengths.items()
        for at in range(20)
    ]


def nothing_fires(key: str) -> Severity | None:
    return None


def told(judgement: Judgement) -> set[str]:
    return {judged.key for judged in judgement.judged if isinstance(judged.verdict, Finding)}


def verdict(judgement: Judgement, key: str) -> Verdict:
    return next(judged.verdict for judged in judgement.judged if judged.key == key)


def test_a_key_is_stable_text_without_source_and_revision() -> None:
    series = Series("decode-1", "prod", revision="ab", engine="sglang", drafter="x")
    assert alert_key("dead-drafter", series) == "dead-drafter target=decode-1"
    assert alert_key("dead-drafter", replace(series, rank="1")) == "dead-drafter target=decode-1 rank=1"
    assert alert_key("x", replace(series, category="")) == 'x target=decode-1 category=""'
    assert alert_key("x", replace(series, category="a b=c")) == "x target=decode-1 category=a%20b%3Dc"
    assert alert_key("x", Series("http://10.0.0.1:30000")) == "x target=http://10.0.0.1:30000"


def test_one_dead_rank_is_told_of_the_rank(rulebook: Callable[..., Rulebook]) -> None:
    judgement = judge(evidence({"0": 3.0, "1": 3.0, "2": 1.0}), rulebook(), "page", nothing_fires)
    assert told(judgement) == {"dead-drafter target=decode-1 rank=2"}


def test_where_the_whole_target_is_dead_its_ranks_keep_quiet(rulebook: Callable[..., Rulebook]) -> None:
    judgement = judge(evidence({"0": 1.0, "1": 1.0}), rulebook(), "page", nothing_fires)
    assert told(judgement) == {"dead-drafter target=decode-1"}
    quiet = verdict(judgement, "dead-drafter target=decode-1 rank=1")
    assert isinstance(quiet, Clear)
    assert not quiet.recovered


def test_a_rank_keeps_quiet_while_the_alert_of_its_target_still_fires(rulebook: Callable[..., Rulebook]) -> None:
    def fires(key: str) -> Severity | None:
        return "critical" if key == "dead-drafter target=decode-1" else None

    judgement = judge(evidence({"0": 3.0, "1": 3.0, "2": 1.0}), rulebook(), "page", fires)
    assert told(judgement) == set()


def test_a_target_is_not_called_low_for_one_dead_rank(rulebook: Callable[..., Rulebook]) -> None:
    judgement = judge(evidence({"0": 2.7, "1": 1.0}), rulebook(), "page", nothing_fires)
    assert told(judgement) == {"dead-drafter target=decode-1 rank=1"}


def test_low_is_not_told_where_dead_is(rulebook: Callable[..., Rulebook]) -> None:
    judgement = judge(evidence({None: 1.0}), rulebook(), "page", nothing_fires)
    assert told(judgement) == {"dead-drafter target=decode-1"}


def test_a_graver_finding_is_told_beside_a_lesser_one(rulebook: Callable[..., Rulebook]) -> None:
    """low-acceptance as a notice does not hide a drop that is a warning."""
    of_seven = replace(SUBJECT, facts={"engine": "sglang", "k": 7})
    told_windows = [replace(window, counts=replace(window.counts, slots=2800.0)) for window in windows({None: 2.8})]
    items = from_windows(told_windows, [of_seven], [], Beside(baseline=lambda series: 4.7), NOW)
    judgement = judge(items, rulebook(), "page", nothing_fires)
    assert told(judgement) == {"low-acceptance target=decode-1", "acceptance-drop target=decode-1"}


def test_a_category_is_judged_by_its_own_limits(rulebook: Callable[..., Rulebook]) -> None:
    items = evidence({"code": 2.6, "creative": 1.6}, by="category")
    assert told(judge(items, rulebook(), "page", nothing_fires)) == {"low-acceptance target=decode-1 category=creative"}
    lenient = Override("low-acceptance", {"category": ("creative",)}, thresholds={"acc_len": 1.5})
    assert told(judge(items, rulebook(lenient), "page", nothing_fires)) == set()
    strict = Override("low-acceptance", {"category": ("code",)}, thresholds={"acc_len": 3.0})
    assert told(judge(items, rulebook(lenient, strict), "page", nothing_fires)) == {
        "low-acceptance target=decode-1 category=code"
    }


def test_what_is_turned_off_is_not_judged(rulebook: Callable[..., Rulebook]) -> None:
    off = Override("dead-drafter", {"group": ("prod",)}, enabled=False)
    items = [replace(item, series=replace(item.series, group="prod")) for item in evidence({None: 1.0})]
    assert told(judge(items, rulebook(off), "page", nothing_fires)) == {"low-acceptance target=decode-1"}


def test_any_source_with_enough_evidence_may_tell(rulebook: Callable[..., Rulebook]) -> None:
    """SGLang's counters stand still and tell of the healthy past; the log tells of now."""
    past = [replace(w, start=w.start - 600, end=w.end - 600) for w in windows({None: 3.0})]
    items = from_windows([*past, *windows({None: 1.0}, "log")], [SUBJECT], [], Beside(), NOW)
    judgement = judge(items, rulebook(), "page", nothing_fires)
    found = verdict(judgement, "dead-drafter target=decode-1")
    assert isinstance(found, Finding)
    assert found.source == "log"
    assert "the counters have not moved" in found.why


def finding(severity: Severity, steps: float, source: str = "log") -> Finding:
    return Finding("x", severity, Series("t"), 0.0, source, "", steps=steps)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([finding("warning", 10, "log"), finding("warning", 20, "counter")], finding("warning", 20, "counter")),
        ([finding("critical", 10), finding("warning", 20)], finding("critical", 10)),
        ([finding("warning", 10), Clear(), NotEnough("")], finding("warning", 10)),
        ([Clear("a"), NotEnough("b")], Clear("a")),
        ([Clear("a"), Clear("b", recovered=False)], Clear("a; b", recovered=False)),
        ([NotEnough("a"), NotEnough("a"), NotEnough("b")], NotEnough("a; b")),
        ([], NotEnough("no evidence")),
    ],
    ids=["most steps", "worst", "any", "clear", "not all recovered", "none knows", "none asked"],
)
def test_sources_of_one_scope_are_taken_together(verdicts: Sequence[Verdict], expected: Verdict) -> None:
    assert merged(verdicts) == expected


def test_a_detector_that_fails_stops_no_other(
    rulebook: Callable[..., Rulebook], broken_detector: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with broken_detector("dead"):
        judgement = judge(evidence({None: 1.0}), rulebook(), "page", nothing_fires)
    assert "a detector failed: finding=dead-drafter target=decode-1" in caplog.text
    assert judgement.failed == {"dead-drafter target=decode-1"}
    assert told(judgement) == {"low-acceptance target=decode-1"}
