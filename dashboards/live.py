"""Keeps the pages live: the service tells them over the websocket that something is new, and answers those who ask.

A page holds a lease and renews it (assets/live.js), so that a page that is gone, or whose refresh interval changed, is
told nothing for long: one websocket serves all tabs of a browser, and outlives each of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from dash import Dash, Input, Output, set_props

from dashboards.pulse import Pulse
from dashboards.views import Views

ALIVE_SECONDS = 5.0
"""A page is told at least this often that the service is there: what is older is lost."""
LEASE_SECONDS = 600.0
VERSION = version("draftgauge")
"""A page of another version is loaded anew: it would not understand what it is told."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What a page asks to be told: ``every`` is its refresh interval in seconds, 0 while it is paused."""

    page: str
    number: int
    every: float

    @staticmethod
    def parse(asked: object) -> Lease | None:
        """None where a page asks for nothing that could be understood."""
        if not isinstance(asked, Mapping):
            return None
        page, number, every = asked.get("page"), asked.get("lease"), asked.get("every")
        if not isinstance(page, str) or not isinstance(number, int) or not isinstance(every, int | float):
            return None
        return Lease(page[:40], number, float(every))


class Leases:
    """The newest lease of every page that is open."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._newest)

    def take(self, lease: Lease) -> None:
        self._newest[lease.page] = lease.number

    def holds(self, lease: Lease) -> bool:
        return self._newest.get(lease.page) == lease.number

    def give_back(self, lease: Lease) -> None:
        if self.holds(lease):
            del self._newest[lease.page]


def register(app: Dash, views: Views) -> None:
    """The callbacks behind the stores ``alive`` and ``pulse``."""
    leases = Leases()

    @app.callback(Input("lease", "data"), websocket=True, persistent=True, prevent_initial_call=True)
    async def tell(asked: Mapping[str, Any] | None) -> None:
        lease = Lease.parse(asked)
        if lease is None:
            return
        leases.take(lease)
        try:
            await _tell(lease, leases, views)
        finally:
            leases.give_back(lease)

    @app.callback(Output("alive", "data"), Input("poll", "n_intervals"), prevent_initial_call=True)
    async def answer(_: int) -> dict[str, Any]:
        return _alive(views, views.pulse.mark, over_socket=False)


async def _tell(lease: Lease, leases: Leases, views: Views) -> None:
    """Until the lease ends: what is newest, at most once in the refresh interval, and that we are here."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + LEASE_SECONDS
    told, due = None, loop.time()
    while lease.every and leases.holds(lease) and loop.time() < ends:
        if loop.time() >= due:
            told, due = views.pulse.mark, loop.time() + lease.every
        set_props("alive", {"data": _alive(views, told, over_socket=True)})
        await _until_news(views.pulse, told, due)


async def _until_news(pulse: Pulse, told: str | None, due: float) -> None:
    loop = asyncio.get_running_loop()
    latest = loop.time() + ALIVE_SECONDS
    await pulse.beyond(told, ALIVE_SECONDS)
    await asyncio.sleep(max(0.0, min(due, latest) - loop.time()))


def _alive(views: Views, mark: str | None, *, over_socket: bool) -> dict[str, Any]:
    return {"at": round(views.clock(), 1), "mark": mark, "socket": over_socket, "version": VERSION}
