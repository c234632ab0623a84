"""Heartbeat strips: a word a tick, from windows, looks and the episodes of alerts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from service.fleet import FleetRow, FleetView

HOUR = 3600.0


def states(row: FleetRow) -> list[str]:
    return [tick.state for tick in row.heartbeat]


def strip(view: FleetView, name: str) -> str:
    """A letter a tick: o(k) N(otice) W(arning) C(ritical) P(ending) i(dle) f (off) and a dot for no data."""
    letters = {"ok": "o", "notice": "N", "warning": "W", "critical": "C", "pending": "P", "idle": "i", "off": "f"}
    row = next(row for row in view.rows if row.target == name)
    return "".join(letters.get(state, ".") for state in states(row))


def test_four_hours_are_48_ticks_of_five_minutes(world: Any) -> None:
    world.healthy("a")
    view = world.fleet()
    ticks = view.rows[0].heartbeat
    assert view.tick_seconds == 300.0
    assert len(ticks) == 48
    assert (ticks[0].start, ticks[-1].end) == (world.now - 4 * HOUR, world.now)
    assert all(before.end == after.start for before, after in pairwise(ticks))


@pytest.mark.parametrize(
    ("span", "tick", "count"),
    [(300, 30, 10), (900, 30, 30), (HOUR, 120, 31), (12 * HOUR, 900, 48), (86400, 1800, 48), (30 * 86400, 86400, 31)],
)
def test_ticks_of_other_ranges(world: Any, span: float, tick: float, count: int) -> None:
    world.healthy("a", start=-300)
    view = world.fleet(span)
    assert (view.tick_seconds, len(view.rows[0].heartbeat)) == (tick, count)


def test_a_tick_holds_two_looks_of_the_slowest_target(world: Any) -> None:
    world.target("slow", interval=60.0)
    assert world.fleet(300.0).tick_seconds == 120.0


def test_no_data_is_not_idle_and_neither_is_off(world: Any) -> None:
    world.target("a")
    hour = -3600.0
    world.looks("a", hour, hour + 600, running=0.0)  # up, nothing to do
    world.looks("a", hour + 600, hour + 900, running=3.0)  # requests run, and nothing verifies
    world.looks("a", hour + 900, hour + 1200, up=False, running=None)  # does not answer
    world.looks("a", hour + 1500, hour + 1800, running=3.0, speculating=False)  # speculation is off
    world.looks("a", hour + 1800, hour + 3300, running=3.0)
    world.traffic("a", hour + 1800, hour + 3300, 4.0)
    world.looks("a", hour + 3300, 0, running=0.0)
    assert strip(world.fleet(), "a")[-13:] == ".ii...foooooi"


def test_alerts_are_told_before_anything_else(world: Any) -> None:
    world.healthy("a", start=-3600)
    world.alert("acceptance-drop", "a", severity="warning", since=-3300, fired=-3180, resolved=-2700, phase="resolved")
    world.alert("low-acceptance", "a", severity="notice", since=-2400, fired=-2280, resolved=-1800, phase="resolved")
    world.alert("dead-drafter", "a", since=-900, fired=-600)
    # Of a resolved alert it is no longer known how long it was pending.
    assert strip(world.fleet(), "a")[-12:] == "oWWoNNoooPCC"


def test_the_graver_of_two_alerts_is_told(world: Any) -> None:
    world.healthy("a", start=-1800)
    world.alert("low-acceptance", "a", severity="notice", since=-1500, fired=-1500)
    world.alert("dead-drafter", "a", since=-600, fired=-590)
    assert strip(world.fleet(), "a")[-6:] == "oNNNCC"


def test_an_alert_that_waits_to_fire_again_shows_when_it_fired_before(world: Any) -> None:
    world.healthy("a", start=-3600)
    world.alert("dead-drafter", "a", phase="pending", since=-60, fired=-1800, resolved=-1300)
    assert strip(world.fleet(), "a")[-8:] == "ooCCoooP"


def test_info_is_not_told(world: Any) -> None:
    world.healthy("a", start=-600)
    world.alert("sampling-param-ignored", "a", severity="info", since=-600)
    assert strip(world.fleet(), "a")[-2:] == "oo"


def test_a_tick_that_has_just_begun_says_what_is_so_now(world: Any) -> None:
    world.healthy("a", start=-1800)
    view = world.reads().view(world.now + 1.0, 4 * HOUR)
    assert view.rows[0].heartbeat[-1].start == world.now
    assert view.rows[0].heartbeat[-1].end == world.now + 1.0
    assert strip(view, "a")[-6:] == "oooooo"


def test_settled_ticks_are_read_once_and_later_ones_follow(world: Any) -> None:
    world.healthy("a", start=-3600)
    reads = world.reads()
    asked: list[tuple[float, float]] = []
    query = world.history.query

    def watched(question: Any) -> Any:
        if question.step == 300.0:
            asked.append((question.start - world.now, question.end - world.now))
        return query(question)

    world.history.query = watched
    assert strip(reads.view(world.now, 4 * HOUR), "a")[-12:] == "o" * 12
    assert asked == [(-14400, 0)]
    asked.clear()
    # The next call reads what may have changed, and four settled ticks again.
    world.traffic("a", 0, 300, 4.0)
    world.look("a", at=300.0)
    assert strip(reads.view(world.now + 300, 4 * HOUR), "a")[-13:] == "o" * 13
    assert asked == [(-300, 300), (-14100, -12900)]


def test_what_comes_late_is_seen_when_its_tick_is_read_again(world: Any) -> None:
    world.target("a")
    world.looks("a", -3600, 0, running=3.0)
    reads = world.reads()
    assert set(strip(reads.view(world.now, 4 * HOUR), "a")) == {"."}
    world.traffic("a", -3600, -600, 4.0)
    for second in range(30, 450, 30):
        view = reads.view(world.now + second, 4 * HOUR)
    assert strip(view, "a")[-15:-3] == ".oooooooooo."


def test_the_tick_that_lasts_is_the_present_state(world: Any, row_of: Callable[..., FleetRow]) -> None:
    world.target("a")
    world.looks("a", -1800, 0, running=0.0)
    assert row_of("a").heartbeat[-1].state == "idle"
    world.look("a", at=1.0, up=False)
    assert row_of("a").heartbeat[-1].state == "no-data"
    world.target("p", facts={"role": "prefill"})
    world.look("p")
    assert row_of("p").heartbeat[-1].state == "off"
