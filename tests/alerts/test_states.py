"""Timelines under a fake clock: what verdicts do to an alert.

A line is ``TIMES VERDICT PHASE [TRANSITION]``. ``TIMES`` is a second or a span in which an evaluation comes every 15
seconds; ``PHASE`` holds after every one of them, ``-`` is no record; a transition is that of the last of them, and
where none is given there was none. Verdicts: true (a warning), notice, critical, clear, between (no longer past the
threshold, but not recovered), unknown. ``restart`` sends the record through JSON, as a store does.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.series import Series
from alerts.rules import Rule
from alerts.states import step
from alerts.verdicts import Clear, Finding, NotEnough, Verdict
from store.state import AlertRecord

INTERVAL = 15
RULE = Rule(hold=120, keep=180, interval=INTERVAL)


def finding(severity: str = "warning", why: str = "acc_len 1.50") -> Finding:
    return Finding("low-acceptance", severity, Series("decode-1"), 0.0, "log", why, value=1.5)  # type: ignore[arg-type]


VERDICTS: dict[str, Verdict] = {
    "true": finding(),
    "notice": finding("notice"),
    "critical": finding("critical"),
    "clear": Clear("acc_len 3.10"),
    "between": Clear("acc_len 2.05", recovered=False),
    "unknown": NotEnough("idle"),
}


def through_json(record: AlertRecord | None) -> AlertRecord | None:
    return None if record is None else AlertRecord(**json.loads(json.dumps(asdict(record))))


def play(timeline: str, rule: Rule = RULE, record: AlertRecord | None = None) -> AlertRecord | None:
    for line in timeline.strip().splitlines():
        words = line.split()
        if words == ["restart"]:
            record = through_json(record)
            continue
        times, verdict, phase, *expected = words
        first, _, last = times.partition("..")
        moments = range(int(first), int(last or first) + 1, INTERVAL)
        transition = None
        for now in moments:
            assert transition is None, f"{line}: {transition} before the end of the span"
            record, transition = step(record, VERDICTS[verdict], rule, float(now), "key")
            assert (record.phase if record else "-") == phase, f"{line}: at {now}"
        assert (transition.kind if transition else None) == (expected[0] if expected else None), line
    return record


TIMELINES = {
    "it fires once it was true for long enough, and is resolved once it was false for long enough": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135..300   true      firing
        315        clear     recovering  recovering
        330..480   clear     recovering
        495        clear     resolved    resolved
        510..600   clear     resolved
    """,
    "a pending alert that turns false is forgotten without a word": """
        0          true      pending     pending
        15..60     true      pending
        75         clear     -           forgotten
        90         true      pending     pending
        105..195   true      pending
        210        true      firing      firing
    """,
    "one true evaluation while recovering starts the recovery anew": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135        clear     recovering  recovering
        150..300   clear     recovering
        310        true      firing      resumed
        325        clear     recovering  recovering
        340..490   clear     recovering
        505        clear     resolved    resolved
    """,
    "between threshold and recovery threshold: what fires keeps firing, what is pending ends": """
        0          true      pending     pending
        15         between   -           forgotten
        30         true      pending     pending
        45..135    true      pending
        150        true      firing      firing
        165..900   between   firing
        915        clear     recovering  recovering
        930        between   firing      resumed
        945        clear     recovering  recovering
        960..1110  clear     recovering
        1125       clear     resolved    resolved
    """,
    "idle changes nothing, and its time counts for neither side": """
        0          true      pending     pending
        15..105    true      pending
        120..1200  unknown   pending
        1215       true      firing      firing
        1230..2000 unknown   firing
        2015       clear     recovering  recovering
        2030..3000 unknown   recovering
        3015       clear     recovering
        3030..3165 clear     recovering
        3180       clear     resolved    resolved
    """,
    "an unknown verdict about nothing is nothing": """
        0..60      unknown   -
    """,
    "a restart while pending keeps the time already counted, and downtime does not count": """
        0          true      pending     pending
        15..60     true      pending
        restart
        600        true      pending
        615..630   true      pending
        645        true      firing      firing
    """,
    "a restart while firing fires nothing again": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        restart
        3600       true      firing
        3615..3700 true      firing
    """,
    "a restart while recovering does not resolve by its downtime": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135        clear     recovering  recovering
        150..195   clear     recovering
        restart
        3600       clear     recovering
        3615..3690 clear     recovering
        3705       clear     resolved    resolved
    """,
    "a restart after longer than the tolerance lets a pending alert begin anew": """
        0          true      pending     pending
        15..105    true      pending
        restart
        3705       true      pending
        3720..3810 true      pending
        3825       true      firing      firing
    """,
    "a pending alert about which nothing was known for an hour is forgotten": """
        0          true      pending     pending
        15..105    true      pending
        120..3700  unknown   pending
        3706       unknown   -           forgotten
    """,
    "a firing alert about which nothing was known for a day is resolved": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135..86500 unknown   firing
        86520      unknown   resolved    resolved
    """,
    "one skipped evaluation counts": """
        0          true      pending     pending
        15..75     true      pending
        105        true      pending
        120        true      firing      firing
    """,
    "a gap longer than two intervals counts as one": """
        0          true      pending     pending
        15..30     true      pending
        90         true      pending
        105..150   true      pending
        165        true      firing      firing
    """,
    "a clock set back counts nothing, and loses nothing": """
        1000       true      pending     pending
        1015..1060 true      pending
        400        true      pending
        415..445   true      pending
        460        true      firing      firing
    """,
    "a clock set back while recovering counts nothing, and loses nothing": """
        1000       true      pending     pending
        1015..1105 true      pending
        1120       true      firing      firing
        1135       clear     recovering  recovering
        1150..1225 clear     recovering
        300        clear     recovering
        315..375   clear     recovering
        390        clear     resolved    resolved
    """,
    "a clock set forward fires nothing": """
        0          true      pending     pending
        15..30     true      pending
        90000      true      pending
    """,
    "a graver finding fires at once, as a new episode": """
        0          notice    pending     pending
        15..105    notice    pending
        120        notice    firing      firing
        135        true      firing      firing
        150..180   true      firing
    """,
    "a lesser finding resolves the graver alert, then becomes one of its own": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135        notice    recovering  recovering
        150..300   notice    recovering
        315        notice    resolved    resolved
        330        notice    pending     pending
    """,
    "what fires again within the hour keeps firing four times as long": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135        clear     recovering  recovering
        150..300   clear     recovering
        315        clear     resolved    resolved
        330        true      pending     pending
        345..435   true      pending
        450        true      firing      firing
        465        clear     recovering  recovering
        480..1170  clear     recovering
        1185       clear     resolved    resolved
    """,
    "what fires again after an hour is not flapping": """
        0          true      pending     pending
        15..105    true      pending
        120        true      firing      firing
        135        clear     recovering  recovering
        150..300   clear     recovering
        315        clear     resolved    resolved
        3900       true      pending     pending
        3915..4005 true      pending
        4020       true      firing      firing
        4035       clear     recovering  recovering
        4050..4200 clear     recovering
        4215       clear     resolved    resolved
    """,
    "a target that flaps while pending never fires": """
        0          true      pending     pending
        15..90     true      pending
        105        clear     -           forgotten
        120        true      pending     pending
        135..210   true      pending
        225        clear     -           forgotten
    """,
}


@pytest.mark.parametrize("timeline", TIMELINES.values(), ids=TIMELINES.keys())
def test_timeline(timeline: str) -> None:
    play(timeline)


def test_without_a_hold_it_fires_at_first_sight() -> None:
    play("0 true firing firing", Rule(hold=0, keep=0))
    play(
        """
        0   true    firing     firing
        15  clear   resolved   resolved
        """,
        Rule(hold=0, keep=0),
    )


def test_a_record_remembers_when_it_began_fired_and_was_resolved() -> None:
    record = play(
        TIMELINES["it fires once it was true for long enough, and is resolved once it was false for long enough"]
    )
    assert record is not None
    assert (record.key, record.finding, record.severity, record.target) == (
        "key",
        "low-acceptance",
        "warning",
        "decode-1",
    )
    assert (record.active_since, record.fired_at, record.clear_since, record.resolved_at) == (0.0, 120.0, 315.0, 495.0)
    assert record.detail["why"] == "acc_len 1.50"
    assert record.detail["series"] == {"target": "decode-1"}


def test_every_episode_has_a_number_of_its_own_even_if_the_alert_was_forgotten_in_between() -> None:
    first, _ = step(None, finding(), Rule(hold=0, keep=0), 1000.0, "key")
    second, _ = step(None, finding(), Rule(hold=0, keep=0), 2000.0, "key")
    assert first is not None
    assert second is not None
    assert first.episode != second.episode
    back, _ = step(first, Clear(), Rule(hold=0, keep=0), 500.0)
    again, _ = step(back, finding(), Rule(hold=0, keep=0), 515.0)
    assert again is not None
    assert again.episode > first.episode


def test_a_pending_alert_that_ends_is_again_what_it_was_when_it_was_resolved() -> None:
    resolved = play(
        """
        0          critical  pending     pending
        15..105    critical  pending
        120        critical  firing      firing
        135        clear     recovering  recovering
        150..300   clear     recovering
        315        clear     resolved    resolved
        """
    )
    assert resolved is not None
    after = play(
        """
        4000       notice    pending     pending
        restart
        4015       clear     resolved    forgotten
        """,
        record=resolved,
    )
    assert after is not None
    assert (after.severity, after.fired_at, after.resolved_at, after.episode) == (
        "critical",
        resolved.fired_at,
        resolved.resolved_at,
        resolved.episode,
    )
    assert after.detail == through_json(resolved).detail  # type: ignore[union-attr]


def test_an_unknown_verdict_returns_the_very_record() -> None:
    record, _ = step(None, finding(), RULE, 0.0, "key")
    same, transition = step(record, NotEnough("idle"), RULE, 15.0)
    assert same is record
    assert transition is None


@given(
    st.lists(
        st.tuples(
            st.floats(-5000, 90000, allow_nan=False),
            st.sampled_from(sorted(VERDICTS)),
        ),
        max_size=40,
    )
)
def test_any_course_of_verdicts_and_clocks_keeps_the_order_of_phases(course: list[tuple[float, str]]) -> None:
    """Every firing is preceded by a hold of counted time, and every resolution told once per firing."""
    record, open_episode, now = None, False, 0.0
    for elapsed, name in course:
        now += elapsed
        record, transition = step(record, VERDICTS[name], RULE, now, "key")
        if transition is None:
            continue
        if transition.kind == "firing":
            assert record is not None
            assert open_episode or record.true_seconds >= RULE.hold
            open_episode = True
        if transition.kind == "resolved":
            assert open_episode
            open_episode = False
        assert (record is not None and record.phase in ("firing", "recovering")) == open_episode
