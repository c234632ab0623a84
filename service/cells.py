"""Cells: an acc_len with its evidence, held against what is normal for that drafter and traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acceptance.baselines import expected
from acceptance.counts import Counts
from acceptance.statistics import bounds
from service.catalog import TargetStatus
from service.states import ENOUGH_STEPS

MOST_UNEXPECTED = 0.1
"""Share of the tokens of a mix for which nothing was published, above which nothing is expected of the mix."""


NORMAL_BELOW = 0.12
"""An acc_len less than this share under its usual value is normal: the first step of the heat scale."""


@dataclass(frozen=True, slots=True)
class Cell:
    """acc_len of a target, of all its traffic or of one category.

    expected   what is normal for its drafter and category (``acceptance.baselines``), None where nobody knows
    below      share by which it is under what is expected (0.25 is a quarter), None where it cannot be judged
    trusted    at least 200 steps: fewer get no colour whatever the value
    """

    acc_len: float | None = None
    lower: float | None = None
    upper: float | None = None
    steps: float | None = None
    requests: float | None = None
    source: str | None = None
    expected: float | None = None
    below: float | None = None
    trusted: bool = False


def cell(counts: Counts, source: str | None, normal: float | None) -> Cell:
    """The cell of these counts; ``normal`` is what is expected of them."""
    interval, acc_len = bounds(counts), counts.acc_len
    trusted = (counts.steps or 0.0) >= ENOUGH_STEPS
    judged = trusted and acc_len is not None and normal is not None
    return Cell(
        acc_len=acc_len,
        lower=None if interval is None else interval.lower,
        upper=None if interval is None else interval.upper,
        steps=counts.steps,
        requests=counts.requests,
        source=source,
        expected=normal,
        below=below(acc_len, normal) if judged else None,
        trusted=trusted,
    )


def below(acc_len: float | None, normal: float | None) -> float | None:
    """The share by which a length is under its normal one, 0 where it is not; None where either is unknown."""
    if acc_len is None or normal is None:
        return None
    return max(0.0, (normal - acc_len) / normal)


def published(status: TargetStatus, category: str | None) -> float | None:
    """What was published for the drafter that a target says it runs, and this category."""
    drafter, k = status.fact("drafter"), status.fact("k")
    if not isinstance(drafter, str) or isinstance(k, bool) or not isinstance(k, int | float):
        return None
    return expected(drafter, int(k), category)


def of_mix(parts: Mapping[str | None, Counts], normal: Mapping[str | None, float | None]) -> float | None:
    """The acc_len to expect of several kinds of traffic together: their tokens over the steps they should take.

    Weighted by tokens and not by steps, since a fault makes steps more: what the traffic asks for stays. None unless
    something is expected of nearly all tokens.
    """
    tokens = {name: counts.emitted or 0.0 for name, counts in parts.items()}
    known = [(tokens[name], value) for name in parts if (value := normal.get(name)) is not None]
    covered = sum(emitted for emitted, _ in known)
    if not covered or covered < (1 - MOST_UNEXPECTED) * sum(tokens.values()):
        return None
    return covered / sum(emitted / value for emitted, value in known)
