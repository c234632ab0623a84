"""How long ``draftgauge inspect`` takes on a small bundle, start included, beside an empty Python."""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from benchmarks.processes import load
from benchmarks.report import heading, table, verdict

TIMES = 10
LONGEST_SECONDS = 0.6
_BUNDLE = Path(__file__).parents[1] / "tests" / "fixtures" / "cases" / "006-sg-custom-log-k1-ok"


def run(_: Namespace) -> None:
    """Print medians of wall and CPU seconds."""
    heading(f"inspect: a small bundle, median of {TIMES}")
    wall, cpu = _timed([sys.executable, "-m", "app.cli", "inspect", "--json", str(_BUNDLE)])
    empty_wall, empty_cpu = _timed([sys.executable, "-c", "pass"])
    rows = [("draftgauge inspect", wall, cpu), ("python -c pass", empty_wall, empty_cpu)]
    table(("", "wall s", "CPU s"), rows)
    print(f"\n{load()}: the wall time is that of a quiet machine only where nobody else works.")
    verdict("Wall seconds", wall, LONGEST_SECONDS, at_least=False)


def _timed(command: Sequence[str]) -> tuple[float, float]:
    """Median wall and CPU seconds of a command."""
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(TIMES):
        before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        walls.append(time.perf_counter() - began)
        after = getrusage(RUSAGE_CHILDREN)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(walls), median(cpus)
