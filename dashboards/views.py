"""What pages read: the service's views, computed in threads and shared by everybody who looks at the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, tzinfo
from typing import Any, Protocol, TypeVar

from acceptance.query import AcceptanceQuery
from dashboards.pulse import Pulse
from service.fleet import FleetView
from service.target import TargetPage
from service.trends import TrendsView

Result = TypeVar("Result")
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]

FRESH_SECONDS = 1.0
"""A view this young is shown again: ten open pages cost as much as one."""
MOST_KEPT = 64


class FleetReads(Protocol):
    """``service.fleet``."""

    def view(self, now: float, span_seconds: float) -> FleetView: ...


class TargetReads(Protocol):
    """``service.target``."""

    def page(self, name: str, now: float, zone: tzinfo) -> TargetPage | None: ...


class TrendsReads(Protocol):
    """``service.trends``."""

    def view(self, query: AcceptanceQuery, now: float, zone: tzinfo = UTC) -> TrendsView: ...


class Views:
    """Views for pages, on the loop. ``in_thread`` runs a blocking read; ``clock`` gives unix seconds.

    Equal questions asked within ``FRESH_SECONDS`` get one answer, also while it is still being computed, unless
    ``pulse`` told of something new in between. Whoever commits or evaluates lets it beat.
    """

    def __init__(
        self,
        fleet: FleetReads,
        trends: TrendsReads,
        target: TargetReads,
        in_thread: InThread,
        clock: Callable[[], float],
    ) -> None:
        self._fleet = fleet
        self._trends = trends
        self._target = target
        self._in_thread = in_thread
        self._kept: dict[object, tuple[float, asyncio.Future[Any]]] = {}
        self.clock = clock
        self.pulse = Pulse()

    async def fleet(self, span_seconds: float) -> FleetView:
        """The fleet now, with heartbeats over the last ``span_seconds``."""
        key = ("fleet", span_seconds, self.pulse.mark)
        return await self._shared(key, lambda: self._fleet.view(self.clock(), span_seconds))

    async def target(self, name: str, zone: tzinfo = UTC) -> TargetPage | None:
        """A target now, None where there is none of this name; ``zone`` is that of the times in its words."""
        key = ("target", name, zone, self.pulse.mark)
        return await self._shared(key, lambda: self._target.page(name, self.clock(), zone))

    async def trends(self, query: AcceptanceQuery, zone: tzinfo = UTC) -> TrendsView:
        """Acceptance over the range of ``query``; ``zone`` is that of the times in its words."""
        where = tuple(sorted(query.where.items()))
        key = ("trends", round(query.start), round(query.end), query.by, where, zone, self.pulse.mark)
        return await self._shared(key, lambda: self._trends.view(query, self.clock(), zone))

    async def _shared(self, key: object, read: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        kept = self._kept.get(key)
        if kept is None or kept[0] < loop.time() or (kept[1].done() and kept[1].exception() is not None):
            self._forget(loop.time())
            kept = loop.time() + FRESH_SECONDS, asyncio.ensure_future(self._in_thread(read))
            self._kept[key] = kept
        # A page that goes away must not take the answer from the others who wait for it.
        return await asyncio.shield(kept[1])

    def _forget(self, now: float) -> None:
        self._kept = {key: kept for key, kept in list(self._kept.items())[-MOST_KEPT:] if kept[0] >= now}
