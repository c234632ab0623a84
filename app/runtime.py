"""The service as one process: the only owner of the loop, the threads, the queues and the shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import structlog
import uvicorn
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from fastapi import FastAPI

from app.access.callers import Callers
from app.api import requests
from app.api.application import create_app
from app.api.readiness import Readiness
from app.assembly import Assembly, assembled
from app.demo.inbox import Inbox
from app.metrics import Metrics, watch_loop
from app.pages import add_pages, views_of
from app.settings import Config, Listen
from collectors.target import Target
from dashboards.views import Views

log = structlog.get_logger(__name__)

HOUSEKEEPING_SECONDS = 3600.0
GARBAGE_THRESHOLDS = (10_000, 20, 20)
"""An answer over a day makes a million objects, none in a circle: with Python's (700, 10, 10) it takes 40 % longer."""
OUTBOX_DRAIN_SECONDS = 10.0
SLOWEST_ANSWER_SECONDS = 5


class Runtime:
    """Everything that runs, put together from a configuration. ``clock`` gives unix seconds.

    With ``demo`` it says wherever people look that its targets are emulated, and its messages are shown there too.

    ``run`` returns when the process was asked to stop and everything accepted is on disk. It raises ``StoreUnusable``
    where a store cannot be opened, ``OSError`` where the address is taken, and what ended a part that must not end.
    """

    def __init__(self, config: Config, clock: Callable[[], float] = time.time, *, demo: Inbox | None = None) -> None:
        self._config = config
        self._clock = clock
        self._demo = demo
        self._views: Views
        self._stop = asyncio.Event()
        self._collecting: list[asyncio.Task[None]] = []
        self._evaluating = asyncio.Lock()
        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self.metrics = Metrics()
        self.readiness = Readiness()

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then drain and close. A second signal does not wait."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._asked_to_stop, number)
        async with assembled(self._config, self._clock, self.metrics) as parts:
            self.readiness.stores_open = True
            self._views = views_of(parts)
            listening = _listen(self._config.listen)
            server = _Server(_uvicorn_config(self._app(parts)))
            serving = asyncio.create_task(server.serve([listening]), name="http")
            background = self._start(parts)
            # What is there now stays: looking through it again and again would stop all threads for 100 ms each time.
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GARBAGE_THRESHOLDS)
            if self._demo is not None:
                log.warning("this is a demo: the targets are emulated engines, no real servers")
            log.info("serving", url=_url(listening), targets=len(self._config.targets))
            stopped = asyncio.create_task(self._stop.wait(), name="stop")
            ended, _ = await asyncio.wait({serving, stopped, *background}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            await self._drain(parts, background)
            server.should_exit = True
            await serving
            _raise_why(ended - {stopped})

    def _app(self, parts: Assembly) -> FastAPI:
        app = create_app(
            parts.reads,
            metrics=self.metrics,
            readiness=self.readiness,
            executor=parts.readers,
            callers=Callers(self._config.access, self._config.listen.host, self._clock),
            host_names=self._config.host_names,
            demo=self._demo is not None,
        )
        requests.install(app, parts.intake, self.readiness)
        add_pages(app, self._views, demo=self._demo)
        return app

    def _start(self, parts: Assembly) -> list[asyncio.Task[None]]:
        for target in self._config.watched():
            self._watch(parts, target)
        every = self._config.evaluation.interval
        add = self._scheduler.add_job
        add(self._evaluate, "interval", [parts], seconds=every, next_run_time=datetime.now(UTC))
        add(self._keep_house, "interval", [parts], seconds=HOUSEKEEPING_SECONDS)
        self._scheduler.start()
        return [
            asyncio.create_task(parts.writer.run(), name="writer"),
            asyncio.create_task(parts.outbox.run(), name="outbox"),
            asyncio.create_task(self._tell_pages(parts), name="pulse"),
            asyncio.create_task(watch_loop(self.metrics), name="loop lag"),
        ]

    def _watch(self, parts: Assembly, target: Target) -> None:
        if target.url is not None:
            self._collect(parts.scraper.run(target), f"scrape {target.name}")
        if target.logs:
            self._collect(parts.tailer.run(target), f"tail {target.name}")

    def _collect(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_report_death)
        self._collecting.append(task)

    async def _evaluate(self, parts: Assembly) -> None:
        """One evaluation, in a thread; what raises is logged and changes nothing."""
        async with self._evaluating:
            loop = asyncio.get_running_loop()
            started = loop.time()
            try:
                evaluated = await asyncio.to_thread(parts.evaluator.evaluate, self._clock())
            except Exception:
                log.exception("the evaluation failed")
                self.metrics.evaluated(loop.time() - started, ok=False)
                return
            self.metrics.evaluated(loop.time() - started, ok=not evaluated.failures)
            self.readiness.evaluated = True
            self._views.pulse.beat()
            if evaluated.transitions:
                parts.outbox.wake()

    async def _tell_pages(self, parts: Assembly) -> None:
        """Pages show what is committed as soon as it is."""
        while True:
            await parts.writer.committed()
            self._views.pulse.beat()

    async def _keep_house(self, parts: Assembly) -> None:
        now, retention = self._clock(), self._config.retention
        try:
            await asyncio.to_thread(parts.history.drop_before, now - retention.history)
            await asyncio.to_thread(parts.state.forget_before, now - retention.alerts)
        except Exception:
            log.exception("what is too old could not be dropped")

    async def _drain(self, parts: Assembly, background: list[asyncio.Task[None]]) -> None:
        """Stop in the order in which things flow: collectors, writer, a last evaluation, its messages."""
        self.readiness.stopping = True
        log.info("stopping")
        self._scheduler.pause()
        async with self._evaluating:
            # A job that runs would be cancelled while its thread goes on.
            self._scheduler.shutdown(wait=False)
        await _cancelled(self._collecting)
        await _cancelled(background)
        await parts.writer.drain()
        await self._evaluate(parts)
        await parts.outbox.drain(OUTBOX_DRAIN_SECONDS)

    def _asked_to_stop(self, number: int) -> None:
        if self._stop.is_set():
            # Whatever it waits for may never come, and a killed service loses nothing.
            log.warning("stopped at once")
            os._exit(128 + number)
        self._stop.set()


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers of its own: the runtime stops it, last."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _uvicorn_config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        # Which proxies are believed is in the configuration; uvicorn would believe any on this machine.
        proxy_headers=False,
        timeout_graceful_shutdown=SLOWEST_ANSWER_SECONDS,
    )


def _listen(listen: Listen) -> socket.socket:
    """The socket to serve on, bound here so that a taken address is an error like any other."""
    try:
        family, *_, address = socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        raise OSError(f"cannot listen on {_place(listen.host, listen.port)}: {_plain(error)}") from error


def _plain(error: OSError) -> str:
    """Without the number that only programmers read."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


def _url(listening: socket.socket) -> str:
    return f"http://{_place(*listening.getsockname()[:2])}"


def _place(host: str, port: int) -> str:
    return f"{f'[{host}]' if ':' in host else host}:{port}"


def _report_death(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("a collector died", task=task.get_name(), exc_info=task.exception())


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _raise_why(ended: set[asyncio.Task[Any]]) -> None:
    """These should have run until they were stopped."""
    for task in ended:
        if not task.cancelled():
            raise RuntimeError(f"{task.get_name()} ended by itself") from task.exception()
