"""Buckets of the past that pages ask for again and again, a little later each time: what is settled is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, floor
from typing import Generic, TypeVar

Item = TypeVar("Item")

SETTLED_SECONDS = 90.0
"""Windows are committed within seconds of their end. What comes later is seen when its bucket is read again."""

READ_AGAIN_SECONDS, READ_AGAIN_SHARE = 30.0, 12
"""So often such a part of the settled past is read again, in turn: a log that was caught up with is in it."""

NICE_SECONDS = (5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0, 21600.0)
DAY_SECONDS = 86400.0

SCRAPES_A_BUCKET = 2
"""Scrapes come a little late: buckets as wide as their interval would be empty now and then, with nothing amiss."""


def bucket_width(span: float, most: int, scrape_interval: float) -> float:
    """The narrowest nice width that gives at most ``most`` buckets, and holds ``SCRAPES_A_BUCKET`` scrapes."""
    least = max(span / most, SCRAPES_A_BUCKET * scrape_interval)
    return next((step for step in NICE_SECONDS if step >= least), ceil(least / DAY_SECONDS) * DAY_SECONDS)


def bucket_starts(start: float, end: float, step: float) -> list[float]:
    """Starts of the buckets (start, start + step] on multiples of ``step`` that share time with (start, end]."""
    return [number * step for number in range(floor(start / step), ceil(end / step))]


class Buckets(Generic[Item]):
    """What ``read(start, end)`` tells of the buckets in (start, end], kept once it is settled.

    ``bucket`` gives the start of the bucket of an item. What is not settled is read again when it is older than
    ``fresh_seconds``. Not for several threads at once.
    """

    def __init__(
        self,
        step: float,
        read: Callable[[float, float], Iterable[Item]],
        bucket: Callable[[Item], float],
        fresh_seconds: float = 0.0,
    ) -> None:
        self._step = step
        self._read = read
        self._bucket = bucket
        self._fresh_seconds = fresh_seconds
        self._kept: dict[int, list[Item]] = {}
        self._read_at: dict[int, float] = {}
        self._turn = 0
        self._turned_at = 0.0

    def between(self, starts: Sequence[float], now: float) -> Mapping[float, Sequence[Item]]:
        """Items by the start of their bucket, for adjacent buckets, oldest first; those after ``now`` are empty."""
        numbers = [round(start / self._step) for start in starts]
        for gone in self._kept.keys() - set(numbers):
            del self._kept[gone]
            del self._read_at[gone]
        self._take([number for number in numbers if not self._settled(number) and not self._fresh(number, now)], now)
        if now - self._turned_at >= READ_AGAIN_SECONDS:
            self._turned_at = now
            self._take(self._again(numbers, now), now)
        return {start: self._kept[number] for start, number in zip(starts, numbers, strict=True)}

    def _settled(self, number: int) -> bool:
        return self._read_at.get(number, 0.0) >= (number + 1) * self._step + SETTLED_SECONDS

    def _fresh(self, number: int, now: float) -> bool:
        return number in self._read_at and 0 <= now - self._read_at[number] < self._fresh_seconds

    def _take(self, numbers: Sequence[int], now: float) -> None:
        """Read these, and what lies between them."""
        if not numbers:
            return
        taken = range(numbers[0], numbers[-1] + 1)
        self._kept |= {number: [] for number in taken}
        self._read_at |= dict.fromkeys(taken, now)
        start, end = taken.start * self._step, min(taken.stop * self._step, now)
        if end > start:
            for item in self._read(start, end):
                self._kept[round(self._bucket(item) / self._step)].append(item)

    def _again(self, numbers: Sequence[int], now: float) -> Sequence[int]:
        """The next few settled buckets that were not read just now."""
        settled = [number for number in numbers if self._settled(number) and self._read_at[number] < now]
        count = ceil(len(numbers) / READ_AGAIN_SHARE)
        chosen = [number for number in settled if number >= self._turn][:count] or settled[:count]
        self._turn = chosen[-1] + 1 if chosen else 0
        return chosen
