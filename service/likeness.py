"""Against its own normal: step time and output of a target now, and at like load before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from service.beats import Beat

LIKE = 1.4
"""Loads that differ by more than this factor are not compared: step time grows with the batch, output with the load."""

FEWEST = 3
"""Ticks, or other targets, that make a normal value."""

NOTEWORTHY = 0.05
"""A smaller share of lost output is within what load alone does."""


def like(now: Beat, other: Beat) -> bool:
    """Whether both ran about as many requests."""
    if not now.running or not other.running:
        return False
    return max(now.running, other.running) <= LIKE * min(now.running, other.running)


def normal_step_time(now: Beat, before: Iterable[Beat], others: Iterable[Beat] = ()) -> float | None:
    """Median step time at like load: of its own past, else of the healthy targets of its group now."""
    return _normal(now, (before, others), lambda beat: beat.step_time_seconds)


def lost_tokens_per_second(now: Beat, before: Iterable[Beat], others: Iterable[Beat] = ()) -> float | None:
    """Output that is normal at like load, as for step times, less what it is now.

    None where nothing like it is known; 0 where it gives about as much.
    """
    normal = _normal(now, (before, others), lambda beat: beat.tokens_per_second)
    if normal is None or now.tokens_per_second is None:
        return None
    lost = normal - now.tokens_per_second
    return lost if lost > NOTEWORTHY * normal else 0.0


def _normal(now: Beat, references: Iterable[Iterable[Beat]], figure: Callable[[Beat], float | None]) -> float | None:
    """The median of the first of ``references`` that has ``FEWEST`` beats at like load."""
    for beats in references:
        known = [value for beat in beats if like(now, beat) and (value := figure(beat)) is not None]
        if len(known) >= FEWEST:
            return median(known)
    return None
