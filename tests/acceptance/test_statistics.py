"""Bounds that miss as often as they say, for requests as they really are."""

from __future__ import annotations

import os
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.counts import NO_COUNTS, Counts, Spread, total
from acceptance.statistics import MIN_CLUSTERS, bounds, student_t

RUNS = int(os.environ.get("DRAFTGAUGE_STATISTICS_RUNS", "1500"))

# Quantiles of Student's t, from any table.
T_TABLE = {
    0.95: {3: 2.353, 4: 2.132, 5: 2.015, 7: 1.895, 10: 1.812, 19: 1.729, 30: 1.697, 120: 1.658},
    0.975: {3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 10: 2.228, 19: 2.093, 30: 2.042, 120: 1.980},
    0.995: {5: 4.032, 7: 3.499, 10: 3.169, 19: 2.861, 30: 2.750, 120: 2.617},
}


@pytest.mark.parametrize(
    ("probability", "degrees", "quantile"),
    [(probability, degrees, t) for probability, row in T_TABLE.items() for degrees, t in row.items()],
)
def test_student_t_as_in_the_table(probability: float, degrees: int, quantile: float) -> None:
    assert student_t(probability, degrees) == pytest.approx(quantile, rel=0.002)


def test_student_t_approaches_the_normal_distribution() -> None:
    assert student_t(0.975, 1e9) == pytest.approx(1.959964, abs=1e-5)
    assert student_t(0.5, 7) == 0


K, MEAN, BETWEEN = 5, 3.0, 0.3


def drawn_acceptance(random: np.random.Generator, size: int) -> np.ndarray:
    """acc_len of requests: normal about ``MEAN`` with a standard deviation of 0.3 of it, between 1 and k + 1."""
    return np.clip(random.normal(MEAN, BETWEEN * MEAN, size), 1, K + 1)


def sample(random: np.random.Generator, requests: int, tail: float) -> Counts:
    """Requests whose steps share the request's acceptance, over lognormal output lengths."""
    lengths = drawn_acceptance(random, requests)
    steps = np.maximum(1, np.round(200 * np.exp(tail * random.standard_normal(requests)))).astype(int)
    emitted = steps + random.binomial(K * steps, (lengths - 1) / K)
    return total(
        Counts(steps=float(each), emitted=float(tokens), spread=Spread.of(float(tokens), float(each)))
        for each, tokens in zip(steps, emitted, strict=True)
    )


def per_step_reach(counts: Counts) -> float:
    """Half the width of an interval that takes every step for itself, as one must not."""
    assert counts.acc_len is not None
    assert counts.steps is not None
    rate = (counts.acc_len - 1) / K
    return 1.96 * sqrt(K * rate * (1 - rate) / counts.steps)


@pytest.mark.parametrize(
    ("requests", "tail"),
    [(20, 0.0), (20, 0.5), (20, 1.41), (60, 1.41)],
    ids=["20 alike", "20", "20 with the tail of real output", "60 with the tail of real output"],
)
def test_bounds_miss_five_in_a_hundred(requests: int, tail: float) -> None:
    """A tail of 1.41 is that of a median of 600 tokens and a 99th percentile of 16,000."""
    random = np.random.default_rng(20261201)
    truth = float(drawn_acceptance(random, 1_000_000).mean())
    missed = missed_by_steps = told = 0
    for _ in range(RUNS):
        counts = sample(random, requests, tail)
        interval = bounds(counts)
        if interval is None:
            continue
        assert counts.acc_len is not None
        told += 1
        missed += not interval.lower <= truth <= interval.upper
        missed_by_steps += abs(counts.acc_len - truth) > per_step_reach(counts)
    assert told > 0.7 * RUNS
    assert 0.025 <= missed / told <= 0.075
    assert missed_by_steps / told > 0.5


def alike(clusters: int, steps: float = 100.0, emitted: float = 300.0) -> Counts:
    return total(Counts(steps=steps, emitted=emitted, spread=Spread.of(emitted, steps)) for _ in range(clusters))


def test_too_few_clusters_give_no_bound() -> None:
    assert bounds(alike(MIN_CLUSTERS - 1)) is None
    assert bounds(alike(MIN_CLUSTERS)) is not None


def test_nor_do_many_of_which_one_holds_nearly_all_steps() -> None:
    one_long = Counts(steps=1e6, emitted=3e6, spread=Spread.of(3e6, 1e6))
    assert bounds(alike(50) + one_long) is None


@pytest.mark.parametrize(
    "counts",
    [
        NO_COUNTS,
        Counts(steps=100.0, emitted=300.0),
        Counts(steps=0.0, emitted=0.0, spread=Spread(0.0, 0.0, 0.0, 20)),
        Counts(steps=100.0, emitted=300.0, spread=Spread(0.0, 0.0, 0.0, 20)),
    ],
    ids=["nothing", "no spread", "no steps", "a spread of other steps"],
)
def test_without_evidence_there_is_no_bound(counts: Counts) -> None:
    assert bounds(counts) is None


CLUSTERS = st.lists(
    st.tuples(st.integers(1, 5000), st.floats(1, 6)).map(lambda pair: (float(pair[0]), round(pair[0] * pair[1]))),
    min_size=MIN_CLUSTERS,
    max_size=40,
)


@given(CLUSTERS)
def test_bounds_enclose_the_estimate_and_stay_above_one(clusters: list[tuple[float, int]]) -> None:
    counts = total(
        Counts(steps=steps, emitted=float(emitted), spread=Spread.of(emitted, steps)) for steps, emitted in clusters
    )
    narrow, wide = bounds(counts, 0.9), bounds(counts, 0.95)
    assert (narrow is None) == (wide is None)
    if narrow is None or wide is None:
        return
    assert counts.acc_len is not None
    assert 1 <= wide.lower <= narrow.lower <= counts.acc_len + 1e-9
    assert counts.acc_len - 1e-9 <= narrow.upper <= wide.upper


def test_clusters_that_agree_leave_no_doubt() -> None:
    interval = bounds(alike(20))
    assert interval is not None
    assert interval.upper - interval.lower == pytest.approx(0, abs=1e-6)
