"""Questions to the API about a day of 50 targets: how long an answer takes, and what it costs the service."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from acceptance.counts import Counts, Spread
from acceptance.health import Health
from acceptance.series import Series
from acceptance.window import Window, window_id
from benchmarks.processes import cpu_seconds, fetch, free_port, load, peak_mb, started, wait_for
from benchmarks.report import heading, table
from store.duckdb import DuckHistory
from store.history import Batch

TARGETS = 50
DAY_SECONDS = 86_400.0
SCRAPE_SECONDS = 15.0
FILLING_SECONDS = 120.0
"""So that there are windows of now when the questions are asked, though filling takes its time."""
CATEGORIES = ("code", "agentic", "rag", "chat", "math", "creative")
TIMES_ASKED = 20
K = 7

QUESTIONS = {
    "by category, a day in steps of 5 min": "/api/acceptance?from=now-24h&step=5m&by=category",
    "by target and category, a day in steps of 1 h": "/api/acceptance?from=now-24h&step=1h&by=target,category",
    "by category, the last 15 min in one": "/api/acceptance?from=now-15m&by=category",
    "the newest of every series": "/api/acceptance/latest",
}


def run(_: Namespace) -> None:
    """Print how long answers take."""
    heading(f"queries: {TARGETS} targets, a day of windows every {SCRAPE_SECONDS:.0f} s")
    with tempfile.TemporaryDirectory(prefix="draftgauge-benchmark-") as folder:
        data, log = Path(folder, "data"), Path(folder, "log")
        data.mkdir()
        windows = _fill(data / "history.duckdb")
        size = (data / "history.duckdb").stat().st_size / 1e6
        print(f"{windows:,} windows in {size:.0f} MB, {size * 1e6 / windows:.0f} bytes each\n")
        port = free_port()
        command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--data-dir", str(data)]
        with started(command, log) as process:
            wait_for(f"http://127.0.0.1:{port}/readyz", process, log)
            rows = [_asked(name, f"http://127.0.0.1:{port}{path}", process.pid) for name, path in QUESTIONS.items()]
            table(("question", "answer KB", "p50 ms", "p95 ms", "CPU ms each"), rows)
            print(
                f"\nEach asked {TIMES_ASKED} times; {load()}; the service took {peak_mb(process.pid):.0f} MB at most."
            )


def _asked(name: str, url: str, pid: int) -> tuple[str, float, float, float, float]:
    size = len(fetch(url)) / 1000
    times: list[float] = []
    before = cpu_seconds(pid)
    for _ in range(TIMES_ASKED):
        began = time.perf_counter()
        fetch(url)
        times.append((time.perf_counter() - began) * 1000)
    used = (cpu_seconds(pid) - before) / TIMES_ASKED * 1000
    return name, size, median(times), quantiles(times, n=20)[-1], used


def _fill(path: Path) -> int:
    """What a service would have stored by now; how many windows."""
    history = DuckHistory(path)
    written = sum(history.append(batch) for batch in _batches(time.time() + FILLING_SECONDS - DAY_SECONDS))
    history.close()
    return written


def _batches(start: float) -> Iterator[Batch]:
    """One of all targets for every four looks: half SGLang with its categories and gauge, half vLLM."""
    chance = random.Random(5)
    series = [_of_target(number) for number in range(TARGETS)]
    looks = int(DAY_SECONDS / SCRAPE_SECONDS)
    for first in range(0, looks, 4):
        windows: list[Window] = []
        health: list[Health] = []
        for look in range(first, first + 4):
            at = start + look * SCRAPE_SECONDS
            for number, own in enumerate(series):
                ended = at + SCRAPE_SECONDS * number / TARGETS
                windows += [_window(each, ended, chance) for each in own]
                health.append(Health(own[0].target, "metrics", ended, up=True, running=4.0, decode_tokens=900.0))
        yield Batch(windows=windows, health=health)


def _of_target(number: int) -> list[Series]:
    name, model = f"target-{number}", "Kimi-K3"
    if number % 2:
        return [Series(name, "vllm", "5ca1ab1e", "unified", "vllm", model, "drafter", "0")]
    by_category = [
        Series(name, "sglang", "0ddba11", "unified", "sglang", model, "drafter", None, category)
        for category in CATEGORIES
    ]
    return [*by_category, Series(name, "sglang", "0ddba11", "unified", "sglang", model, "drafter", "0")]


def _window(series: Series, end: float, chance: random.Random) -> Window:
    steps = chance.randint(50, 150)
    by_position = tuple(float(int(steps * 0.8**position)) for position in range(1, K + 1))
    emitted = steps + sum(by_position)
    return Window(
        id=window_id(series, "1", "metrics", end - SCRAPE_SECONDS, end),
        series=series,
        start=end - SCRAPE_SECONDS,
        end=end,
        source="gauge" if series.engine == "sglang" and series.category is None else "counter",
        exact=series.category is not None or series.engine == "vllm",
        counts=Counts(
            steps=steps,
            emitted=emitted,
            proposed=K * steps,
            by_position=by_position if series.engine == "vllm" else None,
            requests=None if series.engine == "sglang" and series.category is None else 3,
            slots=K * steps,
            trim_bound=0.0,
            spread=Spread.of(emitted, steps),
        ),
    )
