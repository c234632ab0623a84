"""Scraping: one task a target, so that a slow, hanging or dead one delays nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol
from zlib import crc32

import aiohttp
import structlog

from acceptance.facts import Subject
from acceptance.health import Health
from collectors.deltas import set_back
from collectors.engines import EngineReaders, engine_of, engines
from collectors.reading import Reader, Reading, State, Text
from collectors.sink import Read, Sink
from collectors.target import Target

log = structlog.get_logger(__name__)

PAGE_LIMIT_BYTES = 64 * 1024 * 1024
LONG_PAGE_BYTES = 1024 * 1024
"""Several times what an engine's page has: of 10 MB of request categories the reader takes seconds."""
SLOW_SECONDS = 0.1
"""SGLang renders its page on the loop that serves requests: a page this slow costs its users, so it is asked less."""
MOST_BACK_OFF = 4
FIRST_WITHIN_SECONDS = 1.0
DOCUMENT_INTERVAL_SECONDS = 60.0
METRICS = "metrics"
_OK, _NOT_FOUND = 200, 404


class ScrapeObserver(Protocol):
    """Told about every scrape: our own metrics."""

    def scraped(self, target: str, outcome: str, seconds: float, late: bool) -> None: ...


class Unreadable(Exception):
    """An answer that is no page: the status, the size or the content."""


_UNANSWERED = (aiohttp.ClientError, Unreadable, TimeoutError)


@dataclass(slots=True)
class _Progress:
    """How far a target's surfaces were read, and what was learned about how to ask it. ``up`` is None at first."""

    state: State
    engine: EngineReaders | None = None
    up: bool | None = None
    document_states: dict[str, State] = field(default_factory=dict[str, State])
    absent_documents: set[str] = field(default_factory=set[str])
    documents_at: float = float("-inf")


class Scraper:
    """Scrapes targets until cancelled.

    ``session`` is used as it is, without what a general client puts around it: that took longer than reading the pages.
    ``clock`` gives unix seconds, the sample time of a page. ``cursors`` are the committed reader states of ``metrics``
    surfaces: a difference after a restart covers the time nobody was looking.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        sink: Sink,
        clock: Callable[[], float],
        observer: ScrapeObserver,
        *,
        timeout_seconds: float = 10.0,
        cursors: Mapping[str, State] | None = None,
    ) -> None:
        self._session = session
        self._sink = sink
        self._clock = clock
        self._observer = observer
        self._timeout = timeout_seconds
        self._progress = {name: _Progress(state) for name, state in (cursors or {}).items()}

    async def run(self, target: Target) -> None:
        """Scrape ``target`` soon, and then at its interval, at a phase of its own so that a fleet's scrapes spread."""
        loop = asyncio.get_running_loop()
        phase, interval = crc32(target.name.encode()) / 2**32, target.scrape_interval_seconds
        began = loop.time()
        await asyncio.sleep(phase * min(FIRST_WITHIN_SECONDS, interval))
        await self._scrape_safely(target, late=False)
        due = began + (phase + 0.5) * interval
        while True:
            # A look that took longer than the wait is followed by a whole one.
            due = due if due > loop.time() else loop.time() + interval
            await asyncio.sleep(due - loop.time())
            late = loop.time() - due > interval / 2
            seconds = await self._scrape_safely(target, late)
            due += interval * min(MOST_BACK_OFF, max(1, ceil(seconds / SLOW_SECONDS)))

    async def _scrape_safely(self, target: Target, late: bool) -> float:
        try:
            return await self.scrape(target, late=late)
        except Exception:
            log.exception("scrape failed in our own code", target=target.name)
            self._observer.scraped(target.name, "failed", 0.0, late)
            return 0.0

    async def scrape(self, target: Target, *, late: bool = False) -> float:
        """One look at every surface that is due; the seconds the metrics page took."""
        progress = self._progress.setdefault(target.name, _Progress({}))
        at, loop = self._clock(), asyncio.get_running_loop()
        started, seconds = loop.time(), None
        if at < progress.state.get("at", at):
            log.warning("the clock was set back", target=target.name, seconds=progress.state["at"] - at)
            progress.state = set_back(progress.state, at - target.scrape_interval_seconds)
        try:
            body = await self._get(target, "/metrics")
            seconds = loop.time() - started
            if body is None:
                raise Unreadable("/metrics answered 404: start SGLang with --enable-metrics, or check the URL")
            await self._learn(target, progress, body, at)
            state, reading = await self._read(target, progress, Text(body, at))
            error = None
        except _UNANSWERED as problem:
            error = self._reason(problem)
            state, reading = progress.state, Reading()
        seconds = loop.time() - started if seconds is None else seconds
        self._tell_change(target, progress, error)
        look = Health(target.name, METRICS, at, up=error is None, error=error, seconds=seconds)
        reading = Reading(reading.windows, reading.facts, reading.hits, _told(reading.health, look), reading.rejected)
        if self._sink.offer(Read(target.name, METRICS, at, state, reading)):
            progress.state = state
        self._observer.scraped(target.name, "ok" if error is None else "error", seconds, late)
        if error is None and at - progress.documents_at >= DOCUMENT_INTERVAL_SECONDS:
            await self._documents(target, progress, at)
        return seconds

    def _tell_change(self, target: Target, progress: _Progress, error: str | None) -> None:
        was_up, progress.up = progress.up, error is None
        if error is not None and was_up is not False:
            log.warning("target does not answer", target=target.name, error=error)
        elif error is None and not was_up:
            log.info("target answers", target=target.name, engine=progress.engine and progress.engine.name)

    async def _learn(self, target: Target, progress: _Progress, page: bytes, at: float) -> None:
        """Find out which engine answers, and what it says of itself where it did not answer before."""
        name = engine_of(page, progress.engine)
        if name is None:
            raise Unreadable("no sglang: or vllm: families on the page")
        engine = engines()[name]
        if not progress.up or progress.engine is not engine:
            progress.engine = engine
            progress.absent_documents.clear()
            await self._documents(target, progress, at)

    async def _documents(self, target: Target, progress: _Progress, at: float) -> None:
        """Read what the engine tells about itself. A 404 is normal and is not asked again until it restarts."""
        assert progress.engine is not None
        progress.documents_at = at
        for path, reader in progress.engine.documents.items():
            if path in progress.absent_documents:
                continue
            try:
                body = await self._get(target, path)
            except _UNANSWERED as problem:
                log.info("document not read", target=target.name, path=path, error=self._reason(problem))
                continue
            if body is None:
                progress.absent_documents.add(path)
                continue
            self._keep(target, progress, reader, path, Text(body, at))

    def _keep(self, target: Target, progress: _Progress, reader: Reader, path: str, text: Text) -> None:
        before = progress.document_states.get(path, {})
        state, reading = reader.feed(self._sink.subject(target), before, text)
        if self._sink.offer(Read(target.name, reader.surface, text.at, state, reading)):
            progress.document_states[path] = state

    async def _read(self, target: Target, progress: _Progress, text: Text) -> tuple[State, Reading]:
        """Read the page. Where it shows a new process, first learn what that process says of itself."""
        assert progress.engine is not None
        reader = progress.engine.metrics
        state, reading = await _fed(reader, self._sink.subject(target), progress.state, text)
        if progress.state and state.get("incarnation") != progress.state.get("incarnation"):
            progress.absent_documents.clear()
            await self._documents(target, progress, text.at)
            return await _fed(reader, self._sink.subject(target), progress.state, text)
        return state, reading

    def _reason(self, problem: Exception) -> str:
        """For people, on one line."""
        if isinstance(problem, TimeoutError):
            return f"TimeoutError: no whole answer within {self._timeout:g} s"
        return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]

    async def _get(self, target: Target, path: str) -> bytes | None:
        """The body; None for 404. Raises what is in ``_UNANSWERED``."""
        assert target.url is not None
        headers = {"accept": "text/plain, application/json", "accept-encoding": "identity"}
        if target.bearer_token:
            headers["authorization"] = f"Bearer {target.bearer_token}"
        async with (
            asyncio.timeout(self._timeout),
            self._session.get(target.url.rstrip("/") + path, headers=headers, allow_redirects=False) as response,
        ):
            if response.status == _NOT_FOUND:
                return None
            if response.status != _OK:
                raise Unreadable(f"{path} answered {response.status}")
            chunks: list[bytes] = []
            left = PAGE_LIMIT_BYTES
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                left -= len(chunk)
                if left < 0:
                    raise Unreadable(f"{path} is larger than {PAGE_LIMIT_BYTES} bytes")
            return b"".join(chunks)


async def _fed(reader: Reader, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
    """What the reader makes of a page; of a long one in a thread, so that it holds up nobody else."""
    if len(text.body) < LONG_PAGE_BYTES:
        return reader.feed(subject, state, text)
    return await asyncio.to_thread(reader.feed, subject, state, text)


def _told(health: tuple[Health, ...], look: Health) -> tuple[Health, ...]:
    """What the page said about its load, with what the scrape saw of the page."""
    if not health:
        return (look,)
    first = health[0]
    told = Health(
        look.target,
        look.surface,
        look.at,
        up=look.up,
        error=look.error,
        running=first.running,
        queued=first.queued,
        speculating=first.speculating,
        decode_tokens=first.decode_tokens,
        seconds=look.seconds,
    )
    return (told, *health[1:])
