from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from httpx_aiohttp import AiohttpTransport

from alerts.notify.channel import Surroundings
from store.sql import SqlState
from store.state import AlertChange, AlertRecord, Message, StateStore

START = 1_796_000_000.0


@dataclass
class FakeClock:
    now: float = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        self.now += seconds
        return self.now


@dataclass
class Arrival:
    """A request as it came over the wire."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class FarSide:
    """A real HTTP server. It gives the answers in ``script`` first, then "ok".

    "hang" never answers, "stall" never ends its answer, "pour" sends one without end, "echo" answers with all it was
    sent. Message ids in ``chokes_on`` always fail.
    """

    url: str = ""
    script: list[tuple[int, str, dict[str, str]] | str] = field(default_factory=list)
    chokes_on: set[str] = field(default_factory=set)
    poured: int = 0
    requests: list[Arrival] = field(default_factory=list)
    arrived: asyncio.Queue[Arrival] = field(default_factory=asyncio.Queue)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        arrival = Arrival(
            request.path_qs, {name.lower(): value for name, value in request.headers.items()}, await request.read()
        )
        self.requests.append(arrival)
        self.arrived.put_nowait(arrival)
        if arrival.headers.get("webhook-id") in self.chokes_on:
            return web.Response(status=500)
        step = self.script.pop(0) if self.script else (200, "ok", {})
        if step == "hang":
            await self.released.wait()
            return web.Response(text="ok")
        if step == "stall":
            response = web.StreamResponse(headers={"content-length": "100"})
            await response.prepare(request)
            await self.released.wait()
            return response
        if step == "pour":
            response = web.StreamResponse(status=400)
            await response.prepare(request)
            while True:
                await response.write(b"x" * 65536)
                self.poured += 65536
        if step == "echo":
            said = f"{request.method} {request.url} {request.path_qs} {dict(request.headers)}"
            return web.Response(status=500, text=said)
        status, text, headers = step
        return web.Response(status=status, text=text, headers=headers)

    async def next(self) -> Arrival:
        return await asyncio.wait_for(self.arrived.get(), 10)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def far_sides() -> AsyncIterator[Callable[[], Any]]:
    """Start a far side; all are stopped at the end."""
    runners: list[tuple[FarSide, web.AppRunner]] = []

    async def start() -> FarSide:
        far = FarSide()
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", far.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        far.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        runners.append((far, runner))
        return far

    yield start
    for far, runner in runners:
        far.released.set()
        await runner.cleanup()


@pytest.fixture
async def far(far_sides: Callable[[], Any]) -> FarSide:
    return await far_sides()


@pytest.fixture
async def surroundings(clock: FakeClock) -> AsyncIterator[Surroundings]:
    """With a client that is set up for something else: channels rely on none of its defaults."""
    async with httpx.AsyncClient(transport=AiohttpTransport(), follow_redirects=True, timeout=0.001) as client:
        yield Surroundings(client, clock, "https://draftgauge.example")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateStore]:
    store = SqlState(f"sqlite:///{tmp_path}/state.db")
    yield store
    store.close()


BODY = {
    "title": "The drafter is dead",
    "finding": "dead-drafter",
    "severity": "critical",
    "status": "firing",
    "target": "kimi-3",
    "group": "chat",
    "rank": "1",
    "category": "code",
    "model": "moonshotai/Kimi-K3",
    "drafter": "kimi-k3-dspark",
    "engine": "sglang",
    "measure": "acc_len",
    "value": 1.04,
    "lower": 1.01,
    "upper": 1.07,
    "threshold": 1.1,
    "steps": 1234,
    "requests": 56,
    "source": "log",
    "since": START - 180,
    "fired_at": START - 60,
    "resolved_at": None,
    "why": "acc_len 1.04 over 1234 verify steps",
    "cause": "the drafter's weights do not belong to the target model",
    "remedy": ["Check --speculative-draft-model-path", "Restart the server with the right drafter"],
    "link": "https://draftgauge.example/ui/trends?from=now-1h&target=kimi-3",
    "runbook": "https://runbooks.example/dead-drafter",
}


@pytest.fixture
def body() -> dict[str, Any]:
    return dict(BODY)


@pytest.fixture
def message() -> Callable[..., Message]:
    """A message; keywords change its fields, ``body`` some keys of its body."""

    def build(name: str = "m1", channel: str = "pager", *, alert: str = "a1", **changes: Any) -> Message:
        body = {**BODY, **changes.pop("body", {})}
        return Message(
            id=name,
            channel=channel,
            alert_key=alert,
            kind=changes.pop("kind", "firing"),
            body=body,
            created_at=changes.pop("created_at", START),
        )

    return build


@pytest.fixture
def commit(state: StateStore) -> Callable[..., None]:
    """Commit messages with their alerts, as an evaluation does."""

    def write(*messages: Message) -> None:
        for message in messages:
            at = message.created_at
            phase = "resolved" if message.kind == "resolved" else "firing"
            record = AlertRecord(message.alert_key, "dead-drafter", "critical", "kimi-3", phase, at, at, fired_at=at)
            state.apply([AlertChange(record, [message])])

    return write
