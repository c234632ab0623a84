"""A fall is told when there was one, and hardly ever when there was none: requests differ far more than steps do."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable

import numpy as np
import pytest

from acceptance.counts import NO_COUNTS, Counts, Spread, total
from service.falls import Course, Fall, fall_of

RUNS = int(os.environ.get("DRAFTGAUGE_TEST_RUNS", "40"))
STEP, SCRAPE, PASS_SECONDS = 30.0, 15.0, 0.020
DEAD = 1.10


def course(
    rng: np.random.Generator, minutes: float, rate: float, acc_len: Callable[[float], float], spread: float = 0.3
) -> tuple[Course, list[float]]:
    """Counters of one category that move when requests finish, as SGLang's do; lengths in tokens are lognormal.

    ``acc_len`` gives the mean over requests at a time; that of a request lies around it by ``spread``.
    """
    windows: list[list[tuple[float, float]]] = [[] for _ in range(int(minutes * 60 / SCRAPE))]
    at = 0.0
    while (at := at + rng.exponential(1 / rate)) < minutes * 60:
        tokens, time, steps = 600 * math.exp(1.41 * rng.standard_normal()), at, 0.0
        luck = max(0.3, rng.normal(1.0, spread))
        emitted = 0.0
        while emitted < min(tokens, 65_536):
            length = min(max(1.0, acc_len(time) * luck), 8.0) if acc_len(time) > DEAD else acc_len(time)
            emitted += 50 * length
            steps += 50
            time += 50 * PASS_SECONDS
        if time < minutes * 60:
            windows[int(time // SCRAPE)].append((emitted, steps))
    buckets = [windows[index] + windows[index + 1] for index in range(0, len(windows) - 1, 2)]
    return Course("code", [_counts(bucket) for bucket in buckets]), [index * STEP for index in range(len(buckets))]


def _counts(finished: Iterable[tuple[float, float]]) -> Counts:
    told = [Counts(steps=s, emitted=e, requests=1.0, spread=Spread.of(e, s)) for e, s in finished]
    return total(told) if told else NO_COUNTS


def falls(minutes: float, rate: float, acc_len: Callable[[float], float]) -> list[Fall | None]:
    """Of as many courses as are asked for, what is told of each."""
    rng = np.random.default_rng(20261201)
    return [fall_of(*course(rng, minutes, rate, acc_len), DEAD) for _ in range(RUNS)]


@pytest.mark.parametrize(("minutes", "rate"), [(15, 0.05), (15, 0.2), (60, 0.05)])
def test_what_did_not_fall_is_hardly_ever_told_to(minutes: float, rate: float) -> None:
    told = falls(minutes, rate, lambda _: 4.3)
    assert sum(fall is not None for fall in told) <= max(1, 0.02 * len(told))


@pytest.mark.parametrize(("minutes", "rate"), [(30, 0.05), (30, 0.2)])
def test_a_dead_drafter_is_told(minutes: float, rate: float) -> None:
    died = (minutes - 8) * 60.0
    told = falls(minutes, rate, lambda at: 4.3 if at < died else 1.0)
    assert sum(fall is None for fall in told) <= 0.1 * len(told)
    # Requests that ran through it are counted when they end.
    late = [fall.at - died for fall in told if fall is not None]
    assert -60 <= float(np.median(late)) <= 180


def test_a_fall_by_a_half_is_told_with_its_levels() -> None:
    told = [fall for fall in falls(60, 0.2, lambda at: 4.3 if at < 2000 else 2.1) if fall is not None]
    assert len(told) >= 0.9 * RUNS
    for fall in told:
        assert fall.after < 0.8 * fall.before


def test_what_rose_did_not_fall() -> None:
    assert not any(falls(30, 0.2, lambda at: 2.0 if at < 900 else 4.3))


def test_a_dip_that_is_over_is_no_fall() -> None:
    """But for a long request that ran through it and ends much later."""
    told = falls(30, 0.2, lambda at: 1.0 if 600 < at < 900 else 4.3)
    assert sum(fall is not None for fall in told) <= max(1, 0.02 * len(told))


def test_few_steps_do_not_split() -> None:
    short = Course("code", [Counts(steps=150.0, emitted=600.0), Counts(steps=150.0, emitted=150.0)])
    assert fall_of(short, [0.0, STEP], DEAD) is None
    enough = Course("code", [Counts(steps=200.0, emitted=800.0), Counts(steps=200.0, emitted=200.0)])
    assert fall_of(enough, [0.0, STEP], DEAD) == Fall(STEP, 4.0, 1.0)


def test_without_bounds_only_death_is_beyond_doubt() -> None:
    halved = Course("code", [Counts(steps=2000.0, emitted=8000.0), Counts(steps=2000.0, emitted=4000.0)])
    assert fall_of(halved, [0.0, STEP], DEAD) is None
