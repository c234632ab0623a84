"""The parts of the service put together from a configuration, with nothing running yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from alerts.notify.channel import Surroundings as ChannelSurroundings
from alerts.outbox import Outbox
from app.judging import fleet, surroundings
from app.metrics import Metrics
from app.records.admission import Admission
from app.records.intake import Intake
from app.records.settings import categories_of
from app.settings import Config
from app.writer import Writer
from collectors.scrape import METRICS, Scraper
from collectors.tail import Tailer
from service.catalog import Catalog
from service.evaluate import Evaluator
from service.reads import Reads
from store.duckdb import DuckHistory
from store.history import History
from store.sql import SqlState
from store.state import StateStore

READER_THREADS = 2
KEEP_ALIVE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that whoever runs the service sets going. ``clock`` gives unix seconds to all of it."""

    config: Config
    clock: Callable[[], float]
    metrics: Metrics
    history: History
    state: StateStore
    catalog: Catalog
    writer: Writer
    intake: Intake
    scraper: Scraper
    tailer: Tailer
    evaluator: Evaluator
    outbox: Outbox
    reads: Reads
    readers: ThreadPoolExecutor


@asynccontextmanager
async def assembled(config: Config, clock: Callable[[], float], metrics: Metrics) -> AsyncIterator[Assembly]:
    """Open the stores, read on where their cursors stand, and close it all at the end.

    Raises ``StoreUnusable`` where a store cannot be opened.
    """
    async with AsyncExitStack() as closing:
        history, state = await _stores(config, closing)
        cursors = await asyncio.to_thread(history.cursors)
        catalog = Catalog(config.watched(), await asyncio.to_thread(state.facts))
        writer = Writer(history, state, catalog, metrics)
        closing.callback(writer.close)
        session = await closing.enter_async_context(_session(config.scrape.concurrency))
        client = await closing.enter_async_context(_client())
        channels = ChannelSurroundings(client, clock, config.external_url or "")
        readers = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="reader")
        closing.callback(readers.shutdown)
        yield Assembly(
            config=config,
            clock=clock,
            metrics=metrics,
            history=history,
            state=state,
            catalog=catalog,
            writer=writer,
            intake=_intake(config, history, writer, catalog, metrics, clock),
            scraper=Scraper(
                session,
                writer,
                clock,
                metrics,
                timeout_seconds=config.scrape.timeout,
                cursors={cursor.target: cursor.state for cursor in cursors if cursor.surface == METRICS},
            ),
            tailer=Tailer(writer, clock, cursors={(cursor.target, cursor.surface): cursor.state for cursor in cursors}),
            evaluator=Evaluator(history, state, lambda: fleet(catalog), surroundings(config)),
            outbox=Outbox(
                state,
                {name: settings.open(name, channels) for name, settings in config.channels.items()},
                clock,
                metrics,
            ),
            reads=Reads(history, state, catalog, clock),
            readers=readers,
        )


def _intake(
    config: Config, history: History, writer: Writer, catalog: Catalog, metrics: Metrics, clock: Callable[[], float]
) -> Intake:
    admission = Admission(catalog, categories_of(config.categories), any_target=config.records.any_target)
    return Intake(history, writer, admission, metrics, clock, asyncio.to_thread)


async def _stores(config: Config, closing: AsyncExitStack) -> tuple[History, StateStore]:
    directory = config.data_dir
    await asyncio.to_thread(directory.mkdir, mode=0o700, parents=True, exist_ok=True)
    history = await asyncio.to_thread(DuckHistory, directory / "history.duckdb")
    closing.callback(history.close)
    state = await asyncio.to_thread(SqlState, f"sqlite:///{directory / 'state.sqlite'}")
    closing.callback(state.close)
    return history, state


def _session(concurrency: int) -> aiohttp.ClientSession:
    """For scrapes: ``concurrency`` limits requests under way, not the connections kept to a large fleet."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=concurrency, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=httpx.create_ssl_context(trust_env=False)
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(),
    )


def _client() -> httpx.AsyncClient:
    """For messages. Over aiohttp: httpx's own pool takes time in proportion to the hosts in it."""
    limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS)
    return httpx.AsyncClient(transport=AiohttpTransport(limits=limits, trust_env=False), timeout=30.0, trust_env=False)
