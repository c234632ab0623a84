"""The service's own parts around emulated engines, all on the emulators' clock, which moves when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from acceptance.counts import Counts
from acceptance.query import AcceptanceQuery
from acceptance.series import Dimension
from acceptance.window import Source
from app.assembly import Assembly, assembled
from app.config import load
from app.metrics import Metrics
from collectors.follower import Follower
from collectors.tail import matching
from collectors.target import Target
from service.evaluate import Evaluated

EPOCH = 1_796_110_000.0
EVALUATION_SECONDS = 15.0

CHANNELS = {
    "slack": {"kind": "slack", "url": "{receiver}/services/T0/B0/secret"},
    "pager": {"kind": "webhook", "url": "{receiver}/hook"},
}


class Bench:
    """What ``draftgauge serve`` runs, taken step by step: advance the engines, scrape, read logs, judge, deliver."""

    def __init__(self, engines: Iterable[Any], config: Path, scrape_seconds: float) -> None:
        self.engines = {engine.name: engine for engine in engines}
        self.now = EPOCH
        self.evaluated: list[Evaluated] = []
        self._judged_at = EPOCH
        self.parts: Assembly
        self._config = load(config)
        self._scrape_seconds = scrape_seconds
        self._http = httpx.AsyncClient(timeout=120.0, trust_env=False)
        self._followers: dict[tuple[str, str], Follower] = {}
        self._open = AsyncExitStack()

    def __getitem__(self, name: str) -> Any:
        """The emulated engine of this name."""
        return self.engines[name]

    async def open(self) -> None:
        """Start, or start again from what is on disk."""
        await self.close()
        self.parts = await self._open.enter_async_context(assembled(self._config, lambda: self.now, Metrics()))

    async def close(self) -> None:
        for follower in self._followers.values():
            follower.rest()
        self._followers.clear()
        await self._open.aclose()

    async def end(self) -> None:
        await self.close()
        await self._http.aclose()

    async def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Let emulated time go on, looking all the while; whether ``until`` came true (it is asked after each look)."""
        end = self.now + seconds
        while self.now < end and not until():
            await self.pass_unseen(min(self._scrape_seconds, end - self.now))
            await self.look()
            if self.now >= self._judged_at + EVALUATION_SECONDS:
                await self.judge()
        return until()

    async def pass_unseen(self, seconds: float) -> None:
        """Time in which nobody looks."""
        await asyncio.gather(
            *(
                self._http.post(f"{engine.control}/advance", json={"seconds": seconds})
                for engine in self.engines.values()
            )
        )
        self.now += seconds

    async def look(self) -> None:
        """Scrape every target and read every log to its end; then all of it is committed."""
        targets = self._config.watched()
        await asyncio.gather(*(self.parts.scraper.scrape(target) for target in targets if target.url))
        await asyncio.gather(*(self._read_logs(target) for target in targets))
        await self.parts.writer.drain()

    async def judge(self) -> None:
        """Evaluate, and deliver what that gives."""
        self._judged_at = self.now
        self.evaluated.append(await asyncio.to_thread(self.parts.evaluator.evaluate, self.now))
        await self.parts.outbox.deliver_due(self.now)

    async def finish(self, *names: str) -> None:
        """Look on until no request of these engines (or of any) runs, and until all of it was seen."""
        for _ in range(2000):
            if not any(self[name].get("clock")["unfinished"] for name in names or self.engines):
                await self.run(2 * self._scrape_seconds)
                return
            await self.run(self._scrape_seconds)
        raise AssertionError("requests still run")

    def sums(
        self, source: Source, by: tuple[Dimension, ...], start: float = EPOCH, **where: str
    ) -> dict[tuple[str | None, ...], Counts]:
        """What history holds of one source since ``start``, by key."""
        query = AcceptanceQuery(
            start=start - 1.0,
            end=self.now + 60.0,
            by=by,
            where={name: (value,) for name, value in where.items()},  # type: ignore[misc]
            source=source,
        )
        sums = self.parts.history.query(query)
        assert len({item.key for item in sums}) == len(sums)
        return {item.key: item.counts for item in sums}

    def fired(self, *severities: str) -> set[tuple[str, str]]:
        """(finding, severity) of every transition to firing so far; of all severities where none is named."""
        return {
            (record.finding, record.severity)
            for evaluated in self.evaluated
            for record, transition in evaluated.transitions
            if transition.kind == "firing" and (not severities or record.severity in severities)
        }

    async def _read_logs(self, target: Target) -> None:
        for path in matching(target.logs):
            key = target.name, path
            if key not in self._followers:
                self._followers[key] = self.parts.tailer.follower(target, path)
            while await self._followers[key].advance():
                pass


@pytest.fixture
async def bench(
    tmp_path: Path, emulate: Callable[..., list[Any]], receiver: Any
) -> AsyncIterator[Callable[..., Awaitable[Bench]]]:
    """``await bench(("sg-1", "--engine", "sglang"), ...)``: engines on a manual clock, and the parts that watch them.

    ``quiet`` engines have no traffic of their own. ``target`` is laid over the configuration of each.
    """
    benches: list[Bench] = []

    async def make(
        *specs: tuple[str, ...],
        quiet: bool = False,
        scrape_seconds: float = 15.0,
        target: dict[str, Any] | None = None,
    ) -> Bench:
        clock = ("--manual-clock", "--epoch", str(EPOCH), *(("--rate", "0") if quiet else ()))
        engines = emulate(*((*spec, *clock) for spec in specs))
        config = tmp_path / "draftgauge.yaml"
        config.write_text(
            yaml.safe_dump(
                {
                    "data_dir": "data",
                    "external_url": "http://draftgauge.test",
                    "channels": {
                        name: {**channel, "url": channel["url"].format(receiver=receiver.url)}
                        for name, channel in CHANNELS.items()
                    },
                    "targets": [
                        {
                            "name": one.name,
                            "url": one.url,
                            "group": one.group,
                            "logs": [str(one.log)],
                            **(target or {}),
                        }
                        for one in engines
                    ],
                }
            )
        )
        made = Bench(engines, config, scrape_seconds)
        benches.append(made)
        await made.open()
        await made.look()
        return made

    yield make
    for made in benches:
        await made.end()
