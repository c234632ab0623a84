"""Incidents: what changed, what it costs, what to do first; and the figures of the whole fleet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from alerts.findings import findings
from service.fleet import Incident, Kpi
from service.remedy import flag_of
from store.state import AlertChange

RADIX = {"engine": "sglang", "drafter": "RadixArk/Kimi-K3-DSpark", "k": 7}
N = "\N{NARROW NO-BREAK SPACE}"


def only(world: Any) -> Incident:
    (incident,) = world.fleet().incidents
    return incident


def dead_drafter(world: Any, **detail: Any) -> Any:
    """A target whose drafter died ten minutes ago."""
    world.target("a", facts=RADIX)
    world.looks("a", -3600, 0)
    world.traffic("a", -3600, -600, 4.22, category="chat")
    world.traffic("a", -600, 0, 1.02, category="chat")
    return world.alert("dead-drafter", "a", since=-580, value=1.02, why="acc_len 1.02 over 1600 steps", **detail)


def test_a_dead_drafter(world: Any) -> None:
    record = dead_drafter(world)
    incident = only(world)
    assert incident.key == record.key
    assert (incident.finding, incident.severity, incident.target) == ("dead-drafter", "critical", "a")
    assert incident.title == "Drafter is dead on a"
    assert incident.short == "Dead drafter"
    assert incident.since == world.now - 460
    assert incident.figures == (("acc_len", "4.22 → 1.02"), ("expected", "3.90"))
    assert incident.why == "acc_len 1.02 over 1600 steps"
    assert incident.cause == findings()["dead-drafter"].cause
    assert incident.remedy == findings()["dead-drafter"].remedy.any[0]
    assert incident.flag is None
    assert world.fleet().firing == 1


def test_a_cause_of_its_own_wins(world: Any) -> None:
    dead_drafter(world, cause="draft KV is not transferred")
    assert only(world).cause == "draft KV is not transferred"


def test_what_was_before_stays_while_the_alert_lasts(world: Any) -> None:
    """The evidence of an alert reaches back a quarter of an hour: its ``since`` slides along."""
    record = dead_drafter(world)
    reads = world.reads()
    first = reads.view(world.now, 3600.0).incidents[0].figures
    world.traffic("a", 0, 3600, 1.02, category="chat")
    world.look("a", at=3600.0)
    slid = replace(record, detail={**record.detail, "since": world.now + 2700, "value": 1.01})
    world.state.apply([AlertChange(slid)])
    later = reads.view(world.now + 3600, 3600.0).incidents[0].figures
    assert (first[0], later[0]) == (("acc_len", "4.22 → 1.02"), ("acc_len", "4.22 → 1.01"))
    # And also for somebody who sees it only now.
    assert world.reads().view(world.now + 3600, 3600.0).incidents[0].figures[0] == later[0]


def test_no_figure_of_before_without_evidence(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -600, 0)
    world.traffic("a", -600, 0, 1.02)
    world.alert("dead-drafter", "a", since=-580, value=1.02)
    assert only(world).figures == (("acc_len", "1.02"),)


@pytest.mark.parametrize(
    ("series", "title", "figures"),
    [
        ({"category": "code"}, "Acceptance is low on a, category code", ("5.60 → 1.90", "5.50")),
        ({"category": ""}, "Acceptance is low on a, category (unlabelled)", ("1.90", None)),
        ({"rank": "3"}, "Acceptance is low on a, rank 3", ("3.10 → 1.90", None)),
    ],
)
def test_an_alert_about_a_part_is_held_against_that_part(
    world: Any, series: dict[str, str], title: str, figures: tuple[str, str | None]
) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -3600, 0)
    world.traffic("a", -3600, -600, 5.6, category="code", rank="0")
    world.traffic("a", -3600, -600, 3.1, category="chat", rank="3")
    world.traffic("a", -600, 0, 1.9, category="code", rank="0")
    world.alert("low-acceptance", "a", severity="warning", since=-580, value=1.9, series=series)
    incident = only(world)
    assert incident.title == title
    assert dict(incident.figures) == {"acc_len": figures[0]} | ({"expected": figures[1]} if figures[1] else {})


def slow_kernel(world: Any, *, engine: str | None = "sglang", peers: bool = False) -> None:
    """A target whose steps take 2.3 times as long since ten minutes, at the same acceptance."""
    names = ("a", "b", "c", "d") if peers else ("a",)
    for name in names:
        world.target(name, group="blue", facts=RADIX)
        slow = name == "a"
        before, now = (-3600, 0.0416), (-600, 0.0969 if slow else 0.0416)
        if not peers:
            world.traffic(name, before[0], -600, 4.31, source="log", step_time=before[1])
            world.looks(name, before[0], -600, running=30.0, rate=5150.0)
        world.traffic(name, now[0], 0, 4.31, source="log", step_time=now[1])
        world.looks(name, now[0], 0, running=31.0, rate=2210.0 if slow else 5000.0)
    series = {} if engine is None else {"series": {"engine": engine}}
    world.alert(
        "draft-attention-backend-fallback",
        "a",
        severity="warning",
        since=-590,
        why="1 x in the log: Falling back to 'flashinfer'.",
        source="signature",
        **series,
    )


def test_a_slow_kernel(world: Any) -> None:
    slow_kernel(world)
    incident = only(world)
    assert incident.title == "Drafter fell back to another attention backend on a"
    assert incident.short == "Slow kernel"
    assert incident.figures == (
        ("Step time", "41.6 → 96.9 ms ×2.3"),
        ("acc_len", "4.31 normal"),
        ("Cost", "−2,940 tok/s"),
    )
    assert incident.lost_tokens_per_second == pytest.approx(2940)
    assert (incident.flag_verb, incident.flag) == ("Remove", "--speculative-draft-attention-backend")
    view = world.fleet()
    assert (view.verdict, view.alarm) == ("One target is serving.", "One is losing 2,940 tok/s.")


def test_a_slow_kernel_against_its_group(world: Any) -> None:
    """Nothing was seen of it before the fault: what its healthy peers do at like load is what is normal."""
    slow_kernel(world, peers=True)
    figures = dict(only(world).figures)
    assert figures["Step time"] == "41.6 → 96.9 ms ×2.3"
    assert figures["Cost"] == "−2,790 tok/s"
    assert figures["acc_len"] == "4.31"


def test_of_an_unknown_engine_no_remedy_is_told_as_if_it_were_known(world: Any) -> None:
    slow_kernel(world, engine=None)
    incident = only(world)
    assert incident.remedy.startswith("SGLang: Leave")
    assert incident.flag is None


def test_a_cost_is_not_said_where_load_was_never_alike(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -3600, -600, running=4.0, rate=5150.0)
    world.looks("a", -600, 0, running=31.0, rate=2210.0)
    world.traffic("a", -3600, 0, 4.31)
    world.alert("draft-attention-backend-fallback", "a", severity="warning", since=-590)
    assert [label for label, _ in only(world).figures] == ["acc_len"]
    assert only(world).lost_tokens_per_second is None
    assert world.fleet().alarm == "One needs you."


def test_costs_are_added_only_where_all_are_known(world: Any) -> None:
    slow_kernel(world)
    world.healthy("b")
    assert world.fleet().alarm == "One is losing 2,940 tok/s."
    world.alert("dead-drafter", "b")
    assert world.fleet().alarm == "Two need you."


def test_a_target_with_two_faults_loses_only_once(world: Any) -> None:
    slow_kernel(world)
    world.alert("cuda-graph-decode-off", "a", severity="warning", since=-580, value=0.92)
    view = world.fleet()
    assert view.firing == 2
    assert view.alarm == "One is losing 2,940 tok/s."
    eager = next(item for item in view.incidents if item.finding == "cuda-graph-decode-off")
    assert eager.figures[0] == ("share of decode passes outside graphs", f"92.0{N}%")


def test_an_acc_len_that_fell_beside_a_fault_is_not_called_normal(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -3600, 0)
    world.traffic("a", -3600, -600, 4.3)
    world.traffic("a", -600, 0, 3.0)
    world.alert("draft-attention-backend-fallback", "a", severity="warning", since=-590)
    assert dict(only(world).figures)["acc_len"] == "4.30 → 3.00"


def test_only_what_wants_somebody_is_an_incident(world: Any) -> None:
    for name in "abcde":
        world.healthy(name, start=-900)
    world.alert("low-acceptance", "a", severity="notice")
    world.alert("dead-drafter", "b", phase="pending")
    world.alert("dead-drafter", "c", phase="resolved", resolved=-10)
    world.alert("acceptance-drop", "d", severity="warning", phase="recovering")
    world.alert("dead-drafter", "e")
    view = world.fleet()
    assert [(item.target, item.recovering) for item in view.incidents] == [("e", False), ("d", True)]
    assert view.firing == 2


def test_worst_first_then_newest(world: Any) -> None:
    for name in "abcd":
        world.healthy(name, start=-900)
    world.alert("low-acceptance", "a", severity="warning", since=-300)
    world.alert("dead-drafter", "b", since=-800)
    world.alert("dead-drafter", "c", since=-400)
    world.alert("dead-drafter", "d", phase="recovering", since=-200)
    assert [item.target for item in world.fleet().incidents] == ["c", "b", "d", "a"]


def test_channels_that_were_told(world: Any) -> None:
    record = dead_drafter(world)
    world.told(record, "slack")
    world.told(record, "webhook", delivered=False)
    assert only(world).told == ("slack",)


def test_a_finding_that_is_no_longer_known_is_still_an_incident(world: Any) -> None:
    world.healthy("a", start=-900)
    world.alert("retired-finding", "a", severity="critical")
    incident = only(world)
    assert (incident.title, incident.short, incident.remedy, incident.cause) == (
        "retired-finding on a",
        "Critical",
        "",
        "",
    )
    assert world.fleet().rows[0].label == "Critical"


def test_hostile_log_text_stays_text(world: Any) -> None:
    why = "1 x in the log: </script><img src=x onerror=alert(1)>"
    world.healthy("a", start=-900)
    world.alert("attention-backend-fallback", "a", severity="warning", why=why)
    assert only(world).why == why


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("Drop --disable-cuda-graph unless it works around a fault.", ("Remove", "--disable-cuda-graph")),
        ("Set --attention-backend trtllm_mha", ("Set", "--attention-backend trtllm_mha")),
        ("Remove --attention-backend trtllm_mla.", ("Remove", "--attention-backend trtllm_mla")),
        ("Set --max-running-requests explicitly (48 is usual).", ("Set", "--max-running-requests")),
        ("Set --max-running-requests 48.", ("Set", "--max-running-requests 48")),
        ("Leave --attention-backend unset: setting one cancels the rest.", ("Remove", "--attention-backend")),
        # Only the first of several would be copied.
        ("Leave --attention-backend, --decode-attention-backend unset.", None),
        # It is memory that is left, not the flag that is removed.
        ("Leave more memory for graphs: lower --mem-fraction-static.", None),
        # What is removed is a part of the value: without the flag speculation would be off.
        ("Remove rejection_sample_method synthetic from --speculative-config.", None),
        ('Set --speculative-config \'{..., "attention_backend": "FLASH_ATTN"}\'', None),
        ("Look at --disable-cuda-graph", None),
        ("Nothing to copy here.", None),
        ("", None),
    ],
)
def test_flags_to_copy(line: str, flag: tuple[str, str] | None) -> None:
    assert flag_of(line) == flag


def test_every_finding_has_a_name_short_enough_for_a_column() -> None:
    for name, entry in findings().items():
        assert entry.short, name
        assert len(entry.short) <= 15, name


# The figures of the whole fleet


def kpi(world: Any, label: str) -> Kpi | None:
    return next((item for item in world.fleet().kpis if item.label == label), None)


def test_acc_len_over_all_is_tokens_over_steps(world: Any) -> None:
    for name, acc_len, steps in (("a", 5.0, 90.0), ("b", 3.0, 10.0)):
        world.target(name, facts=RADIX)
        world.looks(name, -1800, 0)
        world.traffic(name, -1800, 0, acc_len, category="code", steps=steps)
    told = kpi(world, "acc_len, all serving")
    assert told is not None
    assert told.value == "4.80"
    assert told.note == f"expected 5.50, −12.7{N}%"
    # A point a tick that has ended, None before there was anything.
    assert told.trend[:-5] == (None,) * 42
    assert told.trend[-5:] == pytest.approx([4.8] * 5, abs=0.02)


def test_targets_that_do_not_serve_are_in_no_figure(world: Any) -> None:
    world.healthy("a", acc_len=4.0)
    world.traffic("gone", -900, 0, 1.0)
    world.target("few")
    world.look("few")
    world.traffic("few", -60, 0, 1.0, steps=10)
    told = kpi(world, "acc_len, all serving")
    assert told is not None
    assert told.value == "4.00"


def test_what_cannot_be_computed_is_left_out(world: Any) -> None:
    world.healthy("a")
    assert [item.label for item in world.fleet().kpis] == ["acc_len, all serving", "Yield", "Coverage"]
    acc_len = kpi(world, "acc_len, all serving")
    assert acc_len is not None
    assert acc_len.note == ""


def test_yield(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.healthy("a", acc_len=4.15)
    told = kpi(world, "Yield")
    assert told is not None
    assert (told.value, told.unit, told.note) == ("45.0", "%", "(acc_len − 1) / k, k = 7")
    world.target("b", facts={"k": 3})
    world.healthy("b", k=3, acc_len=2.0)
    told = kpi(world, "Yield")
    assert told is not None
    assert (told.value, told.note) == ("41.5", "(acc_len − 1) / k")


def test_coverage(world: Any) -> None:
    world.target("a")
    world.looks("a", -900, 0)
    world.traffic("a", -900, 0, 4.0, category="code", steps=60)
    world.traffic("a", -900, 0, 4.0, category="", steps=20)
    told = kpi(world, "Coverage")
    assert told is not None
    assert (told.value, told.note) == ("75.0", "of steps carry a category")


def test_a_sample_of_requests_covers_only_itself(world: Any) -> None:
    world.target("a")
    world.looks("a", -900, 0)
    world.traffic("a", -900, 0, 4.0, steps=80)
    world.traffic("a", -900, 0, 4.0, category="code", steps=20, source="request")
    told = kpi(world, "Coverage")
    assert told is not None
    assert told.value == "25.0"
    assert world.fleet().rows[0].acc_len.source == "counter"


def test_output_and_step_time(world: Any) -> None:
    for name, seconds in (("a", 0.040), ("b", 0.044), ("c", 0.060)):
        world.target(name)
        world.traffic(name, -1800, 0, 4.0, source="log", step_time=seconds)
        world.looks(name, -1800, 0, rate=5000.0)
    output, step_time = kpi(world, "Output"), kpi(world, "Step time")
    assert output is not None
    assert step_time is not None
    assert (output.value, output.unit, output.note) == ("15.0 k", "tok/s", "all serving")
    assert (step_time.value, step_time.unit, step_time.note) == ("44.0", "ms", "median of 3 targets")
    assert step_time.trend[-1] == pytest.approx(0.044)
    world.healthy("d")
    output = kpi(world, "Output")
    assert output is not None
    assert output.note == "of 3 of 4 serving"
