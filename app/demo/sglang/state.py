"""What an SGLang process counts: its schedulers by rank, its tokenizer manager by category."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from app.demo.exposition import Histogram
from app.demo.settings import Settings

Bounds = Mapping[str, tuple[float, ...]]

PAGE_SIZE = 64
STAGES = ("request_process", "prefill_forward")


class RankState:
    """A scheduler's counters and gauges. Gauges move at reports only, as the real ones do."""

    def __init__(self, settings: Settings, bounds: Bounds, start: float) -> None:
        self.realtime: defaultdict[str, int] = defaultdict(int)
        self.passes: defaultdict[str, int] = defaultdict(int)
        self.effective = {"input": 0, "device_hit": 0, "host_hit": 0, "storage_hit": 0}
        self.queue_time = Histogram(bounds["sglang:queue_time_seconds"])
        self.stages = {stage: Histogram(bounds["sglang:per_stage_req_latency_seconds"]) for stage in STAGES}
        self._idle_billionths = 0
        self._busy_until = round(start * 1e9)
        self.window_steps = self.window_tokens = 0
        self.life_steps = self.life_tokens = 0
        self.decode_report_at = self.prefill_report_at = self.report_at = start
        self.gauges = {
            "sglang:max_total_num_tokens": float(settings.kv_capacity_tokens),
            "sglang:weight_memory_usage_gb": 182.4,
            "sglang:kv_cache_memory_usage_gb": 41.7,
            "sglang:page_size": float(PAGE_SIZE),
            "sglang:num_pages": float(settings.kv_capacity_tokens // PAGE_SIZE),
            "sglang:context_len": float(settings.context_length),
            "sglang:startup_available_gpu_memory_gb": 21.3,
            "sglang:fwd_occupancy": float("nan"),
        }

    @property
    def mean_accept_length(self) -> float | None:
        """Tokens over verify steps since the start; it moves at decode reports. None before the first."""
        return self.life_tokens / self.life_steps if self.life_steps else None

    def busy(self, start: float, end: float) -> None:
        """The scheduler worked from start to end; before that, since it last worked, it was idle."""
        begin, until = round(start * 1e9), round(end * 1e9)
        self._idle_billionths += max(begin - self._busy_until, 0)
        self._busy_until = max(self._busy_until, until)

    def idle_seconds(self, at: float, *, working: bool) -> float:
        """How long it has been idle. What it works on now is told when it is done."""
        now = 0 if working else max(round(at * 1e9) - self._busy_until, 0)
        return (self._idle_billionths + now) / 1e9


class StreamState:
    """Finished requests of one category, streamed or not."""

    def __init__(self, bounds: Bounds) -> None:
        self.prompt_tokens = self.generation_tokens = self.requests = 0
        self.first_token = Histogram(bounds["sglang:time_to_first_token_seconds"])
        self.latency = Histogram(bounds["sglang:e2e_request_latency_seconds"])
        self.per_token = Histogram(bounds["sglang:request_time_per_output_token_seconds"])


class CategoryState:
    """Requests of one category."""

    def __init__(self, bounds: Bounds) -> None:
        self.verify_calls = self.cached_tokens = 0
        self.inter_token = Histogram(bounds["sglang:inter_token_latency_seconds"])
        self.prompt = Histogram(bounds["sglang:prompt_tokens_histogram"])
        self.uncached = Histogram(bounds["sglang:uncached_prompt_tokens_histogram"])
        self.generation = Histogram(bounds["sglang:generation_tokens_histogram"])


class ServerState:
    """Everything that the page of one process shows."""

    def __init__(self, settings: Settings, bounds: Bounds, start: float) -> None:
        self.ranks = [RankState(settings, bounds, start) for _ in range(settings.ranks)]
        self.streams: defaultdict[tuple[str, bool], StreamState] = defaultdict(lambda: StreamState(bounds))
        self.categories: defaultdict[str, CategoryState] = defaultdict(lambda: CategoryState(bounds))
        self.aborted = 0
        self.http: defaultdict[tuple[str, str, int], int] = defaultdict(int)
