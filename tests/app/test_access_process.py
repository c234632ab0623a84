"""Access to the service as a process, over its own socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from app.access.sessions import COOKIE

TOKEN = "viewer-0123456789-abcdefghij"

pytestmark = pytest.mark.process


class Service:
    """``draftgauge serve``, from the line in which it says where."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    with contextlib.ExitStack() as ending:

        def started(config: str = "", *options: str) -> Service:
            path = tmp_path / "draftgauge.yaml"
            path.write_text(config)
            process = ending.enter_context(serving(path, *options))
            assert process.stderr is not None
            for line in process.stderr:
                found = re.search(r"event=serving url=(\S+)", line)
                if found:
                    return Service(process, found[1])
            raise AssertionError("it did not start")

        yield started


@contextlib.contextmanager
def serving(config: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "app.cli", "serve", "--config", str(config), "--port", "0"]
    data = ["--data-dir", str(config.parent / "data")]
    environment = {**os.environ, "FORWARDED_ALLOW_IPS": "*"}
    with subprocess.Popen([*command, *data, *options], stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "draftgauge.example"])
def test_an_open_address_without_a_token_is_refused_at_the_start(tmp_path: Path, host: str) -> None:
    config = tmp_path / "draftgauge.yaml"
    config.write_text("")
    with serving(config, "--host", host) as process:
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert f"listen.host: {host} can be reached from other machines" in said
    assert "--allow-anonymous" in said
    assert not (tmp_path / "data").exists()


def test_an_open_address_can_be_read_by_everybody_when_that_is_wanted(start: Any) -> None:
    service = start("", "--host", "0.0.0.0", "--allow-anonymous")
    url = service.url.replace("0.0.0.0", "127.0.0.1")
    assert httpx.get(f"{url}/api/targets", trust_env=False).status_code == 200


def test_loopback_asks_nobody(start: Any) -> None:
    service = start()
    assert httpx.get(f"{service.url}/api/targets", trust_env=False).json() == {"demo": False, "targets": []}


def test_what_a_client_says_about_its_address_is_not_believed(start: Any) -> None:
    """Uvicorn would take X-Forwarded-For from anybody on this machine for the truth."""
    service = start(
        f"access:\n  tokens: [{{name: a, role: viewer, token: {TOKEN}}}]\n"
        "  proxy_header: X-User\n  trusted_proxies: [10.0.0.5]\n"
    )
    headers = {"x-forwarded-for": "10.0.0.5", "x-real-ip": "10.0.0.5", "x-user": "ana"}
    assert httpx.get(f"{service.url}/api/targets", headers=headers, trust_env=False).status_code == 401


async def test_a_browser_logs_in_and_gets_its_websocket(start: Any) -> None:
    service = start(f"access:\n  tokens: [{{name: a, role: viewer, token: {TOKEN}}}]\n")
    origin, address = service.url, service.url.replace("http", "ws") + "/_dash-ws-callback"
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(address, origin=origin, proxy=None)
    assert refused.value.response.status_code == 403
    async with httpx.AsyncClient(base_url=service.url, trust_env=False) as client:
        entered = await client.post("/login", data={"token": TOKEN}, headers={"origin": origin})
        assert entered.status_code == 303
        assert (await client.get("/", headers={"accept": "text/html"})).status_code == 200
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(address, origin="http://evil.example", additional_headers=cookie, proxy=None)
    async with websockets.connect(address, origin=origin, additional_headers=cookie, proxy=None) as socket:
        await socket.send('{"type": "heartbeat"}')
        assert "heartbeat_ack" in str(await asyncio.wait_for(socket.recv(), 10))
    service.process.send_signal(signal.SIGTERM)
    written = await asyncio.to_thread(service.process.stderr.read)
    assert 'event="logged in"' in written
    assert TOKEN not in written
