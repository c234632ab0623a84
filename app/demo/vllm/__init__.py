"""The faces of vLLM 0.33: counters that move with every step, a statistics line every ten seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.demo.events import Passes, Prefill
from app.demo.face import Log, access_line
from app.demo.request import Request
from app.demo.scheduler import Scheduler
from app.demo.settings import Life, Settings
from app.demo.vllm import documents
from app.demo.vllm.frontends import Frontend, Interval, PythonFrontend, RustFrontend, stamped
from app.demo.vllm.page import HttpState, Page, kv_usage
from app.demo.vllm.state import EngineState
from app.demo.workload import Order

STATS_SECONDS = 10.0
_UNCOUNTED = ("/metrics", "/health", "/load", "/ping", "/version", "/server_info")
_PIDS = {"EngineCore": 267, "Worker_TP0": 380}
"""By how much the process ids of an engine's children lie behind its own."""


class VLLM:
    """One server: an observer of the simulation that shows it as vLLM would, behind one of its frontends."""

    warm_up: Order | None = None

    def __init__(self, settings: Settings, life: Life, log: Log, frontend: Frontend) -> None:
        self.next_tick = life.ready_at + STATS_SECONDS
        self.content_type = frontend.dialect.content_type
        bounds = {family.name: family.bounds for family in frontend.families if family.kind == "histogram"}
        self._settings = settings
        self._life = life
        self._log = log
        self._frontend = frontend
        self._engines = [
            EngineState(settings.k, settings.workload.max_output_tokens, bounds) for _ in range(settings.ranks)
        ]
        self._logged = [Counter[str]() for _ in self._engines]
        self._was_idle = [True] * settings.ranks
        self._http = HttpState(bounds)
        self._answered = 0
        self._page = Page(settings, life, frontend)
        self._ranks: Sequence[Scheduler] = ()

    def watch(self, ranks: Sequence[Scheduler]) -> None:
        self._ranks = ranks

    def boot(self) -> None:
        took = self._life.ready_at - self._life.began_at
        for share, process, level, source, message in documents.start_up(self._settings, self._frontend):
            self._line(self._life.began_at + share * took, message, source, process, level)

    def tick(self) -> None:
        at, self.next_tick = self.next_tick, self.next_tick + STATS_SECONDS
        intervals = [self._interval(number) for number in range(len(self._engines))]
        if self._frontend.per_engine:
            if self._settings.api_servers > 1:
                return
        else:
            intervals = [_together(intervals)]
        for number, interval in enumerate(intervals):
            idle = not interval.prompt_throughput and not interval.generation_throughput
            quiet, self._was_idle[number] = idle and self._was_idle[number], idle
            if quiet:
                continue
            self._line(at, self._frontend.stats(interval), self._frontend.stats_source)
            if interval.counts["drafts"]:
                self._line(at, interval.spec_decoding(), self._frontend.spec_source)

    def page(self, at: float) -> bytes:
        return self._page.render(self._engines, self._ranks, at, self._http)

    def document(self, path: str) -> Any:
        match path:
            case "/version":
                return {"version": documents.VERSION}
            case "/v1/models":
                return documents.models(self._settings, self._life)
            case "/load":
                return {"server_load": sum(len(rank.running) + len(rank.waiting) for rank in self._ranks)}
            case "/server_info" if self._settings.development:
                return documents.server_info(self._settings)
            case _:
                return None

    def answered(self, at: float, method: str, path: str, status: int) -> None:
        if self._frontend.logs_access:
            self._answered += 1
            self._log.add(at, access_line(self._answered, method, path, status))
        if path not in _UNCOUNTED:
            self._http.answered(method, path, status, 0.002)

    def result(self, request: Request) -> dict[str, Any]:
        return documents.completion(self._settings, self._life, self._frontend, request)

    def prefilled(self, prefill: Prefill) -> None:
        self._engines[prefill.rank].prefilled(prefill)

    def started(self, request: Request) -> None:
        self._engines[request.rank].started(request)

    def decoded(self, passes: Passes) -> None:
        self._engines[passes.rank].decoded(passes)

    def finished(self, request: Request) -> None:
        assert request.finished_at is not None
        self._engines[request.rank].finished(request)
        if request.order.reason != "abort":
            seconds = request.finished_at - request.arrived_at
            self._http.answered("POST", "/v1/chat/completions", 200, seconds)
            if self._frontend.logs_access:
                line = access_line(request.number, "POST", "/v1/chat/completions", 200)
                self._log.add(request.finished_at, line)

    def _interval(self, number: int) -> Interval:
        engine, rank = self._engines[number], self._ranks[number]
        counts = engine.counts.copy()
        counts.subtract(self._logged[number])
        self._logged[number] = engine.counts.copy()
        total = engine.counts["prompt computed"] + engine.counts["prompt cached"]
        return Interval(
            engine=number,
            seconds=STATS_SECONDS,
            counts=counts,
            positions=engine.positions(counts),
            running=len(rank.running),
            waiting=len(rank.waiting),
            usage=kv_usage(self._settings, rank),
            hit_rate=engine.counts["prompt cached"] / total if total else None,
        )

    def _line(self, at: float, message: str, source: str, process: str = "", level: str = "INFO") -> None:
        process = process or self._frontend.process
        self._log.add(at, stamped(process, self._life.pid + _PIDS.get(process, 0), level, at, source, message))


def python(settings: Settings, life: Life, log: Log) -> VLLM:
    """A server with the Python frontend."""
    return VLLM(settings, life, log, PythonFrontend(settings, life))


def rust(settings: Settings, life: Life, log: Log) -> VLLM:
    """A server with the Rust frontend."""
    return VLLM(settings, life, log, RustFrontend(settings))


def _together(intervals: Sequence[Interval]) -> Interval:
    """All engines of a server as one."""
    counts: Counter[str] = Counter()
    for interval in intervals:
        counts.update(interval.counts)
    rates = [interval.hit_rate for interval in intervals if interval.hit_rate is not None]
    return Interval(
        engine=0,
        seconds=intervals[0].seconds,
        counts=counts,
        positions=[sum(position) for position in zip(*(interval.positions for interval in intervals), strict=True)],
        running=sum(interval.running for interval in intervals),
        waiting=sum(interval.waiting for interval in intervals),
        usage=sum(interval.usage for interval in intervals) / len(intervals),
        hit_rate=sum(rates) / len(rates) if rates else None,
    )
