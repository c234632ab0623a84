"""Gaps: time in which nothing verified, and whether that was for want of requests or for want of knowledge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from service.beats import Beat

SHORTEST_SECONDS = 60.0
"""Shorter pauses (or ones of less than two buckets) break a line, and get no band of their own."""

NOT_YET_SECONDS = 60.0
"""So young a bucket may only not have been told yet."""

NO_DATA, IDLE = "no data", "idle"


@dataclass(frozen=True, slots=True)
class Gap:
    """Time in which nothing verified: ``why`` is "no data" or "idle"."""

    start: float
    end: float
    why: str


def gaps(
    starts: Sequence[float],
    step: float,
    told: Collection[float],
    looks: Callable[[float, float], Mapping[tuple[str, float], Beat]],
    names: Collection[str],
    end: float,
    now: float,
) -> tuple[Gap, ...]:
    """The gaps in (starts[0], end].

    told    starts of the buckets with verify steps
    looks   looks(start, end) at all targets, by target and bucket; asked only where there are gaps
    names   the targets that are shown
    """
    empty = [start for start in starts if start not in told and now - min(start + step, end) >= NOT_YET_SECONDS]
    if not empty:
        return ()
    seen: dict[float, list[Beat]] = {}
    for (target, bucket), beat in looks(empty[0], min(empty[-1] + step, end)).items():
        if target in names:
            seen.setdefault(bucket, []).append(beat)
    found: list[Gap] = []
    places = {start: place for place, start in enumerate(starts)}
    numbered = ((start, places[start] - rank, _why(seen.get(start, ()))) for rank, start in enumerate(empty))
    for (_, why), run in groupby(numbered, key=lambda item: item[1:]):
        members = [start for start, *_ in run]
        found.append(Gap(members[0], min(members[-1] + step, end), why))
    return tuple(gap for gap in found if gap.end - gap.start >= min(max(SHORTEST_SECONDS, 2 * step), end - starts[0]))


def _why(beats: Sequence[Beat]) -> str:
    """Idle only where some target said so and none said otherwise."""
    running = [beat.running for beat in beats if beat.up and beat.running is not None]
    return IDLE if running and not any(running) else NO_DATA
