"""The fleet's verdict, states and rows, from pasts that were written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.fleet import Cell, FleetRow

RADIX = {"engine": "sglang", "drafter": "RadixArk/Kimi-K3-DSpark", "k": 7, "tensor_parallel": 8}
N = "\N{NARROW NO-BREAK SPACE}"


def healthy(world: Any) -> None:
    world.healthy("a")
    world.healthy("b")
    world.healthy("c")


def faulty(world: Any) -> None:
    healthy(world)
    world.alert("dead-drafter", "b")


def several_of_one(world: Any) -> None:
    faulty(world)
    world.alert("acceptance-drop", "b", severity="warning", series={"category": "code"})


def waiting(world: Any) -> None:
    healthy(world)
    world.alert("dead-drafter", "b", phase="pending", since=-60)


def noticed(world: Any) -> None:
    healthy(world)
    world.alert("low-acceptance", "b", severity="notice")


def all_faulty(world: Any) -> None:
    faulty(world)
    world.alert("low-acceptance", "a", severity="warning")
    world.alert("low-acceptance", "c", severity="warning", phase="recovering")


def one(world: Any) -> None:
    world.healthy("a")


def one_faulty(world: Any) -> None:
    one(world)
    world.alert("dead-drafter", "a")


def many(world: Any) -> None:
    for number in range(12):
        world.healthy(f"t-{number:02}", start=-900)
    world.alert("dead-drafter", "t-03")


def idle(world: Any) -> None:
    world.target("a")
    world.look("a", running=0.0)
    world.target("b")
    world.look("b", up=False, error="refused")


def few(world: Any) -> None:
    world.target("a")
    world.look("a")
    world.traffic("a", -60, 0, 4.0, steps=35)
    world.target("b")
    world.look("b", running=0.0)


def few_beside_enough(world: Any) -> None:
    healthy(world)
    few(world)
    world.healthy("a")


def off(world: Any) -> None:
    for name in "ab":
        world.target(name, facts={"speculative": False})
        world.look(name, speculating=False)
    world.target("p", facts={"role": "prefill"})
    world.look("p")


def nobody(world: Any) -> None:
    """No target at all."""


def down(world: Any) -> None:
    healthy(world)
    world.target("d")
    world.look("d", up=False, error="refused")
    world.alert("target-down", "d", severity="warning")


@pytest.mark.parametrize(
    ("past", "verdict", "alarm", "severity"),
    [
        (healthy, "Speculation pays on all three serving targets.", "", None),
        (noticed, "Speculation pays on all three serving targets.", "", None),
        (faulty, "Speculation pays on two of three serving targets.", "One needs you.", "critical"),
        (several_of_one, "Speculation pays on two of three serving targets.", "One needs you.", "critical"),
        (waiting, "Speculation pays on all three serving targets.", "One may be falling.", None),
        (all_faulty, "Speculation pays on none of the three serving targets.", "Three need you.", "critical"),
        (one, "Speculation pays on the only serving target.", "", None),
        (one_faulty, "One target is serving.", "One needs you.", "critical"),
        (many, "Speculation pays on 11 of 12 serving targets.", "One needs you.", "critical"),
        (idle, "Nothing is serving, so there is nothing to judge.", "", None),
        (few, "Too few steps to judge: 140 of 200.", "", None),
        (few_beside_enough, "Speculation pays on all three serving targets.", "", None),
        (off, "Speculation is off on all three targets.", "", None),
        (nobody, "No targets yet. Add one to draftgauge.yaml, or let discovery find them.", "", None),
        (down, "Speculation pays on all three serving targets.", "One needs you.", "warning"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_verdict(world: Any, past: Callable[[Any], None], verdict: str, alarm: str, severity: str | None) -> None:
    past(world)
    view = world.fleet()
    assert (view.verdict, view.alarm, view.alarm_severity) == (verdict, alarm, severity)


@pytest.mark.parametrize(
    ("past", "counted"),
    [
        (healthy, "3 targets: 3 serving"),
        (one, "1 target: 1 serving"),
        (idle, "2 targets: 1 idle, 1 not answering"),
        (few, "2 targets: 1 with few steps, 1 idle"),
        (off, "3 targets: 2 without speculation, 1 that only prefill"),
        (down, "4 targets: 3 serving, 1 not answering"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_status_line_counts_targets(world: Any, past: Callable[[Any], None], counted: str) -> None:
    past(world)
    assert world.fleet().status[1] == counted


def test_the_status_line(world: Any) -> None:
    healthy(world)
    # Three targets of 40 steps every 15 s, over 15 minutes.
    assert world.fleet().status == ("live, 0 s ago", "3 targets: 3 serving", "7,200 verify steps in the last 15 min")
    assert world.reads().view(world.now + 300, 4 * 3600.0).status[0] == "nothing was read for 5 min"


def test_nothing_is_said_of_nothing(world: Any) -> None:
    view = world.fleet()
    assert (view.status, view.incidents, view.kpis, view.categories, view.rows) == ((), (), (), (), ())
    world.target("a")
    assert world.fleet().status[0] == "nothing was read yet"


LABELS = [
    pytest.param(healthy, "b", "OK", None, False, id="ok"),
    pytest.param(faulty, "b", "Dead drafter", "critical", False, id="critical has the finding's short name"),
    pytest.param(waiting, "b", "Pending 1 min", "critical", True, id="pending"),
    pytest.param(noticed, "b", "Low acceptance", "notice", False, id="notice"),
    pytest.param(all_faulty, "c", "Recovering", "warning", False, id="recovering"),
    pytest.param(idle, "a", "Idle", None, False, id="idle for longer than anybody knows"),
    pytest.param(idle, "b", "No answer", None, False, id="down, and no alert yet"),
    pytest.param(down, "d", "No answer", "warning", False, id="down"),
    pytest.param(few, "a", "Few steps", None, False, id="few steps"),
    pytest.param(off, "a", "No speculation", None, False, id="off"),
    pytest.param(off, "p", "Prefill only", None, False, id="prefill"),
]


@pytest.mark.parametrize(("past", "name", "label", "severity", "pending"), LABELS)
def test_labels(
    world: Any,
    row_of: Callable[..., FleetRow],
    past: Callable[[Any], None],
    name: str,
    label: str,
    severity: str | None,
    pending: bool,
) -> None:
    past(world)
    row = row_of(name)
    assert (row.label, row.severity, row.pending) == (label, severity, pending)


def test_labels_with_an_age(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.healthy("a", start=-4 * 3600.0)
    world.traffic("lately", -7200, -720, 4.0)
    world.target("lately")
    world.looks("lately", -7200, 0, running=0.0)
    world.traffic("long", -7200, -3900, 4.0)
    world.target("long")
    world.looks("long", -7200, 0, running=0.0)
    world.target("stale")
    world.look("stale", at=-400)
    # Idle since its last step; where that is older than what was read of it, since the end of its tick.
    assert [row_of(name).label for name in ("lately", "long", "stale")] == [
        "Idle 12 min",
        "Idle 1 h 5 min",
        "Stale 6 min",
    ]


def test_a_notice_does_not_hide_that_a_target_is_idle(world: Any, row_of: Callable[..., FleetRow]) -> None:
    idle(world)
    world.alert("config-cuda-graph-disabled", "a", severity="notice")
    row = row_of("a")
    assert (row.label, row.severity) == ("Idle", None)


@pytest.mark.parametrize(
    ("finding", "detail", "label"),
    [
        # 2.6 is what was published for creative writing: in the band of notices, and healthy.
        ("low-acceptance", {"value": 2.38, "series": {"category": "creative"}}, "OK"),
        ("low-acceptance", {"value": 2.20, "series": {"category": "creative"}}, "Low acceptance"),
        ("low-acceptance", {"value": 2.60, "series": {"category": "code"}}, "Low acceptance"),
        # Nobody knows what is normal for it.
        ("low-acceptance", {"value": 2.60, "series": {"category": "billing"}}, "Low acceptance"),
        ("low-acceptance", {"value": 2.60, "series": {"rank": "1"}}, "Low acceptance"),
        # 5.50 and 2.60 in halves of the steps.
        ("low-acceptance", {"value": 2.90}, "Low acceptance"),
        # A setting, for as long as the process lives.
        ("max-running-requests-reset", {}, "OK"),
        ("config-cuda-graph-disabled", {}, "OK"),
        ("sampling-param-ignored", {}, "OK"),
    ],
)
def test_healthy_targets_stay_quiet(
    world: Any, row_of: Callable[..., FleetRow], finding: str, detail: dict[str, Any], label: str
) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -900, 0)
    for category, acc_len in (("code", 5.5), ("creative", 2.6)):
        world.traffic("a", -900, 0, acc_len, category=category)
    world.alert(finding, "a", severity="info" if finding.startswith("sampling") else "notice", **detail)
    row = row_of("a")
    assert row.label == label
    assert {tick.state for tick in row.heartbeat[-2:]} == {"ok" if label == "OK" else "notice"}


def test_what_waits_to_fire_does_not_hide_that_a_target_is_unreachable(
    world: Any, row_of: Callable[..., FleetRow]
) -> None:
    idle(world)
    world.alert("target-down", "b", severity="warning", phase="pending", since=-30)
    assert row_of("b").label == "No answer"
    assert row_of("b").heartbeat[-1].state == "pending"


def test_worst_first(world: Any) -> None:
    for name in ("ok-2", "ok-1", "few", "idle", "off", "stale", "down", "pending", "notice", "warning", "critical"):
        world.target(name)
        if name not in ("few", "idle", "off", "stale", "down"):
            world.healthy(name, start=-900)
    world.target("few")
    world.look("few")
    world.traffic("few", -60, 0, 4.0, steps=10)
    world.look("idle", running=0.0)
    world.look("off", speculating=False)
    world.look("stale", at=-1000)
    world.look("down", up=False)
    world.target("prefill", facts={"role": "prefill"})
    world.look("prefill")
    world.target("silent")
    world.look("silent")
    world.alert("dead-drafter", "pending", phase="pending")
    world.alert("low-acceptance", "notice", severity="notice")
    world.alert("low-acceptance", "warning", severity="warning")
    world.alert("dead-drafter", "critical")
    assert [row.target for row in world.fleet().rows] == [
        *("critical", "warning", "notice", "pending", "down", "stale", "silent", "off", "few"),
        *("ok-1", "ok-2", "prefill", "idle"),
    ]


def test_of_equal_states_the_one_furthest_below_what_is_expected_comes_first(world: Any) -> None:
    for name, acc_len in (("a", 5.4), ("b", 3.0), ("c", 4.9)):
        world.target(name, facts=RADIX)
        world.healthy(name, start=-900, acc_len=acc_len, category="code")
    assert [row.target for row in world.fleet().rows] == ["b", "c", "a"]


def test_a_removed_target_is_shown_and_not_counted(world: Any) -> None:
    world.healthy("a")
    world.healthy("gone")
    world.catalog.replace([target for target in world._targets.values() if target.name == "a"], world.now - 60)
    view = world.fleet()
    assert [(row.target, row.label) for row in view.rows] == [("a", "OK"), ("gone", "Removed")]
    assert view.verdict == "Speculation pays on the only serving target."
    assert view.status[1] == "1 target: 1 serving"


def test_cells_are_held_against_what_was_published(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -900, 0)
    for category, acc_len, steps in (
        ("code", 5.5, 40.0),
        ("long context", 2.94, 20.0),
        ("creative", 2.8, 10.0),
        ("chat", 1.02, 3.0),
    ):
        world.traffic("a", -900, 0, acc_len, category=category, steps=steps)
    cells = row_of("a").categories
    assert cells["code"].acc_len == pytest.approx(5.5)
    assert cells["code"].lower is not None
    assert cells["code"].lower < 5.5 < (cells["code"].upper or 0.0)
    assert (cells["code"].expected, cells["code"].below, cells["code"].trusted) == (5.5, pytest.approx(0.0), True)
    assert cells["code"].steps == 2400
    assert cells["code"].requests == 240
    assert cells["code"].source == "counter"
    assert cells["long context"].below == pytest.approx((4.3 - 2.94) / 4.3)
    # Above what is expected is not below it.
    assert cells["creative"].below == 0.0
    # 180 steps: whatever the value, it is not judged.
    assert (cells["chat"].expected, cells["chat"].below, cells["chat"].trusted) == (3.9, None, False)
    whole = row_of("a").acc_len
    tokens = {"code": 2400 * 5.5, "long context": 1200 * 2.94, "creative": 600 * 2.8, "chat": 180 * 1.02}
    normal = {"code": 5.5, "long context": 4.3, "creative": 2.6, "chat": 3.9}
    steps_as_expected = sum(tokens[name] / normal[name] for name in tokens)
    assert whole.acc_len == pytest.approx(sum(tokens.values()) / 4380, rel=0.01)
    assert whole.expected == pytest.approx(sum(tokens.values()) / steps_as_expected, rel=0.01)


def test_a_fault_of_all_categories_does_not_move_what_is_expected_of_the_mix(
    world: Any, row_of: Callable[..., FleetRow]
) -> None:
    """The same tokens asked for, in far more steps: weighted by steps, the expectation would stay as well as fall."""
    for name, factor in (("well", 1.0), ("ill", 0.5)):
        world.target(name, facts=RADIX)
        world.looks(name, -900, 0)
        for category, normal in (("code", 5.5), ("creative", 2.6)):
            acc_len = max(normal * factor, 1.3)
            world.traffic(name, -900, 0, acc_len, category=category, steps=260 / acc_len, scatter=0.0)
    assert row_of("ill").acc_len.expected == pytest.approx(row_of("well").acc_len.expected)
    assert row_of("ill").acc_len.below == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("facts", "category"),
    [
        ({**RADIX, "drafter": "somebody/else"}, "code"),
        ({**RADIX, "k": 5}, "code"),
        ({"engine": "sglang"}, "code"),
        (RADIX, "billing"),
        (RADIX, None),
        (RADIX, ""),
    ],
)
def test_nothing_is_expected_where_nothing_was_published(
    world: Any, row_of: Callable[..., FleetRow], facts: dict[str, Any], category: str | None
) -> None:
    world.target("a", facts=facts)
    world.healthy("a", start=-900, category=category)
    row = row_of("a")
    assert (row.acc_len.expected, row.acc_len.below) == (None, None)
    assert all((item.expected, item.below) == (None, None) for item in row.categories.values())
    assert [name for name, _ in world.fleet().categories] == ([category] if category else [])


def test_a_mix_of_which_a_third_is_unknown_has_no_expectation(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -900, 0)
    world.traffic("a", -900, 0, 5.0, category="code", steps=20)
    world.traffic("a", -900, 0, 5.0, category="billing", steps=10)
    assert row_of("a").acc_len.expected is None
    assert row_of("a").categories["code"].expected == 5.5


def test_columns_keep_their_order_whatever_the_traffic(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.looks("a", -900, 0)
    for category, steps in (("zoo", 90.0), ("creative-writing", 50.0), ("math", 5.0), ("", 70.0), ("code", 1.0)):
        world.traffic("a", -900, 0, 3.0, category=category, steps=steps)
    assert world.fleet().categories == (("code", 5.5), ("math", 5.4), ("creative-writing", 2.6), ("zoo", None))


def test_a_column_expects_nothing_where_targets_differ(world: Any) -> None:
    world.target("a", facts=RADIX)
    world.target("b", facts={**RADIX, "drafter": "Inferact/Kimi-K3-DSpark-Block5", "k": 5})
    for name in "ab":
        world.healthy(name, start=-900, category="code")
    assert world.fleet().categories == (("code", None),)


def test_hostile_names_stay_strings(world: Any) -> None:
    name, category = "<script>alert(1)</script>", "'; DROP TABLE x;--\N{RIGHT-TO-LEFT OVERRIDE}"
    world.healthy(name, start=-900, category=category)
    view = world.fleet()
    assert view.rows[0].target == name
    assert view.categories == ((category, None),)


def test_what_a_row_says_of_its_target(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a", group="blue", facts={**RADIX, "data_parallel": 2, "model": "moonshotai/Kimi-K3"})
    world.healthy("a", start=-900, source="log", step_time=0.042)
    world.looks("a", -900, 0, rate=2210.0)
    row = row_of("a")
    assert (row.about, row.group, row.engine, row.model) == ("SGLang · TP8 DP2", "blue", "sglang", "moonshotai/Kimi-K3")
    assert row.step_time_seconds == pytest.approx(0.042)
    assert row.step_time_ratio is None
    world.target("b", facts={"engine": "vllm"})
    assert row_of("b").about == "vLLM"
    world.target("c")
    assert row_of("c").about == ""
    assert row_of("c").acc_len == Cell()


def test_output_is_what_looks_tell_of_the_last_minutes(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a")
    world.traffic("a", -900, 0, 4.0)
    world.looks("a", -1200, -300, rate=9000.0)
    world.looks("a", -300, 0, rate=2210.0)
    assert row_of("a").output_tokens_per_second == pytest.approx(2210.0)


def test_step_time_against_its_own_normal_at_like_load(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a")
    world.traffic("a", -3600, -600, 4.0, step_time=0.040)
    world.traffic("a", -600, 0, 4.0, step_time=0.092)
    world.looks("a", -3600, 0, running=30.0)
    assert row_of("a").step_time_ratio == pytest.approx(2.3)


def test_step_times_at_another_load_are_not_compared(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a")
    world.traffic("a", -3600, -600, 4.0, step_time=0.040)
    world.traffic("a", -600, 0, 4.0, step_time=0.092)
    world.looks("a", -3600, -600, running=4.0)
    world.looks("a", -600, 0, running=30.0)
    assert row_of("a").step_time_ratio is None


def test_step_time_against_healthy_targets_of_its_group(world: Any, row_of: Callable[..., FleetRow]) -> None:
    for name in "abcd":
        world.target(name, group="blue", facts=RADIX)
        world.healthy(name, start=-120, step_time=0.090 if name == "a" else 0.045)
    assert row_of("a").step_time_ratio == pytest.approx(2.0)
    world.target("other", group="red", facts=RADIX)
    world.healthy("other", start=-120, step_time=0.2)
    assert row_of("other").step_time_ratio is None
