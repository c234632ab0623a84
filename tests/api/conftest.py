from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from acceptance.categories import Categories, Rule
from acceptance.counts import Counts
from acceptance.facts import Fact
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.series import Series
from acceptance.window import Source, Window, window_id
from app.access.callers import Callers
from app.access.settings import Access
from app.api import requests
from app.api.application import create_app
from app.api.readiness import Readiness
from app.metrics import Metrics
from app.records.admission import Admission
from app.records.intake import Intake
from app.writer import Writer
from collectors.reading import Reading, Rejected
from collectors.sink import Read
from collectors.target import Target
from service.catalog import Catalog
from service.reads import Reads
from store.duckdb import DuckHistory
from store.history import Batch, History
from store.memory import MemoryHistory
from store.sql import SqlState
from store.state import AlertChange, AlertRecord, Attempt, Message

NOW = 1_796_094_000.0
"""2026-12-01T03:00:00Z."""

A0 = Series("a", "g1", "r1", None, "vllm", "kimi", "dspark", "0", None)
A1 = Series("a", "g1", "r1", None, "vllm", "kimi", "dspark", "1", None)
B = Series("b", "g2", "r2", "unified", "sglang", "kimi", "eagle", None, "code")
B_UNLABELLED = Series("b", "g2", "r2", "unified", "sglang", "kimi", "eagle", None, "")
B_LOG = Series("b", "g2", "r2", "unified", "sglang", "kimi", "eagle", "0", None)


def window(series: Series, start: float, end: float, source: Source, counts: Counts) -> Window:
    identity = window_id(series, "1", source, NOW + start, end)
    return Window(identity, series, NOW + start, NOW + end, source, source != "log", counts)


WINDOWS = (
    window(A0, -45, -30, "counter", Counts(steps=100, emitted=300, proposed=400, requests=5, slots=400)),
    window(A0, -30, -15, "counter", Counts(steps=50, emitted=200, proposed=200, requests=3, slots=200)),
    window(A1, -30, -15, "counter", Counts(steps=50, emitted=100, proposed=200, requests=2, slots=200)),
    # The log tells of the same steps: it must never be added to the counters.
    window(A0, -20, -10, "log", Counts(steps=90, emitted=270)),
    window(B, -75, -60, "counter", Counts(steps=160, emitted=640, requests=40, trim_bound=40)),
    window(B_UNLABELLED, -75, -60, "counter", Counts(steps=10, emitted=20, requests=5, trim_bound=5)),
    window(B_LOG, -15, -5, "log", Counts(steps=400, emitted=400)),
)

TARGETS = (
    Target("a", "http://10.0.0.1:8000", "g1", ("/logs/a.log",), bearer_token="sk-never-shown"),
    Target("b", "http://10.0.0.2:30000", "g2"),
    Target("c", "http://10.0.0.3:30000", "g2"),
)

FIRING = AlertRecord(
    key="dead-drafter/b",
    finding="dead-drafter",
    severity="critical",
    target="b",
    phase="firing",
    active_since=NOW - 200,
    evaluated_at=NOW - 5,
    true_seconds=195,
    fired_at=NOW - 80,
    episode=1,
    detail={"value": 1.0, "why": "acc_len 1.00"},
)
PENDING = AlertRecord(
    "low-acceptance/a", "low-acceptance", "warning", "a", "pending", NOW - 30, NOW - 5, detail={"value": 1.9}
)
RESOLVED = AlertRecord(
    "target-down/c",
    "target-down",
    "critical",
    "c",
    "resolved",
    NOW - 9000,
    NOW - 7200,
    fired_at=NOW - 8900,
    resolved_at=NOW - 7200,
    episode=2,
)
MESSAGE = Message("m1", "pager", "dead-drafter/b", "firing", {"title": "Drafter is dead", "target": "b"}, NOW - 80)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with stores that hold all of the above; creating them takes longer than most tests."""
    folder = tmp_path_factory.mktemp("filled")
    history = DuckHistory(folder / "history.duckdb")
    history.append(Batch(windows=WINDOWS))
    history.close()
    state = SqlState(f"sqlite:///{folder / 'state.sqlite'}")
    state.record(
        [Fact("b", "engine", "sglang", "server_info", NOW - 60), Fact("b", "k", 3, "server_info", NOW - 60)],
        [
            Hit(
                "b",
                "1",
                "SG-DRAFT-ATTN-FALLBACK",
                NOW - 500,
                "0",
                "EAGLE draft worker only supports ...",
                {"to": "fa3"},
            )
        ],
    )
    state.apply([AlertChange(FIRING, [MESSAGE]), AlertChange(PENDING), AlertChange(RESOLVED)])
    state.attempted("m1", "pager", Attempt(NOW - 79, "retry", "answered 503", 0.2), "waiting", NOW - 70)
    state.attempted("m1", "pager", Attempt(NOW - 70, "delivered", "", 0.1), "delivered", None)
    state.close()
    return folder


@pytest.fixture
def history_kind() -> str:
    """Overridden where the answer depends on what history computes."""
    return "memory"


@pytest.fixture
def history(history_kind: str, filled: Path, tmp_path: Path) -> Iterator[History]:
    if history_kind == "memory":
        store = MemoryHistory()
        store.append(Batch(windows=WINDOWS))
    else:
        store = DuckHistory(shutil.copy(filled / "history.duckdb", tmp_path))
    yield store
    store.close()


@pytest.fixture
def state(filled: Path, tmp_path: Path) -> Iterator[SqlState]:
    store = SqlState(f"sqlite:///{shutil.copy(filled / 'state.sqlite', tmp_path)}")
    yield store
    store.close()


@pytest.fixture
def catalog(state: SqlState) -> Catalog:
    catalog = Catalog(TARGETS, state.facts())

    def look(target: str, error: str | None = None, *, running: float | None = None) -> None:
        health = Health(target, "metrics", NOW - 5, error is None, error, running, 0.0, seconds=0.012)
        rejected = (Rejected("line 7", "not a number", 2),) if target == "b" else ()
        catalog.observe(Read(target, "metrics", NOW - 5, {}, Reading(health=(health,), rejected=rejected)))

    look("a", running=2.0)
    look("b", running=4.0)
    look("c", "ConnectError: connection refused")
    return catalog


@pytest.fixture
def reads(history: History, state: SqlState, catalog: Catalog) -> Reads:
    return Reads(history, state, catalog, lambda: NOW)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def readiness() -> Readiness:
    return Readiness(stores_open=True, evaluated=True)


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, thread_name_prefix="reads") as threads:
        yield threads


@pytest.fixture
def callers() -> Callers:
    """As the service comes: on loopback, without tokens."""
    return Callers(Access(), "127.0.0.1", lambda: NOW)


@pytest.fixture
def writer(history: History, state: SqlState, catalog: Catalog, metrics: Metrics) -> Iterator[Writer]:
    """It commits when a test runs it."""
    writer = Writer(history, state, catalog, metrics)
    yield writer
    writer.close()


@pytest.fixture
def rules() -> tuple[Rule, ...]:
    return ()


@pytest.fixture
def intake(history: History, writer: Writer, catalog: Catalog, metrics: Metrics, rules: tuple[Rule, ...]) -> Intake:
    admission = Admission(catalog, Categories(rules), any_target=False)
    return Intake(history, writer, admission, metrics, lambda: NOW, asyncio.to_thread)


@pytest.fixture
def app(
    reads: Reads,
    metrics: Metrics,
    readiness: Readiness,
    executor: ThreadPoolExecutor,
    callers: Callers,
    intake: Intake,
) -> FastAPI:
    app = create_app(
        reads,
        metrics=metrics,
        readiness=readiness,
        executor=executor,
        callers=callers,
        host_names=["draftgauge.example"],
    )
    requests.install(app, intake, readiness)
    return app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8400") as client:
        yield client
