"""How often a signature was seen: counted so that reading lines again raises no count."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from hashlib import blake2b

REMEMBERED = 100
"""Newest lines of a hit that are told apart one by one."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The lines counted so far.

    Log times have seconds and a second holds many lines, so a line is known by its time and the hash of its text; of
    the same text twice in a second one counts. The newest ``REMEMBERED`` lines are remembered; every line up to the
    time of the newest one forgotten is taken to have been counted. So a replay never raises the count; what can be
    missed are lines that come late, and those beyond ``REMEMBERED`` within one second.

    count           lines counted
    remembered      (time, hash), oldest first
    counted_until   time of the newest line forgotten, None before any was
    """

    count: int = 0
    remembered: tuple[tuple[float, str], ...] = ()
    counted_until: float | None = None

    def adding(self, at: float, text: str, count: int = 1) -> Occurrences:
        """With a line that stands for ``count`` of them; unchanged where it is known."""
        line = (at, blake2b(text.encode(), digest_size=8).hexdigest())
        if line in self.remembered or (self.counted_until is not None and at <= self.counted_until):
            return self
        lines = list(self.remembered)
        insort(lines, line)
        forgotten, remembered = lines[:-REMEMBERED], lines[-REMEMBERED:]
        until = max((time for time, _ in forgotten), default=self.counted_until)
        return Occurrences(self.count + count, tuple(remembered), until)
