"""What a vLLM server counts for one of its engines: everything moves with every step, acceptance before trimming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from app.demo.events import Passes, Prefill
from app.demo.exposition import Histogram, billionths, counted
from app.demo.request import Request

FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


class EngineState:
    """One engine (a data-parallel rank).

    counts       running totals by name; "position 0" and so on count acceptance by draft position
    histograms   by family, of those families that the frontend has
    """

    def __init__(self, k: int, max_tokens: int, bounds: Mapping[str, tuple[float, ...]]) -> None:
        self.counts: Counter[str] = Counter()
        self.success: dict[str, int] = dict.fromkeys(FINISH_REASONS, 0)
        self.histograms = {name: Histogram(edges) for name, edges in bounds.items() if name.startswith("vllm:")}
        self._k = k
        self._max_tokens = max_tokens

    def positions(self, counts: Counter[str]) -> list[int]:
        """(k,) draft tokens accepted at position 0, 1, ..."""
        return [counts[f"position {position}"] for position in range(self._k)]

    def prefilled(self, prefill: Prefill) -> None:
        self.histograms["vllm:iteration_tokens_total"].observe(prefill.computed)

    def started(self, request: Request) -> None:
        assert request.first_token_at is not None
        self.counts["prompt computed"] += request.order.prompt_tokens - request.order.cached_tokens
        self.counts["prompt cached"] += request.order.cached_tokens
        self.counts["generation"] += 1
        waited = request.first_token_at - request.arrived_at
        self.histograms["vllm:time_to_first_token_seconds"].observe(waited)

    def decoded(self, passes: Passes) -> None:
        self.counts["generation"] += int(passes.sent.sum())
        if self._k:
            self.counts["drafts"] += passes.steps
            self.counts["draft tokens"] += passes.steps * self._k
            self.counts["accepted"] += passes.accepted_drafts
            by_length = passes.histogram.sum(axis=0)
            for position, accepted in enumerate(np.cumsum(by_length[::-1])[::-1][1:].tolist()):
                self.counts[f"position {position}"] += accepted
        self._observe_all("vllm:inter_token_latency_seconds", passes.intervals)
        self._observe_all("vllm:iteration_tokens_total", passes.accepted.sum(axis=1) + passes.accepted.shape[1])

    def finished(self, request: Request) -> None:
        order, first, last = request.order, request.first_token_at, request.last_token_at
        assert first is not None
        assert request.finished_at is not None
        self.success[order.reason] += 1
        limit = order.output_tokens if order.reason == "length" else self._max_tokens
        for name, value in {
            "vllm:request_prompt_tokens": order.prompt_tokens,
            "vllm:request_generation_tokens": request.sent,
            "vllm:request_max_num_generation_tokens": request.sent,
            "vllm:request_params_n": 1,
            "vllm:request_params_max_tokens": limit,
            "vllm:request_time_per_output_token_seconds": (last - first) / max(request.sent - 1, 1),
            "vllm:e2e_request_latency_seconds": request.finished_at - request.arrived_at,
            "vllm:request_queue_time_seconds": request.admitted_at - request.arrived_at,
            "vllm:request_inference_time_seconds": last - request.admitted_at,
            "vllm:request_prefill_time_seconds": first - request.admitted_at,
            "vllm:request_decode_time_seconds": last - first,
            "vllm:request_num_preemptions": 0,
            "vllm:request_prefill_kv_computed_tokens": order.prompt_tokens - order.cached_tokens,
        }.items():
            if name in self.histograms:
                self.histograms[name].observe(value)

    def _observe_all(self, name: str, values: np.ndarray) -> None:
        histogram = self.histograms[name]
        cells = counted(values, np.ones(values.shape), np.zeros(1, dtype=int), np.array(histogram.bounds), 1)
        histogram.add(cells[0].tolist(), billionths(values))
