"""The way of posted records into history: each once, and told only when it is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from app.records.admission import Admission
from app.writer import Writer
from collectors.posted import SURFACE, Posted, Refusal, Surroundings, read_posted
from collectors.reading import Reading
from collectors.sink import Read
from store.history import History

DAY_SECONDS = 86_400.0
AHEAD_SECONDS = 300.0
"""By how much clocks of others may be ahead."""
MOST_AT_ONCE = 16
"""Bodies under way."""


class Full(Exception):
    """There is no room: later there will be."""


class NotStored(Exception):
    """The records cannot be stored, and could not be later."""


class IntakeObserver(Protocol):
    """Told about posted records: our own metrics."""

    def records_taken(self, accepted: int, duplicates: int, rejected: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the records of a body: all of the accepted and the duplicates are on disk."""

    accepted: int
    duplicates: int
    rejected: tuple[Refusal, ...]


class Intake:
    """``run`` runs what blocks in a thread, ``clock`` gives unix seconds. For one loop."""

    def __init__(
        self,
        history: History,
        writer: Writer,
        admission: Admission,
        observer: IntakeObserver,
        clock: Callable[[], float],
        run: Callable[..., Awaitable[Any]],
    ) -> None:
        self._history = history
        self._writer = writer
        self._admission = admission
        self._observer = observer
        self._clock = clock
        self._run = run
        self._claimed: dict[int, asyncio.Future[bool]] = {}
        self._bodies = 0

    async def take(self, body: bytes) -> Taken:
        """Returns when the records are committed. Raises ``Full``, ``NotStored`` and ``Unreadable``.

        After ``Full`` some of the records may have been taken: sent again, they are duplicates.
        """
        if self._bodies >= MOST_AT_ONCE:
            raise Full
        self._bodies += 1
        try:
            now = self._clock()
            told: list[Posted | Refusal] = await self._run(self._read, body, now)
            taken = await self._taken(told, now)
        finally:
            self._bodies -= 1
        self._observer.records_taken(taken.accepted, taken.duplicates, len(taken.rejected))
        return taken

    def _read(self, body: bytes, now: float) -> list[Posted | Refusal]:
        admission = self._admission
        around = Surroundings(admission.subject, admission.category, admission.prompts)
        return list(read_posted(body, around, now))

    async def _taken(self, told: list[Posted | Refusal], now: float) -> Taken:
        records = [each for each in told if isinstance(each, Posted)]
        # A record is claimed before it is looked for, so that of two that come at once one waits for the other.
        done = asyncio.get_running_loop().create_future()
        others = {future for record in records if (future := self._claimed.get(record.id)) is not None}
        mine = {record.id: record for record in reversed(records) if record.id not in self._claimed}
        self._claimed.update(dict.fromkeys(mine, done))
        stored = False
        try:
            known = await self._known(mine, now)
            new = [record for identity, record in mine.items() if identity not in known]
            untimely = [Refusal(record.line, why) for record in new if (why := _untimely(record, now))]
            refused = {refusal.line for refusal in untimely}
            accepted = [record for record in new if record.line not in refused]
            await self._store(accepted, now)
            stored = True
        finally:
            for identity in mine:
                del self._claimed[identity]
            done.set_result(stored)
        if not all([await asyncio.shield(other) for other in others]):
            raise Full
        rejected = sorted([each for each in told if isinstance(each, Refusal)] + untimely, key=lambda each: each.line)
        return Taken(len(accepted), len(told) - len(accepted) - len(rejected), tuple(rejected))

    async def _known(self, ids: Iterable[int], now: float) -> set[int]:
        """Those that are in history: what came within a day ended within two."""
        listed = list(ids)
        known: set[int] = (
            await self._run(self._history.known, listed, now - 2 * DAY_SECONDS, now + AHEAD_SECONDS)
            if listed
            else set()
        )
        return known

    async def _store(self, records: list[Posted], now: float) -> None:
        by_target: dict[str, list[Posted]] = {}
        for record in sorted(records, key=lambda record: record.line):
            by_target.setdefault(record.target, []).append(record)
        waiting: list[asyncio.Future[bool]] = []
        for target, members in by_target.items():
            windows = tuple(window for member in members for window in member.windows)
            committed = self._writer.submit(Read(target, SURFACE, now, {}, Reading(windows=windows)))
            if committed is None:
                await asyncio.gather(*waiting)
                raise Full
            waiting.append(committed)
        if not all(await asyncio.gather(*waiting)):
            raise NotStored


def _untimely(record: Posted, now: float) -> str | None:
    end = record.windows[0].end
    if end > now + AHEAD_SECONDS:
        return f"ended more than {AHEAD_SECONDS:g} seconds from now"
    return "ended more than a day ago" if end <= now - DAY_SECONDS else None
