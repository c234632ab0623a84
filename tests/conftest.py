from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from hypothesis import settings

from app.demo.fleet import Fleet, Member, Spec, running

# Test machines are shared: how long an example takes says nothing.
settings.register_profile("draftgauge", deadline=None)
settings.load_profile("draftgauge")


Found = TypeVar("Found")


class Emulated:
    """An emulated engine in a process of its own, and what its control endpoint does."""

    def __init__(self, member: Member, http: httpx.Client) -> None:
        self.name, self.group, self.url, self.log = member.name, member.group, member.url, member.log
        self.control = f"{member.control_url}/emulator"
        self._http = http

    def post(self, path: str, body: Any = None) -> Any:
        return self._http.post(f"{self.control}/{path}", json=body).raise_for_status().json()

    def get(self, path: str) -> Any:
        return self._http.get(f"{self.control}/{path}").raise_for_status().json()

    def fault(self, kind: str, **options: Any) -> None:
        self.post("fault", {"kind": kind, **options})

    def ask(self, output_tokens: int, **options: Any) -> None:
        """Requests that arrive now; ``count`` of them."""
        self.post("requests", {"output_tokens": output_tokens, **options})

    def lives(self) -> list[dict[str, Any]]:
        """The truth about each incarnation."""
        return self.get("truth")["incarnations"]


Emulate = Callable[..., list[Emulated]]


@pytest.fixture
def emulate(tmp_path: Path) -> Iterator[Emulate]:
    """Starts emulators: ``emulate(("sg-1", "--engine", "sglang"), ..., speed=1.0)``. They end with the test."""
    with ExitStack() as ending:
        http = ending.enter_context(httpx.Client(timeout=60.0, trust_env=False))

        def start(*specs: tuple[str, ...], speed: float = 1.0, group: str = "kimi") -> list[Emulated]:
            fleet: Fleet = ending.enter_context(
                running([Spec(name, group, options) for name, *options in specs], tmp_path / "engines", speed)
            )
            return [Emulated(member, http) for member in fleet.members]

        yield start


@dataclass(slots=True)
class Message:
    """What was posted to a channel."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def text(self) -> str:
        """All of it, to look for words in."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass(slots=True)
class Receiver:
    """A real HTTP server that takes what channels send, in the order in which it comes.

    ``statuses`` are what it answers next; then always 200. What it did not take is not among ``messages``.
    """

    url: str
    statuses: list[int] = field(default_factory=list[int])
    messages: list[Message] = field(default_factory=list[Message])

    def at(self, path: str) -> list[Message]:
        return [message for message in list(self.messages) if message.path == path]

    def alerts(self, path: str = "/hook") -> list[tuple[str, str, str]]:
        """(finding, severity, status) of the webhook messages."""
        return [
            (alert["labels"]["alertname"], alert["labels"]["severity"], alert["status"])
            for message in self.at(path)
            for alert in message.body["alerts"]
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = received.statuses.pop(0) if received.statuses else 200
            if status == 200:
                received.messages.append(Message(self.path, headers, json.loads(body)))
            self.send_response(status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Tests say what they received."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        received = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield received
        server.shutdown()
        thread.join()


class Served:
    """``draftgauge serve`` in a process of its own, started and ended as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "draftgauge.yaml"
        self.log = folder / "draftgauge.log"
        self.data = folder / "data"
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None
        self._http = httpx.Client(timeout=30.0, trust_env=False)
        self._read_from = 0

    def configure(self, **settings: Any) -> None:
        """Its configuration; it listens on a free port."""
        self.config.write_text(json.dumps({"listen": {"port": 0}, "data_dir": str(self.data), **settings}))

    def spawn(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start it, and do not wait."""
        self._read_from = self.log.stat().st_size if self.log.exists() else 0
        command = [sys.executable, "-m", "app.cli", "serve", "--config", str(self.config), *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **environment}, start_new_session=True
            )
        return self.process

    def start(self, **environment: str) -> None:
        """Start it, and wait until it answers."""
        self.spawn(**environment)
        self.url = self.until(lambda: re.search(r"event=serving url=(\S+)", self.said())).group(1)

    def said(self) -> str:
        """What it logged since it was started."""
        return self.log.read_bytes()[self._read_from :].decode() if self.log.exists() else ""

    def get(self, path: str, **parameters: Any) -> Any:
        return self._http.get(f"{self.url}{path}", params=parameters).raise_for_status().json()

    def target(self, name: str) -> dict[str, Any]:
        return next(target for target in self.get("/api/targets")["targets"] if target["name"] == name)

    def until(self, look: Callable[[], Found | None], seconds: float = 120.0) -> Found:
        """The first thing that ``look`` finds while the process lives."""
        end = time.monotonic() + seconds
        while not (found := look()):
            assert self.process is not None
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, self.said()
            time.sleep(0.02)
        return found

    def stop(self, seconds: float = 60.0) -> int:
        """SIGTERM; its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end(self) -> None:
        self.kill()
        self._http.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A service that is not started yet; it is gone when the test is over."""
    service = Served(tmp_path)
    yield service
    service.end()
