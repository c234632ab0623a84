"""Emulated time: a clock that runs faster than the wall's, or one that stands until it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Emulated unix seconds."""

    speed: float

    def now(self) -> float:
        """The time."""
        ...


class ScaledClock:
    """Starts at ``epoch`` and runs ``speed`` times as fast as ``monotonic``."""

    def __init__(self, epoch: float, speed: float, monotonic: Callable[[], float]) -> None:
        self.speed = speed
        self._epoch = epoch
        self._monotonic = monotonic
        self._start = monotonic()

    def now(self) -> float:
        return self._epoch + (self._monotonic() - self._start) * self.speed


class ManualClock:
    """Stands at ``epoch`` and moves by ``advance`` only."""

    speed = 0.0

    def __init__(self, epoch: float) -> None:
        self._now = epoch

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on."""
        self._now += seconds
