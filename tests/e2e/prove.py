"""Draftgauge watches a real vLLM: what it stored is what the responses said, and a swapped drafter pages somebody."""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
from checks import Checks
from engine import Counters, DidNotStart, counters, vllm
from receiver import Received, receiving
from traffic import Truth, ask, noise, repeats

from acceptance.counts import total
from acceptance.query import AcceptanceQuery
from acceptance.window import Source
from service import TARGET, Draftgauge, serving, stored, wait_for

K = 4
LONGEST_SECONDS = 900
SEEN_SECONDS = 60.0
STORED_SECONDS = 40.0
"""vLLM prints its speculation every 10 s; then the line is to be read and committed."""
PAGE_SECONDS = 300.0
"""Within this, an alert that wants two minutes of evidence is there."""
QUIET_SECONDS = 30.0
"""Several evaluations: a page that repeats itself would do so within it."""
LEAST_STEPS = 60
"""No page about a dead drafter rests on less."""
SOURCES: tuple[Source, ...] = ("counter", "log")


class TooLong(Exception):
    """The whole took longer than it may."""


@dataclass(frozen=True, slots=True)
class Phase:
    """Traffic against one drafter, all of it after ``start``, unix seconds."""

    name: str
    drafter: str
    truth: Truth
    start: float


def prove(checks: Checks, folder: Path, python: Path, models: Path) -> None:
    port, engine_log = free_port(), folder / "vllm.log"
    with ExitStack() as whole:
        pager = whole.enter_context(receiving())
        with vllm(python, models, "tiny-good", k=K, port=port, log=engine_log) as url:
            draftgauge = whole.enter_context(
                serving(folder, target=url, engine_log=engine_log, pager=pager.url, port=free_port())
            )
            # What was counted before the first look is unknown for ever, so traffic waits for that look. After the
            # restart it does not: the counters of a new process are known to have begun at 0.
            await_scrape(draftgauge)
            good = Phase("good drafter", "tiny-good", Truth(), just_before())
            # The noise comes first: the newest windows decide about death, and these must look healthy.
            ask(url, islice(noise(1), 20), good.truth, concurrency=8)
            ask(url, islice(repeats(1), 120), good.truth, concurrency=8)
            answered(checks, good, url, draftgauge)
            checks.between("good drafter: acc_len of the responses", good.truth.acc_len, 2.0, K + 1)
            checks.equal("good drafter: pages", pager.names(), [])
        with vllm(python, models, "tiny-draft", k=K, port=port, log=engine_log) as url:
            unrelated = Phase("unrelated drafter", "tiny-draft", Truth(), just_before())
            until = paged_once_and_quiet(pager)
            ask(url, repeats(2), unrelated.truth, concurrency=2, pause_seconds=0.1, stop=until)
            answered(checks, unrelated, url, draftgauge)
            checks.equal("unrelated drafter: draft tokens accepted in the responses", unrelated.truth.accepted, 0)
            paged(checks, draftgauge, pager, unrelated)
    for source in SOURCES:
        kept(checks, good, folder, source, until=unrelated.start)
        kept(checks, unrelated, folder, source, until=time.time())


def just_before() -> float:
    """A time before that of any line to come: logs cut their times to seconds."""
    return time.time() - 1.0


def await_scrape(draftgauge: Draftgauge) -> None:
    now = time.time()
    if wait_for(lambda: draftgauge.scraped_since(now) or None, seconds=SEEN_SECONDS) is None:
        raise DidNotStart(f"{TARGET} was not scraped within {SEEN_SECONDS:.0f} s")


def answered(checks: Checks, phase: Phase, url: str, draftgauge: Draftgauge) -> None:
    """What the responses said is what vLLM counted and what the API answers, from the page and from the log."""
    truth = phase.truth
    said = Counters(truth.steps, truth.accepted, truth.proposed, truth.by_position(K))
    print(f"      {phase.name}: {truth.requests} responses, {truth.completion_tokens} tokens, {said}")
    checks.equal(f"{phase.name}: vLLM's own counters against the responses", counters(url), said)
    wanted = {"steps": truth.steps, "emitted": truth.emitted, "proposed": truth.proposed}
    for source in SOURCES:
        row = settled(draftgauge, source, phase.start, wanted)
        for name, number in wanted.items():
            checks.equal(f"{phase.name}: {name} answered from the {source}", row.get(name), number)
        if source == "counter":
            checks.equal(f"{phase.name}: requests answered from the {source}", row.get("requests"), truth.requests)


def settled(draftgauge: Draftgauge, source: Source, start: float, wanted: dict[str, int]) -> dict[str, Any]:
    """The answer once it holds what is wanted, or what it is after a scrape and a log line had their time."""

    def complete() -> dict[str, Any] | None:
        row = draftgauge.row(source, start)
        return row if all(row.get(name) == number for name, number in wanted.items()) else None

    return wait_for(complete, seconds=STORED_SECONDS) or draftgauge.row(source, start)


def kept(checks: Checks, phase: Phase, folder: Path, source: Source, *, until: float) -> None:
    """The same in the store of the stopped service, under the right drafter, and nothing came later."""
    query = AcceptanceQuery(phase.start, until, by=("drafter",), source=source)
    sums = [each for each in stored(folder, query) if each.counts.steps]
    drafters = [Path(each.key[0] or "unknown").name for each in sums]
    checks.equal(f"{phase.name}: drafters in the store from the {source}", drafters, [phase.drafter])
    counts = total(each.counts for each in sums)
    checks.equal(f"{phase.name}: steps in the store from the {source}", counts.steps, phase.truth.steps)
    checks.equal(f"{phase.name}: accepted in the store from the {source}", counts.accepted, phase.truth.accepted)
    if source == "counter":  # the log prints positions as shares of three decimals
        positions = phase.truth.by_position(K)
        checks.equal(f"{phase.name}: positions in the store from the {source}", counts.by_position, positions)


def dead_drafter_pages(pager: Received) -> list[dict[str, Any]]:
    return pager.alerts("dead-drafter", "firing")


def paged_once_and_quiet(pager: Received) -> Callable[[], bool]:
    """True once a page came and time enough for a second one passed; in any case after ``PAGE_SECONDS``."""
    last = time.monotonic() + PAGE_SECONDS
    quiet: list[float] = []

    def done() -> bool:
        if dead_drafter_pages(pager) and not quiet:
            quiet.append(time.monotonic() + QUIET_SECONDS)
        return time.monotonic() > (quiet[0] if quiet else last)

    return done


def paged(checks: Checks, draftgauge: Draftgauge, pager: Received, phase: Phase) -> None:
    pages = dead_drafter_pages(pager)
    checks.equal("pages about a dead drafter", len(pages), 1)
    for page in pages[:1]:
        labels, annotations = page["labels"], page["annotations"]
        checks.equal("page: severity", labels["severity"], "critical")
        checks.equal("page: target", labels["target"], TARGET)
        checks.holds("page: drafter", labels.get("drafter", "").endswith("tiny-draft"), labels.get("drafter"))
        checks.equal("page: acc_len", float(annotations["value"]), 1.0)
        checks.between("page: steps behind it", float(annotations["steps"]), LEAST_STEPS, phase.truth.steps)
        checks.holds("page: source", annotations["source"] in SOURCES, annotations["source"])
        for name in ("summary", "description", "remedy", "since"):
            checks.holds(f"page: {name}", bool(annotations.get(name)), annotations.get(name))
        checks.holds("page: has not ended", page["endsAt"].startswith("0001-"), page["endsAt"])
    print(f"      everything paged: {', '.join(pager.names())}")
    deliveries = draftgauge.get("/api/deliveries")["deliveries"]
    attempts = [(each["status"], len(each["attempts"])) for each in deliveries if "dead-drafter" in each["alert"]]
    checks.equal("/api/deliveries: status and attempts", attempts, [("delivered", 1)])
    alerts = [each for each in draftgauge.get("/api/alerts")["alerts"] if each["finding"] == "dead-drafter"]
    checks.equal("/api/alerts: dead-drafter", [each["phase"] for each in alerts], ["firing"])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def too_long(*_: object) -> None:
    raise TooLong(f"not done after {LONGEST_SECONDS} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True, help="Python of the environment with vLLM")
    parser.add_argument("--models", type=Path, required=True, help="folder made by models/make.py")
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, too_long)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("NOT PROVEN: asked to stop"))
    signal.alarm(LONGEST_SECONDS)
    checks, began = Checks(), time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="draftgauge-e2e-"))
    try:
        prove(checks, folder, arguments.python, arguments.models.absolute())
    except (DidNotStart, TooLong, httpx.HTTPError) as problem:
        checks.holds(f"{type(problem).__name__}: {problem}", False)
    print(f"{len(checks.made)} checks in {time.monotonic() - began:.0f} s")
    if checks.failed:
        print(f"NOT PROVEN: {len(checks.failed)} checks failed; logs in {folder}")
        return 1
    shutil.rmtree(folder)
    print("PROVEN")
    return 0


if __name__ == "__main__":
    sys.exit(main())
