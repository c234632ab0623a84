"""Looks and timed passes added up: the same from every history."""

from __future__ import annotations

from typing import Any

from acceptance.counts import Counts
from acceptance.health import Health
from acceptance.series import Series
from acceptance.window import Source, Window
from store.history import Batch, History, Looked, Timed

T0 = 1_796_094_000.0


def look(at: float, target: str = "a", surface: str = "metrics", **told: Any) -> Health:
    return Health(**{"target": target, "surface": surface, "at": T0 + at, "up": True, **told})


def passes(
    number: int, end: float, passes: float | None, seconds: float | None, target: str = "a", source: Source = "log"
) -> Window:
    counts = Counts(steps=10.0, emitted=30.0, passes=passes, pass_seconds=seconds)
    return Window(number, Series(target, rank=str(number)), T0 + end - 1, T0 + end, source, False, counts)


def test_looks_are_added_up_by_surface_and_bucket(history: History) -> None:
    history.append(
        Batch(
            health=[
                look(0, running=99.0),
                look(15, running=2.0, decode_tokens=100.0, speculating=False),
                look(60, running=4.0, decode_tokens=50.0, speculating=True),
                look(75, up=False),
                look(20, surface="server_info"),
                look(20, target="b", running=0.0),
                look(121, running=99.0),
            ]
        )
    )
    assert sorted(history.looked(T0, T0 + 120, 60.0), key=lambda item: (item.target, item.surface, item.bucket)) == [
        Looked("a", "metrics", T0, 2, 2, 3.0, 150.0, True, T0 + 15, T0 + 60),
        Looked("a", "metrics", T0 + 60, 1, 0, None, None, None, T0 + 75, T0 + 75),
        Looked("a", "server_info", T0, 1, 1, None, None, None, T0 + 20, T0 + 20),
        Looked("b", "metrics", T0, 1, 1, 0.0, None, None, T0 + 20, T0 + 20),
    ]


def test_passes_whose_time_is_unknown_do_not_hide_those_that_were_timed(history: History) -> None:
    history.append(
        Batch(
            windows=[
                passes(1, 10, 40, 2.0),
                passes(2, 20, 40, None),
                passes(3, 30, 60, 4.0),
                passes(4, 30, None, 9.0),
                passes(5, 30, 0, 9.0),
                passes(6, 61, 10, 1.0),
                passes(7, 30, 10, 3.0, source="counter"),
                passes(8, 30, 10, 5.0, target="b"),
                passes(9, 121, 10, 5.0),
            ]
        )
    )
    told = history.timed(T0, T0 + 120, 60.0)
    assert sorted(told, key=lambda item: (item.target, item.source, item.bucket)) == [
        Timed("a", "counter", T0, 10.0, 3.0),
        Timed("a", "log", T0, 100.0, 6.0),
        Timed("a", "log", T0 + 60, 10.0, 1.0),
        Timed("b", "log", T0, 10.0, 5.0),
    ]
    assert next(item for item in told if item.source == "counter").step_time_seconds == 0.3


def test_of_one_target_only(history: History) -> None:
    history.append(
        Batch([passes(1, 10, 40, 2.0), passes(2, 10, 20, 3.0, target="b\0")], [look(5), look(5, target="b\0")])
    )
    assert [item.target for item in history.looked(T0, T0 + 60, 60.0, "b\0")] == ["b\0"]
    assert [item.passes for item in history.timed(T0, T0 + 60, 60.0, "b\0")] == [20.0]
    assert history.looked(T0, T0 + 60, 60.0, "nobody") == history.timed(T0, T0 + 60, 60.0, "nobody") == []


def test_nothing_is_told_of_nothing(history: History) -> None:
    assert history.looked(T0, T0 + 60, 15.0) == []
    assert history.timed(T0, T0 + 60, 15.0) == []


def test_tokens_a_second_leave_out_what_came_before_the_first_look(history: History) -> None:
    history.append(Batch(health=[look(at, decode_tokens=1500.0) for at in (15, 30, 45, 60)]))
    (told,) = history.looked(T0, T0 + 60, 60.0)
    assert told.tokens_per_second == 100.0
    assert [item.tokens_per_second for item in history.looked(T0, T0 + 60, 15.0)] == [None] * 4
