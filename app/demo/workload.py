"""What is asked of an engine: when requests come, how long their answers are and how well they can be drafted.

Sources of the figures: acceptance lengths of Kimi K3 with a DSpark drafter of 7 draft tokens as published (code 4.7 to
5.5, chat 2.7 to 3.9, creative writing 2.6, AIME 3.0, long-context retrieval and agents 3.3 to 4.3); output lengths
lognormal with a median of 600 tokens and a 99th percentile of 16,000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

MEAN_ACC_LEN: Mapping[str, float] = MappingProxyType(
    {"code": 5.9, "math": 5.9, "agentic": 5.0, "chat": 4.2, "rag": 3.6, "creative": 2.8}
)
"""Category -> mean over requests of the acc_len that 7 draft tokens would give. Tokens over verify steps come out about
a tenth lower, since a request that is drafted badly takes more steps."""

OTHER_ACC_LEN = 3.2
REFERENCE_DRAFTS = 7
BETWEEN_REQUEST_SD = 0.30
"""Of the mean: acceptance differs between requests far more than it varies within one."""

MEDIAN_OUTPUT_TOKENS = 600
OUTPUT_SIGMA = math.log(16_000 / 600) / 2.3263
MEDIAN_PROMPT_TOKENS = 900
PROMPT_SIGMA = 1.1


@dataclass(frozen=True, slots=True)
class Order:
    """A request as its client asks for it.

    category       what it is about; "" where the client does not say
    output_tokens  tokens until the end-of-text token or the limit comes, prefill's first token included
    reason         how it ends: "stop", "length" or "abort" (the client leaves after ``output_tokens``)
    acc_len        the mean acc_len that ``REFERENCE_DRAFTS`` draft tokens would give it
    """

    category: str
    output_tokens: int
    prompt_tokens: int
    cached_tokens: int
    reason: str
    streaming: bool
    acc_len: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The traffic of one server.

    rate          arrivals a second over all categories (a burst is one arrival)
    burst_share   share of the arrivals that bring several requests with long prompts at once
    """

    categories: tuple[str, ...] = tuple(MEAN_ACC_LEN)
    rate: float = 0.6
    burst_share: float = 0.03
    abort_share: float = 0.02
    streaming_share: float = 0.7
    max_output_tokens: int = 65_536
    max_prompt_tokens: int = 200_000

    def arrival(self, rng: np.random.Generator) -> tuple[float, list[Order]]:
        """Seconds until the next arrival, and what it brings."""
        wait = float(rng.exponential(1 / self.rate))
        if rng.random() >= self.burst_share:
            return wait, [self.order(rng)]
        return wait, [self.order(rng, prompt_scale=6.0) for _ in range(int(rng.integers(4, 10)))]

    def order(self, rng: np.random.Generator, prompt_scale: float = 1.0) -> Order:
        """One request, drawn."""
        category = self.categories[int(rng.integers(len(self.categories)))]
        wanted = max(1, round(MEDIAN_OUTPUT_TOKENS * math.exp(OUTPUT_SIGMA * rng.standard_normal())))
        output = min(wanted, self.max_output_tokens)
        prompt = round(MEDIAN_PROMPT_TOKENS * prompt_scale * math.exp(PROMPT_SIGMA * rng.standard_normal()))
        prompt = min(max(8, prompt), self.max_prompt_tokens)
        reason = "stop" if output == wanted else "length"
        if rng.random() < self.abort_share:
            reason, output = "abort", max(1, int(output * rng.random()))
        return Order(
            category,
            output,
            prompt,
            int(prompt * 0.6 * rng.random()),
            reason,
            bool(rng.random() < self.streaming_share),
            draw_acc_len(category, rng),
        )


def draw_acc_len(category: str, rng: np.random.Generator) -> float:
    """A request's own mean acc_len: beta distributed between 1 and the most that is possible."""
    mean = MEAN_ACC_LEN.get(category, OTHER_ACC_LEN)
    share = (mean - 1) / REFERENCE_DRAFTS
    deviation = BETWEEN_REQUEST_SD * mean / REFERENCE_DRAFTS
    weight = share * (1 - share) / deviation**2 - 1
    return 1 + REFERENCE_DRAFTS * float(rng.beta(share * weight, (1 - share) * weight))


_CHANCES = np.linspace(0.0, 1.0, 2001)
_LENGTHS = 1 + sum(_CHANCES**position for position in range(1, REFERENCE_DRAFTS + 1))


def chance_of(acc_len: float) -> float:
    """The chance that a draft token is accepted where all before it were, for a mean ``acc_len``."""
    return float(np.interp(acc_len, _LENGTHS, _CHANCES))
