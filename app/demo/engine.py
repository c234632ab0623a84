"""One emulated engine over all its lives: traffic, faults, restarts, and what can be asked of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import inf
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from app.demo import vllm
from app.demo.events import Passes, Prefill
from app.demo.face import Face, Log
from app.demo.faults import Conditions, Fault, Hang, Idle, NoFault, Restart
from app.demo.request import Request
from app.demo.settings import Life, Settings
from app.demo.sglang import SGLang
from app.demo.simulation import Simulation
from app.demo.truth import Truth
from app.demo.workload import Order

FACES: Mapping[str, Callable[[Settings, Life, Log], Face]] = MappingProxyType(
    {"sglang": SGLang, "vllm": vllm.python, "vllm-rust": vllm.rust}
)
START_SECONDS = 40.0
_RESULTS_KEPT = 10_000


class Results:
    """What became of the requests of one life. An observer."""

    def __init__(self, face: Face, life: Life, ended: list[dict[str, Any]]) -> None:
        self._face = face
        self._life = life
        self._ended = ended

    def prefilled(self, prefill: Prefill) -> None:
        """Nothing has ended."""

    def started(self, request: Request) -> None:
        """Nothing has ended."""

    def decoded(self, passes: Passes) -> None:
        """Nothing has ended."""

    def finished(self, request: Request) -> None:
        self._ended.append(
            {
                "incarnation": self._life.number,
                "request": request.number,
                "category": request.order.category,
                "rank": request.rank,
                "reason": request.order.reason,
                "arrived_at": request.arrived_at,
                "finished_at": request.finished_at,
                "steps": request.steps,
                "accepted": request.accepted,
                "histogram": request.histogram.tolist(),
                "sent": request.sent,
                "trimmed": request.trimmed,
                "result": self._face.result(request),
            }
        )


class Process:
    """One life of the engine. ``exposed`` is the truth when its metrics were last asked for."""

    def __init__(self, settings: Settings, life: Life, log: Log, results: Callable[[Face], Results]) -> None:
        self.life = life
        self.face = FACES[settings.engine](settings, life, log)
        self.truth = Truth(settings.k)
        self.exposed: dict[str, Any] | None = None
        self.ended_at: float | None = None
        warm = life.ready_at - 1.0
        seed = (settings.seed, life.number)
        self.simulation = Simulation(
            settings.workload,
            settings.actual_pace,
            settings.ranks,
            settings.k,
            seed,
            warm,
            (self.truth, self.face, results(self.face)),
        )
        self.face.watch(self.simulation.ranks)
        self.face.boot()
        self.simulation.close()
        self.simulation.advance(warm)
        if self.face.warm_up is not None:
            self.simulation.submit([self.face.warm_up])
        self.simulation.advance(life.ready_at)
        self.simulation.open()

    def advance(self, until: float) -> None:
        """Do all that is over by ``until``."""
        while self.face.next_tick <= until:
            self.simulation.advance(self.face.next_tick)
            self.face.tick()
        self.simulation.advance(until)

    def resume(self, at: float) -> None:
        """Go on after a hang."""
        self.simulation.resume(at)
        self.face.next_tick = max(self.face.next_tick, at)

    def numbers(self) -> dict[str, Any]:
        """The truth about this life."""
        life = {"number": self.life.number, "began_at": self.life.began_at, "ready_at": self.life.ready_at}
        return {**life, "ended_at": self.ended_at, **self.truth.numbers(), "exposed": self.exposed}


class EmulatedEngine:
    """An engine and its lives. Times are emulated unix seconds; ``write`` takes log lines as they come.

    ``asking`` draws what is left open about requests that are asked for.
    """

    def __init__(self, settings: Settings, epoch: float, write: Callable[[Sequence[str]], None]) -> None:
        self.settings = settings
        self.at = epoch
        self._write = write
        self._log = Log()
        self._conditions = Conditions()
        self._paused = False
        self._hung_until: float | None = None
        self._ended: list[dict[str, Any]] = []
        self._results: deque[dict[str, Any]] = deque(maxlen=_RESULTS_KEPT)
        self._numbers = count(1)
        self._lives: list[Process] = []
        self.asking = np.random.default_rng((settings.seed, 4))
        self._next: Life | None = Life(0, epoch - START_SECONDS, epoch)
        self.advance(epoch)

    @property
    def state(self) -> str:
        """One of "up", "down" (its port refuses) and "hung" (it takes connections and does not answer)."""
        if self._next is not None:
            return "down"
        return "up" if self._hung_until is None else "hung"

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults that are on."""
        hung = ("hang",) if self._hung_until is not None else ()
        return (*self._conditions.kinds, *hung)

    def advance(self, to: float) -> None:
        """Let time go on to ``to``."""
        if self._next is not None and to >= self._next.ready_at:
            self._start(self._next)
        if self._hung_until is not None and to >= self._hung_until:
            self._go_on(self._hung_until)
        if self.state == "up":
            self._process.advance(to)
        self.at = to
        self._ended.sort(key=itemgetter("finished_at", "request"))
        self._results.extend({"sequence": next(self._numbers), **ended} for ended in self._ended)
        self._ended.clear()
        if lines := self._log.taken():
            self._write(lines)

    def metrics(self) -> bytes:
        """The metrics page as it is now."""
        page = self._process.face.page(self.at)
        self._process.exposed = {"at": self.at, **self._process.truth.numbers()}
        return page

    @property
    def content_type(self) -> str:
        """Of the metrics page."""
        return self._process.face.content_type

    def document(self, path: str) -> Any:
        """The JSON at another path; None where there is nothing."""
        return self._process.face.document(path)

    def answered(self, method: str, path: str, status: int) -> None:
        """A request to the engine's own surface was answered."""
        self._process.face.answered(self.at, method, path, status)

    def fault(self, fault: Fault) -> None:
        """Something breaks now, or everything is well again. Faults outlive a restart; a hang does not."""
        match fault:
            case Restart():
                self._restart(fault)
            case Hang():
                self._hung_until = self.at + fault.seconds if fault.seconds else inf
            case NoFault():
                self._conditions = Conditions()
                if self._hung_until is not None:
                    self._go_on(self.at)
                self._apply()
            case _:
                self._conditions = self._conditions.having(self.at, fault)
                self._apply()

    def pause(self) -> None:
        """The traffic brings nothing from now on."""
        self._paused = True
        self._apply()

    def resume(self) -> None:
        """The traffic goes on."""
        self._paused = False
        self._apply()

    def submit(self, orders: Sequence[Order]) -> list[int]:
        """Requests that arrive now; their numbers."""
        return [request.number for request in self._process.simulation.submit(orders)]

    @property
    def unfinished(self) -> int:
        """Requests that wait or run."""
        return 0 if self._next is not None else self._process.simulation.unfinished

    def results(self, after: int, limit: int) -> list[dict[str, Any]]:
        """What became of requests: up to ``limit`` of those that ended after the one with sequence number ``after``."""
        return [result for result in self._results if result["sequence"] > after][:limit]

    def truth(self) -> dict[str, Any]:
        """What really happened, life by life."""
        return {
            "engine": self.settings.engine,
            "k": self.settings.k,
            "at": self.at,
            "state": self.state,
            "unfinished": self.unfinished,
            "incarnations": [life.numbers() for life in self._lives],
        }

    @property
    def _process(self) -> Process:
        return self._lives[-1]

    def _start(self, life: Life) -> None:
        self._next = None
        self._lives.append(Process(self.settings, life, self._log, lambda face: Results(face, life, self._ended)))
        self._apply()

    def _restart(self, fault: Restart) -> None:
        if self._next is None:
            self._process.ended_at = self.at
        if fault.draft_attention_backend is not None:
            self.settings = replace(self.settings, draft_attention_backend=fault.draft_attention_backend)
        self._hung_until = None
        ready_at = self.at + fault.seconds
        self._next = Life(len(self._lives), max(ready_at - START_SECONDS, self.at), ready_at)
        self.advance(self.at)

    def _go_on(self, at: float) -> None:
        self._hung_until = None
        self._process.resume(at)

    def _apply(self) -> None:
        if self._next is not None:
            return
        simulation = self._process.simulation
        simulation.under(self._conditions)
        if self._paused or any(isinstance(fault, Idle) for _, fault in self._conditions.faults):
            simulation.close()
        else:
            simulation.open()
