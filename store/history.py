"""History: windows, looks at targets, and the cursors that say how far their surfaces were read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

from acceptance.health import Health
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import Dimension
from acceptance.window import Source, Window

PERIOD_SECONDS = 86_400
"""A window belongs to the period in which it ends; periods begin at multiples of this, and are forgotten whole."""


def period_start(at: float, period_seconds: int) -> int:
    """The start of the period to which a time belongs; raises ``ValueError`` for one that is not finite."""
    if not isfinite(at):
        raise ValueError(f"not a time: {at}")
    return int(at // period_seconds) * period_seconds


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a surface of a target was read: a JSON object of its reader (offset, last counter values)."""

    target: str
    surface: str
    state: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True)
class Batch:
    """What is committed together: if a cursor moved, its windows are there."""

    windows: Sequence[Window] = ()
    health: Sequence[Health] = ()
    cursors: Sequence[Cursor] = ()


@dataclass(frozen=True, slots=True)
class Looked:
    """What the looks at one surface of a target came to in (bucket, bucket + step]: for spans that hold many looks.

    looks, up       how many there were, and how many of them were answered
    running         mean number of running requests, None where no look tells
    decode_tokens   tokens generated, as far as looks tell; None where none does
    speculating     whether any look saw speculation; None where none could tell
    first, last     times of the first and the last look
    """

    target: str
    surface: str
    bucket: float
    looks: int
    up: int
    running: float | None
    decode_tokens: float | None
    speculating: bool | None
    first: float
    last: float

    @property
    def tokens_per_second(self) -> float | None:
        """Generated tokens a second. A look tells of the time since the one before it: the first one is left out."""
        if self.decode_tokens is None or self.last <= self.first:
            return None
        return self.decode_tokens * (1 - 1 / self.looks) / (self.last - self.first)


@dataclass(frozen=True, slots=True)
class Timed:
    """Decode passes whose time is known, and that time, in (bucket, bucket + step].

    A sum of ``Counts`` tells no step time where one of its windows does not (SGLang times only passes between which no
    prompt was prefilled); this leaves such windows out.
    """

    target: str
    source: Source
    bucket: float
    passes: float
    pass_seconds: float

    @property
    def step_time_seconds(self) -> float:
        """Mean time of a decode pass."""
        return self.pass_seconds / self.passes


class History(Protocol):
    """Every implementation passes one contract suite (tests/store/test_history_contract.py).

    Only busy windows are kept. Methods block; callers run them in a thread. Each may be called from any thread.
    """

    def append(self, batch: Batch) -> int:
        """Commit a batch at once; the number of windows that were new.

        Windows whose id is known are ignored, however old (a replay repeats id and end), and so are looks whose
        target, surface and time are known. A cursor replaces the one of its surface.
        """
        ...

    def known(self, ids: Collection[int], start: float, end: float) -> set[int]:
        """Those of ``ids`` that are windows which end in (start, end]."""
        ...

    def query(self, query: AcceptanceQuery) -> list[Sum]:
        """Sums per target, source, bucket and ``query.by``; buckets without windows are absent.

        ``query.where`` and ``query.source`` filter; choosing among sources is the caller's (``acceptance.sources``).
        """
        ...

    def latest(self, where: Mapping[Dimension, tuple[str, ...]], at: float, within: float) -> list[Sum]:
        """For every series and source, the sum of its windows that share the newest end in (at - within, at].

        ``Sum.key`` holds all of ``DIMENSIONS``; ``Sum.bucket`` is that newest end.
        """
        ...

    def health(self, start: float, end: float, target: str | None = None) -> list[Health]:
        """Looks in (start, end], oldest first."""
        ...

    def looked(self, start: float, end: float, step: float, target: str | None = None) -> list[Looked]:
        """Looks in (start, end], added up per target, surface and bucket; buckets without looks are absent."""
        ...

    def timed(self, start: float, end: float, step: float, target: str | None = None) -> list[Timed]:
        """Timed passes of the windows that end in (start, end], per target, source and bucket."""
        ...

    def cursors(self) -> list[Cursor]:
        """Every surface's cursor, as last written."""
        ...

    def drop_before(self, at: float) -> None:
        """Forget the periods that ended at or before ``at``, whole."""
        ...

    def close(self) -> None:
        """Flush and release; the instance is not used afterwards."""
        ...
