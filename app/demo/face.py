"""What every emulated engine shows: the interface, and the log it writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Protocol

from app.demo.events import Observer
from app.demo.request import Request
from app.demo.scheduler import Scheduler
from app.demo.workload import Order


class Log:
    """Log lines of one process, put in order of time before they are written."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []

    def add(self, at: float, line: str) -> None:
        """A line that was written at a time of the emulated clock."""
        self._lines.append((at, line))

    def taken(self) -> list[str]:
        """The lines since the last call, oldest first."""
        lines = [line for _, line in sorted(self._lines, key=lambda entry: entry[0])]
        self._lines.clear()
        return lines


def local_time(pattern: str, at: float) -> str:
    """A time as an engine prints it: local, without a zone."""
    return time.strftime(pattern, time.localtime(at))


def access_line(client: int, method: str, path: str, status: int) -> str:
    """Uvicorn's line about a request of a client that was answered."""
    port = 40_000 + client % 20_000
    return f'INFO:     127.0.0.1:{port} - "{method} {path} HTTP/1.1" {status} {HTTPStatus(status).phrase}'


class Face(Observer, Protocol):
    """The surface of one process of an engine. ``warm_up`` is what it asks itself before it is ready."""

    content_type: str
    next_tick: float
    warm_up: Order | None

    def watch(self, ranks: Sequence[Scheduler]) -> None:
        """Whose queues to show."""

    def boot(self) -> None:
        """Log what the process logs until it is ready."""

    def tick(self) -> None:
        """Do what is due at ``next_tick`` and set the next one."""

    def page(self, at: float) -> bytes:
        """The metrics page."""
        ...

    def document(self, path: str) -> Any:
        """The JSON at another path; None where the server knows no such path."""
        ...

    def answered(self, at: float, method: str, path: str, status: int) -> None:
        """Somebody's HTTP request was answered."""

    def result(self, request: Request) -> dict[str, Any]:
        """What the engine tells about a finished request."""
        ...
