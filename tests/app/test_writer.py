"""The writer: what it took is stored once and in order, whatever the stores do meanwhile."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from acceptance.counts import Counts
from acceptance.facts import Fact
from acceptance.query import AcceptanceQuery
from acceptance.series import Series
from acceptance.window import Window, window_id
from app import writer as module
from app.metrics import Metrics
from app.writer import QUEUE_LIMIT, Writer
from collectors.reading import Reading
from collectors.sink import Read
from collectors.target import Target
from service.catalog import Catalog
from store.duckdb import DuckHistory
from store.history import Batch
from store.memory import MemoryHistory
from store.sql import SqlState

NOW = 1_796_110_000.0
ALL = AcceptanceQuery(start=0.0, end=4e9)


def read(number: int, steps: float = 1.0, surface: str = "metrics", facts: tuple[Fact, ...] = ()) -> Read:
    series = Series("one")
    start = NOW + number
    window = Window(
        window_id(series, "0", surface, start, number),
        series,
        start,
        start + 1.0,
        "counter",
        True,
        Counts(steps=steps, emitted=2 * steps),
    )
    return Read("one", surface, start + 1.0, {"number": number}, Reading(windows=(window,), facts=facts))


class Ailing(MemoryHistory):
    """A history that keeps the order in which it was given readings, and is unavailable when told."""

    def __init__(self) -> None:
        super().__init__()
        self.ails = 0
        self.attempts = 0
        self.numbers: list[int] = []

    def append(self, batch: Batch) -> int:
        self.attempts += 1
        if self.ails:
            self.ails -= 1
            raise OSError(28, "No space left on device")
        self.numbers += [int(window.start - NOW) for window in batch.windows]
        return super().append(batch)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqlState]:
    state = SqlState(f"sqlite:///{tmp_path / 'state.sqlite'}")
    yield state
    state.close()


@pytest.fixture
def history() -> Ailing:
    return Ailing()


@pytest.fixture
async def writer(history: Ailing, state: SqlState, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Writer]:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.005)
    monkeypatch.setattr(module, "LONGEST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(module, "GATHER_SECONDS", 0.001)
    writer = Writer(history, state, Catalog([Target("one", "http://one")]), Metrics())
    yield writer
    writer.close()


async def test_what_was_taken_while_the_store_failed_is_stored_once_and_in_order(
    writer: Writer, history: Ailing
) -> None:
    running = asyncio.create_task(writer.run())
    history.ails = 8
    for number in range(300):
        assert writer.offer(read(number))
        if number % 50 == 0:
            await asyncio.sleep(0)
    await writer.drain()
    assert history.attempts > 8
    assert history.numbers == list(range(300))
    assert [cursor.state["number"] for cursor in history.cursors()] == [299]
    running.cancel()


async def test_a_full_queue_refuses_scrapes_and_holds_tailers(writer: Writer, history: Ailing) -> None:
    for number in range(QUEUE_LIMIT):
        assert writer.offer(read(number))
    assert not writer.offer(read(QUEUE_LIMIT))
    waiting = asyncio.create_task(writer.put(read(QUEUE_LIMIT)))
    await asyncio.sleep(0)
    assert not waiting.done()
    running = asyncio.create_task(writer.run())
    await waiting
    await writer.drain()
    assert history.numbers == list(range(QUEUE_LIMIT + 1))
    running.cancel()


async def test_a_commit_that_is_cancelled_is_finished_or_done_again(writer: Writer, history: Ailing) -> None:
    for number in range(200):
        running = asyncio.create_task(writer.run())
        writer.offer(read(number))
        # Cancelled at another point of the commit every time.
        for _ in range(number % 12):
            await asyncio.sleep(0.0005)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    await writer.drain()
    assert sorted(set(history.numbers)) == list(range(200))
    (total,) = history.query(ALL)
    assert (total.windows, total.counts.steps) == (200, 200.0)


@pytest.mark.parametrize(
    "poison",
    [
        read(50, steps=10**400),
        read(50, facts=(Fact("one", "k", object(), "log", NOW),)),  # type: ignore[arg-type]
    ],
    ids=["a number that is none", "a fact that is no value"],
)
async def test_a_reading_that_cannot_be_stored_is_set_aside(
    state: SqlState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poison: Read
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.005)
    history, metrics = DuckHistory(tmp_path / "history.duckdb"), Metrics()
    writer = Writer(history, state, Catalog([Target("one", "http://one")]), metrics)
    for number in range(50):
        writer.offer(read(number))
    writer.offer(poison)
    for number in range(51, 100):
        writer.offer(read(number))
    await asyncio.wait_for(writer.drain(), 60.0)
    (total,) = history.query(ALL)
    assert (total.windows, total.counts.steps) == (99, 99.0)
    assert [cursor.state["number"] for cursor in history.cursors()] == [99]
    assert metrics.registry.get_sample_value("draftgauge_rejected_input_total", {"target": "one"}) == 1.0
    writer.close()
    history.close()


async def test_a_state_that_is_locked_is_waited_for(
    history: Ailing, state: SqlState, monkeypatch: pytest.MonkeyPatch, writer: Writer
) -> None:
    """Facts go first: as long as they cannot be kept, neither are the windows and the cursor that cover them."""
    failing, record = [OperationalError("", {}, Exception("database is locked"))] * 3, state.record

    def locked(*told: Any) -> None:
        if failing:
            raise failing.pop()
        record(*told)

    monkeypatch.setattr(state, "record", locked)
    writer.offer(read(0, facts=(Fact("one", "k", 7, "log", NOW),)))
    await writer.drain()
    assert history.attempts == 1
    assert state.facts()["one"]["k"].value == 7


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """As on a full disk, no file of this process may grow beyond ``size``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_disk_that_was_full_for_a_while(
    tmp_path: Path, state: SqlState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB's instance is of no use after a checkpoint without room; nothing was lost, and nobody has to restart."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
    path = tmp_path / "history.duckdb"
    history = DuckHistory(path)
    writer = Writer(history, state, Catalog([Target("one", "http://one")]), Metrics())
    number = 0
    with capture_logs() as logs, largest_file(18 * 2**20):
        while not logs:
            # What cannot be compressed: the file grows as fast as it may.
            for _ in range(5):
                one = read(number, surface=f"log:{number}")
                noise = {"noise": os.urandom(20_000).hex()}
                await writer.put(Read(one.target, one.surface, one.at, noise, one.reading))
                number += 1
            draining = asyncio.create_task(writer.drain())
            while not logs and not draining.done():
                await asyncio.wait({draining}, timeout=0.01)
        assert isinstance(logs[0]["exc_info"], duckdb.FatalException)
    await draining
    (total,) = history.query(ALL)
    assert total.windows == number
    writer.close()
    history.close()
    history = DuckHistory(path)
    assert history.query(ALL)[0].windows == number
    history.close()
