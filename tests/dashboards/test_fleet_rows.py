from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from dash._utils import to_json
from hypothesis import given
from hypothesis import strategies as st

from dashboards.components.rows import STATES, TICKS, UNTRUSTED, changed, heat, rows, state, step_heat
from service.fleet import Cell, FleetRow, FleetView
from service.states import StateName, TargetState

NOW = 1.8e9


def below(share: float, *, trusted: bool = True) -> Cell:
    return Cell(acc_len=5.0 * (1 - share), expected=5.0, below=share, steps=1000, trusted=trusted)


@pytest.mark.parametrize(
    ("cell", "level"),
    [
        (below(0.0), 0),
        (below(0.119), 0),
        (below(0.12), 1),
        (below(0.25), 2),
        (below(0.40), 3),
        (below(0.60), 4),
        (below(0.60, trusted=False), UNTRUSTED),
        (Cell(acc_len=3.0, trusted=True), 0),
        (Cell(acc_len=1.10, trusted=True), 4),
        (Cell(acc_len=1.02, trusted=False), UNTRUSTED),
    ],
)
def test_cells_are_coloured_by_how_far_they_are_below_their_own_normal(cell: Cell, level: int) -> None:
    assert heat(cell) == level


def test_step_times_use_the_same_scale() -> None:
    assert [step_heat(ratio) for ratio in (None, 0.5, 1.1, 1.2, 1.3, 1.5, 2.3)] == [0, 0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("ok", {}, "ok"),
        ("idle", {}, "idle"),
        ("target-down", {}, "unreachable"),
        ("scrape-error", {}, "unreachable"),
        ("role-has-none", {}, "off"),
        ("spec-not-active", {}, "off"),
        ("alerting", {"severity": "critical"}, "critical"),
        ("ok", {"severity": "warning", "pending": True}, "pending"),
        ("ok", {"severity": "notice"}, "notice"),
        ("alerting", {"severity": "critical", "recovering": True}, "recovering"),
        ("ok", {"severity": "info"}, "ok"),
    ],
)
def test_a_row_is_in_the_state_that_its_label_is_about(
    name: StateName, changes: dict[str, object], expected: str, fleet_row: Callable[..., FleetRow]
) -> None:
    assert state(fleet_row("a", NOW, state=TargetState(name, ""), **changes)) == expected
    assert expected in STATES


def test_a_row_says_what_is_missing_as_none(
    fleet_view: Callable[..., FleetView], fleet_row: Callable[..., FleetRow]
) -> None:
    nothing = fleet_row("a", NOW, acc_len=Cell(), categories={}, step_time_seconds=None, output_tokens_per_second=None)
    row = rows(replace(fleet_view(NOW), rows=(nothing,)))["a"]
    assert [row[name] for name in ("t", "tb", "c0", "c5", "p", "o")] == [None] * 6


def test_a_heartbeat_is_a_letter_a_tick(fleet_view: Callable[..., FleetView]) -> None:
    row = rows(fleet_view(NOW))["k3-00"]
    assert row["h"] == "o" * 40 + "c" * 8
    assert row["h0"] == NOW - 14_400
    assert len(set(TICKS.values())) == len(TICKS)


def test_rows_of_a_tick_hold_what_changed(fleet_view: Callable[..., FleetView]) -> None:
    before, after = rows(fleet_view(NOW)), rows(fleet_view(NOW, moved=0.01))
    assert changed(before, before) == {}
    delta = changed(before, after)["k3-05"]
    assert set(delta) == {"t", "c0", "c1", "c2", "c3", "c4", "c5", "p", "o"}


@given(st.lists(st.sampled_from(["a", "b", "c"]), unique=True), st.lists(st.sampled_from(["b", "c", "d"]), unique=True))
def test_changes_lead_from_one_edition_to_the_other(before: list[str], after: list[str]) -> None:
    old = {name: {"n": name, "x": place} for place, name in enumerate(before)}
    new = {name: {"n": name, "x": place} for place, name in enumerate(after)}
    delta = changed(old, new)
    assert {name: {**old.get(name, {}), **delta.get(name, {})} for name in new} == new


def test_a_row_is_small(fleet_view: Callable[..., FleetView]) -> None:
    assert len(to_json(rows(fleet_view(NOW))) or "") < 12 * 900
