from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.counts import Counts, Spread, total
from acceptance.facts import Fact
from acceptance.hits import Hit
from acceptance.query import AcceptanceQuery, BadQuery
from acceptance.series import Dimension, Series
from acceptance.window import Source, Window
from collectors.reading import Reading
from collectors.sink import Read
from collectors.target import Target
from service.catalog import Catalog
from service.reads import MAX_ROWS, Reads, bucket_count
from store.history import Batch
from store.memory import MemoryHistory
from store.sql import SqlState
from store.state import AlertChange, AlertRecord

NOW = 1_000_000.0


@pytest.fixture(scope="module")
def state() -> SqlState:
    store = SqlState("sqlite://")
    firing = AlertRecord(
        "k", "low-acceptance", "warning", "a", "firing", NOW - 90, NOW - 5, fired_at=NOW - 60, episode=1
    )
    old = AlertRecord("o", "dead-drafter", "critical", "b", "resolved", NOW - 999, NOW - 500, resolved_at=NOW - 500)
    store.apply([AlertChange(firing), AlertChange(old)])
    store.record([], [Hit("a", "1", "SG-X", NOW - 5)])
    return store


def window(
    series: Series,
    start: float,
    end: float,
    steps: float,
    emitted: float,
    source: Source = "counter",
    spread: Spread | None = None,
) -> Window:
    counts = Counts(steps=steps, emitted=emitted, spread=spread)
    return Window(hash((series, start, end, source)), series, NOW + start, NOW + end, source, True, counts)


def reads_of(windows: Sequence[Window], state: SqlState, catalog: Catalog | None = None) -> Reads:
    history = MemoryHistory()
    history.append(Batch(windows=windows))
    listed = catalog or Catalog([Target(name, f"http://{name}") for name in sorted({w.series.target for w in windows})])
    return Reads(history, state, listed, lambda: NOW)


def query(
    start: float, end: float, step: float | None = None, by: tuple[Dimension, ...] = ("target",)
) -> AcceptanceQuery:
    return AcceptanceQuery(NOW + start, NOW + end, step, by)


def test_bounds_by_hand(state: SqlState) -> None:
    # Ten requests of 10 steps, five with 30 tokens and five with 50: R = 4, each residual 10 or -10,
    # error = sqrt(10 * 100 * 10 / 9) / 100 = 1/3, t(0.975, 9) = 2.2622
    spread = Spread.of(30, 10)
    for emitted in (30, 30, 30, 30, 50, 50, 50, 50, 50):
        spread = spread + Spread.of(emitted, 10)
    (row,) = reads_of([window(Series("a"), -20, -10, 100, 400, spread=spread)], state).acceptance(query(-60, 0))
    assert (row.acc_len, row.lower, row.upper) == pytest.approx((4.0, 4 - 2.2622 / 3, 4 + 2.2622 / 3), abs=2e-3)


def test_too_few_clusters_give_no_bound(state: SqlState) -> None:
    (row,) = reads_of([window(Series("a"), -20, -10, 100, 400, spread=Spread.of(400, 100))], state).acceptance(
        query(-60, 0)
    )
    assert (row.acc_len, row.lower, row.upper) == (4.0, None, None)


def test_nothing_stored_is_no_row(state: SqlState) -> None:
    assert reads_of([], state).acceptance(query(-60, 0, step=10.0)) == []


NO_STATE = SqlState("sqlite://")


@given(
    st.lists(
        st.tuples(st.integers(1, 200), st.integers(1, 50), st.integers(0, 150), st.sampled_from(["a", "b"])),
        max_size=30,
    ),
    st.integers(1, 90),
)
def test_buckets_lose_and_repeat_nothing(told: list[tuple[int, int, int, str]], step: int) -> None:
    windows = [
        Window(number, Series(target), NOW - end - 1, NOW - end, "counter", True, Counts(steps=steps, emitted=emitted))
        for number, (end, steps, emitted, target) in enumerate(told)
    ]
    reads = Reads(history := MemoryHistory(), NO_STATE, Catalog(), lambda: NOW)
    history.append(Batch(windows=windows))
    asked = query(-150, 0, step=float(step))
    rows = reads.acceptance(asked)
    inside = [window for window in windows if window.end > NOW - 150]
    assert sum(row.steps or 0 for row in rows) == (total(window.counts for window in inside).steps or 0)
    assert len(rows) == len({window.series.target for window in inside}) * bucket_count(asked)
    for row in rows:
        own = [w for w in inside if w.series.target == row.key["target"] and row.start < w.end <= row.end]
        assert (row.steps, row.windows) == (total(w.counts for w in own).steps, len(own))
        assert row.end <= NOW


def test_a_large_answer_is_refused_before_it_is_fetched(state: SqlState) -> None:
    history = _Counting()
    history.append(Batch([window(Series("a", category=f"c{n}"), -20, -10, 1, 2) for n in range(20)]))
    reads = Reads(history, state, Catalog(), lambda: NOW)
    step = 60 / (MAX_ROWS / 20) * 0.99
    with pytest.raises(BadQuery, match="up to 50520 rows, more than 50000") as caught:
        reads.acceptance(query(-60, 0, step=step, by=("category",)))
    assert caught.value.parameter == "step"
    assert [asked.step for asked in history.asked] == [None]
    assert len(reads.acceptance(query(-60, 0, step=1.0, by=("category",)))) == 20 * 60


class _Counting(MemoryHistory):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[AcceptanceQuery] = []

    def query(self, query: AcceptanceQuery):
        self.asked.append(query)
        return super().query(query)


def test_latest_does_not_tell_what_is_no_longer_so(state: SqlState) -> None:
    fast, slow = (
        Target("fast", "http://f", scrape_interval_seconds=5),
        Target("slow", "http://s", scrape_interval_seconds=60),
    )
    windows = [
        window(Series("fast", rank="0"), -70, -61, 10, 20),
        window(Series("slow", rank="0"), -400, -359, 10, 30),
        window(Series("slow", rank="1"), -400, -361, 10, 30),
        window(Series("nobody lists it"), -10, -5, 10, 30),
    ]
    rows = reads_of(windows, state, Catalog([fast, slow])).latest()
    # 5 s: at most a minute old; 60 s: at most 6 minutes
    assert [(row.key["target"], row.key["rank"], row.acc_len) for row in rows] == [("slow", "0", 3.0)]


def test_latest_of_a_restarted_target_is_of_its_new_life(state: SqlState) -> None:
    windows = [
        window(Series("a", revision="old", drafter="good", rank="0"), -50, -40, 10, 40),
        window(Series("a", revision="new", drafter="bad", rank="0"), -30, -20, 10, 11),
    ]
    (row,) = reads_of(windows, state).latest()
    assert (row.key["drafter"], row.acc_len) == ("bad", 1.1)


def test_latest_takes_a_fresher_source_where_counters_stand_still(state: SqlState) -> None:
    windows = [
        window(Series("a", rank=None, category="code"), -300, -280, 100, 400),
        window(Series("a", rank="0"), -15, -10, 100, 100, "log"),
    ]
    (row,) = reads_of(windows, state).latest()
    assert (row.source, row.acc_len) == ("log", 1.0)


def test_windows_without_steps_are_not_the_latest(state: SqlState) -> None:
    windows = [window(Series("a", rank="0"), -15, -10, 0, 0), window(Series("a", rank="0"), -15, -12, 50, 100, "log")]
    (row,) = reads_of(windows, state).latest()
    assert (row.source, row.steps) == ("log", 50)


def test_a_target_with_its_recent_figures(state: SqlState) -> None:
    windows = [
        window(Series("a", category="code"), -100, -90, 150, 600),
        window(Series("a", category="chat"), -100, -90, 150, 300),
        window(Series("a", category="chat"), -2000, -1000, 999, 999),
        window(Series("a"), -100, -95, 77, 77, "log"),
        window(Series("b"), -100, -95, 10, 20, "log"),
    ]
    catalog = Catalog([Target("a", "http://a"), Target("b", "http://b")])
    catalog.observe(_told("a", "log:/x", {"engine": "sglang", "version": "0.5.23"}))
    a, b = reads_of(windows, state, catalog).targets()
    assert (a.recent.steps, a.recent.acc_len, a.recent.source) == (300, 3.0, "counter")
    assert (b.recent.steps, b.recent.source) == (10, "log")
    assert [gap.what for gap in a.unseen] == ["draft backend unknown"]
    assert [gap.what for gap in b.unseen] == [
        "engine unknown",
        "version unknown",
        "draft backend unknown",
        "fallback messages not seen",
    ]
    assert ([alert.key for alert in a.alerts], [alert.key for alert in b.alerts]) == (["k"], [])
    assert a.state.name == "alerting"


def test_one_target(state: SqlState) -> None:
    reads = reads_of([window(Series("a"), -100, -90, 250, 500), window(Series("b"), -50, -40, 9, 9)], state)
    found = reads.target("a")
    assert found is not None
    assert (found.recent.steps, found.status.target.name) == (250, "a")
    assert reads.target("z") is None


def test_alerts_and_signatures(state: SqlState) -> None:
    reads = reads_of([], state)
    assert [alert.key for alert in reads.alerts()] == ["k"]
    assert {alert.key for alert in reads.alerts(600)} == {"k", "o"}
    assert [alert.key for alert in reads.alerts(400)] == ["k"]
    assert [hit.signature for hit in reads.hits("a")] == ["SG-X"]
    assert reads.hits("b") == []
    assert reads.deliveries(10) == []


def _told(target: str, surface: str, facts: dict[str, str]) -> Read:
    stated = tuple(Fact(target, name, value, "log", NOW) for name, value in facts.items())
    return Read(target, surface, NOW, {}, Reading(facts=stated))
