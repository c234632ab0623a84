"""Counts over a window: the one currency in which acceptance is stored, added and compared.

A length is divided last and never averaged. ``None`` means that a source does not tell; ``None + x`` is ``None``,
since a sum over a part of the windows would put a numerator over somebody else's denominator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Spread:
    """Second moments over clusters (requests, or windows where requests are not told apart), all additive.

    They give the cluster-robust bound of a ratio (``acceptance.statistics``): steps of one request correlate, so a
    bound from per-step variance alone would be far too narrow.
    """

    emitted_squared: float
    emitted_steps: float
    steps_squared: float
    clusters: int

    @staticmethod
    def of(emitted: float, steps: float) -> Spread:
        """The spread of one cluster."""
        return Spread(emitted * emitted, emitted * steps, steps * steps, 1)

    def __add__(self, other: Spread) -> Spread:
        return Spread(
            self.emitted_squared + other.emitted_squared,
            self.emitted_steps + other.emitted_steps,
            self.steps_squared + other.steps_squared,
            self.clusters + other.clusters,
        )


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened in a window. Integers where the source counts, fractions where it estimates.

    steps         verify steps: one per request and target pass with a draft
    emitted       tokens those steps yielded, bonus token included
    proposed      draft tokens proposed for verification
    by_position   draft tokens accepted at draft position 0, 1, ... (a shorter tuple ends in zeros)
    requests      requests behind the steps
    slots         k * steps: draft tokens that could have been accepted; comparable across k
    trim_bound    tokens that the source may have cut off at the ends of requests (0 where it cuts none)
    passes, eager_passes, pass_seconds   decode passes, those outside a graph, and the time that ``passes`` took
    spread        second moments of (emitted, steps) over requests or windows
    """

    steps: float | None = None
    emitted: float | None = None
    proposed: float | None = None
    by_position: tuple[float, ...] | None = None
    requests: float | None = None
    slots: float | None = None
    trim_bound: float | None = None
    passes: float | None = None
    eager_passes: float | None = None
    pass_seconds: float | None = None
    spread: Spread | None = None

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            steps=_plus(self.steps, other.steps),
            emitted=_plus(self.emitted, other.emitted),
            proposed=_plus(self.proposed, other.proposed),
            by_position=_plus_positions(self.by_position, other.by_position),
            requests=_plus(self.requests, other.requests),
            slots=_plus(self.slots, other.slots),
            trim_bound=_plus(self.trim_bound, other.trim_bound),
            passes=_plus(self.passes, other.passes),
            eager_passes=_plus(self.eager_passes, other.eager_passes),
            pass_seconds=_plus(self.pass_seconds, other.pass_seconds),
            spread=None if self.spread is None or other.spread is None else self.spread + other.spread,
        )

    @property
    def accepted(self) -> float | None:
        """Draft tokens accepted: what the steps emitted beyond their one bonus token each."""
        return None if self.steps is None or self.emitted is None else self.emitted - self.steps

    @property
    def acc_len(self) -> float | None:
        """Tokens per verify step, bonus token included: 1 <= acc_len <= k + 1. None where there is no data."""
        return _ratio(self.emitted, self.steps)

    @property
    def accept_rate(self) -> float | None:
        """Accepted over proposed draft tokens. Falls as the draft budget rises: compare within one k only."""
        return _ratio(self.accepted, self.proposed)

    @property
    def draft_yield(self) -> float | None:
        """Accepted / (k * steps), 0 to 1: comparable across k."""
        return _ratio(self.accepted, self.slots)

    @property
    def bias_bound(self) -> float | None:
        """By how much ``acc_len`` may be too low, since the source counts after end-of-text trimming."""
        return _ratio(self.trim_bound, self.steps)

    @property
    def step_time_seconds(self) -> float | None:
        """Mean time of a decode pass."""
        return _ratio(self.pass_seconds, self.passes)

    @property
    def eager_share(self) -> float | None:
        """Share of decode passes that ran outside a graph."""
        return _ratio(self.eager_passes, self.passes)

    @property
    def position_rates(self) -> tuple[float, ...] | None:
        """Share of the steps in which draft position 0, 1, ... was accepted."""
        if self.by_position is None or not self.steps:
            return None
        return tuple(accepted / self.steps for accepted in self.by_position)


NO_COUNTS = Counts()
COUNT_FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Counts))


def total(counts: Iterable[Counts]) -> Counts:
    """The sum; of nothing, ``NO_COUNTS``. Column by column, which is ten times as fast as adding one by one."""
    items = list(counts)
    if len(items) <= 1:
        return items[0] if items else NO_COUNTS
    return Counts(
        steps=_sum([item.steps for item in items]),
        emitted=_sum([item.emitted for item in items]),
        proposed=_sum([item.proposed for item in items]),
        by_position=_sum_positions([item.by_position for item in items]),
        requests=_sum([item.requests for item in items]),
        slots=_sum([item.slots for item in items]),
        trim_bound=_sum([item.trim_bound for item in items]),
        passes=_sum([item.passes for item in items]),
        eager_passes=_sum([item.eager_passes for item in items]),
        pass_seconds=_sum([item.pass_seconds for item in items]),
        spread=_sum_spreads([item.spread for item in items]),
    )


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _sum_positions(values: list[tuple[float, ...] | None]) -> tuple[float, ...] | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return tuple(sum(position) for position in zip_longest(*known, fillvalue=0.0))


def _sum_spreads(values: list[Spread | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return Spread(
        sum(spread.emitted_squared for spread in known),
        sum(spread.emitted_steps for spread in known),
        sum(spread.steps_squared for spread in known),
        sum(spread.clusters for spread in known),
    )


def _plus(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


def _plus_positions(left: tuple[float, ...] | None, right: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if left is None or right is None:
        return None
    return tuple(a + b for a, b in zip_longest(left, right, fillvalue=0.0))


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    """0 / 0 is no data."""
    return None if numerator is None or not denominator else numerator / denominator
