"""What every history does: memory and DuckDB, against sums made by ``Counts.__add__`` alone."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acceptance.counts import COUNT_FIELDS, Counts, Spread, total
from acceptance.health import Health
from acceptance.query import AcceptanceQuery, Sum, bucket_start
from acceptance.series import DIMENSIONS, Dimension, Series
from acceptance.window import SOURCES, Source, Window
from store.history import Batch, Cursor, History

T0 = 1_796_094_000.0
"""The start of an hour, so of a period of the histories under test."""
HOUR = 3600.0

RUNS = int(os.environ.get("DRAFTGAUGE_TEST_RUNS", "25"))
ASK = settings(max_examples=RUNS, suppress_health_check=[HealthCheck.function_scoped_fixture])


def window(
    number: int,
    end: float,
    series: Series | None = None,
    *,
    source: Source = "counter",
    counts: Counts | None = None,
    seconds: float = 15.0,
    exact: bool = True,
    busy: bool = True,
) -> Window:
    series = series or Series("a")
    return Window(number, series, end - seconds, end, source, exact, counts or Counts(steps=10.0, emitted=30.0), busy)


def hour(**options: Any) -> AcceptanceQuery:
    return AcceptanceQuery(T0, T0 + HOUR, **options)


def as_told(sums: Iterable[Sum]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By place, so that the order does not matter; a place told twice would be an error of its own."""
    told: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for item in sums:
        place = (item.target, item.source, item.bucket, item.key)
        assert place not in told
        told[place] = (item.counts, item.windows, item.exact, item.first, item.last)
    return told


def oracle(windows: Iterable[Window], query: AcceptanceQuery) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The protocol, said as plainly as possible."""
    first_of: dict[int, Window] = {}
    for item in windows:
        if item.busy:
            first_of.setdefault(item.id, item)
    groups: dict[tuple[Any, ...], list[Window]] = defaultdict(list)
    for item in first_of.values():
        inside = query.start - query.offset < item.end <= query.end - query.offset
        matches = all(getattr(item.series, name) in values for name, values in query.where.items())
        if inside and matches and (query.source is None or query.source == item.source):
            key = tuple(getattr(item.series, name) for name in query.by)
            groups[item.series.target, item.source, bucket_start(query, item.end), key].append(item)
    return {
        place: (
            total(item.counts for item in members),
            len(members),
            all(item.exact for item in members),
            min(item.start for item in members),
            max(item.end for item in members),
        )
        for place, members in groups.items()
    }


WHOLE = st.integers(0, 2**40).map(float)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
MAYBE = st.none() | st.sampled_from(["", "code", "chat"]) | TEXT
COUNTS = st.builds(
    Counts,
    **{name: st.none() | WHOLE for name in COUNT_FIELDS if name not in ("by_position", "spread")},
    by_position=st.none() | st.lists(WHOLE, max_size=5).map(tuple),
    spread=st.none() | st.builds(Spread, WHOLE, WHOLE, WHOLE, st.integers(0, 1000)),
)
SERIES = st.builds(
    Series,
    target=st.sampled_from(["a", "b", "ключ", "a\0b"]),
    group=st.none() | st.just("chat"),
    rank=st.none() | st.sampled_from(["0", "1"]),
    category=MAYBE,
)
# Quarters of a second around whole minutes, over three periods: many ends fall on boundaries.
ENDS = st.integers(-4 * 3600, 8 * 3600).map(lambda quarter: T0 + quarter / 4) | st.integers(-60, 120).map(
    lambda minute: T0 + minute * 60.0
)


@st.composite
def window_lists(draw: st.DrawFn) -> list[Window]:
    """A replay repeats a window whole, so of one id there is one window; some are repeated."""
    several = draw(
        st.lists(
            st.builds(
                Window,
                id=st.integers(0, 2**63 - 1),
                series=SERIES,
                start=ENDS,
                end=ENDS,
                source=st.sampled_from(SOURCES),
                exact=st.booleans(),
                counts=COUNTS,
                busy=st.sampled_from([True, True, True, False]),
                reported_length=st.none() | st.floats(1, 6),
            ),
            unique_by=lambda item: item.id,
            max_size=25,
        )
    )
    repeated = draw(st.lists(st.sampled_from(several), max_size=5)) if several else []
    return draw(st.permutations(several + repeated))


QUERIES = st.builds(
    AcceptanceQuery,
    start=st.sampled_from([T0, T0 - HOUR, T0 + 7.5]),
    end=st.sampled_from([T0 + HOUR, T0 + 2 * HOUR, T0 + 1800.25]),
    step=st.none() | st.sampled_from([60.0, 15.0, 0.25, 7.0, 100_000.0]),
    by=st.lists(st.sampled_from(DIMENSIONS), unique=True, max_size=4).map(tuple),
    where=st.dictionaries(
        st.sampled_from(DIMENSIONS),
        st.lists(st.sampled_from(["", "a", "code", "chat", "0", "nobody"]), max_size=3).map(tuple),
        max_size=2,
    ),
    source=st.none() | st.sampled_from(SOURCES),
    offset=st.sampled_from([0.0, 60.0, HOUR, 0.25]),
)


def split(data: st.DataObject, items: Sequence[Window]) -> list[Batch]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(items)), max_size=3)))
    bounds = [0, *cuts, len(items)]
    return [Batch(windows=items[start:end]) for start, end in pairwise(bounds)]


@ASK
@given(data=st.data(), windows=window_lists(), queries=st.lists(QUERIES, min_size=1, max_size=4))
def test_sums_are_those_of_the_counts(
    make_history: Callable[[], History], data: st.DataObject, windows: list[Window], queries: list[AcceptanceQuery]
) -> None:
    history = make_history()
    new = sum(history.append(batch) for batch in split(data, windows))
    assert new == len({item.id for item in windows if item.busy})
    for query in queries:
        assert as_told(history.query(query)) == oracle(windows, query)


@ASK
@given(data=st.data(), windows=window_lists(), query=QUERIES)
def test_reading_again_from_anywhere_adds_nothing(
    make_history: Callable[[], History], data: st.DataObject, windows: list[Window], query: AcceptanceQuery
) -> None:
    history = make_history()
    batches = split(data, windows)
    for batch in batches:
        history.append(batch)
    before, latest = as_told(history.query(query)), as_told(history.latest({}, T0 + HOUR, HOUR))
    for batch in batches[: data.draw(st.integers(0, len(batches)))]:
        assert history.append(batch) == 0
    assert history.append(Batch(windows=windows[: data.draw(st.integers(0, len(windows)))])) == 0
    assert as_told(history.query(query)) == before
    assert as_told(history.latest({}, T0 + HOUR, HOUR)) == latest


FRACTIONS = st.floats(0, 1e6, allow_subnormal=False)


@ASK
@given(parts=st.lists(st.tuples(FRACTIONS, FRACTIONS), min_size=1, max_size=20))
def test_fractions_add_up_to_rounding(make_history: Callable[[], History], parts: list[tuple[float, float]]) -> None:
    history = make_history()
    counts = [
        Counts(steps=steps, emitted=tokens, by_position=(steps, tokens), spread=Spread.of(tokens, steps))
        for steps, tokens in parts
    ]
    history.append(Batch(windows=[window(i, T0 + 1 + i, counts=each) for i, each in enumerate(counts)]))
    [told] = history.query(hour())
    expected = total(counts)
    assert told.counts.steps == pytest.approx(expected.steps)
    assert told.counts.by_position == pytest.approx(expected.by_position)
    assert told.counts.spread is not None
    assert expected.spread is not None
    assert told.counts.spread.emitted_steps == pytest.approx(expected.spread.emitted_steps)
    assert told.counts.spread.clusters == len(parts)


WHOLE_COUNTS = Counts(**dict.fromkeys(COUNT_FIELDS, 5.0) | {"by_position": (3.0, 1.0), "spread": Spread.of(8.0, 5.0)})


@pytest.mark.parametrize("name", COUNT_FIELDS)
def test_a_window_that_does_not_tell_makes_the_sum_unknown(history: History, name: str) -> None:
    silent = replace(WHOLE_COUNTS, **{name: None})
    history.append(Batch(windows=[window(i, T0 + i, counts=WHOLE_COUNTS) for i in (1, 2)]))
    [told] = history.query(hour())
    assert getattr(told.counts, name) is not None
    history.append(Batch(windows=[window(3, T0 + 3, counts=silent)]))
    [told] = history.query(hour())
    assert getattr(told.counts, name) is None
    assert all(getattr(told.counts, other) is not None for other in COUNT_FIELDS if other != name)


def test_positions_of_different_lengths_add_up(history: History) -> None:
    each: list[tuple[float, ...]] = [(5.0, 3.0), (), (4.0,), (2.0, 1.0, 1.0)]
    history.append(
        Batch(windows=[window(i, T0 + 1 + i, counts=Counts(by_position=positions)) for i, positions in enumerate(each)])
    )
    [told] = history.query(hour())
    assert told.counts.by_position == (11.0, 4.0, 1.0)
    assert {item.counts.by_position for item in history.query(hour(step=1.0))} == set(each)


def test_a_window_on_a_boundary_belongs_to_the_bucket_it_closes(history: History) -> None:
    history.append(
        Batch(windows=[window(i, T0 + end) for i, end in enumerate([0, 0.25, 60, 60.25, 120, 3600, 3600.25])])
    )
    buckets = {item.bucket - T0: item.windows for item in history.query(hour(step=60.0))}
    assert buckets == {0: 2, 60: 2, 3540: 1}
    assert [item.bucket for item in history.query(hour())] == [T0]


def test_an_offset_asks_about_an_earlier_time(history: History) -> None:
    history.append(Batch(windows=[window(1, T0 + 60), window(2, T0 + 60 + HOUR)]))
    for offset, bucket in ((0.0, T0 + HOUR), (HOUR, T0)):
        query = AcceptanceQuery(T0 + HOUR, T0 + 2 * HOUR, 60.0, offset=offset)
        assert [(item.bucket, item.windows) for item in history.query(query)] == [(bucket, 1)]


def test_sources_and_targets_are_never_added(history: History) -> None:
    history.append(
        Batch(
            windows=[
                window(number, T0 + 1, Series(target), source=source)
                for number, (target, source) in enumerate([("a", "counter"), ("a", "log"), ("b", "log")])
            ]
        )
    )
    assert {(item.target, item.source, item.key, item.windows) for item in history.query(hour(by=()))} == {
        ("a", "counter", (), 1),
        ("a", "log", (), 1),
        ("b", "log", (), 1),
    }
    assert [item.source for item in history.query(hour(source="counter"))] == ["counter"]


def test_what_a_source_cannot_tell_matches_nothing_and_unlabelled_is_a_label(history: History) -> None:
    categories = [None, "", "code"]
    history.append(
        Batch(windows=[window(number, T0 + 1, Series("a", category=each)) for number, each in enumerate(categories)])
    )

    def matching(*values: str) -> set[tuple[str | None, ...]]:
        return {item.key for item in history.query(hour(by=("category",), where={"category": values}))}

    assert {item.key for item in history.query(hour(by=("category",)))} == {(None,), ("",), ("code",)}
    assert matching("") == {("",)}
    assert matching("code", "") == {("",), ("code",)}
    assert matching("None", "nobody") == set()
    assert matching() == set()
    assert [item.key[8] for item in history.latest({"category": ("",)}, T0 + 1, 60)] == [""]


@pytest.mark.parametrize("name", DIMENSIONS)
def test_every_dimension_is_told_apart_and_filtered(history: History, name: Dimension) -> None:
    series = [replace(Series("t"), **{name: value}) for value in ("x", "y")]
    history.append(Batch(windows=[window(i, T0 + 1, each) for i, each in enumerate(series)]))
    assert {item.key for item in history.query(hour(by=(name,)))} == {("x",), ("y",)}
    assert [item.key for item in history.query(hour(by=(name,), where={name: ("y",)}))] == [("y",)]


def test_idle_windows_are_not_kept(history: History) -> None:
    assert history.append(Batch(windows=[window(1, T0 + 1, busy=False), window(2, T0 + 2)])) == 1
    [told] = history.query(hour())
    assert told.windows == 1


def test_a_window_is_known_whatever_its_age(history: History) -> None:
    old, new = window(1, T0 - 20 * HOUR), window(2, T0 + 20 * HOUR)
    assert history.append(Batch(windows=[old])) == 1
    assert history.append(Batch(windows=[new])) == 1
    assert history.append(Batch(windows=[new, old])) == 0
    assert history.append(Batch(windows=[replace(old, counts=Counts(steps=99.0))])) == 0
    [told] = history.query(AcceptanceQuery(T0 - 24 * HOUR, T0))
    assert told.counts.steps == 10


def test_windows_are_known_by_their_ids_within_a_span(history: History) -> None:
    ends = {1: T0, 2: T0 + 1, 3: T0 + HOUR, 4: T0 + HOUR + 1, 2**63 - 1: T0 + 2 * HOUR}
    history.append(Batch([window(number, end) for number, end in ends.items()]))
    assert history.known([*ends, 5], T0, T0 + HOUR) == {2, 3}
    assert history.known([2, 2, 5, 2**63 - 1], T0 - 1, T0 + 2 * HOUR) == {2, 2**63 - 1}
    assert history.known([], T0, T0 + HOUR) == set()


def test_of_repeats_within_a_batch_the_first_counts(history: History) -> None:
    first, again = window(1, T0 + 1), window(1, T0 + 1, counts=Counts(steps=99.0))
    assert history.append(Batch(windows=[first, again])) == 1
    [told] = history.query(hour())
    assert told.counts.steps == 10


def test_the_latest_of_every_series_and_source(history: History) -> None:
    code, chat = Series("a", rank="0", category="code"), Series("a", rank="0", category="chat")
    history.append(
        Batch(
            windows=[
                window(1, T0 + 15, code),
                # A log second holds several lines.
                window(2, T0 + 30, code, source="log", counts=WHOLE_COUNTS, exact=False),
                window(3, T0 + 30, code, source="log", counts=WHOLE_COUNTS, seconds=20),
                window(4, T0 + 20, code, source="log"),
                window(5, T0 + 10, chat),
                window(6, T0 + 61, chat),
            ]
        )
    )
    told = {(item.key, item.source): item for item in history.latest({}, T0 + 60, 50)}
    assert set(told) == {(code.key(), "counter"), (code.key(), "log")}
    newest = told[code.key(), "log"]
    assert newest.counts == WHOLE_COUNTS + WHOLE_COUNTS
    assert (newest.bucket, newest.first, newest.last) == (T0 + 30, T0 + 10, T0 + 30)
    assert (newest.target, newest.windows, newest.exact) == ("a", 2, False)
    assert {item.bucket for item in history.latest({"category": ("chat",)}, T0 + 61, 60)} == {T0 + 61}
    assert history.latest({}, T0 + 60, 29.75) == []


@ASK
@given(windows=window_lists(), at=ENDS, within=st.sampled_from([0.25, 15.0, HOUR, 5 * HOUR]))
def test_the_latest_are_the_sums_of_the_newest_ends(
    make_history: Callable[[], History], windows: list[Window], at: float, within: float
) -> None:
    history = make_history()
    history.append(Batch(windows=windows))
    inside = [item for item in windows if item.busy and at - within < item.end <= at]
    newest: dict[tuple[Series, Source], float] = defaultdict(float)
    for item in inside:
        newest[item.series, item.source] = max(newest[item.series, item.source], item.end)
    expected: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for (series, source), end in newest.items():
        those = [item for item in inside if (item.series, item.source, item.end) == (series, source, end)]
        [told] = oracle(those, AcceptanceQuery(end - 1, end)).values()
        expected[series.target, source, end, series.key()] = told
    assert as_told(history.latest({}, at, within)) == expected


LOOK = Health("a", "metrics", T0 + 15, True, None, 3.0, 1.0, True, 120.0, 0.04)


def test_looks_come_back_oldest_first_and_once(history: History) -> None:
    down = Health("a", "server_info", T0 + 10, False, error="refused: \N{BULLET} 'quoted'\0")
    unknown = Health("b", "log:/var/log/a b.log", T0 + 15, True)
    history.append(Batch(health=[LOOK, unknown, down]))
    history.append(Batch(health=[LOOK, replace(LOOK, up=False), replace(LOOK, at=T0 + 30)]))
    assert history.health(T0, T0 + 60) == [down, LOOK, unknown, replace(LOOK, at=T0 + 30)]
    assert history.health(T0 + 10, T0 + 15) == [LOOK, unknown]
    assert history.health(T0, T0 + 60, "b") == [unknown]
    assert history.health(T0, T0 + 60, "nobody") == []


@ASK
@given(
    looks=st.lists(
        st.builds(
            Health,
            target=st.sampled_from("ab"),
            surface=st.sampled_from(["metrics", "log:x"]),
            at=ENDS,
            up=st.booleans(),
            error=st.none() | TEXT,
            running=st.none() | WHOLE,
            queued=st.none() | WHOLE,
            speculating=st.none() | st.booleans(),
            decode_tokens=st.none() | WHOLE,
            seconds=st.none() | st.floats(0, 60),
        ),
        max_size=20,
    )
)
def test_looks_come_back_as_they_were(make_history: Callable[[], History], looks: list[Health]) -> None:
    history = make_history()
    history.append(Batch(health=looks[:7]))
    history.append(Batch(health=looks[3:]))
    first: dict[tuple[Any, ...], Health] = {}
    for look in looks:
        first.setdefault((look.at, look.target, look.surface), look)
    assert history.health(T0 - 2 * HOUR, T0 + 4 * HOUR) == [first[place] for place in sorted(first)]


def test_cursors_are_the_last_written_of_each_surface(history: History) -> None:
    assert history.cursors() == []
    state = {"offset": 2**60, "values": {"steps": 1.5, "none": None}, "text": "ключ\0\ud800"}
    first, second = Cursor("a", "metrics", {"offset": 1}, T0 + 9), Cursor("a", "log:x", {}, T0)
    history.append(Batch(cursors=[first, second]))
    # The clock may have been set back; what was read last is still what was read last.
    changed = Cursor("a", "metrics", state, T0 + 5)
    history.append(Batch(cursors=[Cursor("a", "metrics", {"offset": 7}, T0 + 4), changed]))
    history.append(Batch(cursors=[Cursor("b", "metrics", {"offset": 3}, T0)]))
    told = {(cursor.target, cursor.surface): cursor for cursor in history.cursors()}
    assert len(history.cursors()) == 3
    assert told["a", "metrics"] == changed
    assert told["a", "log:x"] == second


def test_only_whole_periods_are_forgotten(history: History) -> None:
    ends = [T0 - HOUR, T0 - 0.25, T0, T0 + 1, T0 + HOUR]
    windows = [window(number, end) for number, end in enumerate(ends)]
    looks = [replace(LOOK, at=end) for end in ends]
    cursor = Cursor("a", "metrics", {}, T0 - HOUR)
    history.append(Batch(windows=windows, health=looks, cursors=[cursor]))
    everything = AcceptanceQuery(T0 - 9 * HOUR, T0 + 9 * HOUR, 0.25)

    def kept() -> tuple[list[float], list[float]]:
        return (
            sorted(item.last for item in history.query(everything)),
            [look.at for look in history.health(everything.start, everything.end)],
        )

    history.drop_before(T0 - 0.25)
    assert kept() == (ends, ends)
    history.drop_before(T0)
    assert kept() == (ends[2:], ends[2:])
    history.drop_before(T0 + HOUR - 1)
    assert kept() == (ends[2:], ends[2:])
    assert history.append(Batch(windows=windows[2:])) == 0
    history.drop_before(T0 + 9 * HOUR)
    assert kept() == ([], [])
    assert history.cursors() == [cursor]
    assert history.append(Batch(windows=windows)) == len(windows)
    assert kept() == (ends, [])


def test_any_finite_time_is_a_time(history: History) -> None:
    """A log's times are whatever its lines say."""
    ends = [-1e9, -0.5, 0.0, 0.5, 1e11]
    history.append(Batch([window(number, end) for number, end in enumerate(ends)], [replace(LOOK, at=-1e9)]))
    told = history.query(AcceptanceQuery(-1e10, 1e12, by=()))
    assert [(item.windows, item.last) for item in told] == [(5, 1e11)]
    history.drop_before(0.0)
    assert [item.windows for item in history.query(AcceptanceQuery(-1e10, 1e12, by=()))] == [3]


@pytest.mark.parametrize("end", [float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(history: History, end: float) -> None:
    with pytest.raises(ValueError, match="not a time"):
        history.append(Batch([window(1, T0), window(2, end)]))
    assert history.query(hour()) == []
    assert history.append(Batch([window(3, T0 + 1)])) == 1


def test_an_empty_batch_changes_nothing(history: History) -> None:
    assert history.append(Batch()) == 0
    assert history.query(hour()) == []
    assert history.latest({}, T0, HOUR) == []
    assert history.health(T0, T0 + HOUR) == []
