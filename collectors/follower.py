"""One log of a target, read on piece by piece: whole lines through the engine's reader, into the sink."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import structlog

from acceptance.facts import Fact
from acceptance.health import Health
from collectors.engines import EngineReaders, engine_of_log, engines
from collectors.logfile import LogFile, Piece, Position
from collectors.reading import Reading, Rejected, State, Text
from collectors.sink import Read, Sink
from collectors.target import Target

log = structlog.get_logger(__name__)

HELD_BYTES = 16 * 1024 * 1024
"""So much of a log is kept until somebody tells whose it is."""

LOG = "log"


def log_surface(path: str) -> str:
    """The surface under which a log file's cursor and health are kept."""
    return f"{LOG}:{path}"


class Follower:
    """Reads on where ``state`` says, the committed cursor of this log: its position, its engine, its reader's state.

    Not shared between tasks. Which engine's log it is, the metrics page tells, or else the log's own lines; until then
    nothing is passed over.
    """

    def __init__(self, target: Target, path: str, sink: Sink, clock: Callable[[], float], state: State) -> None:
        self.surface = log_surface(path)
        self._target = target
        self._sink = sink
        self._clock = clock
        self._file = LogFile(Path(path), Position.of(state))
        self._state = state
        self._engine: str | None = state.get("engine")
        self._held: deque[Piece] = deque()
        self._unreadable = False

    async def advance(self) -> bool:
        """Read the next lines and hand them on, waiting for room; False where there is nothing new."""
        try:
            piece = await asyncio.to_thread(self._file.read)
        except OSError as problem:
            await self._tell_unreadable(problem)
            return False
        if self._unreadable:
            self._unreadable = False
            await self._put(self._state, Reading(health=(self._look(up=True),)))
        if piece is not None:
            self._held.append(piece)
        engine = self._whose(piece) if self._held else None
        if engine is None:
            self._hold_no_more_than(HELD_BYTES)
            return piece is not None
        while self._held:
            await self._hand_on(engine, self._held.popleft())
        return True

    def rest(self) -> None:
        """Let go of the file, which is found again."""
        self._file.close()

    def _whose(self, piece: Piece | None) -> EngineReaders | None:
        known = self._sink.subject(self._target).text("engine")
        if known is not None:
            self._engine = known
        elif self._engine is None and piece is not None:
            self._engine = engine_of_log(piece.body)
        return None if self._engine is None else engines().get(self._engine)

    def _hold_no_more_than(self, limit: int) -> None:
        """The oldest lines of nobody's log are let go."""
        held = sum(len(piece.body) for piece in self._held)
        while held > limit:
            held -= len(self._held.popleft().body)

    async def _hand_on(self, engine: EngineReaders, piece: Piece) -> None:
        reader_state: State = self._state.get("reader", {})
        subject = self._sink.subject(self._target)
        if piece.torn:
            reading = Reading(rejected=(Rejected(f"byte {piece.offset}", "a line without an end"),))
        else:
            text = Text(piece.body, self._clock(), piece.offset)
            try:
                reader_state, reading = await asyncio.to_thread(engine.logs.feed, subject, reader_state, text)
            except Exception:
                log.exception("log lines could not be read by our own code", target=self._target.name, log=self.surface)
                reading = Reading(rejected=(Rejected(f"byte {piece.offset}", "the reader failed"),))
        looks = tuple(replace(look, surface=self.surface) for look in reading.health)
        told = () if subject.text("engine") else (Fact(self._target.name, "engine", engine.name, LOG, self._clock()),)
        state = {"position": asdict(piece.after), "engine": engine.name, "reader": reader_state}
        await self._put(state, replace(reading, health=looks, facts=(*told, *reading.facts)))

    async def _put(self, state: State, reading: Reading) -> None:
        await self._sink.put(Read(self._target.name, self.surface, self._clock(), state, reading))
        self._state = state

    async def _tell_unreadable(self, problem: OSError) -> None:
        """Once, until it can be read again."""
        if not self._unreadable:
            error = f"{type(problem).__name__}: {problem.strerror}"
            log.warning("log cannot be read", target=self._target.name, log=self.surface, error=error)
            await self._put(self._state, Reading(health=(self._look(up=False, error=error),)))
        self._unreadable = True

    def _look(self, *, up: bool, error: str | None = None) -> Health:
        return Health(self._target.name, self.surface, self._clock(), up, error)
