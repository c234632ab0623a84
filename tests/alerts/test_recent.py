"""Recent history: what is kept from call to call equals what a whole reading would say."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.counts import Counts
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import DIMENSIONS, Series
from acceptance.window import Window
from alerts.recent import SLICE_SECONDS, Recent
from store.history import Batch
from store.memory import MemoryHistory

NOW = 1_796_000_000.0
LOOKBACK = 900.0


def window(number: int, end: float, target: str) -> Window:
    return Window(
        number, Series(target), end - 15, end, "counter", True, Counts(steps=float(number), emitted=3.0 * number)
    )


def query(now: float) -> AcceptanceQuery:
    return AcceptanceQuery(start=(now - LOOKBACK) // 15 * 15, end=now, step=15.0, by=DIMENSIONS)


def steps(sums: list[Sum], since: float) -> dict[str, float]:
    totals: dict[str, float] = defaultdict(float)
    for item in sums:
        if item.bucket >= since:
            totals[item.target] += item.counts.steps or 0.0
    return dict(totals)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.floats(0, 60), st.lists(st.tuples(st.floats(0, 70), st.sampled_from("ab")), max_size=4)),
        max_size=60,
    )
)
def test_what_is_kept_equals_a_whole_reading(course: list[tuple[float, list[tuple[float, str]]]]) -> None:
    """Evaluations at any times, windows that come up to 70 seconds late."""
    history = MemoryHistory()
    recent = Recent(history)
    now, number = NOW, 0
    for elapsed, told in course:
        now += elapsed
        arrived = [window(number := number + 1, now - late, target) for late, target in told]
        history.append(Batch(arrived))
        kept = recent.query(query(now))
        since = -(-query(now).start // SLICE_SECONDS) * SLICE_SECONDS
        assert steps(kept, since) == steps(history.query(query(now)), since)
        assert [item.bucket for item in kept] == sorted(item.bucket for item in kept)


def test_what_comes_very_late_is_seen_within_minutes() -> None:
    history = MemoryHistory()
    recent = Recent(history)
    recent.query(query(NOW))
    history.append(Batch([window(1, NOW - 400, "a")]))
    calls = 0
    while not recent.query(query(NOW + 15 * calls)):
        calls += 1
    assert calls <= LOOKBACK / SLICE_SECONDS


def test_only_a_part_is_read_again() -> None:
    spans: list[float] = []

    class Counting(MemoryHistory):
        def query(self, query: AcceptanceQuery) -> list[Sum]:
            spans.append(query.end - query.start)
            return super().query(query)

    recent = Recent(Counting())
    recent.query(query(NOW))
    spans.clear()
    recent.query(query(NOW + 15))
    assert sum(spans) <= 300


def test_after_a_gap_a_clock_set_back_or_another_question_everything_is_read() -> None:
    history = MemoryHistory()
    history.append(Batch([window(1, NOW - 30, "a"), window(2, NOW + 7000, "b")]))
    recent = Recent(history)
    moments: list[tuple[float, Any]] = [(NOW, {"a": 1.0}), (NOW + 7010, {"b": 2.0}), (NOW, {"a": 1.0})]
    for now, expected in moments:
        assert steps(recent.query(query(now)), 0.0) == expected
    whole = AcceptanceQuery(start=NOW // 60 * 60 - 60, end=NOW, step=15.0)
    assert [item.key for item in recent.query(whole)] == [("a",)]


def test_spans_that_have_not_changed_are_added_up_once() -> None:
    recent = Recent(MemoryHistory())
    items = [Sum("a", "counter", 0.0, (rank,), Counts(steps=10.0), 1, True, 0.0, 15.0) for rank in "01"]
    recent.query(query(NOW))
    first = recent.add_up(items)
    assert (first.counts.steps, first.windows) == (20.0, 1)
    recent.query(query(NOW + 15))
    assert recent.add_up(list(items)) is first
    other = [replace(item, counts=Counts(steps=1.0)) for item in items]
    assert recent.add_up(other).counts.steps == 2.0
