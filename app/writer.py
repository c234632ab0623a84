"""The one writer: readings queue up here and are committed in batches, in a thread."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import duckdb
import structlog
from sqlalchemy.exc import DataError, DBAPIError, StatementError

from acceptance.facts import Subject
from collectors.sink import Read
from collectors.target import Target
from store.history import Batch, Cursor, History
from store.state import StateStore

log = structlog.get_logger(__name__)

QUEUE_LIMIT = 4_000
"""Readings that may wait. At the limit scrapes coalesce and tailers pause: nothing is dropped."""
WINDOWS_LIMIT = 50_000
"""Windows in them at which tailers pause: a log that is caught up with has a thousand in a reading."""
BATCH_WINDOWS = 5_000
GATHER_SECONDS = 1.0
"""A commit takes about as long for a hundred windows as for one."""
RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 15.0


class Knowledge(Protocol):
    """What is known of targets: told of readings at once, asked for subjects by the readers."""

    def observe(self, read: Read) -> None: ...

    def subject(self, target: Target) -> Subject: ...


class WriterObserver(Protocol):
    """Told about every batch: our own metrics."""

    def committed(self, windows: int, reads: int, seconds: float) -> None: ...

    def waiting(self, reads: int) -> None: ...

    def rejected(self, target: str, count: int) -> None: ...


class Writer:
    """A ``collectors.sink.Sink``: facts and signatures first, then windows with the cursors that cover them.

    A crash between the two repeats the facts, which changes nothing. A batch that cannot be committed is tried again
    until it can: meanwhile the queue fills and the collectors wait.
    """

    def __init__(
        self,
        history: History,
        state: StateStore,
        knowledge: Knowledge,
        observer: WriterObserver,
    ) -> None:
        self._history = history
        self._state = state
        self._knowledge = knowledge
        self._observer = observer
        self._queue: deque[Read] = deque()
        self._windows = 0
        self._in_hand = 0
        # By identity: a reading has no hash, and is held by the queue or by a commit until it is told of.
        self._awaited: dict[int, asyncio.Future[bool]] = {}
        self._changed = asyncio.Condition()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")

    def subject(self, target: Target) -> Subject:
        """What is known of a target now."""
        return self._knowledge.subject(target)

    def offer(self, read: Read) -> bool:
        """Take a reading unless the queue is full."""
        if len(self._queue) >= QUEUE_LIMIT:
            return False
        self._take(read)
        return True

    def submit(self, read: Read) -> asyncio.Future[bool] | None:
        """Take a reading unless there is no room. The future is whether it was committed; else it cannot be stored."""
        if len(self._queue) >= QUEUE_LIMIT or self._windows >= WINDOWS_LIMIT:
            return None
        committed = self._awaited[id(read)] = asyncio.get_running_loop().create_future()
        self._take(read)
        return committed

    async def put(self, read: Read) -> None:
        """Take a reading once there is room."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._queue) < QUEUE_LIMIT and self._windows < WINDOWS_LIMIT)
            self._take(read)

    async def committed(self) -> None:
        """Return after the next commit."""
        async with self._changed:
            await self._changed.wait()

    async def run(self) -> None:
        """Commit what is queued, until cancelled; a commit under way is finished."""
        while True:
            await asyncio.sleep(GATHER_SECONDS)
            more = bool(self._queue)
            while more:
                more = await self._commit_next()

    async def drain(self) -> None:
        """Commit everything that was taken."""
        while self._queue or self._in_hand:
            await self._commit_next() if self._queue and not self._in_hand else await asyncio.sleep(0.01)

    def close(self) -> None:
        """Release the thread."""
        self._thread.shutdown()

    def _take(self, read: Read) -> None:
        self._knowledge.observe(read)
        self._queue.append(read)
        self._windows += len(read.reading.windows)
        self._observer.waiting(len(self._queue))
        if read.reading.rejected:
            self._observer.rejected(read.target, sum(item.count for item in read.reading.rejected))

    async def _commit_next(self) -> bool:
        """Whether there was more than fits into one batch."""
        reads = self._next_batch()
        more = bool(self._queue)
        self._in_hand = len(reads)
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            windows = await self._commit_surely(reads)
        except asyncio.CancelledError:
            # Committing again what may have been committed changes nothing: windows have ids.
            self._queue.extendleft(reversed(reads))
            self._windows += sum(len(read.reading.windows) for read in reads)
            raise
        finally:
            self._in_hand = 0
        self._tell(reads, stored=True)
        self._observer.committed(windows, len(reads), loop.time() - started)
        self._observer.waiting(len(self._queue))
        async with self._changed:
            self._changed.notify_all()
        return more

    async def _commit_surely(self, reads: list[Read]) -> int:
        """Commit all, however long the store is unavailable; set aside only a reading that cannot be stored at all."""
        wait = RETRY_SECONDS
        while True:
            try:
                return await self._in_thread(reads)
            except Exception as problem:
                if _lies_in_the_reading(problem):
                    return await self._commit_apart(reads, problem)
                log.error("the store is unavailable; trying again", reads=len(reads), wait=wait, exc_info=problem)
                await asyncio.sleep(wait)
                wait = min(2 * wait, LONGEST_RETRY_SECONDS)

    async def _commit_apart(self, reads: list[Read], problem: Exception) -> int:
        """Of readings that cannot be stored together: all but those that cannot be stored alone."""
        if len(reads) > 1:
            return sum([await self._commit_surely([read]) for read in reads])
        log.error("a reading cannot be stored", target=reads[0].target, surface=reads[0].surface, exc_info=problem)
        self._observer.rejected(reads[0].target, 1)
        self._tell(reads, stored=False)
        return 0

    def _tell(self, reads: list[Read], *, stored: bool) -> None:
        """Whoever waits for these."""
        for read in reads:
            waiting = self._awaited.pop(id(read), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(stored)

    async def _in_thread(self, reads: list[Read]) -> int:
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._commit, reads))

    def _next_batch(self) -> list[Read]:
        reads: list[Read] = []
        windows = 0
        while self._queue and windows < BATCH_WINDOWS:
            reads.append(self._queue.popleft())
            windows += len(reads[-1].reading.windows)
        self._windows -= windows
        return reads

    def _commit(self, reads: list[Read]) -> int:
        facts = [fact for read in reads for fact in read.reading.facts]
        hits = [hit for read in reads for hit in read.reading.hits]
        if facts or hits:
            self._state.record(facts, hits)
        newest = {(read.target, read.surface): read for read in reads}
        return self._history.append(
            Batch(
                windows=[window for read in reads for window in read.reading.windows if window.busy],
                health=[look for read in reads for look in read.reading.health],
                cursors=[Cursor(read.target, read.surface, read.state, read.at) for read in newest.values()],
            )
        )


def _lies_in_the_reading(problem: Exception) -> bool:
    """Whether it would come again however sound the store is."""
    if isinstance(problem, StatementError):
        return isinstance(problem, DataError) or not isinstance(problem, DBAPIError)
    return isinstance(problem, TypeError | ValueError | OverflowError | duckdb.DataError)
