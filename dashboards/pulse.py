"""The pulse of the service as the pages feel it: it beats when something new was committed or evaluated."""

from __future__ import annotations

import asyncio
from uuid import uuid4

GATHERED_SECONDS = 1.0
"""Beats within this time are one: a busy fleet commits four times a second, and nobody reads that fast."""


class Pulse:
    """Counts what is new; one loop's own. ``mark`` names the newest beat; no two processes have one in common."""

    def __init__(self) -> None:
        self._process = uuid4().hex[:8]
        self._count = 0
        self._last = float("-inf")
        self._due: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    @property
    def mark(self) -> str:
        return f"{self._process}.{self._count}"

    def beat(self) -> None:
        """Something is new."""
        if self._due is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._last + GATHERED_SECONDS - loop.time()
        if wait <= 0:
            self._tell()
        else:
            self._due = loop.call_later(wait, self._tell)

    async def beyond(self, mark: str | None, within: float) -> None:
        """Return once ``mark`` is not the newest any more, or after ``within`` seconds."""
        if mark != self.mark:
            return
        try:
            await asyncio.wait_for(self._changed.wait(), within)
        except TimeoutError:
            return

    def _tell(self) -> None:
        self._due = None
        self._last = asyncio.get_running_loop().time()
        self._count += 1
        waiting, self._changed = self._changed, asyncio.Event()
        waiting.set()
