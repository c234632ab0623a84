"""A fleet scraped every 5 seconds: the service beside Debian's Prometheus, at once and of the same targets."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.families import SGLANG, VLLM
from benchmarks.processes import Missing, cpu_seconds, fetch, free_port, load, memory_mb, peak_mb, started, wait_for
from benchmarks.report import heading, table, verdict

INTERVAL_SECONDS = 5
PAGE_LINES = 2_000
WARM_UP_SECONDS = 30.0
MOST_OF_A_CORE = 0.20
"""For 50 targets."""
FEWEST_DONE = 0.99


@dataclass(frozen=True, slots=True)
class Watcher:
    """A process that scrapes the fleet, and how to see what it has done."""

    name: str
    url: str
    process: subprocess.Popen[bytes]


def run(options: Namespace) -> None:
    """Print CPU, memory and scrapes of both."""
    heading(
        f"fleet: {options.targets} targets of {PAGE_LINES:,} lines every {INTERVAL_SECONDS} s, both watchers at once"
    )
    if shutil.which("prometheus") is None:
        raise Missing("prometheus (apt-get install prometheus)")
    with tempfile.TemporaryDirectory(prefix="draftgauge-benchmark-") as folder, ExitStack() as running:
        directory = Path(folder)
        urls = running.enter_context(_targets(options.targets))
        watchers = [
            running.enter_context(_draftgauge(directory, urls)),
            running.enter_context(_prometheus(directory, urls)),
        ]
        time.sleep(WARM_UP_SECONDS)
        _measure(watchers, options)


def _measure(watchers: Sequence[Watcher], options: Namespace) -> None:
    before, scraped = [cpu_seconds(each.process.pid) for each in watchers], [_scrapes(each) for each in watchers]
    began = time.monotonic()
    time.sleep(options.seconds)
    seconds = time.monotonic() - began
    cpu = [cpu_seconds(each.process.pid) - earlier for each, earlier in zip(watchers, before, strict=True)]
    scrapes = [_scrapes(each) - earlier for each, earlier in zip(watchers, scraped, strict=True)]
    each = [used / done * 1000 for used, done in zip(cpu, scrapes, strict=True)]
    table(
        ("", "CPU s", "of a core", "CPU ms a scrape", "memory MB", "peak MB", "scrapes"),
        [
            (
                watcher.name,
                used,
                f"{used / seconds:.1%}",
                cost,
                memory_mb(watcher.process.pid),
                peak_mb(watcher.process.pid),
                done,
            )
            for watcher, used, cost, done in zip(watchers, cpu, each, scrapes, strict=True)
        ],
    )
    due = options.targets * seconds / INTERVAL_SECONDS
    page = fetch(f"{watchers[0].url}/metrics")
    failed = _counter(page, "draftgauge_scrapes_total") - _counter(page, 'draftgauge_scrapes_total{outcome="ok"}')
    print(f"\nOver {seconds:.0f} s; scrapes due {due:.0f}; {load()}.")
    print(
        f"Of the service since its start: {failed:.0f} scrapes failed. One that took over 0.1 s is followed by a pause."
    )
    verdict("Scrapes late", _counter(page, "draftgauge_scrapes_late_total"), 0, at_least=False)
    verdict("Scrapes done of those due", scrapes[0] / due, FEWEST_DONE, at_least=True)
    verdict("Share of a core for 50 targets", cpu[0] / seconds * 50 / options.targets, MOST_OF_A_CORE, at_least=False)
    verdict("CPU of a scrape over Prometheus's", each[0] / each[1], 1.0, at_least=False)


@contextmanager
def _targets(count: int) -> Generator[list[str]]:
    """Emulated engines, half of each kind, in two processes."""
    shares = {"sglang": count - count // 2, "vllm": count // 2}
    with ExitStack() as running:
        urls: list[str] = []
        processes = [running.enter_context(_emulators(engine, share)) for engine, share in shares.items() if share]
        for process, share in zip(processes, [share for share in shares.values() if share], strict=True):
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(share)]
            if not lines[-1]:
                raise RuntimeError("the emulators did not start")
            urls += [json.loads(line)["url"] for line in lines]
        yield urls


@contextmanager
def _emulators(engine: str, count: int) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "app.demo.emulator", "--engine", engine, "--count", str(count)]
    command += ["--static-page", "--lines", str(PAGE_LINES), "--exit-with-stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def _draftgauge(directory: Path, urls: Sequence[str]) -> Generator[Watcher]:
    port, log, config = free_port(), directory / "draftgauge.log", directory / "draftgauge.yaml"
    targets = [{"url": url, "name": f"target-{number}", "group": "fleet"} for number, url in enumerate(urls)]
    config.write_text(
        yaml.safe_dump(
            {
                "listen": {"port": port},
                "data_dir": str(directory / "data"),
                "scrape": {"interval": INTERVAL_SECONDS},
                "targets": targets,
            }
        )
    )
    url = f"http://127.0.0.1:{port}"
    with started([sys.executable, "-m", "app.cli", "serve", "--config", str(config)], log) as process:
        wait_for(f"{url}/healthz", process, log)
        yield Watcher("draftgauge serve", url, process)


@contextmanager
def _prometheus(directory: Path, urls: Sequence[str]) -> Generator[Watcher]:
    port, log, config = free_port(), directory / "prometheus.log", directory / "prometheus.yaml"
    keep = {"source_labels": ["__name__"], "regex": "|".join((*SGLANG, *VLLM)), "action": "keep"}
    job = {
        "job_name": "engines",
        "metric_relabel_configs": [keep],
        "static_configs": [{"targets": [url.removeprefix("http://") for url in urls]}],
    }
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": f"{INTERVAL_SECONDS}s"}, "scrape_configs": [job]}))
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=1h"]
    url = f"http://127.0.0.1:{port}"
    with started(command, log) as process:
        wait_for(f"{url}/-/ready", process, log)
        yield Watcher("prometheus, the same families kept", url, process)


def _scrapes(watcher: Watcher) -> float:
    page = fetch(f"{watcher.url}/metrics")
    ours = _counter(page, 'draftgauge_scrapes_total{outcome="ok"}')
    return ours or _counter(page, "prometheus_target_interval_length_seconds_count")


def _counter(page: str, name: str) -> float:
    """The sum of a counter's samples; of one sample where ``name`` has labels."""
    pattern = re.escape(name) + (" " if "{" in name else r"(?:\{[^}]*\})? ") + r"(\S+)"
    return sum(float(value) for value in re.findall(f"^{pattern}$", page, flags=re.MULTILINE))
