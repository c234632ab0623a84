"""What really happened, as integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from app.demo.events import Passes, Prefill
from app.demo.request import Request


class Tally:
    """Verify steps of some requests.

    requests    that have had their first token
    histogram   (k + 1,) verify steps that accepted 0..k draft tokens
    trimmed     verified tokens that were cut off behind the end of the text
    """

    __slots__ = ("aborted", "histogram", "requests", "trimmed")

    def __init__(self, k: int) -> None:
        self.requests = 0
        self.aborted = 0
        self.histogram = np.zeros(k + 1, dtype=np.int64)
        self.trimmed = 0

    def __add__(self, other: Tally) -> Tally:
        total = Tally(len(self.histogram) - 1)
        total.requests = self.requests + other.requests
        total.aborted = self.aborted + other.aborted
        total.histogram = self.histogram + other.histogram
        total.trimmed = self.trimmed + other.trimmed
        return total

    def numbers(self) -> dict[str, Any]:
        """As JSON: ``emitted`` is what verify steps yielded after trimming, ``sent`` adds the first tokens."""
        k = len(self.histogram) - 1
        steps, accepted = int(self.histogram.sum()), int(self.histogram @ np.arange(k + 1))
        emitted = steps + accepted - self.trimmed
        return {
            "requests": self.requests,
            "aborted": self.aborted,
            "steps": steps,
            "proposed": steps * k,
            "accepted": accepted,
            "accepted_by_position": np.cumsum(self.histogram[::-1])[::-1][1:].tolist(),
            "histogram": self.histogram.tolist(),
            "emitted_untrimmed": steps + accepted,
            "emitted": emitted,
            "sent": emitted + self.requests,
        }


class Truth:
    """Counts by rank and category, of all requests and of those that are over. An observer."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._all: defaultdict[tuple[int, str], Tally] = defaultdict(lambda: Tally(k))
        self._finished: defaultdict[tuple[int, str], Tally] = defaultdict(lambda: Tally(k))

    def prefilled(self, prefill: Prefill) -> None:
        """Prefill verifies nothing."""

    def started(self, request: Request) -> None:
        self._all[request.rank, request.order.category].requests += 1

    def decoded(self, passes: Passes) -> None:
        for request, counts in zip(passes.requests, passes.histogram, strict=True):
            self._all[request.rank, request.order.category].histogram += counts

    def finished(self, request: Request) -> None:
        key = request.rank, request.order.category
        aborted = request.order.reason == "abort"
        self._all[key].trimmed += request.trimmed
        self._all[key].aborted += aborted
        over = self._finished[key]
        over.requests += 1
        over.aborted += aborted
        over.trimmed += request.trimmed
        over.histogram += request.histogram

    def numbers(self) -> dict[str, Any]:
        """``all`` counts every step so far, ``finished`` those of requests that are over; by category and by rank."""
        return {"all": self._by_label(self._all), "finished": self._by_label(self._finished)}

    def _by_label(self, tallies: dict[tuple[int, str], Tally]) -> dict[str, Any]:
        return {
            "total": self._sum(tallies.values()).numbers(),
            "by_category": {
                category: self._sum(tally for key, tally in tallies.items() if key[1] == category).numbers()
                for category in sorted({category for _, category in tallies})
            },
            "by_rank": {
                str(rank): self._sum(tally for key, tally in tallies.items() if key[0] == rank).numbers()
                for rank in sorted({rank for rank, _ in tallies})
            },
        }

    def _sum(self, tallies: Iterable[Tally]) -> Tally:
        return sum(tallies, Tally(self._k))
