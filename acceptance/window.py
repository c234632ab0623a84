"""Windows: counts of one series over a span of time, as one source told them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, get_args

from acceptance.counts import Counts
from acceptance.series import Series

Source = Literal["counter", "request", "log", "gauge"]
SOURCES: tuple[Source, ...] = get_args(Source)
"""Best first: what a query prefers where several sources of a target answer."""


@dataclass(frozen=True, slots=True)
class Window:
    """Counts of ``series`` in (start, end], unix seconds.

    id               hash of where it was read (``window_id``): a replay repeats it
    exact            the source counts; False where it estimates
    busy             real work: steps and tokens. An idle health probe prints 1.00 at no tokens and is no evidence
    reported_length  the engine's own figures as printed; shown, never computed with (the printed rate changed
    reported_rate    its meaning twice). Percentages as fractions
    """

    id: int
    series: Series
    start: float
    end: float
    source: Source
    exact: bool
    counts: Counts
    busy: bool = True
    reported_length: float | None = None
    reported_rate: float | None = None


def window_id(series: Series, incarnation: str, surface: str, start: float, position: str | int | float) -> int:
    """A stable 63-bit id.

    ``position`` is the byte offset of a line or the sample time of a page: log times have seconds, and a second
    holds up to 14 lines.
    """
    text = f"{_place(series, incarnation, surface)}\x1f{start!r}\x1f{position!r}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1


@lru_cache(maxsize=4096)
def _place(series: Series, incarnation: str, surface: str) -> str:
    """Cached: a log has many lines of one place."""
    return "\x1f".join(repr(part) for part in (series.key(), incarnation, surface))
