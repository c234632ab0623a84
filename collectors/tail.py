"""Tailing: every log of a target followed, read in a thread, and handed on in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from glob import glob
from pathlib import Path

import structlog

from acceptance.facts import Subject
from acceptance.health import Health
from collectors.engines import EngineReaders, engine_of_log, engines
from collectors.logfile import LogFile, Piece, Position
from collectors.reading import Reading, Rejected, State, Text
from collectors.sink import Read, Sink
from collectors.target import Target

log = structlog.get_logger(__name__)

POLL_SECONDS = 0.5
LOOK_FOR_FILES_SECONDS = 5.0


def log_surface(path: str) -> str:
    """The surface under which a log file's cursor and health are kept."""
    return f"log:{path}"


class Tailer:
    """Follows the logs of targets until cancelled.

    ``cursors``: (target, surface) -> committed state. A log's state is its position with the reader's own state.
    """

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
                for path in await asyncio.to_thread(_matching, target.logs):
                    if path not in following:
                        following.add(path)
                        files.create_task(self._follow(target, path))
                await asyncio.sleep(LOOK_FOR_FILES_SECONDS)

    async def _follow(self, target: Target, path: str) -> None:
        state = self._cursors.get((target.name, log_surface(path)), {})
        with closing(LogFile(Path(path), Position.of(state))) as file:
            await self._follow_file(target, path, file, state)

    async def _follow_file(self, target: Target, path: str, file: LogFile, state: State) -> None:
        surface = log_surface(path)
        reader_state: State = state.get("reader", {})
        unreadable = False
        while True:
            try:
                piece = await asyncio.to_thread(file.read)
            except OSError as problem:
                if not unreadable:
                    await self._sink.put(self._unreadable(target, surface, state, problem))
                unreadable = True
                await asyncio.sleep(POLL_SECONDS)
                continue
            unreadable = False
            if piece is None:
                await asyncio.sleep(POLL_SECONDS)
                continue
            try:
                reader_state, reading = await self._read(target, reader_state, piece)
            except Exception:
                log.exception("log lines could not be read by our own code", target=target.name, path=path)
                reading = Reading(rejected=(Rejected(surface, "reader failed"),))
            at = self._clock()
            reading = replace(reading, health=tuple(replace(look, surface=surface) for look in reading.health))
            state = {"position": asdict(piece.after), "reader": reader_state}
            await self._sink.put(Read(target.name, surface, at, state, reading))

    async def _read(self, target: Target, state: State, piece: Piece) -> tuple[State, Reading]:
        if piece.torn:
            return state, Reading(rejected=(Rejected(f"byte {piece.offset}", "a line without an end"),))
        subject = self._sink.subject(target)
        while (engine := _engine(subject, piece.body)) is None:
            # The metrics page will tell; until then nothing is passed over.
            await asyncio.sleep(POLL_SECONDS)
            subject = self._sink.subject(target)
        return await asyncio.to_thread(engine.logs.feed, subject, state, Text(piece.body, self._clock(), piece.offset))

    def _unreadable(self, target: Target, surface: str, state: State, problem: OSError) -> Read:
        at = self._clock()
        error = f"{type(problem).__name__}: {problem.strerror}"
        log.warning("log cannot be read", target=target.name, surface=surface, error=error)
        return Read(target.name, surface, at, state, Reading(health=(Health(target.name, surface, at, False, error),)))


def _engine(subject: Subject, body: bytes) -> EngineReaders | None:
    name = subject.text("engine") or engine_of_log(body)
    return None if name is None else engines().get(name)


def _matching(patterns: tuple[str, ...]) -> list[str]:
    return sorted({path for pattern in patterns for path in (glob(pattern) or [pattern])})  # noqa: PTH207
