"""The fleet page in Chromium: what it shows, its address, how it stays live, and what it does without its service."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Response, expect, sync_playwright

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("fleet page")]

CHROMIUM = shutil.which("chromium")
SERVED = Path(__file__).parent / "served.py"
PATIENCE_MS = 20_000
MOST_TICK_BYTES = 5_000


class Service:
    """The pages in a process of their own, which can be killed and started again at the same address."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(SERVED), str(self.port)])
        deadline = time.monotonic() + 60
        while True:
            try:
                self.show()
            except httpx.HTTPError:
                assert self._process.poll() is None, "the pages ended by themselves"
                assert time.monotonic() < deadline, "the pages did not start"
                time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def show(self, **told: Any) -> None:
        """What the fleet is from now on: arguments of ``fleet_view``."""
        httpx.post(f"{self.url}/fleet", json=told, timeout=20.0).raise_for_status()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    if CHROMIUM is None:
        pytest.skip("needs Debian's package chromium")
    service = Service()
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def visitor() -> Iterator[BrowserContext]:
    """One for all pages, as somebody's browser is: with a cache, and one websocket for all tabs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_context()
        browser.close()


class Complaints(list[str]):
    """What the browser had to say against a page: console errors, exceptions, policy violations, outside requests."""

    def listen(self, page: Page, url: str) -> None:
        page.on("console", lambda said: self.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((url, "data:", "blob:")) else self.append(request.url),
        )


Open = Callable[..., Page]
Scheme = Literal["light", "dark"]


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def open_page(service: Service, visitor: BrowserContext, complaints: Complaints) -> Iterator[Open]:
    """Opens an address at a width: ``open_page("?find=x", width=390)``. Nothing may be complained about."""
    pages: list[Page] = []
    service.show()

    def opened(address: str = "", width: int = 1440, scheme: Scheme = "light") -> Page:
        page = visitor.new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.set_default_timeout(PATIENCE_MS)
        complaints.listen(page, service.url)
        page.goto(f"{service.url}/{address}")
        expect(page.locator(".ag-row").first).to_be_visible(timeout=PATIENCE_MS)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not complaints


def asked(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def rows(page: Page) -> list[str]:
    """Names of the targets shown, from the top."""
    found = page.locator(".ag-center-cols-container .ag-row").evaluate_all(
        "rows => rows.map((row) => [Number(row.getAttribute('row-index')), row.getAttribute('row-id')])"
    )
    return [name for _, name in sorted(found)]


def expect_rows(page: Page, count: int) -> None:
    expect(page.locator(".ag-center-cols-container .ag-row")).to_have_count(count, timeout=PATIENCE_MS)


def choose(page: Page, chip: str, value: str) -> None:
    page.locator(".filters summary", has_text=f"{chip}:").click()
    page.locator(f"[data-toggle='{value}']").click()


def test_what_is_wrong_is_said_first_with_what_to_do(open_page: Open) -> None:
    page = open_page()
    expect(page).to_have_title("(2) Draftgauge")
    expect(page.locator("#fleet-verdict")).to_have_text(
        "Speculation pays on 10 of 12 serving targets. Two are losing 5,780 tok/s."
    )
    expect(page.locator("#fleet-status")).to_contain_text("live, ")
    expect(page.locator(".incident")).to_have_count(2)
    expect(page.locator(".incident").first).to_contain_text("firing 1 h ")
    expect(page.locator(".incident code").first).to_have_text("--speculative-draft-attention-backend trtllm_mha")
    expect(page.locator(".kpi")).to_have_count(5)
    expect(page.locator(".demo-badge")).to_be_visible()
    assert rows(page)[:2] == ["k3-00", "k3-01"]
    dead = page.locator(".ag-row[row-id='k3-00']")
    expect(dead.locator(".heat4")).to_have_count(7)
    assert "then critical since" in (dead.locator("svg.strip").get_attribute("aria-label") or "")
    expect(page.locator(".ag-row[row-id='k3-01'] [col-id='step']")).to_contain_text("×2.3")


def test_names_from_outside_stay_text(open_page: Open) -> None:
    page = open_page("?find=onerror")
    expect_rows(page, 1)
    expect(page.locator(".ag-row .target")).to_contain_text('<img src=x onerror="window.hacked=1">')
    page.locator(".ag-row [col-id='target']").click()
    expect(page.locator("#target-name")).to_contain_text("<img src=x")
    assert page.evaluate("window.hacked") is None


def test_a_cell_says_what_it_rests_on(open_page: Open) -> None:
    page = open_page()
    page.locator(".ag-row[row-id='k3-00'] [col-id='c0']").hover()
    expect(page.locator(".tip")).to_contain_text("k3-00 · code")
    expect(page.locator(".tip")).to_contain_text("5.5 published; 81 % below")
    expect(page.locator(".tip")).to_contain_text("1,400 verify steps, 15 min")


def test_filters_are_steps_of_the_history(open_page: Open) -> None:
    page = open_page()
    choose(page, "engine", "engine=vllm")
    expect_rows(page, 4)
    page.keyboard.press("Escape")
    choose(page, "state", "state=ok")
    expect_rows(page, 4)
    assert asked(page) == {"engine": ["vllm"], "state": ["ok"]}
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("k3-1")
    expect_rows(page, 1)
    page.wait_for_url("**find=k3-1**")
    page.reload()
    expect_rows(page, 1)
    expect(page.locator("#find")).to_have_value("k3-1")
    expect(page.locator(".filters summary", has_text="engine:")).to_contain_text("vLLM")
    page.go_back()
    expect_rows(page, 4)
    expect(page.locator("#find")).to_have_value("")
    page.go_back()
    page.go_back()
    expect_rows(page, 12)
    assert asked(page) == {}
    page.go_forward()
    expect_rows(page, 4)


def test_what_matches_nothing_says_so_and_how_to_go_on(open_page: Open) -> None:
    page = open_page()
    choose(page, "state", "state=idle")
    expect(page.locator("#fleet-unmatched")).to_contain_text("12 targets are hidden.")
    page.locator("text=Clear filters").click()
    expect_rows(page, 12)
    assert asked(page) == {}


def test_the_table_is_grouped_and_sorted(open_page: Open) -> None:
    page = open_page()
    page.locator("text=By engine").click()
    expect(page.locator(".group-row")).to_have_text(["SGLang8 targets, 2 firing", "vLLM4 targets"])
    page.locator(".head", has_text="acc_len").click()
    assert asked(page) == {"sort": ["t"]}
    expect(page.locator(".ag-row[row-index='0'] [col-id='t']")).to_have_text("1.02")
    page.locator(".head", has_text="acc_len").click()
    expect(page.locator(".ag-row[row-index='11'] [col-id='t']")).to_have_text("1.02")
    page.go_back()
    page.go_back()
    page.go_back()
    expect(page.locator(".group-row")).to_have_count(0)


def test_a_row_opens_the_targets_details_by_mouse_and_by_keys(open_page: Open) -> None:
    page = open_page()
    page.locator(".ag-row[row-id='k3-05'] [col-id='c1']").click()
    expect(page.locator("#target-verdict")).to_have_text("acc_len of k3-05 is as expected: 4.30 of 4.27.")
    assert asked(page) == {"open": ["k3-05"]}
    expect(page.locator("#target-name")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#target")).to_be_hidden()
    page.go_back()
    expect(page.locator("#target-name")).to_have_text("k3-05")
    page.go_forward()
    expect(page.locator("#target")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("#target-name")).to_have_text("k3-06")
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    expect(page.locator("#target-name")).to_have_text("k3-01")


def test_enter_on_a_category_opens_its_trends(open_page: Open, complaints: Complaints) -> None:
    page = open_page()
    page.locator(".ag-row[row-id='k3-05'] [col-id='c1']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/trends?**")
    assert asked(page) == {"target": ["k3-05"], "category": ["math"]}
    complaints.clear()


def test_news_comes_by_itself_and_a_tick_sends_what_changed(open_page: Open, service: Service) -> None:
    page = open_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer) if "_dash-update" in answer.url else None)
    cell = page.locator(".ag-row[row-id='k3-05'] [col-id='c0']")
    for moved in (0.1, 0.2):
        service.show(moved=moved)
        expect(cell).to_have_text(f"{5.5 * 0.98 + moved:.2f}", timeout=PATIENCE_MS)
    expect(page.locator("#kpi-0-value")).to_have_text("4.36")
    bodies = [answer.text() for answer in answers]
    assert bodies
    assert not [body for body in bodies if len(body.encode()) >= MOST_TICK_BYTES]
    service.show(sick=False)
    expect(page.locator("#fleet-verdict")).to_have_text("All is well.", timeout=PATIENCE_MS)
    expect(page).to_have_title("Draftgauge")
    expect(page.locator("#announce")).to_have_text("Nothing is firing")


def test_paused_means_paused(open_page: Open, service: Service) -> None:
    page = open_page("?refresh=0s")
    expect(page.locator("#fleet-status")).to_contain_text("paused, ")
    service.show(sick=False)
    # Longer than it takes to be told of anything.
    page.wait_for_timeout(7000)
    expect(page.locator(".incident")).to_have_count(2)
    page.keyboard.press("p")
    expect(page.locator("#fleet-verdict")).to_have_text("All is well.", timeout=PATIENCE_MS)
    assert asked(page) == {}


def test_a_lost_connection_is_said_and_heals(open_page: Open, service: Service, complaints: Complaints) -> None:
    page = open_page()
    expect(page.locator("body")).to_have_attribute("data-live", "live")
    service.stop()
    lost = page.locator("#lost")
    expect(lost).to_be_visible(timeout=PATIENCE_MS)
    expect(lost).to_contain_text("Connection lost 1")
    expect(lost).to_contain_text("Showing what was known at ")
    expect(lost).to_contain_text("trying again")
    expect(page.locator(".incident")).to_have_count(2)
    service.start()
    service.show(sick=False)
    expect(page.locator("#fleet-verdict")).to_have_text("All is well.", timeout=2 * PATIENCE_MS)
    expect(lost).to_be_hidden()
    # A browser complains about every request that is not answered.
    assert all("ERR_CONNECTION" in said or "did not respond" in said for said in complaints)
    complaints.clear()


def test_a_service_at_fault_says_where_its_log_says_why(open_page: Open, service: Service) -> None:
    page = open_page()
    service.show(broken=True)
    expect(page.locator(".failed")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("#failed-incident")).not_to_be_empty()
    expect_rows(page, 12)


@pytest.mark.parametrize(
    ("address", "scheme", "dark"), [("?theme=dark", "light", True), ("?theme=light", "dark", False), ("", "dark", True)]
)
def test_the_theme_is_that_of_the_address_or_the_systems(
    address: str, scheme: Scheme, dark: bool, open_page: Open
) -> None:
    page = open_page(address, scheme=scheme)
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark" if dark else "light")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(12, 14, 18)" if dark else "rgb(251, 251, 252)")


@pytest.mark.parametrize("width", [390, 768, 1100, 1440])
def test_nothing_is_wider_than_the_screen(width: int, open_page: Open) -> None:
    page = open_page(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(page.locator(".ag-row .card")).to_have_count(12 if width < 720 else 0)
    expect(page.locator(".header nav")).to_be_visible(visible=width >= 720)
