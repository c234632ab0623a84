"""Recent history for evaluations that come every few seconds: only what may have changed is read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acceptance.health import Health
from acceptance.query import AcceptanceQuery, Sum
from alerts.evidence import added_up
from store.history import History

SETTLED_SECONDS = 90.0
"""Windows are committed within seconds of their end. What comes later (a log that is caught up with) is seen when its
slice is read again."""

SLICE_SECONDS = 60.0
"""How much of the settled past is read again at every call, in turn, so that every call costs about the same."""

FINE_SECONDS = 300.0
"""What is older than this is held in one bucket a slice: verdicts turn on the newest windows."""


class Recent:
    """What ``alerts.evidence.gather`` asks of a history, with the buckets of the call before kept.

    For a fleet of 1,000 a call costs a fifth of reading the whole span. Not for several threads at once.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._buckets: dict[float, list[Sum]] = {}
        self._asked: AcceptanceQuery | None = None
        self._turn = 0.0
        self._added: dict[tuple[int, ...], tuple[Sequence[Sum], Sum]] = {}
        self._added_before = self._added

    def query(self, query: AcceptanceQuery) -> list[Sum]:
        """As ``History.query``, but old buckets may be wider, and the oldest begins up to a slice late.

        Queries have a ``step`` that divides ``SLICE_SECONDS``, and a start that is a multiple of it.
        """
        before, self._asked = self._asked, query
        self._added_before, self._added = self._added, {}
        first = -(-query.start // SLICE_SECONDS) * SLICE_SECONDS
        settled = (query.end - SETTLED_SECONDS) // SLICE_SECONDS * SLICE_SECONDS
        if before is None or not _continues(before, query):
            self._buckets.clear()
            self._turn = first
            while self._turn < settled:
                self._read_slice(query, settled)
            self._read(replace(query, start=max(first, settled)))
        else:
            self._read(replace(query, start=max(first, min(settled, before.end // SLICE_SECONDS * SLICE_SECONDS))))
            self._turn = self._turn if first <= self._turn < settled else first
            self._read_slice(query, settled)
        for bucket in [bucket for bucket in self._buckets if bucket < first]:
            del self._buckets[bucket]
        return [item for _, items in sorted(self._buckets.items()) for item in items]

    def health(self, start: float, end: float, target: str | None = None) -> list[Health]:
        """As ``History.health``."""
        return self._history.health(start, end, target)

    def add_up(self, items: Sequence[Sum]) -> Sum:
        """As ``alerts.evidence.added_up``; what was added up since the query before the last one is remembered.

        Items are known by their identity: they are kept as long as the sum is.
        """
        key = tuple(map(id, items))
        found = self._added.get(key) or self._added_before.get(key) or (items, added_up(items))
        self._added[key] = found
        return found[1]

    def _read_slice(self, query: AcceptanceQuery, settled: float) -> None:
        if self._turn < settled:
            end = self._turn + SLICE_SECONDS
            step = SLICE_SECONDS if end <= query.end - FINE_SECONDS else query.step
            self._read(replace(query, start=self._turn, end=end, step=step))
            self._turn = end

    def _read(self, query: AcceptanceQuery) -> None:
        for bucket in [bucket for bucket in self._buckets if query.start <= bucket < query.end]:
            del self._buckets[bucket]
        for item in self._history.query(query):
            self._buckets.setdefault(item.bucket, []).append(item)


def _continues(before: AcceptanceQuery, query: AcceptanceQuery) -> bool:
    """Whether the same is asked a little later."""
    same = replace(before, start=query.start, end=query.end) == query
    return same and before.start <= query.start < before.end <= query.end
