"""What an SGLang metrics page shows, sorted by who counts: the tokenizer side by category, schedulers by rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

from acceptance.facts import Subject
from collectors import exposition
from collectors.deltas import Key, count_of
from collectors.exposition import Sample
from collectors.reading import Rejected

PREFIXES = ("sglang:", "sglang_")
"""SGLang's own, and its gateway's (which adds ``worker_addr``)."""

LONGEST_LABEL = 200

_REQUEST_COUNTERS = {
    "spec_verify_calls_total": "steps",
    "generation_tokens_total": "tokens",
    "num_requests_total": "requests",
}
_GAUGES = (
    "spec_accept_length",
    "spec_accept_rate",
    "spec_cap_length",
    "spec_block_accept_length",
    "spec_num_steps",
    "spec_num_draft_tokens",
    "num_running_reqs",
    "num_queue_reqs",
)
_SCHEDULER_COUNTERS = {"realtime_tokens_total": "realtime", "cuda_graph_passes_total": "passes"}
_OF_RANKS = frozenset((*_GAUGES, *_SCHEDULER_COUNTERS))
_STARTUP = "startup_time_seconds"
_SUFFIXES = (*_REQUEST_COUNTERS, *_GAUGES, *_SCHEDULER_COUNTERS, _STARTUP)
_NAMES = {prefix: tuple(prefix + suffix for suffix in _SUFFIXES) for prefix in PREFIXES}
_SMALLEST_DRAFT = 2.0
"""The root and one proposal."""
_LARGEST_GAUGE = 1e6
"""More than any length, rate, draft or number of requests."""
_ROLES = ("unified", "prefill", "decode")


class Group(NamedTuple):
    """Whose finished requests are counted. ``category`` is None where the families carry no such label."""

    model: str
    category: str | None

    def key(self, counter: str) -> Key:
        """The counter's key; a category that is "" differs from none."""
        return (counter, self.model) if self.category is None else (counter, self.model, self.category)


@dataclass(slots=True)
class Rank:
    """What the scheduler of one data-parallel rank shows. ``modes`` are those of its passes."""

    model: str
    gauges: dict[str, float] = field(default_factory=dict[str, float])
    modes: set[str] = field(default_factory=set[str])

    def gauge(self, name: str) -> float | None:
        """A gauge above 0; 0.0 is off, or nothing yet, and beyond ``_LARGEST_GAUGE`` it tells nothing."""
        value = self.gauges.get(name, 0.0)
        return value if 0.0 < value <= _LARGEST_GAUGE else None

    def draft_tokens(self, subject: Subject) -> float | None:
        """Draft tokens of a verify step, the root included: one more than are proposed."""
        return self.gauge("spec_num_draft_tokens") or subject.number("num_draft_tokens")

    def k(self, subject: Subject) -> int | None:
        """Draft tokens a step can have accepted: a chain's length, or a tree's depth.

        A k stated together with its algorithm was read from the configuration and wins. The gauges cannot tell a
        tree of one step from a block drafter (DSpark, whose num_steps is 1): such a page is taken for the latter.
        """
        stated = subject.k
        if stated is not None and subject.text("algorithm") is not None:
            return stated
        tokens, steps = self.gauge("spec_num_draft_tokens"), self.gauge("spec_num_steps")
        if tokens is None or tokens < _SMALLEST_DRAFT:
            return stated
        return int(steps) if steps is not None and 1 < steps < tokens - 1 else int(tokens) - 1


@dataclass(slots=True)
class Worker:
    """One server of the page: its counters, the groups and data-parallel ranks they belong to, its role.

    ``token``: how long its scheduler took to start, to the nanosecond, so that no two processes agree.
    """

    counters: dict[Key, float] = field(default_factory=dict[Key, float])
    groups: set[Group] = field(default_factory=set[Group])
    ranks: dict[str, Rank] = field(default_factory=dict[str, Rank])
    role: str | None = None
    token: str | None = None

    def counts(self, counter: str) -> bool:
        """Whether the page has this request counter at all."""
        return any(group.key(counter) in self.counters for group in self.groups)

    def total(self, counter: str) -> float:
        """A request counter summed over all groups."""
        return sum(self.counters.get(group.key(counter), 0.0) for group in self.groups)

    def draft_tokens(self, subject: Subject) -> float | None:
        """What the ranks agree on; None where they do not, or none of them tells."""
        return _agreed(rank.draft_tokens(subject) for rank in self.ranks.values()) or subject.number("num_draft_tokens")

    def k(self, subject: Subject) -> int | None:
        """What the ranks agree on; None where they do not, or none of them tells."""
        return _agreed(rank.k(subject) for rank in self.ranks.values()) if self.ranks else subject.k


@dataclass(frozen=True, slots=True)
class Page:
    """Workers by address (``""`` where the page is a server's own), and which families there are."""

    workers: Mapping[str, Worker]
    families: frozenset[str]
    rejected: tuple[Rejected, ...]


def read(body: bytes, subject: Subject) -> Page | None:
    """The page; None where it has no SGLang families."""
    prefix = next((p for p in PREFIXES if body.startswith(p.encode()) or f"\n{p}".encode() in body), None)
    if prefix is None:
        return None
    found = exposition.read(body, _NAMES[prefix])
    workers: dict[str, Worker] = {}
    for address, samples in _by_worker(found.samples, prefix):
        worker = workers[address] = Worker(role=_role(samples), token=_token(samples))
        _count_requests(worker, [sample for sample in samples if sample[0] in _REQUEST_COUNTERS], subject)
        _read_ranks(worker, [sample for sample in samples if sample[0] in _OF_RANKS])
    families = frozenset(sample.name.removeprefix(prefix) for sample in found.samples)
    return Page(workers, families, found.rejected)


_Number = TypeVar("_Number", int, float)


def _agreed(values: Iterable[_Number | None]) -> _Number | None:
    told = {value for value in values if value is not None}
    return told.pop() if len(told) == 1 else None


_Sample = tuple[str, Mapping[str, str], float]
"""A sample with the prefix taken off its name. A plain tuple: there are a hundred on a page."""


def _by_worker(samples: Iterable[Sample], prefix: str) -> list[tuple[str, list[_Sample]]]:
    owned: dict[str, list[_Sample]] = {}
    beginning = len(prefix)
    for name, labels, value in samples:
        address = labels.get("worker_addr", "")[:LONGEST_LABEL]
        if address not in owned:
            owned[address] = []
        owned[address].append((name[beginning:], labels, value))
    return sorted(owned.items())


def _role(samples: Iterable[_Sample]) -> str | None:
    """The one role that the labels name. ``dynamic`` servers change theirs."""
    roles = {labels["engine_type"] for _, labels, _ in samples if "engine_type" in labels}
    role = roles.pop() if len(roles) == 1 else None
    return role if role in _ROLES else None


def _token(samples: Iterable[_Sample]) -> str | None:
    phases = {labels.get("phase"): value for name, labels, value in samples if name == _STARTUP}
    return repr(phases["scheduler_e2e"]) if "scheduler_e2e" in phases else None


def _count_requests(worker: Worker, samples: Sequence[_Sample], subject: Subject) -> None:
    """Sum ``is_streaming``, priority and extra labels away; what is left agrees between the families."""
    label = subject.category_label
    labelled = any(label in labels for _, labels, _ in samples)
    sums: dict[tuple[str, str, str | None], float] = {}
    for name, labels, value in samples:
        key = name, _model(labels), labels.get(label, "")[:LONGEST_LABEL] if labelled else None
        sums[key] = sums.get(key, 0.0) + count_of(value)
    for (name, model, category), value in sums.items():
        group = Group(model, category)
        worker.groups.add(group)
        worker.counters[group.key(_REQUEST_COUNTERS[name])] = value


def _read_ranks(worker: Worker, samples: Sequence[_Sample]) -> None:
    """One scheduler speaks for a data-parallel rank: that of its lowest pipeline and tensor rank.

    The others repeat its gauges where all schedulers are asked to report, and count the same passes anyway. With
    priorities, the empty one is the total.
    """
    schedulers: dict[str, dict[tuple[int, int], list[_Sample]]] = {}
    for sample in samples:
        labels = sample[1]
        name = labels.get("dp_rank", "0")[:LONGEST_LABEL]
        place = _whole(labels.get("pp_rank")), _whole(labels.get("tp_rank"))
        schedulers.setdefault(name, {}).setdefault(place, []).append(sample)
    for name, places in schedulers.items():
        for sample in places[min(places)]:
            if not sample[1].get("priority"):
                _read_rank(worker, name, sample)


def _read_rank(worker: Worker, name: str, sample: _Sample) -> None:
    family, labels, value = sample
    rank = worker.ranks.get(name)
    if rank is None:
        rank = worker.ranks[name] = Rank(_model(labels))
    if family in _GAUGES:
        rank.gauges[family] = value
        return
    key = (_SCHEDULER_COUNTERS[family], name, labels.get("mode", "")[:LONGEST_LABEL])
    if key[0] == "passes":
        rank.modes.add(key[2])
    worker.counters[key] = worker.counters.get(key, 0.0) + count_of(value)


@lru_cache(maxsize=4096)
def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < len("1000000") else 0


def _model(labels: Mapping[str, str]) -> str:
    return labels.get("model_name", "")[:LONGEST_LABEL]
