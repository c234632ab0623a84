"""Reading a metrics page of 2,000 lines: our reader beside prometheus_client's parser, on the page of each engine."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from time import process_time

from prometheus_client.parser import text_string_to_metric_families

from acceptance.facts import Subject
from app.demo.emulator import arguments, static_page
from benchmarks.families import SGLANG, VLLM
from benchmarks.report import heading, table, verdict
from collectors.engines import engines
from collectors.exposition import read
from collectors.reading import Text

TIMES_FASTER = 50.0
_EPOCH = 1_800_000_000.0
_TRIES = 7
_SHORTEST_TRY_SECONDS = 0.2


def run(_: Namespace) -> None:
    """Print milliseconds of CPU time a page, and the ratio."""
    heading("exposition: a page of 2,000 lines, ms of CPU time")
    rows = [_row(engine, names) for engine, names in (("sglang", SGLANG), ("vllm", VLLM))]
    table(
        ("engine", "lines", "KB", "samples kept", "prometheus_client", "our reading", "with the windows", "ratio"), rows
    )
    verdict("Times faster than prometheus_client", min(row[-1] for row in rows), TIMES_FASTER, at_least=True)


def _row(engine: str, names: tuple[str, ...]) -> tuple[str, int, float, int, float, float, float, float]:
    moving = static_page(arguments().parse_args(["--engine", engine, "--lines", "2000"]), _EPOCH)
    earlier, later = moving.after(0), moving.after(5)
    text = later.decode()
    peer = _milliseconds(lambda: list(text_string_to_metric_families(text)))
    ours = _milliseconds(lambda: read(later, names))
    reader, subject = engines()[engine].metrics, Subject("target", "group")
    state, _ = reader.feed(subject, {}, Text(earlier, _EPOCH))
    whole = _milliseconds(lambda: reader.feed(subject, state, Text(later, _EPOCH + 5)))
    kept = len(read(later, names).samples)
    return engine, text.count("\n"), len(later) / 1000, kept, peer, ours, whole, peer / ours


def _milliseconds(work: Callable[[], object]) -> float:
    """CPU time of one call: the best of some tries, since others use the machine too."""
    times: list[float] = []
    for _ in range(_TRIES):
        began, calls = process_time(), 0
        while process_time() - began < _SHORTEST_TRY_SECONDS:
            work()
            calls += 1
        times.append((process_time() - began) / calls * 1000)
    return min(times)
