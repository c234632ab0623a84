"""Counts add up to the same whatever the order, and never over a part of what was counted."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acceptance.counts import COUNT_FIELDS, NO_COUNTS, Counts, Spread, total

WHOLE = st.integers(0, 2**40).map(float)
"""Whole numbers add up exactly, so sums can be compared with ``==``."""

SPREADS = st.builds(Spread, WHOLE, WHOLE, WHOLE, st.integers(0, 10_000))
POSITIONS = st.lists(WHOLE, max_size=6).map(tuple)


def counts(*, told: bool = False) -> st.SearchStrategy[Counts]:
    """Counts of whole numbers; fields may be None unless all are ``told``."""
    absent = st.nothing() if told else st.none()
    special = {"by_position": POSITIONS, "spread": SPREADS}
    return st.builds(Counts, **{name: absent | special.get(name, WHOLE) for name in COUNT_FIELDS})


@given(counts(), counts())
def test_addition_commutes(left: Counts, right: Counts) -> None:
    assert left + right == right + left


@given(counts(), counts(), counts())
def test_addition_associates(one: Counts, two: Counts, three: Counts) -> None:
    assert (one + two) + three == one + (two + three)


@given(counts(), counts())
def test_a_sum_knows_what_both_know(left: Counts, right: Counts) -> None:
    added = left + right
    for name in COUNT_FIELDS:
        unknown = getattr(left, name) is None or getattr(right, name) is None
        assert (getattr(added, name) is None) == unknown, name


@pytest.mark.parametrize("name", COUNT_FIELDS)
def test_one_window_that_does_not_tell_makes_the_sum_unknown(name: str) -> None:
    whole = Counts(**dict.fromkeys(COUNT_FIELDS, 1.0) | {"by_position": (1.0,), "spread": Spread.of(3, 1)})
    summed = total([whole, replace(whole, **{name: None}), whole])
    assert getattr(summed, name) is None
    others = [field for field in COUNT_FIELDS if field != name]
    assert all(getattr(summed, field) is not None for field in others)


@given(st.lists(counts(told=True), min_size=1, max_size=6))
def test_every_scalar_is_the_sum_of_its_own(parts: list[Counts]) -> None:
    summed = total(parts)
    for name in set(COUNT_FIELDS) - {"by_position", "spread"}:
        assert getattr(summed, name) == sum(getattr(part, name) for part in parts), name
    for moment in fields(Spread):
        assert getattr(summed.spread, moment.name) == sum(getattr(part.spread, moment.name) for part in parts)


@given(st.lists(POSITIONS, min_size=1, max_size=6))
def test_positions_add_one_by_one_and_shorter_ones_end_in_zeros(each: list[tuple[float, ...]]) -> None:
    summed = total(Counts(by_position=positions) for positions in each).by_position
    longest = max(len(positions) for positions in each)
    padded = [positions + (0.0,) * (longest - len(positions)) for positions in each]
    assert summed == tuple(sum(column) for column in zip(*padded, strict=True))


@given(st.lists(counts(), max_size=5))
def test_total_folds(parts: list[Counts]) -> None:
    assert total(parts) == (reduce(Counts.__add__, parts) if parts else NO_COUNTS)


def test_the_total_of_nothing_is_no_data_and_not_zero() -> None:
    nothing = total([])
    assert nothing == NO_COUNTS
    assert all(getattr(nothing, name) is None for name in COUNT_FIELDS)


RATIOS = ("acc_len", "accept_rate", "draft_yield", "bias_bound", "step_time_seconds", "eager_share")


@pytest.mark.parametrize("ratio", [*RATIOS, "position_rates", "accepted"])
def test_unknown_counts_give_no_ratio(ratio: str) -> None:
    assert getattr(NO_COUNTS, ratio) is None


@pytest.mark.parametrize("ratio", [*RATIOS, "position_rates"])
def test_nothing_over_nothing_is_no_data(ratio: str) -> None:
    zero = Counts(0.0, 0.0, 0.0, (), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert getattr(zero, ratio) is None


@st.composite
def drafted(draw: st.DrawFn, k: int) -> Counts:
    """What a number of steps with k draft tokens each can have counted."""
    steps = draw(st.integers(1, 10_000))
    rates = draw(st.lists(st.integers(0, steps), min_size=k, max_size=k))
    by_position = tuple(float(accepted) for accepted in sorted(rates, reverse=True))
    return Counts(
        steps=float(steps),
        emitted=steps + sum(by_position),
        proposed=float(k * steps),
        by_position=by_position,
        slots=float(k * steps),
    )


@given(st.data(), st.integers(1, 16))
def test_figures_of_any_sum_stay_within_their_limits(data: st.DataObject, k: int) -> None:
    summed = total(data.draw(st.lists(drafted(k), min_size=1, max_size=5)))
    assert summed.acc_len is not None
    assert 1.0 <= summed.acc_len <= k + 1
    assert summed.accept_rate is not None
    assert 0.0 <= summed.accept_rate <= 1.0
    assert summed.draft_yield == pytest.approx((summed.acc_len - 1) / k)
    assert summed.position_rates is not None
    assert all(0.0 <= later <= earlier <= 1.0 for earlier, later in pairwise(summed.position_rates))
    assert sum(summed.position_rates) == pytest.approx(summed.acc_len - 1)


@given(st.lists(drafted(5), min_size=2, max_size=5))
def test_a_length_lies_between_those_it_was_added_up_from(parts: list[Counts]) -> None:
    lengths = [part.acc_len for part in parts if part.acc_len is not None]
    summed = total(parts).acc_len
    assert summed is not None
    assert min(lengths) - 1e-9 <= summed <= max(lengths) + 1e-9


def test_a_length_is_divided_last_and_never_averaged() -> None:
    busy, idle = Counts(steps=900.0, emitted=900.0), Counts(steps=100.0, emitted=500.0)
    assert (busy + idle).acc_len == pytest.approx(1.4)


@given(st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=8))
def test_spreads_of_clusters_add_up_to_their_second_moments(clusters: list[tuple[float, float]]) -> None:
    assume(all(emitted < 2**20 and steps < 2**20 for emitted, steps in clusters))
    spread = total(Counts(spread=Spread.of(emitted, steps)) for emitted, steps in clusters).spread
    assert spread == Spread(
        sum(emitted * emitted for emitted, _ in clusters),
        sum(emitted * steps for emitted, steps in clusters),
        sum(steps * steps for _, steps in clusters),
        len(clusters),
    )
