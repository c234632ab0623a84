"""Scraping against a server of ours: what one target answers, or how its clock goes, costs no other and no number."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from acceptance.facts import Subject
from collectors.engines import engines
from collectors.reading import Reading, State, Text
from collectors.scrape import METRICS, Scraper
from collectors.sink import Read
from collectors.target import Target

SET_BACK_SECONDS = 7200.0


class Kept:
    """A sink that keeps what it is offered, and an observer that does not care."""

    def __init__(self) -> None:
        self.reads: list[Read] = []

    def subject(self, target: Target) -> Subject:
        return target.subject({})

    def offer(self, read: Read) -> bool:
        self.reads.append(read)
        return True

    async def put(self, read: Read) -> None:
        self.offer(read)

    def scraped(self, target: str, outcome: str, seconds: float, late: bool) -> None:
        """Nothing."""

    def steps(self) -> list[float | None]:
        return [
            window.counts.steps for read in self.reads if read.surface == METRICS for window in read.reading.windows
        ]


class Engine:
    """A server whose page counts a hundred steps more at each look."""

    def __init__(self) -> None:
        self.looks = 0

    async def page(self, _: web.Request) -> web.Response:
        self.looks += 1
        labels = 'engine="0",model_name="m"'
        names = {"drafts": 100, "draft_tokens": 300, "accepted_tokens": 200}
        lines = [f"vllm:spec_decode_num_{name}_total{{{labels}}} {self.looks * n}" for name, n in names.items()]
        return web.Response(text="\n".join([*lines, ""]))


@pytest.fixture
async def url() -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/metrics", Engine().page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_clock_set_back_loses_no_step(url: str) -> None:
    times = iter([10_000.0, 10_015.0, 10_030.0 - SET_BACK_SECONDS, 10_045.0 - SET_BACK_SECONDS])
    kept = Kept()
    async with aiohttp.ClientSession() as session:
        scraper = Scraper(session, kept, lambda: next(times), kept)
        for _ in range(4):
            await scraper.scrape(Target("t", url))
    assert kept.steps() == [100.0, 100.0, 100.0]


class Waiting:
    """A reader that reads on only when the loop has gone on."""

    surface = METRICS

    def __init__(self) -> None:
        self.loop_went_on = threading.Event()

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        return {"waited": self.loop_went_on.wait(5)}, Reading()


async def test_a_long_page_does_not_hold_up_the_loop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collectors.scrape.LONG_PAGE_BYTES", 10)
    reader, kept = Waiting(), Kept()
    vllm = replace(engines()["vllm"], metrics=reader, documents={})
    monkeypatch.setattr("collectors.scrape.engines", lambda: {"vllm": vllm})
    async with aiohttp.ClientSession() as session:
        asyncio.get_running_loop().call_later(0.2, reader.loop_went_on.set)
        await Scraper(session, kept, lambda: 1.0, kept).scrape(Target("t", url))
    assert [read.state for read in kept.reads] == [{"waited": True}]
