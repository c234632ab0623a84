"""Reads in threads: history blocks, and the loop must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import ParamSpec, Protocol, TypeVar

from app.api.problems import Problem

MOST_WAITING = 64
"""Reads under way or waiting. More would only wait longer than anybody does."""

P = ParamSpec("P")
T = TypeVar("T")


class ReadObserver(Protocol):
    """Told about reads that were turned away: our own metrics."""

    def read_refused(self) -> None: ...


class ReadPool:
    """Runs blocking reads on ``executor``, whose threads are the limit of how many run at once. One loop's own."""

    def __init__(self, executor: Executor, observer: ReadObserver) -> None:
        self._executor = executor
        self._observer = observer
        self._waiting = 0

    async def run(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``read`` returns. Raises ``Problem`` 503 when too many are waiting already."""
        if self._waiting >= MOST_WAITING:
            self._observer.read_refused()
            raise Problem(503, f"{MOST_WAITING} reads are waiting already", headers={"retry-after": "1"})
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: read(*args, **kwargs))
        finally:
            self._waiting -= 1
