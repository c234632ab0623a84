"""History in memory, for ``inspect`` and for tests. Light to import: nothing beyond the standard library."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from threading import Lock

from acceptance.counts import total
from acceptance.health import Health
from acceptance.query import AcceptanceQuery, Sum, bucket_start
from acceptance.series import Dimension, Series
from acceptance.window import Source, Window
from store.history import PERIOD_SECONDS, Batch, Cursor, Looked, Timed, period_start

Where = Mapping[Dimension, tuple[str, ...]]


class MemoryHistory:
    """``store.history.History`` in plain Python; gone with the process."""

    def __init__(self, *, period_seconds: int = PERIOD_SECONDS) -> None:
        self._period_seconds = period_seconds
        self._lock = Lock()
        self._known: set[int] = set()
        self._windows: list[Window] = []
        self._sorted = True
        self._health: dict[tuple[str, str, float], Health] = {}
        self._cursors: dict[tuple[str, str], Cursor] = {}

    def append(self, batch: Batch) -> int:
        """As ``History.append``."""
        for time in (*(window.end for window in batch.windows), *(look.at for look in batch.health)):
            period_start(time, self._period_seconds)
        with self._lock:
            before = len(self._windows)
            for window in batch.windows:
                if window.busy and window.id not in self._known:
                    self._known.add(window.id)
                    self._windows.append(window)
            for look in batch.health:
                self._health.setdefault((look.target, look.surface, look.at), look)
            for cursor in batch.cursors:
                self._cursors[cursor.target, cursor.surface] = cursor
            new = len(self._windows) - before
            self._sorted = self._sorted and not new
            return new

    def known(self, ids: Collection[int], start: float, end: float) -> set[int]:
        """As ``History.known``."""
        return {window.id for window in self._between(start, end)} & set(ids)

    def query(self, query: AcceptanceQuery) -> list[Sum]:
        """As ``History.query``."""
        groups: dict[tuple[str, Source, float, tuple[str | None, ...]], list[Window]] = defaultdict(list)
        for window in self._between(query.start - query.offset, query.end - query.offset):
            if query.source in (None, window.source) and _matches(window.series, query.where):
                key = tuple(getattr(window.series, name) for name in query.by)
                groups[window.series.target, window.source, bucket_start(query, window.end), key].append(window)
        return [_sum(*place, windows) for place, windows in groups.items()]

    def latest(self, where: Where, at: float, within: float) -> list[Sum]:
        """As ``History.latest``."""
        newest: dict[tuple[Series, Source], list[Window]] = {}
        for window in self._between(at - within, at):
            if _matches(window.series, where):
                held = newest.setdefault((window.series, window.source), [])
                if held and held[0].end < window.end:
                    held.clear()
                held.append(window)
        return [
            _sum(series.target, source, windows[0].end, series.key(), windows)
            for (series, source), windows in newest.items()
        ]

    def health(self, start: float, end: float, target: str | None = None) -> list[Health]:
        """As ``History.health``."""
        with self._lock:
            looks = [look for look in self._health.values() if start < look.at <= end and target in (None, look.target)]
        return sorted(looks, key=lambda look: (look.at, look.target, look.surface))

    def looked(self, start: float, end: float, step: float, target: str | None = None) -> list[Looked]:
        """As ``History.looked``."""
        grid = AcceptanceQuery(start=start, end=end, step=step)
        groups: dict[tuple[str, str, float], list[Health]] = defaultdict(list)
        for look in self.health(start, end, target):
            groups[look.target, look.surface, bucket_start(grid, look.at)].append(look)
        return [_looked(*place, looks) for place, looks in groups.items()]

    def timed(self, start: float, end: float, step: float, target: str | None = None) -> list[Timed]:
        """As ``History.timed``."""
        grid = AcceptanceQuery(start=start, end=end, step=step)
        groups: dict[tuple[str, Source, float], list[tuple[float, float]]] = defaultdict(list)
        for window in self._between(start, end):
            passes, seconds = window.counts.passes, window.counts.pass_seconds
            if passes and seconds is not None and target in (None, window.series.target):
                groups[window.series.target, window.source, bucket_start(grid, window.end)].append((passes, seconds))
        return [
            Timed(*place, sum(passes for passes, _ in told), sum(seconds for _, seconds in told))
            for place, told in groups.items()
        ]

    def cursors(self) -> list[Cursor]:
        """As ``History.cursors``."""
        with self._lock:
            return list(self._cursors.values())

    def drop_before(self, at: float) -> None:
        """As ``History.drop_before``."""
        oldest_kept = period_start(at, self._period_seconds)
        with self._lock:
            self._windows = [window for window in self._windows if window.end >= oldest_kept]
            self._known = {window.id for window in self._windows}
            self._health = {place: look for place, look in self._health.items() if look.at >= oldest_kept}

    def close(self) -> None:
        """Nothing to release."""

    def _between(self, start: float, end: float) -> list[Window]:
        """Windows that end in (start, end], in the order of their ends."""
        with self._lock:
            if not self._sorted:
                self._windows.sort(key=_end)
                self._sorted = True
            return self._windows[
                bisect_right(self._windows, start, key=_end) : bisect_right(self._windows, end, key=_end)
            ]


def _end(window: Window) -> float:
    return window.end


def _matches(series: Series, where: Where) -> bool:
    """A dimension that the source cannot tell matches no value."""
    return all(getattr(series, name) in values for name, values in where.items())


def _sum(target: str, source: Source, bucket: float, key: tuple[str | None, ...], windows: Iterable[Window]) -> Sum:
    windows = list(windows)
    return Sum(
        target=target,
        source=source,
        bucket=bucket,
        key=key,
        counts=total(window.counts for window in windows),
        windows=len(windows),
        exact=all(window.exact for window in windows),
        first=min(window.start for window in windows),
        last=max(window.end for window in windows),
    )


def _looked(target: str, surface: str, bucket: float, looks: list[Health]) -> Looked:
    running = [look.running for look in looks if look.running is not None]
    tokens = [look.decode_tokens for look in looks if look.decode_tokens is not None]
    speculating = [look.speculating for look in looks if look.speculating is not None]
    return Looked(
        target=target,
        surface=surface,
        bucket=bucket,
        looks=len(looks),
        up=sum(look.up for look in looks),
        running=sum(running) / len(running) if running else None,
        decode_tokens=sum(tokens) if tokens else None,
        speculating=any(speculating) if speculating else None,
        first=looks[0].at,
        last=looks[-1].at,
    )
