"""The face of SGLang 0.5.23: counters that move when a request ends, gauges that move at reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.demo.events import Passes, Prefill
from app.demo.exposition import billionths, counted
from app.demo.face import Log, access_line
from app.demo.request import Request
from app.demo.scheduler import Scheduler
from app.demo.settings import Life, Settings
from app.demo.sglang import documents, log
from app.demo.sglang.page import BOUNDS, DIALECT, Page
from app.demo.sglang.state import PAGE_SIZE, RankState, ServerState
from app.demo.workload import Order

IDLE_REPORT_SECONDS = 30.0
WARM_UP = Order("", 8, 14, 0, "length", streaming=False, acc_len=3.0)
"""What the server asks itself before it says that it is ready."""
_ITL_BOUNDS = np.array(BOUNDS["sglang:inter_token_latency_seconds"])


class SGLang:
    """One process: an observer of the simulation that shows it as SGLang would."""

    content_type = DIALECT.content_type

    def __init__(self, settings: Settings, life: Life, log_lines: Log) -> None:
        self.next_tick = life.ready_at + 1.0
        self.warm_up = WARM_UP if settings.warm_up else None
        self._settings = settings
        self._life = life
        self._log = log_lines
        self._state = ServerState(settings, BOUNDS, life.began_at)
        for rank in self._state.ranks:
            rank.busy(life.began_at, life.ready_at)
        self._page = Page(settings, life)
        self._ranks: Sequence[Scheduler] = ()

    def watch(self, ranks: Sequence[Scheduler]) -> None:
        self._ranks = ranks

    def boot(self) -> None:
        for at, line in log.start_up(self._settings, self._life, documents.server_args(self._settings, self._life)):
            self._log.add(at, line)

    def tick(self) -> None:
        at, self.next_tick = self.next_tick, self.next_tick + 1.0
        for rank, state in zip(self._ranks, self._state.ranks, strict=True):
            if not rank.running and not rank.waiting and at > state.report_at + IDLE_REPORT_SECONDS:
                self._pool_gauges(rank.rank, state, at)
                state.gauges |= {"sglang:num_running_reqs": 0.0, "sglang:num_queue_reqs": 0.0}
                state.gauges["sglang:gen_throughput"] = 0.0

    def page(self, at: float) -> bytes:
        active = sum(len(rank.waiting) + len(rank.running) for rank in self._ranks)
        return self._page.render(self._state, at, active)

    def document(self, path: str) -> Any:
        match path:
            case "/server_info" | "/get_server_info":
                return documents.server_info(self._settings, self._life, self._state.ranks)
            case "/v1/models":
                return documents.models(self._settings, self._life)
            case "/model_info":
                return documents.model_info(self._settings)
            case _:
                return None

    def answered(self, at: float, method: str, path: str, status: int) -> None:
        self._state.http[method, path, status] += 1
        if path == "/get_server_info":
            self._log.add(at, log.stamped(at, DEPRECATED))
        port = self._state.http[method, path, status]
        self._log.add(at, log.stamped(at, access_line(port, method, path, status)))

    def result(self, request: Request) -> dict[str, Any]:
        return documents.meta_info(self._settings, self._life, request)

    def prefilled(self, prefill: Prefill) -> None:
        state, at = self._state.ranks[prefill.rank], prefill.at
        throughput = prefill.computed / (at - state.prefill_report_at)
        state.prefill_report_at = at
        state.busy(at - prefill.seconds, at)
        state.passes["prefill_none"] += 1
        for mode, tokens in (("prefill_compute", prefill.computed), ("prefill_cache", prefill.cached)):
            if tokens:
                state.realtime[mode] += tokens
        state.effective["input"] += prefill.computed
        state.effective["device_hit"] += prefill.cached
        usage = self._pool_gauges(prefill.rank, state, at)
        state.gauges |= {
            "sglang:num_running_reqs": float(prefill.running),
            "sglang:num_queue_reqs": float(prefill.queued),
            "sglang:cache_hit_rate": prefill.cached / max(prefill.computed + prefill.cached, 1),
            "sglang:new_token_ratio": 0.41,
        }
        self._rank_line(prefill.rank, at, log.prefill_line(prefill, usage, throughput))

    def started(self, request: Request) -> None:
        assert request.first_token_at is not None
        state = self._state.ranks[request.rank]
        state.queue_time.observe(request.admitted_at - request.arrived_at)
        state.stages["request_process"].observe(0.00002)
        state.stages["prefill_forward"].observe(request.first_token_at - request.admitted_at)
        if request.order.streaming:
            key = self._category(request), True
            self._state.streams[key].first_token.observe(request.first_token_at - request.arrived_at)

    def decoded(self, passes: Passes) -> None:
        state = self._state.ranks[passes.rank]
        tokens = passes.steps + passes.accepted_drafts
        state.busy(float(passes.ends[0] - passes.intervals[0].min()), float(passes.ends[-1]))
        state.passes["decode_none" if passes.eager else "decode_cuda_graph"] += passes.count
        state.realtime["decode"] += tokens
        state.window_steps += passes.steps
        state.window_tokens += tokens
        self._inter_token(passes)
        if passes.number % self._settings.pace.report_every == 0:
            self._report(passes, state)

    def finished(self, request: Request) -> None:
        order, first, at = request.order, request.first_token_at, request.finished_at
        assert first is not None
        assert at is not None
        category = self._category(request)
        stream, own = self._state.streams[category, order.streaming], self._state.categories[category]
        if not order.streaming:
            stream.first_token.observe(first - request.arrived_at)
        stream.prompt_tokens += order.prompt_tokens
        stream.generation_tokens += request.sent
        stream.requests += 1
        stream.latency.observe(at - request.arrived_at)
        if request.sent > 1:
            stream.per_token.observe((at - first) / (request.sent - 1))
        own.verify_calls += request.steps if self._settings.k else 0
        own.cached_tokens += order.cached_tokens
        own.prompt.observe(order.prompt_tokens)
        own.uncached.observe(order.prompt_tokens - order.cached_tokens)
        own.generation.observe(request.sent)
        if order.reason == "abort":
            self._state.aborted += 1
        else:
            path = "/generate" if order is WARM_UP else "/v1/chat/completions"
            self._state.http["POST", path, 200] += 1
            self._log.add(at, log.stamped(at, access_line(request.number, "POST", path, 200)))
        if self._settings.log_requests:
            told = self.result(request)
            asked = {"rid": told["id"], "stream": order.streaming, "log_metrics": True}
            asked |= {"custom_labels": {self._settings.label: order.category} if self._settings.label else None}
            asked |= {"sampling_params": {"temperature": 1.0, "top_p": 0.95, "max_new_tokens": order.output_tokens}}
            self._log.add(at, log.stamped(at, log.finished_line(at, told, asked)))

    def _inter_token(self, passes: Passes) -> None:
        """One interval over its tokens, as often as there are tokens; streamed requests only."""
        streamed = np.array([one.order.streaming for one in passes.requests])
        if not streamed.any():
            return
        names = [self._category(one) for one in passes.requests]
        categories = sorted(set(names))
        groups = np.array([categories.index(name) for name in names])
        tokens, intervals = passes.accepted[:, streamed] + 1, passes.intervals[:, streamed]
        cells = counted(intervals / tokens, tokens, groups[streamed], _ITL_BOUNDS, len(categories))
        for index, category in enumerate(categories):
            if cells[index].any():
                total = billionths(intervals[:, groups[streamed] == index])
                self._state.categories[category].inter_token.add(cells[index].tolist(), total)

    def _category(self, request: Request) -> str:
        """Under which label it is counted: a server that knows none counts all requests as one."""
        return request.order.category if self._settings.label else ""

    def _report(self, passes: Passes, state: RankState) -> None:
        at, running = float(passes.ends[-1]), len(passes.requests)
        throughput = state.window_tokens / (at - state.decode_report_at)
        state.decode_report_at = at
        usage = self._pool_gauges(passes.rank, state, at)
        state.gauges |= {
            "sglang:num_running_reqs": float(running),
            "sglang:num_queue_reqs": float(passes.queued),
            "sglang:gen_throughput": throughput,
            "sglang:decode_sum_seq_lens": float(usage.tokens),
        }
        accept = None
        if k := self._settings.k:
            length = state.window_tokens / state.window_steps
            accept = length, (length - 1) / k
            state.life_steps += state.window_steps
            state.life_tokens += state.window_tokens
            state.gauges |= {
                "sglang:spec_accept_length": accept[0],
                "sglang:spec_accept_rate": accept[1],
                "sglang:spec_num_steps": 1.0,
                "sglang:spec_num_draft_tokens": k + 1.0,
            }
        state.window_steps = state.window_tokens = 0
        line = log.decode_line(running, usage, accept, passes.eager, throughput, passes.queued)
        self._rank_line(passes.rank, at, line)

    def _pool_gauges(self, rank: int, state: RankState, at: float) -> log.Usage:
        running = self._ranks[rank].running
        held = sum(-(-one.context // PAGE_SIZE) * PAGE_SIZE for one in running)
        usage = log.Usage(self._settings, held, len(running))
        state.report_at = at
        state.gauges |= {
            "sglang:full_token_usage": usage.share,
            "sglang:mamba_usage": usage.states_share if self._settings.hybrid else 0.0,
            "sglang:token_usage": max(usage.share, usage.states_share if self._settings.hybrid else 0.0),
            "sglang:num_used_tokens": float(held),
            "sglang:kv_used_tokens": float(held),
            "sglang:kv_available_tokens": float(max(self._settings.kv_capacity_tokens - held, 0)),
        }
        return usage

    def _rank_line(self, rank: int, at: float, message: str) -> None:
        self._log.add(at, log.stamped(at, message, log.prefix_of(self._settings, rank)))


DEPRECATED = (
    "Endpoint '/get_server_info' is deprecated and will be removed in a future version. "
    "Please use '/server_info' instead."
)
