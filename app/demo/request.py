"""One request on its way through an engine."""

from __future__ import annotations

import numpy as np

from app.demo.streams import Stream
from app.demo.workload import Order, chance_of


class Request:
    """A request and what became of it.

    Its verify steps draw from its own stream, step by step: what is accepted depends on the seed and on the faults of
    the moment, never on who else runs or on when somebody looks.

    number        names it within an engine's life
    chances       (k,) chance that draft positions 0..j are all accepted
    histogram     (k + 1,) verify steps that accepted 0..k draft tokens
    emitted       tokens before the last step is trimmed, prefill's first one included
    """

    def __init__(self, number: int, order: Order, arrived_at: float, rank: int, k: int, seed: tuple[int, ...]) -> None:
        self.number = number
        self.order = order
        self.arrived_at = arrived_at
        self.rank = rank
        self.chances = chance_of(order.acc_len) ** np.arange(1, k + 1)
        self.draws = Stream(np.random.default_rng((*seed, number)).random)
        self.histogram = np.zeros(k + 1, dtype=np.int64)
        self.steps = 0
        self.emitted = 0
        self.prefilled_tokens = order.cached_tokens
        self.admitted_at = arrived_at
        self.first_token_at: float | None = None
        self.last_token_at = arrived_at
        self.finished_at: float | None = None

    @property
    def prefill_left(self) -> int:
        """Prompt tokens that are still to be computed."""
        return max(self.order.prompt_tokens - self.prefilled_tokens, 0)

    @property
    def context(self) -> int:
        """Tokens that it holds in the KV cache."""
        return self.order.prompt_tokens + self.emitted

    @property
    def sent(self) -> int:
        """Tokens that its client got, prefill's first one included. A client that left got all that was verified."""
        return self.emitted if self.order.reason == "abort" else min(self.emitted, self.order.output_tokens)

    @property
    def trimmed(self) -> int:
        """Verified tokens that were cut off behind the end of the text."""
        return self.emitted - self.sent

    @property
    def accepted(self) -> int:
        """Draft tokens accepted."""
        return int(self.histogram @ np.arange(len(self.histogram)))
