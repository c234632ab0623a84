"""The service as one process: the only owner of the loop, the threads, the queues and the shutdown."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import structlog
import uvicorn
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from fastapi import FastAPI
from httpx_aiohttp import AiohttpTransport

from alerts.notify.channel import Surroundings as ChannelSurroundings
from alerts.outbox import Outbox
from app.api.application import create_app
from app.api.readiness import Readiness
from app.judging import fleet, surroundings
from app.metrics import Metrics, watch_loop
from app.settings import Config, Listen
from app.writer import Writer
from collectors.scrape import METRICS, Scraper
from collectors.tail import Tailer
from collectors.target import Target
from service.catalog import Catalog
from service.evaluate import Evaluator
from service.reads import Reads
from store.duckdb import DuckHistory
from store.history import History
from store.sql import SqlState
from store.state import StateStore

log = structlog.get_logger(__name__)

READER_THREADS = 2
HOUSEKEEPING_SECONDS = 3600.0
OUTBOX_DRAIN_SECONDS = 10.0
SLOWEST_ANSWER_SECONDS = 5


class Runtime:
    """Everything that runs, put together from a configuration. ``clock`` gives unix seconds.

    ``run`` returns when the process was asked to stop and everything accepted is on disk. It raises ``StoreUnusable``
    where a store cannot be opened, and ``OSError`` where the address is taken.
    """

    def __init__(self, config: Config, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._stop = asyncio.Event()
        self._collecting: list[asyncio.Task[None]] = []
        self._evaluating = asyncio.Lock()
        self.metrics = Metrics()
        self.readiness = Readiness()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then drain and close. A second signal does not wait."""
        async with AsyncExitStack() as closing:
            history, state = await self._open_stores(closing)
            self._build(closing, history, state)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._asked_to_stop)
            listening = _listen(self._config.listen)
            server = _Server(_uvicorn_config(self.app))
            serving = asyncio.create_task(server.serve([listening]), name="http")
            background = self._start()
            log.info("serving", url=_url(listening), targets=len(self._config.targets))
            stopped = asyncio.create_task(self._stop.wait(), name="stop")
            await asyncio.wait({serving, stopped, *background}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            await self._drain(background)
            server.should_exit = True
            await serving

    async def _open_stores(self, closing: AsyncExitStack) -> tuple[History, StateStore]:
        directory = self._config.data_dir
        await asyncio.to_thread(directory.mkdir, mode=0o700, parents=True, exist_ok=True)
        history = await asyncio.to_thread(DuckHistory, directory / "history.duckdb")
        closing.callback(history.close)
        state = await asyncio.to_thread(SqlState, f"sqlite:///{directory / 'state.sqlite'}")
        closing.callback(state.close)
        self.readiness.stores_open = True
        return history, state

    def _build(self, closing: AsyncExitStack, history: History, state: StateStore) -> None:
        self._history, self._state = history, state
        cursors = history.cursors()
        self.catalog = Catalog(self._config.watched(), state.facts())
        self._writer = Writer(history, state, self.catalog, self.metrics)
        closing.callback(self._writer.close)
        self._client = _client(self._config.scrape.concurrency)
        closing.push_async_callback(self._client.aclose)
        self._scraper = Scraper(
            self._client,
            self._writer,
            self._clock,
            self.metrics,
            timeout_seconds=self._config.scrape.timeout,
            cursors={cursor.target: cursor.state for cursor in cursors if cursor.surface == METRICS},
        )
        self._tailer = Tailer(
            self._writer, self._clock, cursors={(cursor.target, cursor.surface): cursor.state for cursor in cursors}
        )
        self._evaluator = Evaluator(history, state, lambda: fleet(self.catalog), surroundings(self._config))
        channels = ChannelSurroundings(self._client, self._clock, self._config.external_url or "")
        self._outbox = Outbox(
            state,
            {name: settings.open(name, channels) for name, settings in self._config.channels.items()},
            self._clock,
            self.metrics,
        )
        executor = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="reader")
        closing.callback(executor.shutdown)
        self.app = create_app(
            Reads(history, state, self.catalog, self._clock),
            metrics=self.metrics,
            readiness=self.readiness,
            executor=executor,
            host_names=self._config.host_names,
        )

    def _start(self) -> list[asyncio.Task[None]]:
        for target in self._config.watched():
            self._watch(target)
        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        every = self._config.evaluation.interval
        self._scheduler.add_job(self._evaluate, "interval", seconds=every, next_run_time=datetime.now(UTC))
        self._scheduler.add_job(self._keep_house, "interval", seconds=HOUSEKEEPING_SECONDS)
        self._scheduler.start()
        return [
            asyncio.create_task(self._writer.run(), name="writer"),
            asyncio.create_task(self._outbox.run(), name="outbox"),
            asyncio.create_task(watch_loop(self.metrics), name="loop lag"),
        ]

    def _watch(self, target: Target) -> None:
        if target.url is not None:
            self._collect(self._scraper.run(target), f"scrape {target.name}")
        if target.logs:
            self._collect(self._tailer.run(target), f"tail {target.name}")

    def _collect(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_report_death)
        self._collecting.append(task)

    async def _evaluate(self) -> None:
        """One evaluation, in a thread; what raises is logged and changes nothing."""
        async with self._evaluating:
            loop = asyncio.get_running_loop()
            started = loop.time()
            try:
                evaluated = await asyncio.to_thread(self._evaluator.evaluate, self._clock())
            except Exception:
                log.exception("the evaluation failed")
                self.metrics.evaluated(loop.time() - started, ok=False)
                return
            self.metrics.evaluated(loop.time() - started, ok=not evaluated.failures)
            self.readiness.evaluated = True
            if evaluated.transitions:
                self._outbox.wake()

    async def _keep_house(self) -> None:
        now, retention = self._clock(), self._config.retention
        try:
            await asyncio.to_thread(self._history.drop_before, now - retention.history)
            await asyncio.to_thread(self._state.forget_before, now - retention.alerts)
        except Exception:
            log.exception("what is too old could not be dropped")

    async def _drain(self, background: list[asyncio.Task[None]]) -> None:
        """Stop in the order in which things flow: collectors, writer, a last evaluation, its messages."""
        self.readiness.stopping = True
        log.info("stopping")
        self._scheduler.shutdown(wait=False)
        await _cancelled(self._collecting)
        await _cancelled(background)
        await self._writer.drain()
        await self._evaluate()
        await self._outbox.drain(OUTBOX_DRAIN_SECONDS)

    def _asked_to_stop(self) -> None:
        if self._stop.is_set():
            raise KeyboardInterrupt
        self._stop.set()


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the runtime stops it, last."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _uvicorn_config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=SLOWEST_ANSWER_SECONDS
    )


def _listen(listen: Listen) -> socket.socket:
    """The socket to serve on, bound here so that a taken address is an error like any other."""
    family, *_, address = socket.getaddrinfo(
        listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(address[:2], family=family, backlog=2048)


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _client(concurrency: int) -> httpx.AsyncClient:
    """One pool for everything. Over aiohttp: httpx's own pool takes time in proportion to the hosts in it."""
    limits = httpx.Limits(max_connections=concurrency, keepalive_expiry=60.0)
    return httpx.AsyncClient(transport=AiohttpTransport(limits=limits, trust_env=False), timeout=30.0, trust_env=False)


def _report_death(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("a collector died", task=task.get_name(), exc_info=task.exception())


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
