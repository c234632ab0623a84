"""One data-parallel rank of an engine: queue, prefill batches, decode passes."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.demo.events import Observer, Passes, Prefill
from app.demo.faults import Conditions
from app.demo.request import Request
from app.demo.streams import Stream


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the emulated hardware is and how it batches. Figures near those of Kimi K3 on eight B300.

    pass_seconds, root_seconds   a decode pass of n requests takes pass_seconds + root_seconds * sqrt(n)
    jitter                       its relative standard deviation
    prefill_seconds, prefill_rate   a prefill batch takes prefill_seconds + tokens / prefill_rate
    chunk                        most prompt tokens in one prefill batch
    report_every                 decode passes between two reports (SGLang's decode_log_interval)
    """

    pass_seconds: float = 0.010
    root_seconds: float = 0.0035
    jitter: float = 0.04
    prefill_seconds: float = 0.03
    prefill_rate: float = 12_000.0
    chunk: int = 16_384
    max_running: int = 48
    report_every: int = 40


@dataclass(slots=True)
class _PrefillBatch:
    end: float
    parts: list[tuple[Request, int]]


@dataclass(slots=True)
class _DecodeBlock:
    """Passes planned ahead, up to the next one at which something changes; ``done`` of them have run."""

    requests: tuple[Request, ...]
    ends: np.ndarray
    accepted: np.ndarray
    finishing: np.ndarray
    done: int = 0


class Scheduler:
    """A rank. ``at`` is when it last did something; ``lookahead(t)`` must submit what arrives until t.

    Passes are planned in blocks and run one by one as time allows, so that neither the state at a time nor the order
    of random numbers depends on how often somebody looks.
    """

    def __init__(
        self,
        rank: int,
        start: float,
        pace: Pace,
        k: int,
        seed: tuple[int, ...],
        observer: Observer,
        lookahead: Callable[[float], None],
        admits: Callable[[Request], bool],
    ) -> None:
        self.rank = rank
        self.at = start
        self.pace = pace
        self.passes = 0
        self.conditions = Conditions()
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._incoming: list[Request] = []
        self._k = k
        rng = np.random.default_rng((*seed, rank))
        self._noise = Stream(lambda count: np.maximum(1 + pace.jitter * rng.standard_normal(count), 0.5))
        self._observer = observer
        self._lookahead = lookahead
        self._admits = admits
        self._work: _PrefillBatch | _DecodeBlock | None = None

    def submit(self, request: Request) -> None:
        """A request that arrives at its ``arrived_at``."""
        insort(self._incoming, request, key=lambda one: one.arrived_at)

    def unfinished(self, at: float) -> int:
        """Requests that have arrived by a time and are not over."""
        arrived = sum(one.arrived_at <= at and self._admits(one) for one in self._incoming)
        return arrived + len(self.waiting) + len(self.running)

    def replan(self) -> None:
        """Conditions or arrivals have changed: passes that have not ended yet are planned again."""
        if isinstance(self._work, _DecodeBlock):
            self._work = None

    def resume(self, at: float) -> None:
        """Nothing was done until ``at``: the process hung."""
        self.at = max(self.at, at)
        self._work = None

    def advance(self, until: float) -> None:
        """Do all that is over by ``until``."""
        while self._work is not None or self._plan(until):
            over = self._prefill(until) if isinstance(self._work, _PrefillBatch) else self._decode(until)
            if not over:
                return

    def _plan(self, until: float) -> bool:
        self._receive()
        while not self.waiting and not self.running:
            if not self._incoming or self._incoming[0].arrived_at > until:
                return False
            self.at = self._incoming[0].arrived_at
            self._receive()
        if self.waiting and len(self.running) < self.pace.max_running:
            self._work = self._plan_prefill()
        else:
            self._work = self._plan_decode()
        return True

    def _receive(self) -> None:
        while self._incoming and self._incoming[0].arrived_at <= self.at:
            request = self._incoming.pop(0)
            if self._admits(request):
                self.waiting.append(request)

    def _plan_prefill(self) -> _PrefillBatch:
        parts: list[tuple[Request, int]] = []
        budget, room = self.pace.chunk, self.pace.max_running - len(self.running)
        for request in self.waiting:
            if budget <= 0 or len(parts) == room:
                break
            tokens = min(request.prefill_left, budget)
            parts.append((request, tokens))
            budget -= tokens
        seconds = self.pace.prefill_seconds + (self.pace.chunk - budget) / self.pace.prefill_rate
        return _PrefillBatch(self.at + seconds, parts)

    def _prefill(self, until: float) -> bool:
        batch = self._work
        assert isinstance(batch, _PrefillBatch)
        if batch.end > until:
            return False
        began, running = self.at, len(self.running)
        self.at, self._work = batch.end, None
        cached = 0
        for request, tokens in batch.parts:
            if request.prefilled_tokens == request.order.cached_tokens:
                request.admitted_at = began
                cached += request.order.cached_tokens
            request.prefilled_tokens += tokens
        complete = [request for request, _ in batch.parts if not request.prefill_left]
        for request in complete:
            self.waiting.remove(request)
        self._observer.prefilled(
            Prefill(
                rank=self.rank,
                at=self.at,
                seconds=self.at - began,
                requests=len(batch.parts),
                computed=sum(tokens for _, tokens in batch.parts),
                cached=cached,
                running=running,
                queued=len(self.waiting),
                pending=sum(request.prefill_left for request in self.waiting),
            )
        )
        for request in complete:
            request.emitted = 1
            request.first_token_at = request.last_token_at = self.at
            self._observer.started(request)
            if request.order.output_tokens == 1:
                self._finish(request)
            else:
                self.running.append(request)
        return True

    def _plan_decode(self) -> _DecodeBlock:
        requests, pace = tuple(self.running), self.pace
        count = pace.report_every - self.passes % pace.report_every
        seconds = (pace.pass_seconds + pace.root_seconds * len(requests) ** 0.5) * self.conditions.step_factor
        ends = self.at + np.cumsum(seconds * self._noise.at(self.passes, count))
        self._lookahead(float(ends[-1]))
        if self._incoming and len(requests) < pace.max_running:
            count = min(count, int(np.searchsorted(ends, self._incoming[0].arrived_at)) + 1)
        scales = self.conditions.accept_scales(self.rank, [one.order.category for one in requests], self.at)
        chances = np.stack([one.chances for one in requests])
        if self.conditions.faults:
            chances = chances * np.array(scales)[:, None] ** np.arange(1, self._k + 1)
        draws = np.stack([one.draws.at(one.steps, count) for one in requests], axis=1)
        accepted = (draws[:, :, None] < chances).sum(axis=2)
        left = np.array([one.order.output_tokens - one.emitted for one in requests])
        reached = np.cumsum(accepted + 1, axis=0) >= left
        ending = np.flatnonzero(reached.any(axis=1))
        count = min(count, int(ending[0]) + 1) if len(ending) else count
        return _DecodeBlock(requests, ends[:count], accepted[:count], reached[count - 1])

    def _decode(self, until: float) -> bool:
        block = self._work
        assert isinstance(block, _DecodeBlock)
        ready = int(np.searchsorted(block.ends, until, side="right"))
        if ready > block.done:
            self._run(block, slice(block.done, ready))
            block.done = ready
        if ready < len(block.ends):
            return False
        self._work = None
        for request, ends in zip(block.requests, block.finishing, strict=True):
            if ends:
                self.running.remove(request)
                self._finish(request)
        return True

    def _run(self, block: _DecodeBlock, part: slice) -> None:
        ends, accepted, requests = block.ends[part], block.accepted[part], block.requests
        count, size = accepted.shape[0], self._k + 1
        cells = (accepted + np.arange(len(requests)) * size).ravel()
        histogram = np.bincount(cells, minlength=len(requests) * size).reshape(-1, size)
        intervals = np.empty(accepted.shape)
        intervals[0] = ends[0] - np.array([one.last_token_at for one in requests])
        intervals[1:] = np.diff(ends)[:, None]
        sent_before = [one.sent for one in requests]
        self.at = float(ends[-1])
        self.passes += count
        for request, counts, tokens in zip(requests, histogram, accepted.sum(axis=0) + count, strict=True):
            request.histogram += counts
            request.steps += count
            request.emitted += int(tokens)
            request.last_token_at = self.at
        self._observer.decoded(
            Passes(
                rank=self.rank,
                requests=requests,
                ends=ends,
                intervals=intervals,
                accepted=accepted,
                histogram=histogram,
                sent=np.array([one.sent for one in requests]) - np.array(sent_before),
                eager=self.conditions.eager,
                number=self.passes,
                queued=len(self.waiting),
            )
        )

    def _finish(self, request: Request) -> None:
        request.finished_at = self.at
        self._observer.finished(request)
