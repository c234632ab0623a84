from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from store.duckdb import DuckHistory
from store.history import History
from store.memory import MemoryHistory

PERIOD = 3600


@pytest.fixture(params=["memory", "duckdb"])
def make_history(request: pytest.FixtureRequest) -> Iterator[Callable[[], History]]:
    """Opens empty histories of one implementation, with periods of an hour. DuckDB's lie in memory here: a file's
    syncing to disk, at every example, is most of the time a test takes.
    """
    opened: list[History] = []

    def make() -> History:
        if request.param == "memory":
            history: History = MemoryHistory(period_seconds=PERIOD)
        else:
            history = DuckHistory(":memory:", period_seconds=PERIOD)
        opened.append(history)
        return history

    yield make
    for history in opened:
        history.close()


@pytest.fixture
def history(make_history: Callable[[], History]) -> History:
    return make_history()


@pytest.fixture
def run_python() -> Callable[..., int]:
    """Run a program in a process of its own, with a failpoint to die at; its exit code."""

    def run(program: str, *arguments: str, failpoint: str = "") -> int:
        environment = {**os.environ, "DRAFTGAUGE_FAILPOINT": failpoint}
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, env=environment, timeout=60, check=False).returncode

    return run
