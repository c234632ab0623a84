"""Emulated engines over HTTP: each on a port of its own, and one port from which all are controlled."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import lru_cache
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.demo import control
from app.demo.clock import Clock
from app.demo.engine import EmulatedEngine
from app.demo.static import StaticPage

LOOPBACK = "127.0.0.1"
PUMP_SECONDS = 0.05
NOT_FOUND = b'{"detail":"Not Found"}'


class Served:
    """An engine with its clock and its port, which it holds even while it refuses connections."""

    engine: EmulatedEngine

    def __init__(self, port: int, clock: Clock, static: StaticPage | None = None) -> None:
        self.clock = clock
        self.static = static
        self._began = clock.now()
        self._held = _bound(port)
        self.port: int = self._held.getsockname()[1]
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    def run(self, engine: EmulatedEngine, paused: bool) -> None:
        """From now on this engine is behind the port; ``paused``, it has no traffic of its own."""
        self.engine = engine
        if paused:
            engine.pause()

    def catch_up(self) -> None:
        """Let the engine do what is over by now."""
        if self.static is None:
            self.engine.advance(self.clock.now())

    async def listen_as_it_should(self) -> None:
        """Open or close the port, as the engine's state demands."""
        async with self._changing:
            if self.engine.state == "down":
                await self._close()
            elif self._server is None:
                await self._open()

    async def stop(self) -> None:
        """Close the port for good."""
        async with self._changing:
            await self._close()
        self._held.close()

    async def _open(self) -> None:
        surface = Route("/{path:path}", self._answer)
        self._server = _Server(Starlette(routes=[*control.routes([self], by_name=False), surface]))
        self._serving = asyncio.create_task(self._server.serve(sockets=[_bound(self.port)]))
        await self._server.listens.wait()

    async def _close(self) -> None:
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
        self._server = self._serving = None

    async def _answer(self, request: Request) -> Response:
        self.catch_up()
        while self.engine.state == "hung":
            await asyncio.sleep(PUMP_SECONDS)
            self.catch_up()
        if self.engine.state == "down":
            return Response(status_code=503)
        path = request.url.path.rstrip("/") or "/"
        response = self._metrics(request) if path == "/metrics" else self._document(path)
        self.engine.answered("GET", path, response.status_code)
        return response

    def _metrics(self, request: Request) -> Response:
        moving, headers = self.static, {"content-type": self.engine.content_type}
        page = self.engine.metrics() if moving is None else moving.after(self.clock.now() - self._began)
        # prometheus_client compresses for whoever asks; the Rust frontend has a renderer of its own.
        if "gzip" in request.headers.get("accept-encoding", "") and self.engine.settings.engine != "vllm-rust":
            headers["content-encoding"] = "gzip"
            page = _compressed(page)
        return Response(page, headers=headers)

    def _document(self, path: str) -> Response:
        if path == "/health":
            return Response()
        document = self.engine.document(path)
        if document is None:
            return Response(NOT_FOUND, 404, media_type="application/json")
        return Response(orjson.dumps(document), media_type="application/json")


_compressed = lru_cache(maxsize=4)(gzip.compress)
"""Engines that share a static page compress it once."""


class _Server(uvicorn.Server):
    """A uvicorn that leaves signals to the process it runs in, and tells when it listens."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        )
        self.listens = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


def _bound(port: int) -> socket.socket:
    # A socket that is bound but does not listen keeps the port while the engine is down: connections are refused and
    # nobody else gets it. SO_REUSEADDR lets the one that listens be bound beside it.
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((LOOPBACK, port))
    return held


async def serve(served: Sequence[Served], control_port: int, ready: Callable[[int], None], end: Awaitable[Any]) -> None:
    """Serve until ``end``; ``ready`` is called with the control port when all ports are open."""
    server, held = _Server(Starlette(routes=control.routes(served, by_name=True))), _bound(control_port)
    controlling = asyncio.create_task(server.serve(sockets=[held]))
    await server.listens.wait()
    for one in served:
        await one.listen_as_it_should()
    ready(held.getsockname()[1])
    pumping = asyncio.create_task(_pump(served))
    await end
    pumping.cancel()
    server.should_exit = True
    for one in served:
        await one.stop()
    await controlling


async def _pump(served: Sequence[Served]) -> None:
    """Keep logs and ports up to date between requests."""
    while True:
        for one in served:
            one.catch_up()
            await one.listen_as_it_should()
        await asyncio.sleep(PUMP_SECONDS)
