from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI

from alerts.findings import findings
from alerts.rules import Rulebook
from app.access.callers import Callers
from app.access.settings import Access
from app.api.application import create_app
from app.api.readiness import Readiness
from app.config import Config, load
from app.demo.inbox import Inbox
from app.metrics import Metrics
from app.pages import add_pages
from dashboards.views import Views
from service.catalog import Catalog
from service.fleet import FleetReads
from service.reads import Reads
from store.memory import MemoryHistory
from store.sql import SqlState

Write = Callable[..., Config]


@pytest.fixture
def config_of(tmp_path: Path) -> Write:
    """The configuration of a text, as file ``draftgauge.yaml``."""

    def configured(
        text: str, environment: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
    ) -> Config:
        path = tmp_path / "draftgauge.yaml"
        path.write_text(text)
        return load(path, overrides, environment or {})

    return configured


NOW = 1_796_094_000.0
"""2026-12-01T03:00:00Z."""


@dataclass(slots=True)
class Clock:
    """Unix seconds that move when a test says so."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


Serve = Callable[..., FastAPI]


@pytest.fixture
def serve(tmp_path: Path, clock: Clock, metrics: Metrics) -> Iterator[Serve]:
    """The whole HTTP side, pages included, over empty stores: ``serve({"tokens": [...]}, host="0.0.0.0")``."""
    with ExitStack() as closing:
        threads = closing.enter_context(ThreadPoolExecutor(1))
        state = SqlState(f"sqlite:///{tmp_path / 'state.sqlite'}")
        closing.callback(state.close)
        history = MemoryHistory()
        catalog = Catalog((), ())

        def made(
            access: Mapping[str, Any] | None = None, host: str = "127.0.0.1", demo: Inbox | None = None
        ) -> FastAPI:
            app = create_app(
                Reads(history, state, catalog, clock),
                metrics=metrics,
                readiness=Readiness(stores_open=True, evaluated=True),
                executor=threads,
                callers=Callers(Access.model_validate(access or {}), host, clock),
                host_names=["gauge.example"],
                demo=demo is not None,
            )
            fleet = FleetReads(history, state, catalog, lambda: Rulebook(findings()))
            nothing = cast("Any", None)
            add_pages(app, Views(fleet, nothing, nothing, asyncio.to_thread, clock), demo=demo)
            return app

        yield made


Browse = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def browse() -> AsyncIterator[Browse]:
    """A client of an app, from an address: ``browse(app, "10.0.0.9")``. It keeps cookies, as a browser does."""
    async with AsyncExitStack() as closing:
        clients: list[httpx.AsyncClient] = []

        def made(
            app: FastAPI, address: str = "127.0.0.1", base_url: str = "http://127.0.0.1:8400"
        ) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(app, client=(address, 40000))
            clients.append(httpx.AsyncClient(transport=transport, base_url=base_url))
            closing.push_async_callback(clients[-1].aclose)
            return clients[-1]

        yield made
