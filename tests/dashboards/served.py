"""A fleet made by hand, and the real pages that show it: ``python served.py PORT`` serves them, fed by POST /fleet."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import tzinfo
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response

from alerts.verdicts import Severity
from dashboards.ui import install
from dashboards.views import Views
from service.fleet import Cell, FleetRow, FleetView, Incident, Kpi, Tick, TickState
from service.states import TargetState
from service.target import TargetPage

CATEGORIES = (("code", 5.5), ("math", 5.4), ("chat", 3.9), ("creative", 2.6), ("agentic", 4.7), ("rag", None))
TICKS = 48
HOSTILE = '<img src=x onerror="window.hacked=1"> "target"'


def cell(acc_len: float, expected: float | None, steps: float = 1400.0) -> Cell:
    trusted = steps >= 200
    below = max(1 - acc_len / expected, 0.0) if trusted and expected else None
    return Cell(acc_len, acc_len - 0.1, acc_len + 0.1, steps, steps / 30, "counter", expected, below, trusted)


def row(name: str, now: float, *, number: int = 0, moved: float = 0.0, **changes: Any) -> FleetRow:
    """A healthy target; ``moved`` moves all its figures a little."""
    width = 14_400 / TICKS
    ticks: tuple[TickState, ...] = changes.pop("ticks", ("ok",) * TICKS)
    start = now - now % width - TICKS * width
    fields: dict[str, Any] = {
        "target": name,
        "group": "kimi-a" if number % 2 else "kimi-b",
        "state": TargetState("ok", "4,212 verify steps in 15 min"),
        "label": "OK",
        "severity": None,
        "pending": False,
        "about": "vLLM · TP8" if number % 3 == 2 else "SGLang · TP8",
        "acc_len": cell(4.3 + moved, 4.27, 20_000 + 1000 * moved),
        "categories": {
            name: cell((expected or 3.0) * 0.98 + moved, expected, 1400 + 1000 * moved) for name, expected in CATEGORIES
        },
        "step_time_seconds": 0.0416 + moved / 100,
        "step_time_ratio": 1.0,
        "output_tokens_per_second": 5000 + 1000 * moved,
        "heartbeat": tuple(
            Tick(start + place * width, start + (place + 1) * width, state) for place, state in enumerate(ticks)
        ),
        "engine": "vllm" if number % 3 == 2 else "sglang",
        "model": "Kimi-K3",
    }
    return FleetRow(**(fields | changes))


def incident(key: str, target: str, since: float, severity: Severity = "critical", **changes: Any) -> Incident:
    fields: dict[str, Any] = {
        "finding": "dead-drafter",
        "title": f"Drafter is dead on {target}",
        "why": "acc_len 1.02 over 5,214 steps",
        "cause": "a wrong draft model",
        "figures": (("acc_len", "4.22 → 1.02"), ("Step time", "41.6 → 96.9 ms ×2.3"), ("Cost", "−2,840 tok/s")),
        "remedy": "Set --speculative-draft-attention-backend trtllm_mha",
        "flag": "--speculative-draft-attention-backend trtllm_mha",
        "flag_verb": "Set",
        "told": ("oncall",),
    }
    return Incident(key, severity=severity, target=target, since=since, **(fields | changes))


def fleet_view(
    now: float, targets: int = 12, *, sick: bool = True, moved: float = 0.0, since: float | None = None
) -> FleetView:
    """``targets`` of which, where ``sick``, one has a dead drafter and one a slow kernel, for an hour at ``since``."""
    since = now if since is None else since
    rows = [
        row(HOSTILE if number == 3 else f"k3-{number:02}", now, number=number, moved=moved) for number in range(targets)
    ]
    found: tuple[Incident, ...] = ()
    if sick and targets > 1:
        dead: dict[str, Any] = {
            "acc_len": cell(1.02, 4.27, 5214 + 1000 * moved),
            "categories": {name: cell(1.02, expected) for name, expected in CATEGORIES},
            "ticks": ("ok",) * 40 + ("critical",) * 8,
        }
        gone = TargetState("alerting", "dead-drafter", now - 3840)
        rows[0] = row("k3-00", now, state=gone, label="Dead drafter", severity="critical", moved=moved, **dead)
        rows[1] = row(
            "k3-01", now, number=1, label="Slow kernel", severity="critical", step_time_ratio=2.3, moved=moved
        )
        found = (incident("a", "k3-00", since - 3840), incident("b", "k3-01", since - 1380))
    trend = tuple(4.2 + place % 5 / 50 if place != 20 else None for place in range(47))
    return FleetView(
        at=now,
        verdict=f"Speculation pays on {targets - len(found)} of {targets} serving targets."
        if found
        else "All is well.",
        alarm="Two are losing 5,780 tok/s." if found else "",
        status=("live, 2 s ago", f"{targets} targets: {targets} serving", "1.42 M verify steps in the last 15 min"),
        incidents=found,
        kpis=(
            Kpi("acc_len, all serving", f"{4.16 + moved:.2f}", "", "expected 4.27", trend),
            Kpi("Output", "53.1 k", "tok/s", "all serving", trend),
            Kpi("Step time", "42.4", "ms", "median", trend),
            Kpi("Yield", "45.1", "%", "(acc_len − 1) / k, k = 7", trend),
            Kpi("Coverage", "98.6", "%", "of steps carry a category"),
        ),
        categories=CATEGORIES,
        rows=tuple(rows),
        firing=len(found),
        tick_seconds=14_400 / TICKS,
        alarm_severity="critical" if found else None,
        told_at=now - 2,
    )


def target_page(name: str, now: float) -> TargetPage:
    """A healthy target, as its details show it."""
    return TargetPage(
        at=now,
        target=name,
        group="kimi-a",
        url="http://127.0.0.1:30000",
        state=TargetState("ok", ""),
        label="OK",
        severity=None,
        pending=False,
        verdict=f"acc_len of {name} is as expected: 4.30 of 4.27.",
        status=("SGLang 0.5.23", "k = 7"),
        figures=(Kpi("acc_len", "4.30", "", "expected 4.27"),),
        acc_len=cell(4.3, 4.27),
        categories={"code": cell(5.4, 5.5)},
        findings=(),
        recent=(),
        facts=(),
        unseen=(),
        ranks=(),
        ranks_note="",
        sources=(),
        surfaces=(),
        hits=(),
        rejected=0,
    )


class Reads:
    """What the pages read: ``told`` are arguments of ``fleet_view``."""

    def __init__(self) -> None:
        self.told: Mapping[str, Any] = {}
        self._since = time.time()

    def view(self, now: float, span_seconds: float) -> FleetView:
        if self.told.get("broken"):
            raise RuntimeError("the store is gone")
        return fleet_view(now, since=self._since, **self.told)

    def page(self, name: str, now: float, zone: tzinfo) -> TargetPage | None:
        return target_page(name, now) if name.startswith(("k3-", "<")) else None


def served() -> FastAPI:
    """The pages on a FastAPI object of their own."""
    reads = Reads()

    @asynccontextmanager
    async def beating(_: FastAPI) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                views.pulse.beat()
                await asyncio.sleep(1.0)

        task = asyncio.create_task(beat())
        yield
        task.cancel()

    app = FastAPI(lifespan=beating)
    views = Views(reads, Untold(), reads, asyncio.to_thread, time.time)

    @app.post("/fleet")
    async def told(request: Request) -> Response:
        reads.told = await request.json()
        views.pulse.beat()
        return Response()

    install(app, views, demo=True)
    return app


class Untold:
    """No trends."""

    def view(self, *_: object) -> Any:
        raise RuntimeError("no trends are served here")


if __name__ == "__main__":
    uvicorn.run(served(), port=int(sys.argv[1]), log_level="warning")
