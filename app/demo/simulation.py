"""The core: traffic over the ranks of one engine, on a time that its owner passes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np

from app.demo.events import Observer, Passes, Prefill
from app.demo.faults import Conditions
from app.demo.request import Request
from app.demo.scheduler import Pace, Scheduler
from app.demo.workload import Order, Workload

_ASKED_FROM = 1_000_000
"""Numbers of requests that were asked for, apart from those of the traffic: one stream does not shift the other."""


class _Everybody:
    """Tells several observers."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def prefilled(self, prefill: Prefill) -> None:
        for observer in self._observers:
            observer.prefilled(prefill)

    def started(self, request: Request) -> None:
        for observer in self._observers:
            observer.started(request)

    def decoded(self, passes: Passes) -> None:
        for observer in self._observers:
            observer.decoded(passes)

    def finished(self, request: Request) -> None:
        for observer in self._observers:
            observer.finished(request)


class Simulation:
    """Deterministic by ``seed`` and by what its owner does at which time; no I/O, no clock of its own."""

    def __init__(
        self,
        workload: Workload,
        pace: Pace,
        ranks: int,
        k: int,
        seed: tuple[int, ...],
        start: float,
        observers: Iterable[Observer],
    ) -> None:
        self.at = start
        self._workload = workload
        self._k = k
        self._seed = seed
        self._traffic = np.random.default_rng((*seed, 1))
        self._next: tuple[float, list[Order]] = self._draw(start)
        self._drawn, self._asked = count(), count(_ASKED_FROM)
        self._closed: list[tuple[float, float]] = []
        everybody = _Everybody(observers)
        self.ranks = tuple(
            Scheduler(rank, start, pace, k, (*seed, 2), everybody, self._arrive, self._admits) for rank in range(ranks)
        )

    def advance(self, until: float) -> None:
        """Do all that is over by ``until``."""
        self._arrive(until)
        for rank in self.ranks:
            rank.advance(until)
        self.at = until

    def submit(self, orders: Sequence[Order]) -> list[Request]:
        """Requests that arrive now, over the ranks in turn."""
        requests = [self._request(next(self._asked), order, self.at) for order in orders]
        for rank in self.ranks:
            rank.replan()
        return requests

    def under(self, conditions: Conditions) -> None:
        """From now on these faults are on."""
        for rank in self.ranks:
            rank.conditions = conditions
            rank.replan()

    def close(self) -> None:
        """From now on the traffic brings nothing."""
        if not self._closed or self._closed[-1][1] <= self.at:
            self._closed.append((self.at, float("inf")))

    def open(self) -> None:
        """From now on the traffic brings requests again."""
        if self._closed and self._closed[-1][1] == float("inf"):
            self._closed[-1] = (self._closed[-1][0], self.at)

    def resume(self, at: float) -> None:
        """The process did nothing until ``at``."""
        for rank in self.ranks:
            rank.resume(at)

    @property
    def unfinished(self) -> int:
        """Requests that wait or run."""
        return sum(rank.unfinished(self.at) for rank in self.ranks)

    def _draw(self, after: float) -> tuple[float, list[Order]]:
        wait, orders = self._workload.arrival(self._traffic)
        return after + wait, orders

    def _arrive(self, until: float) -> None:
        while self._next[0] <= until:
            at, orders = self._next
            for order in orders:
                self._request(next(self._drawn), order, at)
            self._next = self._draw(at)

    def _request(self, number: int, order: Order, at: float) -> Request:
        request = Request(number, order, at, number % len(self.ranks), self._k, (*self._seed, 3))
        self.ranks[request.rank].submit(request)
        return request

    def _admits(self, request: Request) -> bool:
        asked_for = request.number >= _ASKED_FROM
        return asked_for or not any(since < request.arrived_at <= end for since, end in self._closed)
