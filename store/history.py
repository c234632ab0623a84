"""History: windows, looks at targets, and the cursors that say how far their surfaces were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from acceptance.health import Health
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import Dimension
from acceptance.window import Window

PERIOD_SECONDS = 86_400
"""A window belongs to the period in which it ends; periods begin at multiples of this, and are forgotten whole."""


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

    def cursors(self) -> list[Cursor]:
        """Every surface's cursor, as last written."""
        ...

    def drop_before(self, at: float) -> None:
        """Forget the periods that ended at or before ``at``, whole."""
        ...

    def close(self) -> None:
        """Flush and release; the instance is not used afterwards."""
        ...
