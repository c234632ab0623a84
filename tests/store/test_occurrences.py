from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from store.occurrences import REMEMBERED, Occurrences

Line = tuple[float, str]

LINES = st.lists(st.tuples(st.integers(0, 60).map(float), st.sampled_from(["a", "b", "c"])), max_size=60)


def counted(lines: list[Line], start: Occurrences | None = None) -> Occurrences:
    result = start or Occurrences()
    for at, text in lines:
        result = result.adding(at, text)
    return result


@given(LINES)
def test_lines_count_once_each(lines: list[Line]) -> None:
    assert counted(lines).count == len(set(lines))


@given(LINES, st.integers(0, 60))
def test_reading_again_from_anywhere_raises_no_count(lines: list[Line], since: int) -> None:
    once = counted(lines)
    assert counted(lines[since:], once) == once


@given(st.integers(0, 5), st.integers(1, 6), st.integers(0, 400))
def test_nor_does_it_when_most_lines_are_forgotten(first: int, a_second: int, since: int) -> None:
    """Log times have whole seconds: several lines share one."""
    lines = [(float(first + second), str(number)) for second, number in product(range(60), range(a_second))]
    once = counted(lines)
    assert once.count == len(lines)
    assert len(once.remembered) == min(len(lines), REMEMBERED)
    assert counted(lines[since:], once) == once


def test_what_comes_later_still_counts() -> None:
    full = counted([(float(second), "x") for second in range(3 * REMEMBERED)])
    assert full.adding(3.0 * REMEMBERED, "x").count == full.count + 1
    assert full.adding(0.0, "a line that comes far too late") == full


def test_a_burst_within_one_second_is_bounded() -> None:
    burst = counted([(5.0, str(number)) for number in range(10 * REMEMBERED)])
    assert REMEMBERED <= burst.count <= 10 * REMEMBERED
    assert len(burst.remembered) == REMEMBERED
    assert burst.adding(6.0, "next").count == burst.count + 1


def test_a_line_may_stand_for_several() -> None:
    assert Occurrences().adding(1.0, "x", 7).adding(2.0, "x").count == 8
