"""vLLM's two frontends: what differs in their pages and in their logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.demo.exposition import Dialect, Family, Labels, OpenMetrics, PrometheusText, families
from app.demo.face import local_time
from app.demo.settings import Life, Settings


@dataclass(frozen=True, slots=True)
class Interval:
    """What an engine did between two statistics lines.

    positions   (k,) draft tokens accepted by draft position
    usage       share of the KV cache in use
    hit_rate    share of the prompt tokens found in the prefix cache; None where none was looked for
    """

    engine: int
    seconds: float
    counts: Counter[str]
    positions: Sequence[int]
    running: int
    waiting: int
    usage: float
    hit_rate: float | None

    @property
    def prompt_throughput(self) -> float:
        """Computed prompt tokens a second."""
        return self.counts["prompt computed"] / self.seconds

    @property
    def generation_throughput(self) -> float:
        """Tokens sent a second."""
        return self.counts["generation"] / self.seconds

    def spec_decoding(self) -> str:
        """The message about speculative decoding; only where something was drafted."""
        drafts, drafted, accepted = (self.counts[name] for name in ("drafts", "draft tokens", "accepted"))
        rates = ", ".join(f"{count / drafts:.3f}" for count in self.positions)
        return (
            f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, "
            f"Accepted throughput: {accepted / self.seconds:.2f} tokens/s, "
            f"Drafted throughput: {drafted / self.seconds:.2f} tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, "
            f"Avg Draft acceptance rate: {accepted / drafted * 100:.1f}%"
        )


class Frontend(Protocol):
    """One of them. ``per_engine``: each engine has its own statistics lines."""

    families: tuple[Family, ...]
    dialect: Dialect
    process: str
    stats_source: str
    spec_source: str
    per_engine: bool
    logs_access: bool
    tells_acceptance: bool

    def name(self, family: str) -> str:
        """A family's name on the page, from its name on Python's page."""
        ...

    def labels(self, engine: int | None = None, **more: str) -> Labels:
        """A series' labels, in order."""
        ...

    def http_labels(self, **labels: str) -> Labels:
        """A series' labels of the HTTP layer, in order."""
        ...

    def value(self, value: float) -> float:
        """A whole number, so that it is printed as this frontend does."""
        ...

    def stats(self, interval: Interval) -> str:
        """The message about throughput and queues."""
        ...


class PythonFrontend:
    """The API server in Python. With several API servers the page is put together from files and lacks some series."""

    process = "APIServer"
    stats_source = "loggers.py:327"
    spec_source = "metrics.py:120"
    per_engine = True
    logs_access = True
    tells_acceptance = True

    def __init__(self, settings: Settings, life: Life) -> None:
        rows = families("vllm", settings.context_length)
        single = settings.api_servers == 1
        order = ("histogram", "gauge", "counter", "summary")
        self.families = rows if single else tuple(sorted(rows, key=lambda family: order.index(family.kind)))
        self.dialect: Dialect = PrometheusText(created=life.ready_at - 2.5 if single else None)
        self._model = settings.model

    def name(self, family: str) -> str:
        return family

    def labels(self, engine: int | None = None, **more: str) -> Labels:
        labels = {"model_name": self._model, **more} | ({} if engine is None else {"engine": str(engine)})
        return tuple(sorted(labels.items()))

    def http_labels(self, **labels: str) -> Labels:
        return tuple(sorted(labels.items()))

    def value(self, value: float) -> float:
        return float(value)

    def stats(self, interval: Interval) -> str:
        hits = "" if interval.hit_rate is None else f", Prefix cache hit rate: {interval.hit_rate * 100:.1f}%"
        return (
            f"Engine {interval.engine:03d}: Avg prompt throughput: {interval.prompt_throughput:.1f} tokens/s, "
            f"Avg generation throughput: {interval.generation_throughput:.1f} tokens/s, "
            f"Running: {interval.running} reqs, Waiting: {interval.waiting} reqs, "
            f"GPU KV cache usage: {interval.usage * 100:.1f}%{hits}"
        )


class RustFrontend:
    """The API server in Rust: OpenMetrics always, one pair of lines for all engines, no acceptance in responses."""

    process = "RustFrontend"
    stats_source = "log_stats.rs:273"
    spec_source = "log_stats.rs:302"
    per_engine = False
    logs_access = False
    tells_acceptance = False

    def __init__(self, settings: Settings) -> None:
        self.families = families("vllm-rust")
        self.dialect: Dialect = OpenMetrics()
        self._names = {family.name for family in self.families}
        self._model = settings.model

    def name(self, family: str) -> str:
        return family if family in self._names else family.removesuffix("_total")

    def labels(self, engine: int | None = None, **more: str) -> Labels:
        return (("model_name", self._model), *(() if engine is None else (("engine", str(engine)),)), *more.items())

    def http_labels(self, **labels: str) -> Labels:
        order = ("method", "status", "handler")
        return tuple((label, labels[label]) for label in order if label in labels)

    def value(self, value: float) -> float:
        return int(value)

    def stats(self, interval: Interval) -> str:
        return (
            f"Avg prompt tput: {interval.prompt_throughput:.1f} toks/s, "
            f"Avg generation tput: {interval.generation_throughput:.1f} toks/s, "
            f"Reqs Running: {interval.running}, Waiting: {interval.waiting}, "
            f"GPU KV cache used: {interval.usage * 100:.1f}%, "
            f"Prefix cache hit rate: {(interval.hit_rate or 0.0) * 100:.1f}%"
        )


def stamped(process: str, pid: int, level: str, at: float, source: str, message: str) -> str:
    """A log line of vLLM since 0.31: no year, no zone."""
    return f"({process} pid={pid}) {level} {local_time('%m-%d %H:%M:%S', at)} [{source}] {message}"
