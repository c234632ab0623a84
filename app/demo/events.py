"""What happens in an emulated engine, as told to those who show it or count it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.demo.request import Request


@dataclass(frozen=True, slots=True)
class Prefill:
    """A prefill batch has run.

    requests   in the batch (one with a long prompt is in several)
    computed, cached   prompt tokens computed and taken from the prefix cache
    running, queued    requests that decode and that wait, the batch not counted
    pending    prompt tokens still to be computed
    """

    rank: int
    at: float
    seconds: float
    requests: int
    computed: int
    cached: int
    running: int
    queued: int
    pending: int


@dataclass(frozen=True, slots=True)
class Passes:
    """Decode passes have run, all with the same requests; each verified one draft of every request.

    ends        (passes,) when they ended
    intervals   (passes, requests) seconds since the request's last token
    accepted    (passes, requests) draft tokens accepted
    histogram   (requests, k + 1) the same, counted
    sent        (requests,) tokens that went to the clients: after trimming
    number      passes of the rank since it started, these included
    """

    rank: int
    requests: tuple[Request, ...]
    ends: np.ndarray
    intervals: np.ndarray
    accepted: np.ndarray
    histogram: np.ndarray
    sent: np.ndarray
    eager: bool
    number: int
    queued: int

    @property
    def count(self) -> int:
        """Passes."""
        return len(self.ends)

    @property
    def steps(self) -> int:
        """Verify steps."""
        return self.accepted.size

    @property
    def accepted_drafts(self) -> int:
        """Draft tokens accepted."""
        return int(self.accepted.sum())


class Observer(Protocol):
    """Somebody who is told."""

    def prefilled(self, prefill: Prefill) -> None:
        """A prefill batch has run."""

    def started(self, request: Request) -> None:
        """A request has its first token, from prefill."""

    def decoded(self, passes: Passes) -> None:
        """Decode passes have run."""

    def finished(self, request: Request) -> None:
        """A request is over. Its last passes were told before."""
