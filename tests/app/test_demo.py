"""The demo: what it shows within two minutes, that it says what it is, and that messages are shown safely."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from alerts.notify.notice import Notice
from alerts.notify.slack.blocks import payload
from app.demo.blocks import html_of, mrkdwn
from app.demo.fleet import DEMO
from app.demo.inbox import MOST_BYTES, MOST_MESSAGES, Inbox, receiving
from app.demo.show import settings
from app.demo.story import STORY
from store.state import Message

WITHIN_SECONDS = 120.0
MESSAGE = Message(
    "m1",
    "demo",
    "dead-drafter/sglang-6",
    "firing",
    {
        "finding": "dead-drafter",
        "title": "Drafter is dead <b>",
        "severity": "critical",
        "target": "sglang-6<script>alert(1)</script>",
        "group": "kimi*k3*",
        "measure": "acc_len",
        "value": 1.0,
        "threshold": 1.1,
        "steps": 2612,
        "since": 1_796_094_000.0,
        "why": "acc_len 1.00 & nothing <https://evil.example|else>",
        "cause": "a wrong draft model",
        "remedy": ["curl -s HOST/server_info | jq '.a'", "restart"],
        "link": "http://127.0.0.1:8400/trends?from=now-1h&target=sglang-6",
    },
    1_796_094_100.0,
)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("*Why*\nacc_len `1.00`", "<strong>Why</strong><br>acc_len <code>1.00</code>"),
        ("a &lt;b&gt; &amp;amp;", "a &lt;b&gt; &amp;amp;"),
        ('<b onclick="x">', "<span>b onclick=&quot;x&quot;</span>"),
        ("<https://a.example/?b=1&amp;c|see *this*>", None),
        ("<javascript:alert(1)|here>", "<span>here</span>"),
        ("<!channel>", "<span>!channel</span>"),
        ("<!date^1796094000^{date_short_pretty}|2026-12-01T03:00:00Z>", "<time>2026-12-01T03:00:00Z</time>"),
        ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
        ("a < b and c > d", None),
    ],
)
def test_slacks_markup_as_html(text: str, html: str | None) -> None:
    made = mrkdwn(text)
    assert html is None or made == html
    assert not re.search(r"<(?!/?(strong|em|code|br|time|span|a)\b)", made), made
    assert not re.search(r"\son\w+=\"", made)


def test_a_link_leads_where_it_says() -> None:
    assert mrkdwn('<https://a.example/?q="x"|go>') == (
        '<a href="https://a.example/?q=&quot;x&quot;" rel="noopener noreferrer">go</a>'
    )


def test_what_the_slack_channel_sends_is_shown_whole_and_safely() -> None:
    html = html_of(payload(Notice.of(MESSAGE)))
    text = re.sub(r"<[^>]+>", " ", html)
    for words in (
        "CRITICAL: Drafter is dead",
        "sglang-6&lt;script&gt;",
        "acc_len 1.00, threshold 1.10",
        "2,612",
        "a wrong",
    ):
        assert words in text, words
    assert "<script" not in html
    assert '<a class="button" href="http://127.0.0.1:8400/trends?from=now-1h&amp;target=sglang-6"' in html
    assert 'href="https://evil.example"' not in html
    assert "[" not in re.sub(r"\[cut\]", "", text), "every kind of block is known"


@pytest.mark.parametrize("body", [{}, {"blocks": "x"}, {"blocks": [1, None, {}, {"type": "<i>"}, {"type": "section"}]}])
def test_any_payload_can_be_shown(body: Any) -> None:
    assert "<i>" not in html_of(body)


def test_the_stand_in_takes_what_slack_takes() -> None:
    with receiving(Inbox()) as inbox, httpx.Client(trust_env=False) as client:
        answer = client.post(inbox.url, json={"text": "hello"})
        assert (answer.status_code, answer.text) == (200, "ok")
        assert client.post(inbox.url, content=b"no json").status_code == 400
        assert client.post(inbox.url, json=[1]).status_code == 400
        assert client.post(inbox.url, content=b" " * (MOST_BYTES + 1)).status_code == 404
        assert client.post(inbox.url.rpartition("/")[0] + "/guessed", json={}).status_code == 404
        for number in range(MOST_MESSAGES + 5):
            client.post(inbox.url, json={"text": str(number)})
        assert len(inbox.messages) == MOST_MESSAGES
        assert inbox.messages[0][1] == {"text": str(MOST_MESSAGES + 4)}


async def test_the_inbox_is_there_in_a_demo_only(serve: Any, browse: Any) -> None:
    inbox = Inbox()
    client = browse(serve(demo=inbox))
    assert "No message yet" in (await client.get("/demo/inbox")).text
    inbox.take(b'{"text": "<b>plain</b>"}')
    inbox.take(httpx.Request("POST", "http://x", json=payload(Notice.of(MESSAGE))).content)
    answer = await client.get("/demo/inbox")
    assert answer.text.index("Drafter is dead") < answer.text.index("&lt;b&gt;plain")
    assert "sent to nobody" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"<script|<img|@import|url\(", answer.text)
    assert (await client.get("/api/targets")).json()["demo"] is True
    assert (await browse(serve()).get("/demo/inbox")).status_code == 404


async def test_a_demo_says_what_it_is_on_every_page_and_leads_to_the_inbox(serve: Any, browse: Any) -> None:
    badge = _find((await browse(serve(demo=Inbox())).get("/_dash-layout")).json(), "demo-badge")
    assert badge is not None
    assert (badge["children"], badge["href"]) == ("Demo", "/demo/inbox")
    assert _find((await browse(serve()).get("/_dash-layout")).json(), "demo-badge") is None


def _find(part: Any, style: str) -> dict[str, Any] | None:
    """The properties of the component with a class."""
    if isinstance(part, dict) and part.get("className") == style:
        return part
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return next((found for each in inner if (found := _find(each, style)) is not None), None)


def test_the_fleet_of_the_demo() -> None:
    assert [(spec.name, spec.group, spec.count) for spec in DEMO] == [
        ("sglang", "kimi-k3-a", 8),
        ("vllm", "kimi-k3-b", 3),
        ("vllm-rust", "kimi-k3-b", 1),
    ]
    names = {f"{spec.name}-{number}" if spec.count > 1 else spec.name for spec in DEMO for number in range(spec.count)}
    assert {scene.replica for scene in STORY} <= names


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[str, Callable[[], str], int]]:
    """``draftgauge demo``: where it answers, what it has written so far, and its process."""
    log = tmp_path / "log"
    command = [sys.executable, "-m", "app.cli", "demo", "--port", "0"]
    with log.open("w") as file, subprocess.Popen(command, stderr=file, cwd=Path(__file__).parents[2]) as process:
        try:
            deadline = time.monotonic() + 120
            while not (found := re.search(r"event=serving url=(\S+) targets=12", log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline
                time.sleep(0.2)
            yield found[1], log.read_text, process.pid
        finally:
            process.terminate()
    assert process.returncode == 0


def cpu_seconds(parent: int) -> float:
    """Of all processes that this one has started."""
    stats = [stat.rpartition(")")[2].split() for stat in map(_read, Path("/proc").glob("[0-9]*/stat")) if stat]
    return sum((int(stat[11]) + int(stat[12])) / 100 for stat in stats if int(stat[1]) == parent)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.mark.process
def test_within_two_minutes_it_shows_both_faults_their_alerts_and_a_message(demo: Any) -> None:
    url, log, process = demo
    began, began_cpu = time.monotonic(), cpu_seconds(process)
    seen: dict[str, set[str]] = {}
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        answer = client.get("/api/targets").json()
        assert answer["demo"] is True
        assert len(answer["targets"]) == 12
        while not (found := _shown(client, seen)):
            assert time.monotonic() - began < WITHIN_SECONDS, (seen, log())
            time.sleep(1)
        spent = (cpu_seconds(process) - began_cpu) / (time.monotonic() - began)
        assert {"kind": "draft-attention-backend-fallback", "target": "sglang-3"} in found
        assert {"kind": "dead-drafter", "target": "sglang-6"} in found
        # Nobody else is called ill.
        assert {each["target"] for each in found} == {"sglang-3", "sglang-6"}
        categories = client.get("/api/acceptance?from=now-10m&by=category").json()["rows"]
        named = {row["category"] for row in categories if row["category"]}
        assert named == {"code", "chat", "creative", "agentic", "math", "rag"}
        inbox = client.get("/demo/inbox").text
        assert "Drafter is dead" in inbox
        assert "sglang-6" in inbox
    assert "this is a demo" in log()
    assert spent < 0.5, f"twelve emulators take {spent:.2f} of a core"


def _shown(client: httpx.Client, seen: dict[str, set[str]]) -> list[dict[str, str]]:
    """The alerts that call somebody, once both faults are told and the inbox has the page."""
    alerts = client.get("/api/alerts").json()["alerts"]
    for alert in alerts:
        seen.setdefault(alert["phase"], set()).add(f"{alert['finding']} {alert['target']}")
    firing = [
        {"kind": alert["finding"], "target": alert["target"]}
        for alert in alerts
        if alert["phase"] == "firing" and alert["severity"] in ("warning", "critical")
    ]
    told = {each["kind"] for each in firing}
    whole = {"draft-attention-backend-fallback", "dead-drafter"} <= told
    return firing if whole and "Drafter is dead" in client.get("/demo/inbox").text else []


def test_the_demo_waits_less_than_the_product_and_says_so() -> None:
    class Nobody:
        members = ()

    shown = settings(Nobody(), Inbox(url="http://127.0.0.1:1/x"), "http://127.0.0.1:8400")  # type: ignore[arg-type]
    (override,) = shown["thresholds"]
    text = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text()
    assert f"{override['for']:g} seconds" in text
    assert f"{shown['scrape']['interval']:g} seconds" in text
