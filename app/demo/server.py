"""Emulated engines over HTTP: each on a port of its own, and one port from which all are controlled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from typing import Any

import orjson
import uvicorn
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.demo.clock import Clock, ManualClock
from app.demo.engine import EmulatedEngine
from app.demo.faults import AnyFault
from app.demo.static import StaticPage
from app.demo.workload import Order, draw_acc_len

LOOPBACK = "127.0.0.1"
PUMP_SECONDS = 0.05
NOT_FOUND = b'{"detail":"Not Found"}'


class Asked(BaseModel):
    """Requests to put into an engine, as if clients had sent them now."""

    model_config = ConfigDict(extra="forbid")
    category: str = ""
    output_tokens: int = Field(ge=1, le=10_000_000)
    prompt_tokens: int = Field(200, ge=1, le=2_000_000)
    reason: str = Field("stop", pattern="^(stop|length|abort)$")
    streaming: bool = True
    acc_len: float | None = Field(None, ge=1, le=8, description="mean of 7 draft tokens; drawn where not given")
    count: int = Field(1, ge=1, le=10_000)


class Advance(BaseModel):
    """By how much a manual clock is moved on."""

    model_config = ConfigDict(extra="forbid")
    seconds: float = Field(ge=0, le=864_000)


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

    def metrics(self) -> bytes:
        """The page as it is now."""
        if self.static is not None:
            return self.static.after(self.clock.now() - self._began)
        return self.engine.metrics()

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
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        app.include_router(control([self], prefix=""))
        app.add_route("/{path:path}", self._answer, methods=["GET", "HEAD"])
        self._server = _Server(app)
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
        path = request.url.path.rstrip("/") or "/"
        if self.engine.state == "down":
            return Response(status_code=503)
        if path == "/metrics":
            response = Response(self.metrics(), media_type=self.engine.content_type)
        elif path == "/health":
            response = Response()
        else:
            document = self.engine.document(path)
            found = document is not None
            body = orjson.dumps(document) if found else NOT_FOUND
            response = Response(body, 200 if found else 404, media_type="application/json")
        self.engine.answered("GET", path, response.status_code)
        return response


def control(served: Sequence[Served], prefix: str = "/{name}") -> APIRouter:
    """``/emulator/...``: faults, requests, truth and clock of one engine, or of one among several by its name."""
    router = APIRouter(prefix=f"{prefix}/emulator")
    by_name = {one.engine.settings.name: one for one in served}

    async def chosen(request: Request) -> Served:
        name = request.path_params.get("name")
        if name is not None and name not in by_name:
            raise HTTPException(404, f"no emulator {name!r}; there are {', '.join(by_name)}")
        one = served[0] if name is None else by_name[name]
        one.catch_up()
        return one

    async def settled(one: Served, request: Request) -> dict[str, Any]:
        if "name" in request.path_params:
            await one.listen_as_it_should()
        return _state(one)

    @router.post("/fault")
    async def break_something(fault: AnyFault, request: Request) -> dict[str, Any]:
        one = await chosen(request)
        one.engine.fault(fault)
        return await settled(one, request)

    @router.post("/requests")
    async def ask(asked: Asked | list[Asked], request: Request) -> dict[str, Any]:
        one = await chosen(request)
        if one.engine.state != "up":
            raise HTTPException(409, f"the engine is {one.engine.state}")
        orders = [order for each in (asked if isinstance(asked, list) else [asked]) for order in _orders(each, one)]
        return {"requests": one.engine.submit(orders), **_state(one)}

    @router.get("/requests")
    async def results(request: Request, after: int = 0, limit: int = 1000) -> Response:
        one = await chosen(request)
        found = one.engine.results(after, limit)
        last = found[-1]["sequence"] if found else after
        return _json({"results": found, "last": last, "unfinished": one.engine.unfinished})

    @router.post("/pause")
    async def pause(request: Request) -> dict[str, Any]:
        one = await chosen(request)
        one.engine.pause()
        return _state(one)

    @router.post("/resume")
    async def resume(request: Request) -> dict[str, Any]:
        one = await chosen(request)
        one.engine.resume()
        return _state(one)

    @router.get("/truth")
    async def truth(request: Request) -> Response:
        return _json((await chosen(request)).engine.truth())

    @router.get("/clock")
    async def clock(request: Request) -> dict[str, Any]:
        return _state(await chosen(request))

    @router.post("/advance")
    async def advance(by: Advance, request: Request) -> dict[str, Any]:
        one = await chosen(request)
        if not isinstance(one.clock, ManualClock):
            raise HTTPException(409, "this clock runs by itself; start the emulator with --manual-clock")
        one.clock.advance(by.seconds)
        one.catch_up()
        return await settled(one, request)

    return router


def _orders(asked: Asked, served: Served) -> Iterator[Order]:
    for _ in range(asked.count):
        acc_len = asked.acc_len or draw_acc_len(asked.category, served.engine.asking)
        yield Order(asked.category, asked.output_tokens, asked.prompt_tokens, 0, asked.reason, asked.streaming, acc_len)


def _state(served: Served) -> dict[str, Any]:
    engine = served.engine
    return {
        "name": engine.settings.name,
        "now": engine.at,
        "speed": served.clock.speed,
        "state": engine.state,
        "faults": list(engine.faults),
        "unfinished": engine.unfinished,
    }


def _json(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")


class _Server(uvicorn.Server):
    """A uvicorn that leaves signals to the process it runs in."""

    def __init__(self, app: FastAPI) -> None:
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
    app = FastAPI(title="Emulated engines", summary="Faults, requests, truth and clock")
    app.include_router(control(served))
    server, held = _Server(app), _bound(control_port)
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
