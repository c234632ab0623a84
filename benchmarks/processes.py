"""Processes that are measured: their CPU seconds and memory, from /proc."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Missing(Exception):
    """Something that a benchmark needs is not there: what, and how to get it."""


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int) -> float:
    """Resident memory now."""
    return _status(pid, "VmRSS")


def peak_mb(pid: int) -> float:
    """The most resident memory so far."""
    return _status(pid, "VmHWM")


def load() -> str:
    """The machine's load in the last minute, and its cores: what a wall time has to be read with."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


@contextmanager
def started(command: Sequence[str], log: Path) -> Generator[subprocess.Popen[bytes]]:
    """A process for the time of a ``with`` block; what it says goes into ``log``."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def free_port() -> int:
    """A port on which nothing listens at this moment."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def fetch(url: str) -> str:
    """The body of a page."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until ``url`` answers; raises ``RuntimeError`` with the log's end where the process ends before."""
    if not wait_until(lambda: process.poll() is not None or _answers(url)) or process.poll() is not None:
        raise RuntimeError(f"{process.args} does not answer:\n{log.read_text(errors='replace')[-2000:]}")


def wait_until(holds: Callable[[], bool]) -> bool:
    """Whether it holds within ``START_SECONDS``."""
    end = time.monotonic() + START_SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _answers(url: str) -> bool:
    try:
        return bool(fetch(url)) or True
    except OSError:
        return False


def _status(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))
