"""Questions: parsed strictly, linked to exactly, and cut into buckets that share no window."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acceptance.query import (
    MAX_BUCKETS,
    AcceptanceQuery,
    BadQuery,
    bucket_start,
    format_duration,
    format_time,
    parse_duration,
    parse_time,
)
from acceptance.series import DIMENSIONS
from acceptance.window import SOURCES

NOW = 1_796_094_000.25

MICROSECONDS = st.integers(0, 4_000_000_000 * 10**6).map(lambda micros: round(micros / 1e6, 6))
DURATIONS = st.floats(1e-6, 1e9)
LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


@st.composite
def queries(draw: st.DrawFn) -> AcceptanceQuery:
    start, end = sorted(draw(st.lists(MICROSECONDS, min_size=2, max_size=2, unique=True)))
    step = draw(st.none() | st.floats((end - start) / MAX_BUCKETS * 1.01, 1e9).filter(lambda step: step < 1e10))
    where = {
        name: tuple(draw(st.lists(LABELS | st.just("") if name == "category" else LABELS, min_size=1, max_size=3)))
        for name in draw(st.lists(st.sampled_from(DIMENSIONS), unique=True, max_size=4))
    }
    return AcceptanceQuery(
        start=start,
        end=end,
        step=step,
        by=tuple(draw(st.lists(st.sampled_from(DIMENSIONS), unique=True))),
        where=where,
        source=draw(st.none() | st.sampled_from(SOURCES)),
        offset=draw(st.just(0.0) | DURATIONS),
    )


def parsed(text: str = "", **parameters: str) -> AcceptanceQuery:
    query = text or urlencode(parameters)
    return AcceptanceQuery.parse(parse_qs(query, keep_blank_values=True, strict_parsing=bool(query)), NOW)


@given(queries())
def test_a_link_asks_the_same_question(query: AcceptanceQuery) -> None:
    assert parsed(urlencode(query.to_params())) == query


@given(queries())
def test_a_link_read_once_from_iterators_asks_the_same_question(query: AcceptanceQuery) -> None:
    parameters = parse_qs(urlencode(query.to_params()), keep_blank_values=True)
    assert AcceptanceQuery.parse({name: iter(values) for name, values in parameters.items()}, NOW) == query


def test_without_parameters_it_is_the_last_hour_by_target() -> None:
    assert parsed() == AcceptanceQuery(NOW - 3600, NOW, None, ("target",))


@pytest.mark.parametrize("name", ["from", "to", "step", "source", "offset", *sorted(set(DIMENSIONS) - {"category"})])
def test_a_parameter_given_empty_is_absent(name: str) -> None:
    assert parsed(f"{name}=") == parsed()


def test_an_empty_category_means_unlabelled_requests() -> None:
    assert parsed("category=").where == {"category": ("",)}
    assert parsed("category=&category=code").where == {"category": ("", "code")}
    assert parsed("target=a&target=&category=code").where == {"target": ("a",), "category": ("code",)}


def test_an_empty_by_adds_everything_up() -> None:
    assert parsed("by=").by == ()


def test_dimensions_may_be_listed_or_repeated() -> None:
    assert parsed("by=rank,+category&by=rank").by == ("rank", "category")


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("frm=now", "frm"),
        ("from=yesterday", "from"),
        ("from=now", "from"),
        ("from=now-1h&to=now-2h", "from"),
        ("from=now-100000w", "from"),
        ("from=-1", "from"),
        ("to=1796094000000", "to"),
        ("to=nan", "to"),
        ("to=inf", "to"),
        ("to=2026-13-01", "to"),
        ("to=0001-01-01T00:00:00%2B14:00", "to"),
        ("to=now-0s", "to"),
        ("to=now&to=now", "to"),
        ("step=0", "step"),
        ("step=-5", "step"),
        ("step=1e3", "step"),
        ("step=5 m", "step"),
        ("step=1y", "step"),
        ("step=1ms", "step"),
        ("step=" + "9" * 400, "step"),
        ("offset=now-1h", "offset"),
        ("source=best", "source"),
        ("source=log&source=gauge", "source"),
        ("by=pod", "by"),
        ("by=target,colour", "by"),
        ("pod=a", "pod"),
    ],
)
def test_nonsense_is_refused_by_name(text: str, parameter: str) -> None:
    with pytest.raises(BadQuery) as refused:
        parsed(text)
    assert refused.value.parameter == parameter
    assert refused.value.reason
    assert str(refused.value) == f"{parameter}: {refused.value.reason}"


@given(st.sampled_from(["from", "to", "step", "by", "source", "offset", "colour"]), st.text())
def test_whatever_is_asked_is_answered_or_refused_by_name(name: str, value: str) -> None:
    try:
        query = AcceptanceQuery.parse({name: [value]}, NOW)
    except BadQuery as error:
        refused = error
    else:
        assert query.start < query.end
        assert query.step is None or (query.end - query.start) / query.step <= MAX_BUCKETS
        assert query.offset >= 0
        return
    assert refused.parameter == name
    assert len(refused.reason) < 250


def test_a_hostile_name_is_cut_short() -> None:
    with pytest.raises(BadQuery) as refused:
        AcceptanceQuery.parse({"x" * 10_000: ["1"]}, NOW)
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5s", 1.5),
        ("300ms", 0.3),
        ("5m", 300),
        ("1h", 3600),
        ("2d", 172_800),
        ("1w", 604_800),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration("step", text) == pytest.approx(seconds, rel=1e-15)


@given(st.floats(5e-324, 1e10, exclude_max=True))
def test_a_written_duration_reads_back_to_the_last_bit(seconds: float) -> None:
    assert parse_duration("step", format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", NOW),
        ("now-1h", NOW - 3600),
        ("now-90", NOW - 90),
        ("now+5m", NOW + 300),
        ("1796094000", 1_796_094_000),
        ("1796094000.5", 1_796_094_000.5),
        ("2026-12-01T03:00:00Z", 1_796_094_000),
        ("2026-12-01T03:00:00", 1_796_094_000),
        ("2026-12-01 03:00:00", 1_796_094_000),
        ("2026-12-01T04:00:00+01:00", 1_796_094_000),
        ("2026-12-01T04:00:00 01:00", 1_796_094_000),
        ("2026-12-01T03:00:00.000001Z", 1_796_094_000.000001),
        ("2026-12-01", 1_796_083_200),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time("from", text, NOW) == seconds


@given(MICROSECONDS)
def test_a_written_time_reads_back(seconds: float) -> None:
    text = format_time(seconds)
    assert parse_time("from", text, NOW) == seconds
    assert text.endswith("Z")
    assert not text.endswith(("0Z", ".Z")) or "." not in text


@given(MICROSECONDS, st.integers(-14 * 60, 14 * 60))
def test_a_time_in_any_zone_is_the_same_time(seconds: float, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    local = datetime.fromtimestamp(seconds, UTC).astimezone(zone)
    assert parse_time("from", local.isoformat(), NOW) == seconds


SPANS: dict[str, Any] = {"start": st.integers(-(2**30), 2**32), "step": st.integers(1, 100_000)}


@given(**SPANS, ticks=st.integers(1, 10_000_000), offset=st.integers(0, 10**6))
def test_every_end_lies_in_exactly_one_bucket(start: int, step: int, ticks: int, offset: int) -> None:
    """In sixty-fourths of a second, so that every sum is exact."""
    start, step, end = start / 64, step / 64, (start - offset + ticks) / 64
    query = AcceptanceQuery(start, start + 1, step, offset=offset / 64)
    bucket = bucket_start(query, end)
    assert bucket < end <= bucket + step
    number = (bucket - (start - offset / 64)) / step
    assert number == int(number) >= 0


@given(**SPANS, number=st.integers(0, 1000))
def test_an_end_on_a_boundary_belongs_to_the_bucket_it_closes(start: int, step: int, number: int) -> None:
    query = AcceptanceQuery(start, start + 1, step)
    assert bucket_start(query, start + (number + 1) * step) == start + number * step


@given(st.floats(0, 2e9), st.floats(1e-3, 1e6), st.floats(1e-3, 1e9))
def test_buckets_of_fractions_hold_their_ends_to_a_microsecond(start: float, step: float, distance: float) -> None:
    assume(distance / step < 1e7)
    end = start + distance
    assume(end > start)
    bucket = bucket_start(AcceptanceQuery(start, end, step), end)
    assert bucket - 1e-5 <= end <= bucket + step + 1e-5
    assert math.isclose((bucket - start) / step, round((bucket - start) / step), abs_tol=1e-2)


@given(st.floats(0, 2e9), st.floats(1, 1e6), st.floats(0, 1e6))
def test_without_a_step_there_is_one_bucket_that_begins_with_the_span(start: float, length: float, part: float) -> None:
    query = AcceptanceQuery(start, start + length, offset=60.0)
    assert bucket_start(query, start - 60 + part) == start - 60
