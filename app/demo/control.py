"""``/emulator/...``: faults, requests, truth and clock of emulated engines, for those who test what watches them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.demo.clock import Clock, ManualClock
from app.demo.engine import EmulatedEngine
from app.demo.faults import AnyFault
from app.demo.workload import Order, draw_acc_len


class Controlled(Protocol):
    """What is controlled: an engine with its clock and its port."""

    engine: EmulatedEngine
    clock: Clock

    def catch_up(self) -> None:
        """Let the engine do what is over by now."""

    async def listen_as_it_should(self) -> None:
        """Open or close the port, as the engine's state demands."""


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


_FAULT: TypeAdapter[AnyFault] = TypeAdapter(AnyFault)
_ASKED: TypeAdapter[Asked | list[Asked]] = TypeAdapter(Asked | list[Asked])
_ADVANCE = TypeAdapter(Advance)


class Refused(Exception):
    """Why something is not done."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def routes(controlled: Sequence[Controlled], by_name: bool) -> list[Route]:
    """The control of several engines under ``/NAME/emulator``, or of one under ``/emulator``.

    With its name in the path, an engine whose port should be closed or open has changed that before the answer.
    """
    names = {one.engine.settings.name: one for one in controlled}

    def endpoint(act: Callable[[Controlled, Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                one = names.get(request.path_params["name"]) if by_name else controlled[0]
                if one is None:
                    raise Refused(404, f"there is no such emulator; there are {', '.join(names)}")
                one.catch_up()
                content = await act(one, request)
                if by_name:
                    await one.listen_as_it_should()
            except Refused as refused:
                return _json({"detail": str(refused)}, refused.status)
            except ValidationError as error:
                return _json({"detail": error.errors(include_url=False, include_context=False)}, 422)
            return _json(content)

        return answer

    prefix = "/{name}/emulator" if by_name else "/emulator"
    return [Route(f"{prefix}/{path}", endpoint(act), methods=[method]) for method, path, act in _ACTS]


async def _fault(one: Controlled, request: Request) -> dict[str, Any]:
    one.engine.fault(_FAULT.validate_json(await request.body()))
    return _state(one)


async def _ask(one: Controlled, request: Request) -> dict[str, Any]:
    asked = _ASKED.validate_json(await request.body())
    if one.engine.state != "up":
        raise Refused(409, f"the engine is {one.engine.state}")
    orders = [order for each in (asked if isinstance(asked, list) else [asked]) for order in _orders(each, one.engine)]
    return {"requests": one.engine.submit(orders), **_state(one)}


async def _results(one: Controlled, request: Request) -> dict[str, Any]:
    numbers = {"after": 0, "limit": 1000} | dict(request.query_params)
    bounds = TypeAdapter(dict[str, int]).validate_python(numbers)
    found = one.engine.results(bounds["after"], bounds["limit"])
    last = found[-1]["sequence"] if found else bounds["after"]
    return {"results": found, "last": last, "unfinished": one.engine.unfinished}


async def _pause(one: Controlled, request: Request) -> dict[str, Any]:
    one.engine.pause() if request.url.path.endswith("/pause") else one.engine.resume()
    return _state(one)


async def _told(one: Controlled, request: Request) -> dict[str, Any]:
    return one.engine.truth() if request.url.path.endswith("/truth") else _state(one)


async def _advance(one: Controlled, request: Request) -> dict[str, Any]:
    by = _ADVANCE.validate_json(await request.body())
    if not isinstance(one.clock, ManualClock):
        raise Refused(409, "this clock runs by itself; start the emulator with --manual-clock")
    one.clock.advance(by.seconds)
    one.catch_up()
    return _state(one)


_ACTS: tuple[tuple[str, str, Callable[[Controlled, Request], Awaitable[Any]]], ...] = (
    ("POST", "fault", _fault),
    ("POST", "requests", _ask),
    ("GET", "requests", _results),
    ("POST", "pause", _pause),
    ("POST", "resume", _pause),
    ("GET", "truth", _told),
    ("GET", "clock", _told),
    ("POST", "advance", _advance),
)


def _orders(asked: Asked, engine: EmulatedEngine) -> Iterator[Order]:
    for _ in range(asked.count):
        acc_len = asked.acc_len or draw_acc_len(asked.category, engine.asking)
        yield Order(asked.category, asked.output_tokens, asked.prompt_tokens, 0, asked.reason, asked.streaming, acc_len)


def _state(one: Controlled) -> dict[str, Any]:
    engine = one.engine
    return {
        "name": engine.settings.name,
        "now": engine.at,
        "speed": one.clock.speed,
        "state": engine.state,
        "faults": list(engine.faults),
        "unfinished": engine.unfinished,
    }


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content, default=str), status, media_type="application/json")
