"""Random numbers by position: looking ahead does not use them up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_BLOCK = 256


class Stream:
    """An endless sequence of draws. ``draw(count)`` makes the next ``count`` of them."""

    __slots__ = ("_draw", "_drawn", "_start")

    def __init__(self, draw: Callable[[int], np.ndarray]) -> None:
        self._draw = draw
        self._drawn = np.empty(0)
        self._start = 0

    def at(self, position: int, count: int) -> np.ndarray:
        """(count,) numbers from ``position`` on. Positions before one that was asked for may be gone."""
        skip = position - self._start
        while len(self._drawn) < skip + count:
            self._drawn = np.concatenate((self._drawn[skip:], self._draw(_BLOCK)))
            self._start, skip = position, 0
        return self._drawn[skip : skip + count]
