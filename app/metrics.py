"""Our own /metrics: the health of the service, and acceptance as it is now."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from acceptance.series import OTHER, UNLABELLED, Dimension
from service.reads import AcceptanceRow

LOOP_LOOK_SECONDS = 0.25
MOST_CATEGORIES = 100
"""Categories of one target that get series of their own. Requests name them, so anybody could name a million."""

LABELS: tuple[Dimension, ...] = ("target", "group", "engine", "model", "category")

_LAG_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_TIME_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

disable_created_metrics()


class Metrics:
    """What the parts of the service tell about themselves: it is every part's observer. Any thread may call it."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        build = Gauge("draftgauge_build_info", "The version that runs; always 1.", ["version"], registry=registry)
        build.labels(version("draftgauge")).set(1)
        self._lag = Histogram(
            "draftgauge_loop_lag_seconds",
            "How much later than asked the event loop woke up.",
            buckets=_LAG_BUCKETS,
            registry=registry,
        )
        self._scrapes = Counter(
            "draftgauge_scrapes",
            "Looks at targets, by outcome: ok, error, failed (in our own code).",
            ["outcome"],
            registry=registry,
        )
        self._late = Counter(
            "draftgauge_scrapes_late",
            "Looks that began more than half an interval after they were due.",
            registry=registry,
        )
        self._scrape_time = _timer("draftgauge_scrape_seconds", "Time of one look at a target.", registry)
        self._up = Gauge(
            "draftgauge_target_up", "Whether the newest look at the target was answered.", ["target"], registry=registry
        )
        self._rejected = Counter(
            "draftgauge_rejected_input",
            "Pieces of a target's input that could not be read and were left out.",
            ["target"],
            registry=registry,
        )
        self._waiting = Gauge("draftgauge_writer_waiting", "Readings that wait to be committed.", registry=registry)
        self._batches = Counter("draftgauge_writer_batches", "Batches committed to the stores.", registry=registry)
        self._readings = Counter("draftgauge_writer_readings", "Readings committed.", registry=registry)
        self._windows = Counter("draftgauge_writer_windows", "Windows committed that were new.", registry=registry)
        self._commit_time = _timer("draftgauge_writer_commit_seconds", "Time of one commit.", registry)
        self._evaluations = Counter(
            "draftgauge_evaluations",
            "Evaluations of all alerts, by outcome: ok, failed.",
            ["outcome"],
            registry=registry,
        )
        self._evaluation_time = _timer(
            "draftgauge_evaluation_seconds", "Time of one evaluation of all alerts.", registry
        )
        self._deliveries = Counter(
            "draftgauge_deliveries",
            "Tries to deliver a message, by outcome: delivered, retry, refused, expired.",
            ["channel", "outcome"],
            registry=registry,
        )
        self._delivery_time = _timer("draftgauge_delivery_seconds", "Time of one try to deliver a message.", registry)
        self._reads_refused = Counter(
            "draftgauge_reads_refused", "API requests refused since too many were waiting.", registry=registry
        )
        self._access_refused = Counter(
            "draftgauge_access_refused",
            "Requests refused for who sent them, by reason: anonymous, token, waiting, role, origin.",
            ["reason"],
            registry=registry,
        )
        self._records = Counter(
            "draftgauge_records",
            "Posted records, by outcome: accepted, duplicate, rejected.",
            ["outcome"],
            registry=registry,
        )
        self._acceptance_missing = Counter(
            "draftgauge_acceptance_missing",
            "Pages served without acceptance, since history could not be read in time.",
            registry=registry,
        )

    def lagged(self, seconds: float) -> None:
        """The event loop woke up so much later than asked."""
        self._lag.observe(seconds)

    def scraped(self, target: str, outcome: str, seconds: float, late: bool) -> None:
        """A look at a target ended (``collectors.scrape.ScrapeObserver``)."""
        self._scrapes.labels(outcome).inc()
        self._scrape_time.observe(seconds)
        self._up.labels(target).set(outcome == "ok")
        if late:
            self._late.inc()

    def forget(self, target: str) -> None:
        """A target is no longer listed: it has no series any more."""
        self._up.remove(target)
        self._rejected.remove(target)

    def waiting(self, reads: int) -> None:
        """So many readings wait for the writer (``app.writer.WriterObserver``)."""
        self._waiting.set(reads)

    def committed(self, windows: int, reads: int, seconds: float) -> None:
        """A batch was committed (``app.writer.WriterObserver``)."""
        self._batches.inc()
        self._readings.inc(reads)
        self._windows.inc(windows)
        self._commit_time.observe(seconds)

    def rejected(self, target: str, count: int) -> None:
        """Input was left out (``app.writer.WriterObserver``)."""
        self._rejected.labels(target).inc(count)

    def evaluated(self, seconds: float, *, ok: bool) -> None:
        """An evaluation of all alerts ended."""
        self._evaluations.labels("ok" if ok else "failed").inc()
        self._evaluation_time.observe(seconds)

    def attempt(self, channel: str, outcome: str, seconds: float) -> None:
        """A try at delivering a message ended (``alerts.outbox.DeliveryObserver``)."""
        self._deliveries.labels(channel, outcome).inc()
        self._delivery_time.observe(seconds)

    def read_refused(self) -> None:
        """An API request was refused since too many were waiting."""
        self._reads_refused.inc()

    def access_refused(self, reason: str) -> None:
        """A request was refused for who sent it (``app.access.gate.AccessObserver``)."""
        self._access_refused.labels(reason).inc()

    def records_taken(self, accepted: int, duplicates: int, rejected: int) -> None:
        """A body of posted records was answered (``app.records.intake.IntakeObserver``)."""
        self._records.labels("accepted").inc(accepted)
        self._records.labels("duplicate").inc(duplicates)
        self._records.labels("rejected").inc(rejected)

    def acceptance_missing(self) -> None:
        """A page has to be served without acceptance."""
        self._acceptance_missing.inc()

    def page(self, accept: str, rows: Sequence[AcceptanceRow]) -> tuple[bytes, str]:
        """The page and its content type, in the format that the ``Accept`` header asks for.

        ``rows`` are ``Reads.latest()``: a series without fresh data is absent, never an old value.
        """
        encode, content_type = choose_encoder(accept)
        return encode(_Page(self.registry, rows)), content_type


async def watch_loop(metrics: Metrics) -> None:
    """Measure the lag of the running event loop until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LOOP_LOOK_SECONDS
        await asyncio.sleep(LOOP_LOOK_SECONDS)
        metrics.lagged(max(0.0, loop.time() - due))


def _timer(name: str, what: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, what, buckets=_TIME_BUCKETS, registry=registry)


@dataclass(frozen=True, slots=True)
class _Page:
    registry: CollectorRegistry
    rows: Sequence[AcceptanceRow]

    def collect(self) -> Iterator[Metric]:
        yield from self.registry.collect()
        yield from _acceptance(self.rows)


def _acceptance(rows: Sequence[AcceptanceRow]) -> Iterator[Metric]:
    length = GaugeMetricFamily(
        "draftgauge_acceptance_length",
        "Tokens per verify step, bonus token included, in the newest window; absent without data.",
        labels=LABELS,
    )
    evidence = GaugeMetricFamily(
        "draftgauge_acceptance_steps", "Verify steps behind draftgauge_acceptance_length.", labels=LABELS
    )
    for labels, (steps, emitted) in _sums(rows).items():
        length.add_metric(labels, emitted / steps)
        evidence.add_metric(labels, steps)
    yield length
    yield evidence


def _sums(rows: Sequence[AcceptanceRow]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Labels -> (steps, emitted), over ranks. The smallest categories of a target beyond the most are ``other``."""
    sums: dict[tuple[str, ...], tuple[float, float]] = {}
    categories: dict[str | None, set[str]] = defaultdict(set)
    for row in sorted(rows, key=lambda row: row.steps or 0.0, reverse=True):
        if not row.steps or row.emitted is None:
            continue
        *others, category = (_label(name, row.key.get(name)) for name in LABELS)
        known = categories[row.key.get("target")]
        if category not in known and len(known) >= MOST_CATEGORIES:
            category = OTHER
        known.add(category)
        labels = (*others, category)
        steps, emitted = sums.get(labels, (0.0, 0.0))
        sums[labels] = steps + row.steps, emitted + row.emitted
    return sums


def _label(name: Dimension, value: str | None) -> str:
    """An empty label is an absent one to Prometheus, so a category left empty by the request needs a word."""
    if name == "category" and value == UNLABELLED:
        return "unlabelled"
    return value or ""
