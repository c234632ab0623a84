"""Tailing: every log of a target followed by a task of its own, so that no log delays another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from glob import glob

from collectors.follower import Follower, log_surface
from collectors.logfile import is_rotated
from collectors.reading import State
from collectors.sink import Sink
from collectors.target import Target

POLL_SECONDS = 0.5
LOOK_FOR_FILES_SECONDS = 5.0
REST_AFTER_SECONDS = 600.0
"""A log that tells nothing for so long is closed between looks: dated logs pile up, and files that may be open not."""


class Tailer:
    """Follows the logs of targets until cancelled. ``cursors``: (target, surface) -> committed state of a follower."""

    def __init__(
        self, sink: Sink, clock: Callable[[], float], *, cursors: Mapping[tuple[str, str], State] | None = None
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._cursors = dict(cursors or {})

    async def run(self, target: Target) -> None:
        """Follow what ``target.logs`` (paths or globs) match now and later."""
        async with asyncio.TaskGroup() as files:
            following: set[str] = set()
            while True:
                for path in await asyncio.to_thread(matching, target.logs):
                    if path not in following:
                        following.add(path)
                        files.create_task(self._follow(self.follower(target, path)))
                await asyncio.sleep(LOOK_FOR_FILES_SECONDS)

    def follower(self, target: Target, path: str) -> Follower:
        """One that reads a log on from its committed cursor."""
        state = self._cursors.get((target.name, log_surface(path)), {})
        return Follower(target, path, self._sink, self._clock, state)

    async def _follow(self, log: Follower) -> None:
        silent = 0.0
        try:
            while True:
                if await log.advance():
                    silent = 0.0
                    continue
                if silent >= REST_AFTER_SECONDS:
                    log.rest()
                wait = POLL_SECONDS if silent < REST_AFTER_SECONDS else LOOK_FOR_FILES_SECONDS
                await asyncio.sleep(wait)
                silent += wait
        finally:
            log.rest()


def matching(patterns: tuple[str, ...]) -> list[str]:
    """The paths that patterns name. A rotated log that matches too is read as the past of the one it was."""
    paths = {path for pattern in patterns for path in (glob(pattern) or [pattern])}  # noqa: PTH207
    return sorted(path for path in paths if not any(is_rotated(path, other) for other in paths))
