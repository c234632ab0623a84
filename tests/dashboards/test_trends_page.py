"""The trends page in Chromium, on the service's own reads: what it shows, its address, and how it stays live."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import BrowserContext, Page, Response, expect, sync_playwright

from acceptance.counts import Counts, Spread
from acceptance.facts import Fact
from acceptance.health import Health
from acceptance.series import Series
from acceptance.window import Window
from alerts.findings import findings
from alerts.rules import Rulebook
from collectors.reading import Reading
from collectors.sink import Read
from collectors.target import Target
from dashboards.ui import install
from dashboards.views import Views
from service.catalog import Catalog
from service.fleet import FleetReads
from service.target import TargetReads
from service.trends import TrendsReads
from store.history import Batch
from store.memory import MemoryHistory
from store.sql import SqlState
from store.state import AlertChange, AlertRecord

pytestmark = pytest.mark.process

CHROMIUM = shutil.which("chromium")
PLOT = "document.querySelector('#trends-figure .js-plotly-plot')"
SPAN = "layout.xaxis.range.map((text) => Date.parse(text) / 1000).reduce((start, end) => end - start)"
EVERY = 15.0
LENGTHS = {"code": 5.5, "chat": 3.9, "creative": 2.6}
IDLE = (-1500.0, -1080.0)
"""Seven minutes in which a target answers and has nothing to do, in seconds from now."""
KNOWN = {"engine": "sglang", "drafter": "RadixArk/Kimi-K3-DSpark", "k": 7, "model": "moonshotai/Kimi-K3"}


class Service:
    """The pages on a loop of their own, over a past written by hand. Its clock goes on when it is told to."""

    def __init__(self, folder: Path) -> None:
        # On the grid of every bucket up to five minutes, plus what a scrape needs.
        self.at = time.time() // 300 * 300 + 10
        self.history, self.catalog = MemoryHistory(), Catalog()
        self.state = SqlState(f"sqlite:///{folder / 'state.sqlite'}")
        self._numbers = count(1)
        target = Target("k3-h200-03", "http://x", "kimi", scrape_interval_seconds=EVERY)
        self.catalog.replace([target], self.at)
        facts = tuple(Fact(target.name, key, value, "server_info", self.at - 9000) for key, value in KNOWN.items())
        self.catalog.observe(Read(target.name, "server_info", self.at, {}, Reading(facts=facts)))
        self._past()
        parts = self.history, self.state, self.catalog, lambda: Rulebook(findings())
        reads = FleetReads(*parts), TrendsReads(*parts), TargetReads(*parts)
        self.views = Views(*reads, asyncio.to_thread, lambda: self.at)
        server = FastAPI()
        install(server, self.views)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(server, log_level="warning"))
        self._thread = threading.Thread(target=self._serve)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline, "the pages did not start"
            time.sleep(0.05)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()
        self.state.close()

    def go_on(self, seconds: float) -> None:
        """As if ``seconds`` had passed, with traffic."""
        before = self.at
        self.at += seconds
        self._traffic(before - 10, self.at - 10)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.views.pulse.beat)

    def _past(self) -> None:
        now = self.at - 10
        self._traffic(now - 3600, now + IDLE[0])
        self._traffic(now + IDLE[1], now)
        looks = [Health("k3-h200-03", "metrics", now - EVERY * number, up=True, running=0.0) for number in range(240)]
        self.history.append(Batch(health=looks))
        alert = AlertRecord(
            key="dead-drafter target=k3-h200-03",
            finding="dead-drafter",
            severity="critical",
            target="k3-h200-03",
            phase="firing",
            active_since=now - 700,
            evaluated_at=now,
            fired_at=now - 600,
            episode=1,
            detail={"since": now - 700},
        )
        self.state.apply([AlertChange(alert)])

    def _traffic(self, start: float, end: float) -> None:
        windows: list[Window] = []
        for number in range(1, int((end - start) // EVERY) + 1):
            at = start + EVERY * number
            for category, acc_len in LENGTHS.items():
                emitted = 400.0 * (acc_len + (0.1 if number % 2 else -0.1))
                counts = Counts(
                    steps=400.0,
                    emitted=emitted,
                    requests=8.0,
                    slots=2800.0,
                    trim_bound=0.0,
                    spread=Spread.of(emitted, 400.0),
                )
                series = Series("k3-h200-03", group="kimi", category=category)
                windows.append(Window(next(self._numbers), series, at - EVERY, at, "counter", True, counts))
        self.history.append(Batch(windows=windows))

    def _serve(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._socket])

        asyncio.run(serve())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("service"))
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def reader() -> Iterator[BrowserContext]:
    """A browser in a zone of its own."""
    if CHROMIUM is None:
        pytest.skip("no chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_context(
            viewport={"width": 1440, "height": 900}, color_scheme="light", timezone_id="Asia/Kolkata"
        )
        browser.close()


class Visit:
    """A page that is open, and everything that it complained of or asked for elsewhere."""

    def __init__(self, page: Page, service: Service) -> None:
        self.page, self.service = page, service
        self.complaints: list[str] = []
        self.ticks: list[Response] = []
        page.on("console", lambda message: self._complain(message.type, message.text))
        page.on("pageerror", lambda error: self._complain("error", str(error)))
        page.on("request", lambda request: self._complain_of_outside(request.url))
        page.on("response", self._keep)

    def open(self, query: str) -> None:
        self.page.goto(f"{self.service.url}/trends?{query}")

    def drawn(self) -> None:
        expect(self.page.locator("#trends-figure .bars .point").first).to_be_attached(timeout=15_000)

    def address(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.page.url).query).items()}

    def figure(self, expression: str) -> Any:
        return self.page.evaluate(f"{PLOT}.{expression}")

    def until(self, condition: str) -> None:
        """Asked from here: the page's policy forbids to evaluate text in it."""
        deadline = time.monotonic() + 15
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(50)

    def drag(self, start: float, end: float) -> None:
        """Over the figure, from one share of its width to another."""
        box = self.page.locator("#trends-figure .nsewdrag").first.bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + start * box["width"], y)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + end * box["width"], y, steps=6)
        self.page.mouse.up()

    def _complain(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _complain_of_outside(self, url: str) -> None:
        if not url.startswith((self.service.url, self.service.url.replace("http", "ws"), "data:", "blob:")):
            self.complaints.append(url)

    def _keep(self, response: Response) -> None:
        if "_dash-update-component" in response.url and "trends-verdict" in (response.request.post_data or ""):
            self.ticks.append(response)


@pytest.fixture
def visit(reader: BrowserContext, service: Service) -> Iterator[Visit]:
    visit = Visit(reader.new_page(), service)
    yield visit
    visit.page.close()
    assert visit.complaints == []


def test_lines_gap_alert_and_evidence_are_shown(visit: Visit) -> None:
    visit.open("from=now-1h&target=k3-h200-03")
    visit.drawn()
    page = visit.page
    expect(page.locator("#trends-figure")).to_contain_text("idle, 7 min")
    expect(page.locator("#trends-figure")).to_contain_text("alert: ")
    expect(page.locator("#trends-verdict")).to_contain_text("3 categories")
    expect(page.locator("#trends-unit")).to_contain_text("times in UTC+5:30")
    expect(page.locator(".trends-label")).to_contain_text(["code", "chat", "creative"])
    lengths = visit.figure("data.find((trace) => trace.name === 'code').y")
    assert None in lengths, "no data breaks the line"
    assert 0 not in lengths
    box = page.locator("#trends-figure .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 100)
    hover = page.locator("#trends-figure .hoverlayer")
    expect(hover).to_contain_text("steps")
    expect(hover).to_contain_text("all steps")
    expect(hover).to_contain_text("expected 5.5")


def test_a_drag_is_a_step_of_the_history(visit: Visit) -> None:
    visit.open("from=now-1h&target=k3-h200-03")
    visit.drawn()
    visit.drag(0.2, 0.4)
    visit.until("new URLSearchParams(location.search).get('to') !== null")
    zoomed = visit.address()
    assert zoomed["from"].endswith("Z")
    assert zoomed["target"] == "k3-h200-03"
    visit.page.reload()
    visit.drawn()
    assert visit.address() == zoomed
    assert visit.figure(SPAN) == pytest.approx(720, abs=60)
    visit.page.go_back()
    visit.until(f"{PLOT}.{SPAN} > 3000")
    assert visit.address() == {"from": "now-1h", "target": "k3-h200-03"}


def test_a_double_click_goes_back_to_before_the_drag(visit: Visit) -> None:
    visit.open("from=now-1h")
    visit.drawn()
    visit.drag(0.2, 0.4)
    visit.until("new URLSearchParams(location.search).get('to') !== null")
    box = visit.page.locator("#trends-figure .nsewdrag").first.bounding_box()
    assert box is not None
    visit.page.mouse.dblclick(box["x"] + 200, box["y"] + 200)
    visit.until("new URLSearchParams(location.search).get('to') === null")
    assert visit.address() == {"from": "now-1h"}


def test_the_theme_changes_without_a_reload(visit: Visit) -> None:
    visit.open("from=now-1h")
    visit.drawn()
    assert visit.figure("_fullLayout.plot_bgcolor") == "#fbfbfc"
    visit.page.evaluate("window.stayed = true; draftgauge.go({theme: 'dark'})")
    visit.until(f"{PLOT}._fullLayout.plot_bgcolor === '#0c0e12'")
    assert visit.page.evaluate("window.stayed")


def test_the_same_figures_are_in_a_table(visit: Visit) -> None:
    visit.open("from=now-1h")
    visit.drawn()
    page = visit.page
    expect(page.locator("#trends-table")).to_be_hidden()
    page.get_by_role("button", name="Show as table").click()
    rows = page.locator("#trends-rows tr")
    buckets = visit.figure("data.find((trace) => trace.name === 'code').y.length")
    expect(rows).to_have_count(buckets)
    expect(rows.first).to_contain_text("5.50 (")
    assert rows.filter(has_text="no data").count() == 14
    expect(page.locator("#trends-caption")).to_contain_text("code 5.50")
    visit.service.go_on(60)
    expect(rows).to_have_count(buckets + 2, timeout=15_000)


def test_a_label_isolates_and_a_chip_takes_it_back(visit: Visit) -> None:
    visit.open("from=now-1h")
    visit.drawn()
    visit.page.locator(".trends-label", has_text="chat").click()
    chip = visit.page.locator(".chip-set")
    expect(chip).to_contain_text("category: chat")
    assert visit.address()["category"] == "chat"
    expect(visit.page.locator(".trends-label")).to_have_count(1)
    chip.click()
    expect(visit.page.locator(".trends-label")).to_have_count(3)


def test_nothing_to_show_says_so_and_a_way_on(visit: Visit) -> None:
    visit.open("from=now-1h&category=nobody")
    box = visit.page.locator("#trends-empty")
    expect(box).to_contain_text("No data")
    expect(visit.page.locator("#trends-chart")).to_be_hidden()
    box.get_by_role("button", name="Clear filters").click()
    visit.drawn()
    expect(box).to_be_empty()


def test_time_goes_on_in_small_ticks(visit: Visit) -> None:
    visit.open("from=now-1h")
    visit.drawn()
    buckets = f"{PLOT}.data.find((trace) => trace.name === 'code').y.length"
    before = visit.page.evaluate(buckets)
    visit.ticks.clear()
    visit.service.go_on(30)
    visit.until(f"{buckets} === {before} + 1")
    visit.until("document.querySelectorAll('#trends-figure .bars .point').length > 100")
    assert visit.ticks
    assert max(len(tick.body()) for tick in visit.ticks) <= 5_000
    ends = datetime.fromtimestamp(visit.service.at, timezone(timedelta(minutes=330)))
    assert visit.figure("layout.xaxis.range[1]") == f"{ends:%Y-%m-%d %H:%M:%S}"


def test_a_narrow_page_does_not_scroll_sideways(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    visit.open("from=now-1h&target=k3-h200-03")
    visit.drawn()
    expect(visit.page.locator(".trends-label").first).to_be_visible()
    assert visit.page.evaluate("document.documentElement.scrollWidth") == 390
