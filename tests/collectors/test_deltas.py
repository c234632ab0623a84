"""Changes of counters: never a token twice, never one below zero, and nothing said where nothing is known."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.deltas import SINCE_START, Change, Key, Seen, follow, set_back
from collectors.reading import State

STEPS, TOKENS = ("steps", "0"), ("tokens", "0")


def look(
    state: State,
    at: float,
    counters: dict[Key, float],
    *,
    started: float | None = None,
    token: str | None = None,
    complete: bool = True,
) -> tuple[State, Change]:
    """One look at the one process of a page; the state passes through JSON, as a stored cursor does."""
    seen = Seen(counters, started=started, token=token, complete=complete)
    state, changes = follow(json.loads(json.dumps(state, allow_nan=False)), {"": seen}, at)
    return state, changes[""]


def test_the_first_look_tells_nothing() -> None:
    state, change = look({}, 100.0, {STEPS: 500.0}, started=40.0)
    assert not change.known
    assert change.counters == {}
    assert state["incarnation"] == "40.0"


def test_the_second_look_tells_the_difference_since_the_first() -> None:
    state, _ = look({}, 100.0, {STEPS: 500.0})
    _, change = look(state, 115.0, {STEPS: 530.0})
    assert change.known
    assert change.counters == {STEPS: 30.0}
    assert change.start == 100.0


@pytest.mark.parametrize(("started", "start"), [(40.0, 40.0), (None, 100.0), (200.0, 100.0)])
def test_a_single_page_may_be_asked_for_everything_since_its_process_began(started: float | None, start: float) -> None:
    state, change = look(SINCE_START, 100.0, {STEPS: 500.0}, started=started)
    assert change.known
    assert change.counters == {STEPS: 500.0}
    assert change.start == start
    _, change = look(state, 115.0, {STEPS: 530.0}, started=started)
    assert change.counters == {STEPS: 30.0}


def test_a_counter_that_appears_later_counted_from_zero() -> None:
    state, _ = look({}, 100.0, {STEPS: 5.0})
    _, change = look(state, 115.0, {STEPS: 5.0, TOKENS: 7.0})
    assert change.counters == {STEPS: 0.0, TOKENS: 7.0}


def test_a_counter_that_was_away_for_a_look_is_not_counted_again() -> None:
    state, _ = look({}, 100.0, {STEPS: 5.0, TOKENS: 1000.0})
    state, _ = look(state, 115.0, {STEPS: 6.0})
    _, change = look(state, 130.0, {STEPS: 7.0, TOKENS: 1010.0})
    assert change.counters == {STEPS: 1.0, TOKENS: 10.0}


def test_after_a_page_with_unreadable_lines_a_new_counter_is_unknown() -> None:
    state, _ = look({}, 100.0, {STEPS: 5.0}, complete=False)
    state, change = look(state, 115.0, {STEPS: 6.0, TOKENS: 9000.0}, complete=False)
    assert change.counters == {STEPS: 1.0}
    _, change = look(state, 130.0, {STEPS: 6.0, TOKENS: 9001.0}, complete=False)
    assert change.counters == {STEPS: 0.0, TOKENS: 1.0}


@pytest.mark.parametrize("torn", [500.0, 1520.0])
def test_a_page_that_lacks_a_part_of_a_sum_is_compared_with_no_whole_one(torn: float) -> None:
    state, _ = look({}, 100.0, {STEPS: 1500.0})
    state, change = look(state, 115.0, {STEPS: torn}, complete=False)
    assert (change.counters, change.incarnation) == ({}, "0")
    state, change = look(state, 130.0, {STEPS: 1540.0})
    assert (change.counters, change.incarnation) == ({}, "0")
    _, change = look(state, 145.0, {STEPS: 1550.0})
    assert change.counters == {STEPS: 10.0}


def test_of_pages_that_all_lack_a_part_a_fall_is_a_restart() -> None:
    state, _ = look({}, 100.0, {STEPS: 1500.0}, complete=False)
    _, change = look(state, 115.0, {STEPS: 20.0}, complete=False)
    assert (change.counters, change.incarnation) == ({STEPS: 20.0}, "1")


def test_a_clock_that_was_set_back_silences_nobody() -> None:
    state, _ = look({}, 4600.0, {STEPS: 50.0}, started=40.0)
    _, change = look(set_back(state, 1000.0), 1015.0, {STEPS: 60.0}, started=40.0)
    assert (change.known, change.start, change.counters) == (True, 1000.0, {STEPS: 10.0})
    assert change.incarnation == state["incarnation"]


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300, -1.0])
def test_what_is_no_count_is_unknown_until_two_counts_follow_each_other(value: float) -> None:
    state, _ = look({}, 100.0, {STEPS: 5.0, TOKENS: 10.0})
    state, change = look(state, 115.0, {STEPS: 6.0, TOKENS: value})
    assert change.counters == {STEPS: 1.0}
    state, change = look(state, 130.0, {STEPS: 7.0, TOKENS: 30.0})
    assert change.counters == {STEPS: 1.0}
    _, change = look(state, 145.0, {STEPS: 8.0, TOKENS: 33.0})
    assert change.counters == {STEPS: 1.0, TOKENS: 3.0}


def test_one_falling_counter_is_a_restart_of_all() -> None:
    state, first = look({}, 100.0, {STEPS: 50.0, TOKENS: 10.0})
    state, change = look(state, 115.0, {STEPS: 3.0, TOKENS: 12.0})
    assert change.counters == {STEPS: 3.0, TOKENS: 12.0}
    assert change.start == 100.0
    assert change.incarnation != first.incarnation
    _, change = look(state, 130.0, {STEPS: 4.0, TOKENS: 12.0})
    assert change.counters == {STEPS: 1.0, TOKENS: 0.0}


def test_a_sum_added_up_in_another_order_is_no_restart() -> None:
    state, _ = look({}, 100.0, {STEPS: 50.0, TOKENS: 123456.789})
    _, change = look(state, 115.0, {STEPS: 51.0, TOKENS: 123456.78899999999})
    assert change.counters == {STEPS: 1.0, TOKENS: 0.0}


def test_a_later_start_is_a_restart_though_all_counters_are_higher() -> None:
    state, _ = look({}, 100.0, {STEPS: 50.0}, started=40.0)
    state, change = look(state, 200.0, {STEPS: 60.0}, started=150.0)
    assert change.counters == {STEPS: 60.0}
    assert change.start == 150.0
    assert change.incarnation == "150.0"
    assert state["incarnation"] == "150.0"


def test_two_servers_behind_one_address_are_never_counted_as_restarts() -> None:
    """The younger one is a restart once; after that only looks that meet the same server twice tell something."""
    counts = {40.0: 1000.0, 60.0: 900.0}
    state, _ = look({}, 100.0, {STEPS: counts[40.0]}, started=40.0)
    told: list[float] = []
    problems = 0
    for at, started in enumerate((60.0, 40.0, 60.0, 60.0, 40.0, 40.0, 60.0), start=101):
        counts[started] += 10.0
        state, change = look(state, float(at), {STEPS: counts[started]}, started=started)
        told += change.counters.values()
        problems += change.problem is not None
    assert told == [910.0, 10.0, 10.0]
    assert problems == 4


def test_another_token_with_lower_counters_is_a_restart() -> None:
    state, _ = look({}, 100.0, {STEPS: 50.0}, token="a")
    _, change = look(state, 115.0, {STEPS: 7.0}, token="b")
    assert change.counters == {STEPS: 7.0}
    assert change.incarnation == "b"


def test_another_token_with_higher_counters_tells_nothing_yet() -> None:
    state, _ = look({}, 100.0, {STEPS: 50.0}, token="a")
    state, change = look(state, 115.0, {STEPS: 70.0}, token="b")
    assert not change.known
    assert change.problem is not None
    _, change = look(state, 130.0, {STEPS: 75.0}, token="b")
    assert change.counters == {STEPS: 5.0}


def test_a_server_met_before_is_no_restart_though_its_counters_are_lower() -> None:
    counts = {"a": 1000.0, "b": 900.0}
    state, _ = look({}, 100.0, {STEPS: counts["a"]}, token="a")
    told: list[float] = []
    for at, token in enumerate("babbaab", start=101):
        counts[token] += 10.0
        state, change = look(state, float(at), {STEPS: counts[token]}, token=token)
        told += change.counters.values()
    assert told == [910.0, 10.0, 10.0]


@pytest.mark.parametrize(("started", "token"), [(40.0, None), (None, "a")])
def test_an_identity_learned_later_is_no_restart(started: float | None, token: str | None) -> None:
    state, first = look({}, 100.0, {STEPS: 50.0})
    _, change = look(state, 115.0, {STEPS: 57.0}, started=started, token=token)
    assert change.counters == {STEPS: 7.0}
    assert change.incarnation == first.incarnation


def test_counters_may_fall_before_the_new_identity_is_read() -> None:
    state, _ = look({}, 100.0, {STEPS: 50.0}, token="a")
    state, change = look(state, 115.0, {STEPS: 7.0}, token="a")
    assert change.counters == {STEPS: 7.0}
    restarted = change.incarnation
    assert restarted != "a"
    _, change = look(state, 130.0, {STEPS: 9.0}, token="b")
    assert change.counters == {STEPS: 2.0}
    assert change.incarnation == restarted


def test_an_older_page_tells_nothing_and_changes_nothing() -> None:
    state, _ = look({}, 100.0, {STEPS: 50.0})
    after, change = look(state, 99.0, {STEPS: 40.0})
    assert not change.known
    assert change.problem is not None
    assert after == state


def test_processes_of_a_page_are_followed_apart() -> None:
    state, _ = follow({}, {"r0": Seen({STEPS: 5.0}), "r1": Seen({STEPS: 100.0})}, 1.0)
    state, changes = follow(state, {"r0": Seen({STEPS: 9.0}), "r1": Seen({STEPS: 2.0}), "r2": Seen({STEPS: 70.0})}, 2.0)
    assert changes["r0"].counters == {STEPS: 4.0}
    assert changes["r1"].counters == {STEPS: 2.0}
    assert not changes["r2"].known
    assert state["incarnation"] == "r0=0 r1=1 r2=0"


def test_counters_beyond_the_limit_are_not_followed_and_not_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.deltas.MOST_COUNTERS", 20)
    many: dict[Key, float] = {("steps", str(number)): 1000.0 for number in range(25)}
    state, _ = look({}, 1.0, many)
    state, _ = look(state, 2.0, many)
    _, change = look(state, 3.0, {key: value + 1.0 for key, value in many.items()})
    assert list(change.counters.values()) == [1.0] * 20
    assert change.problem is not None, "a category too many must not go unsaid"


KEYS: list[Key] = [("steps", "0"), ("steps", "1"), ("tokens", "0")]


@st.composite
def lives(draw: st.DrawFn) -> list[list[dict[Key, int]]]:
    """Lives of a process, each a list of looks with counters that only grow. A later life begins below the end."""
    all_lives: list[list[dict[Key, int]]] = []
    for _ in range(draw(st.integers(1, 4))):
        values = dict.fromkeys(KEYS, 0)
        looks: list[dict[Key, int]] = []
        for _ in range(draw(st.integers(1, 6))):
            values = {key: value + draw(st.integers(0, 100)) for key, value in values.items()}
            looks.append(values)
        all_lives.append(looks)
    return all_lives


@given(lives(), st.booleans(), st.data())
@settings(max_examples=200, deadline=None)
def test_changes_add_up_to_what_was_counted_however_often_one_looks(
    all_lives: list[list[dict[Key, int]]], tells_start: bool, data: st.DataObject
) -> None:
    """Over any choice of looks, each repeated at will: last - first within the first life, all of every later one."""
    state: State = {}
    total = dict.fromkeys(KEYS, 0.0)
    expected = dict.fromkeys(KEYS, 0)
    at, last = 0.0, dict.fromkeys(KEYS, 0)
    for number, looks in enumerate(all_lives):
        chosen = [values for values in looks if data.draw(st.booleans())] or [looks[-1]]
        if number and not tells_start and not any(chosen[0][key] < last[key] for key in KEYS):
            break  # without a start time, a life that begins where the last one ended cannot be told from it
        first = chosen[0] if number == 0 else dict.fromkeys(KEYS, 0)
        for values in chosen:
            for _ in range(data.draw(st.integers(1, 3))):
                at += 1.0
                counters: dict[Key, float] = dict(values)
                state, change = look(state, at, counters, started=float(number) if tells_start else None)
                for key, value in change.counters.items():
                    assert value >= 0.0
                    total[key] += value
        last = chosen[-1]
        expected = {key: expected[key] + last[key] - first[key] for key in KEYS}
    assert total == expected
