"""The metrics page of SGLang 0.5.23: one page put together from the files of its processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter

from app.demo.exposition import Family, Histogram, Labels, PrometheusText, Value, families
from app.demo.settings import Life, Settings
from app.demo.sglang.state import STAGES, RankState, ServerState

FAMILIES: tuple[Family, ...] = families("sglang")
BOUNDS = {family.name: family.bounds for family in FAMILIES}
DIALECT = PrometheusText()

_ROUTING_KEYS = ("0", "1", "2", "3", "5", "7", "10", "20", "50", "100", "200", "+Inf")
_SCHEDULER_STAGES = {
    "other": 0.02,
    "recv_requests": 0.06,
    "process_input_requests": 0.01,
    "get_next_batch_to_run": 0.05,
    "process_queue": 0.0,
    "run_batch": 0.72,
    "process_batch_result": 0.11,
    "sanity_check_cache": 0.0,
    "idle": 0.03,
}
_GRAPH_PHASES = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")
_MANY: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "sglang:graph_memory_usage_gb": (("phase", _GRAPH_PHASES),),
    "sglang:routing_key_running_req_count": (("gt", _ROUTING_KEYS[:-1]), ("le", _ROUTING_KEYS[1:])),
    "sglang:routing_key_all_req_count": (("gt", _ROUTING_KEYS[:-1]), ("le", _ROUTING_KEYS[1:])),
}
"""Gauges of a rank that have further labels."""

Rows = defaultdict[str, list[tuple[Labels, Value]]]


class Page:
    """Renders the state of one process."""

    def __init__(self, settings: Settings, life: Life) -> None:
        self._settings = settings
        self._life = life
        self._base = {"engine_type": "unified", "model_name": settings.model}

    def render(self, state: ServerState, at: float, active: int) -> bytes:
        """The page at a time; ``active`` requests are being answered."""
        rows: Rows = defaultdict(list)
        self._tokenizer(rows, state)
        for rank, rank_state in enumerate(state.ranks):
            self._rank(rows, rank, rank_state)
        self._every_rank(rows, state.ranks, at, working=active > 0)
        self._server(rows, state, at, active)
        page = DIALECT.render(FAMILIES, rows)
        missing = self._settings.lines - page.count(b"\n")
        if missing <= 0:
            return page
        self._fill(rows, state.ranks, missing)
        return DIALECT.render(FAMILIES, rows)

    def _rank_labels(self, rank: int, tp_rank: int = 0, /, **more: str) -> Labels:
        labels = {**self._base, "moe_ep_rank": "0", "pp_rank": "0", **more}
        if self._settings.ranks > 1:
            labels |= {"dp_rank": str(rank), "tp_rank": str(rank)}
        else:
            labels |= {"tp_rank": str(tp_rank)}
        return tuple(sorted(labels.items()))

    def _client_labels(self, category: str, **more: str) -> Labels:
        labels = {**self._base, **more}
        if self._settings.label:
            labels[self._settings.label] = category
        return tuple(sorted(labels.items()))

    def _tokenizer(self, rows: Rows, state: ServerState) -> None:
        for (category, streaming), stream in sorted(state.streams.items(), key=itemgetter(0)):
            labels = self._client_labels(category, is_streaming=str(streaming).lower())
            rows["sglang:time_to_first_token_seconds"].append((labels, stream.first_token))
            if not stream.requests:
                continue
            rows["sglang:prompt_tokens_total"].append((labels, stream.prompt_tokens))
            rows["sglang:generation_tokens_total"].append((labels, stream.generation_tokens))
            rows["sglang:num_requests_total"].append((labels, stream.requests))
            rows["sglang:e2e_request_latency_seconds"].append((labels, stream.latency))
            rows["sglang:request_time_per_output_token_seconds"].append((labels, stream.per_token))
        for category, own in sorted(state.categories.items(), key=itemgetter(0)):
            labels = self._client_labels(category)
            if own.inter_token.count:
                rows["sglang:inter_token_latency_seconds"].append((labels, own.inter_token))
            if own.verify_calls:
                rows["sglang:spec_verify_calls_total"].append((labels, own.verify_calls))
            if own.cached_tokens:
                cached = self._client_labels(category, cache_source="device")
                rows["sglang:cached_tokens_total"].append((cached, own.cached_tokens))
            if own.generation.count:
                rows["sglang:prompt_tokens_histogram"].append((labels, own.prompt))
                rows["sglang:uncached_prompt_tokens_histogram"].append((labels, own.uncached))
                rows["sglang:generation_tokens_histogram"].append((labels, own.generation))
        if state.aborted:
            rows["sglang:num_aborted_requests_total"].append((self._client_labels(""), state.aborted))

    def _rank(self, rows: Rows, rank: int, state: RankState) -> None:
        for family in FAMILIES:
            if family.scope == "rank" and family.kind == "gauge":
                for more in _further_labels(family.name, self._life.pid + rank):
                    rows[family.name].append((self._rank_labels(rank, **more), state.gauges.get(family.name, 0.0)))
        for mode, tokens in state.realtime.items():
            rows["sglang:realtime_tokens_total"].append((self._rank_labels(rank, mode=mode), tokens))
        if state.queue_time.count:
            rows["sglang:queue_time_seconds"].append((self._rank_labels(rank), state.queue_time))
            for stage, histogram in state.stages.items():
                rows["sglang:per_stage_req_latency_seconds"].append((self._rank_labels(rank, stage=stage), histogram))

    def _fill(self, rows: Rows, states: Sequence[RankState], missing: int) -> None:
        """More stages, for a page of about as many lines as were asked for."""
        name = "sglang:per_stage_req_latency_seconds"
        for number in range(missing // (len(BOUNDS[name]) + 3)):
            rank = number % len(states)
            labels = self._rank_labels(rank, stage=f"{STAGES[0]}_{number}")
            rows[name].append((labels, states[rank].stages[STAGES[0]]))

    def _every_rank(self, rows: Rows, states: Sequence[RankState], at: float, *, working: bool) -> None:
        """Series that every tensor-parallel rank has, also those that report nothing else."""
        ranks = len(states)
        for tp_rank in range(self._settings.tp if ranks == 1 else ranks):
            rank = tp_rank if ranks > 1 else 0
            state = states[rank]

            def add(name: str, value: Value, rank: int = rank, tp_rank: int = tp_rank, **more: str) -> None:
                rows[name].append((self._rank_labels(rank, tp_rank, **more), value))

            logs = ranks > 1 or tp_rank == 0
            self._dp_attention(add)
            for mode, tokens in state.effective.items():
                add("sglang:prefill_effective_tokens_total", tokens if logs else 0, mode=mode)
            idle = state.idle_seconds(at, working=working)
            busy = at - self._life.ready_at - idle
            add("sglang:scheduler_idle_seconds_total", idle)
            add("sglang:scheduler_process_cpu_seconds_total", 0.98 * (at - self._life.began_at))
            for stage, share in _SCHEDULER_STAGES.items():
                add("sglang:scheduler_stage_seconds_total", share * busy, category=stage, forward_overlap="none")
            for mode, passes in state.passes.items():
                add("sglang:cuda_graph_passes_total", passes, mode=mode)

    @staticmethod
    def _dp_attention(add: Callable[..., None]) -> None:
        for name in ("sglang:dp_attention_token_imbalance_ratio", "sglang:dp_attention_sync_wait_seconds"):
            add(name, Histogram(BOUNDS[name]))
        for kind in ("scheduled", "imbalance"):
            add("sglang:dp_attention_tokens_total", 0, kind=kind)
            add("sglang:dp_attention_pairs_total", 0, kind=kind)
        for rank_state in ("active", "idle"):
            add("sglang:dp_attention_steps_total", 0, rank_state=rank_state)

    def _server(self, rows: Rows, state: ServerState, at: float, active: int) -> None:
        up = at - self._life.began_at
        for component, share in (("detokenizer", 0.004), ("tokenizer", 0.03)):
            rows["sglang:process_cpu_seconds_total"].append(((("component", component),), share * up))
        rows["sglang:routing_keys_active"].append(((), 0.0))
        requests: defaultdict[tuple[str, str], int] = defaultdict(int)
        for (method, path, status), answers in sorted(state.http.items()):
            requests[method, path] += answers
            labels = (("endpoint", path), ("method", method), ("status_code", str(status)))
            rows["sglang:http_responses_total"].append((labels, answers))
        for (method, path), answers in requests.items():
            labels = (("endpoint", path), ("method", method))
            serving = path == "/v1/chat/completions"
            running = active if serving else int(path == "/metrics")
            unanswered = running + (state.aborted if serving else 0)
            rows["sglang:http_requests_active"].append((labels, running))
            rows["sglang:http_requests_total"].append((labels, answers + unanswered))
        for phase, seconds in startup_times(self._settings, self._life).items():
            labels = tuple(sorted({**self._base, "phase": phase}.items()))
            rows["sglang:startup_time_seconds"].append((labels, seconds))
        for phase in _GRAPH_PHASES:
            labels = tuple(sorted({**self._base, "phase": phase}.items()))
            rows["sglang:startup_cuda_graph_time_seconds"].append((labels, 0.0))


def startup_times(settings: Settings, life: Life) -> dict[str, float]:
    """How long the phases of the start took: the same for one life, another for the next."""
    odd = (settings.seed * 7919 + life.number * 104_729) % 9973 / 9973
    return {
        "load_weight": 211.0 + odd,
        "kv_cache_allocation": 3.1 + odd / 7,
        "scheduler_e2e": 371.0 + odd * 3,
        "tokenizer_e2e": 398.0 + odd * 5,
    }


def _further_labels(name: str, pid: int) -> list[dict[str, str]]:
    if name in ("sglang:num_retracted_reqs", "sglang:num_paused_reqs"):
        return [{"pid": str(pid)}]
    if name not in _MANY:
        return [{}]
    names, columns = zip(*_MANY[name], strict=True)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
