"""vLLM's metrics page: exact counters per engine rank, with positions.

Names come as ``vllm:`` from vLLM, ``ray_vllm_`` from Ray Serve, ``vllm_`` from gateways that dislike colons. Accepted
tokens are counted before the end of text is cut off, so their sum may exceed what clients were sent by less than k a
request; steps without a draft are in none of the counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from acceptance.counts import Counts, Spread
from acceptance.facts import Fact, FactValue, Subject
from acceptance.health import Health
from acceptance.window import Window, window_id
from collectors import exposition
from collectors.deltas import Change, Key, Seen, count_of, follow, kept
from collectors.exposition import Sample
from collectors.reading import Reading, Rejected, State, Text

PREFIXES = ("vllm:", "ray_vllm_", "vllm_")
LONGEST_LABEL = 200

_COUNTERS = {
    "spec_decode_num_drafts_total": "steps",
    "spec_decode_num_draft_tokens_total": "proposed",
    "spec_decode_num_accepted_tokens_total": "accepted",
    "spec_decode_num_accepted_tokens_per_pos_total": "position",
    "time_to_first_token_seconds_count": "requests",
    "inter_token_latency_seconds_count": "passes",
    "inter_token_latency_seconds_sum": "pass_seconds",
    "generation_tokens_total": "tokens",
}
_ABOUT = {"engine": "vllm"}
_RUNNING, _QUEUED = "num_requests_running", "num_requests_waiting"
_V0 = "spec_decode_num_emitted_tokens_total"
_PROCESS_START = "process_start_time_seconds"
_SUFFIXES = (*_COUNTERS, _RUNNING, _QUEUED, _V0)
_NAMES = {prefix: (_PROCESS_START, *(prefix + suffix for suffix in _SUFFIXES)) for prefix in PREFIXES}


class Rank(NamedTuple):
    """One engine core: ``process`` is the Ray replica (``""`` outside Ray), since replicas share engine "0"."""

    process: str
    model: str
    engine: str

    @property
    def name(self) -> str:
        return f"{self.process}/{self.engine}" if self.process else self.engine


@dataclass(slots=True)
class _Page:
    """What a page shows: counters of every process, positions of every rank, load."""

    counters: dict[str, dict[Key, float]] = field(default_factory=dict[str, dict[Key, float]])
    positions: dict[Rank, set[int]] = field(default_factory=dict[Rank, set[int]])
    ranks: set[Rank] = field(default_factory=set[Rank])
    families: set[str] = field(default_factory=set[str])
    running: float | None = None
    queued: float | None = None
    started: list[float] = field(default_factory=list[float])
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    complete: bool = True

    @property
    def is_v0(self) -> bool:
        return _V0 in self.families and "spec_decode_num_drafts_total" not in self.families

    @property
    def speculating(self) -> bool | None:
        """Whether the server speculates; None where zeros do not tell.

        The Python frontend has the families only with speculation, and all positions from the start. The Rust
        frontend has them always, and positions from the first draft on.
        """
        if any(self.positions.values()) or self.is_v0:
            return True
        if "spec_decode_num_drafts_total" in self.families:
            drafts = (self.counters[rank.process].get(("steps", *rank[1:]), 0.0) for rank in self.ranks)
            return True if any(count > 0 for count in drafts) else None
        return False if {_RUNNING, "generation_tokens_total"} & self.families else None


class MetricsReader:
    """Counter windows, one a rank and look. Passes are output events: one a request and decode pass."""

    surface = "metrics"

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """A whole page; begin with ``deltas.SINCE_START`` to take the first one as a window of its own."""
        prefix = next((p for p in PREFIXES if text.body.startswith(p.encode()) or f"\n{p}".encode() in text.body), None)
        if prefix is None:
            return state, Reading(rejected=(Rejected("metrics", "no vllm: families on the page"),))
        page = _read(text.body, prefix)
        facts = _facts(page, subject)
        subject = subject.knowing(facts)
        seen = {name: _seen(page, name, counters, subject) for name, counters in page.counters.items()}
        state, changes = follow(kept(state, _ABOUT), seen, text.at)
        windows: list[Window] = []
        rejected = [*page.rejected, *_problems(changes)]
        for rank in [] if page.is_v0 else sorted(page.ranks):
            k = len(page.positions.get(rank, ())) or subject.k
            counts = _counts(rank, page, changes[rank.process], k)
            if counts is not None:
                windows.append(_window(subject, rank, changes[rank.process], text.at, counts))
                rejected += [Rejected(f"engine {rank.name}", f"data-quality: {doubt}") for doubt in _doubts(counts, k)]
        return {**state, **_ABOUT}, Reading(
            windows=tuple(windows),
            facts=tuple(Fact(subject.target, name, value, "metrics", text.at) for name, value in facts.items()),
            health=(_health(page, changes, subject, text.at),),
            rejected=tuple(rejected),
        )


def _read(body: bytes, prefix: str) -> _Page:
    read = exposition.read(body, _NAMES[prefix])
    page = _Page(rejected=list(read.rejected), complete=not read.rejected)
    for sample in read.samples:
        if sample.name == _PROCESS_START:
            page.started.append(sample.value)
            continue
        suffix = sample.name.removeprefix(prefix)
        page.families.add(suffix)
        if suffix == _RUNNING:
            page.running = (page.running or 0.0) + sample.value
        elif suffix == _QUEUED:
            page.queued = (page.queued or 0.0) + sample.value
        elif suffix in _COUNTERS:
            _count(page, _rank(sample), _COUNTERS[suffix], sample)
    if page.is_v0:
        page.rejected.append(
            Rejected(
                prefix + _V0,
                "data-quality: counters of vLLM's V0 engine add cumulative totals again and again, "
                "so neither their values nor their changes mean anything",
            )
        )
    return page


def _rank(sample: Sample) -> Rank:
    labels = sample.labels
    process = labels.get("ReplicaId") or labels.get("WorkerId") or ""
    engine = labels.get("engine") or "0"
    return Rank(process[:LONGEST_LABEL], labels.get("model_name", "")[:LONGEST_LABEL], engine[:LONGEST_LABEL])


def _count(page: _Page, rank: Rank, counter: str, sample: Sample) -> None:
    """Add a sample up: labels that tell nothing of acceptance are summed away."""
    key: Key = (counter, *rank[1:])
    if counter == "position":
        position = sample.labels.get("position", "")
        if not position.isascii() or not position.isdigit() or len(position) > len("999"):
            page.rejected.append(Rejected(sample.name, "the position is not a number"))
            page.complete = False
            return
        page.positions.setdefault(rank, set()).add(int(position))
        key += (str(int(position)),)
    page.ranks.add(rank)
    counters = page.counters.setdefault(rank.process, {})
    counters[key] = counters.get(key, 0.0) + count_of(sample.value)


def _seen(page: _Page, process: str, counters: Mapping[Key, float], subject: Subject) -> Seen:
    """``process_start_time_seconds`` is the server's only on a page of one process; Ray's is of its agent."""
    started = page.started[0] if len(page.started) == 1 else subject.number("startup_time")
    return Seen(counters, started if process == "" else None, complete=page.complete)


def _problems(changes: Mapping[str, Change]) -> list[Rejected]:
    problems = {change.problem for change in changes.values() if change.problem is not None}
    return [Rejected("metrics", problem) for problem in sorted(problems)]


def _counts(rank: Rank, page: _Page, change: Change, k: int | None) -> Counts | None:
    """What a rank did since the look before; None where nothing changed or its steps are unknown."""
    value = {name: change.counters.get((name, *rank[1:])) for name in _COUNTERS.values()}
    steps, accepted = value["steps"], value["accepted"]
    if steps is None or accepted is None:
        return None
    if not any((steps, accepted, value["proposed"], value["requests"], value["passes"])):
        return None
    return Counts(
        steps=steps,
        emitted=steps + accepted,
        proposed=value["proposed"],
        by_position=_by_position(rank, page, change),
        requests=value["requests"],
        slots=None if k is None else k * steps,
        trim_bound=0.0,
        passes=value["passes"],
        pass_seconds=value["pass_seconds"],
        spread=Spread.of(steps + accepted, steps),
    )


def _window(subject: Subject, rank: Rank, change: Change, at: float, counts: Counts) -> Window:
    series = subject.series(engine="vllm", model=rank.model or None, rank=rank.name)
    return Window(
        id=window_id(series, change.incarnation, MetricsReader.surface, change.start, at),
        series=series,
        start=change.start,
        end=at,
        source="counter",
        exact=True,
        counts=counts,
        busy=bool(counts.steps and counts.emitted),
    )


def _by_position(rank: Rank, page: _Page, change: Change) -> tuple[float, ...] | None:
    """Accepted at position 0, 1, ...; None where the page has no positions or one of them is unknown."""
    positions = page.positions.get(rank)
    if not positions:
        return None
    keys = [("position", *rank[1:], str(position)) for position in range(max(positions) + 1)]
    values = [change.counters.get(key) for key in keys]
    known = tuple(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def _doubts(counts: Counts, k: int | None) -> Iterator[str]:
    """Identities that hold on every sound page. What breaks them is told as it is, never clipped."""
    steps, emitted, accepted = counts.steps or 0.0, counts.emitted or 0.0, counts.accepted or 0.0
    if counts.by_position is not None and sum(counts.by_position) != accepted:
        yield f"{sum(counts.by_position):g} tokens accepted by position, {accepted:g} in all"
    if counts.proposed is not None and accepted > counts.proposed:
        yield f"{accepted:g} tokens accepted of {counts.proposed:g} proposed"
    if k is not None and emitted > (k + 1) * steps:
        yield f"{emitted:g} tokens from {steps:g} steps: more than k + 1 = {k + 1} a step"


def _facts(page: _Page, subject: Subject) -> Mapping[str, FactValue]:
    """What the page tells that was not known. Speculation asked for elsewhere stays asked for where it is absent."""
    facts: dict[str, FactValue] = {"engine": "vllm"}
    models = {rank.model for rank in page.ranks if rank.model}
    if len(models) == 1:
        facts["model"] = models.pop()
    sizes = {len(positions) for positions in page.positions.values()}
    if len(sizes) == 1:
        facts["k"] = sizes.pop()
    if page.speculating or (page.speculating is False and subject.facts.get("speculative") is not True):
        facts["speculative"] = page.speculating
    return {name: value for name, value in facts.items() if subject.facts.get(name) != value}


def _health(page: _Page, changes: Mapping[str, Change], subject: Subject, at: float) -> Health:
    known = [change for change in changes.values() if change.known]
    tokens = [value for change in known for key, value in change.counters.items() if key[0] == "tokens"]
    return Health(
        subject.target,
        MetricsReader.surface,
        at,
        up=True,
        running=page.running,
        queued=page.queued,
        speculating=page.speculating,
        decode_tokens=sum(tokens) if tokens else None,
    )
