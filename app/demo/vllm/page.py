"""The metrics page of a vLLM server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter

from app.demo.exposition import Histogram, Labels, Value, surface
from app.demo.scheduler import Scheduler
from app.demo.settings import Life, Settings
from app.demo.vllm.frontends import Frontend
from app.demo.vllm.state import EngineState

_PROCESS = {
    "process_virtual_memory_bytes": 2.06483456e09,
    "process_resident_memory_bytes": 6.44923392e08,
    "process_open_fds": 34.0,
    "process_max_fds": 20000.0,
}
_CACHE_CONFIG: dict[str, str] = surface("vllm-cache-config")
_COUNTERS = {
    "vllm:prefix_cache_hits_total": "prompt cached",
    "vllm:generation_tokens_total": "generation",
    "vllm:external_prefix_cache_queries_total": "",
    "vllm:external_prefix_cache_hits_total": "",
    "vllm:mm_cache_queries_total": "",
    "vllm:mm_cache_hits_total": "",
    "vllm:num_preemptions_total": "",
    "vllm:prompt_tokens_cached_total": "prompt cached",
}
_SPEC_COUNTERS = {
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
}
_SOURCES = {"local_compute": "prompt computed", "local_cache_hit": "prompt cached", "external_kv_transfer": ""}
_TIERS = {"device": "prompt cached", "host": "", "p2p": "", "disk": "", "external_unspecified": ""}


class Page:
    """Renders the state of one server."""

    def __init__(self, settings: Settings, life: Life, frontend: Frontend) -> None:
        self._settings = settings
        self._life = life
        self._frontend = frontend
        self._rows: defaultdict[str, list[tuple[Labels, Value]]] = defaultdict(list)

    def render(self, engines: Sequence[EngineState], ranks: Sequence[Scheduler], at: float, http: HttpState) -> bytes:
        """The page at a time."""
        self._rows.clear()
        if self._settings.api_servers == 1:
            self._process(at)
        for number, (engine, rank) in enumerate(zip(engines, ranks, strict=True)):
            self._counters(number, engine)
            self._gauges(number, rank)
            for name, histogram in engine.histograms.items():
                self._add(name, histogram, number)
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            self._add("vllm:admission_rejections_total", 0, reason=reason)
        self._http(http)
        page = self._frontend.dialect.render(self._frontend.families, self._rows)
        missing = self._settings.lines - page.count(b"\n")
        if missing <= 0:
            return page
        self._fill(http, missing)
        return self._frontend.dialect.render(self._frontend.families, self._rows)

    def _add(self, name: str, value: Value, engine: int | None = None, **more: str) -> None:
        labels = self._frontend.labels(engine, **more)
        shown = value if isinstance(value, Histogram) else self._frontend.value(value)
        self._rows[self._frontend.name(name)].append((labels, shown))

    def _counters(self, number: int, engine: EngineState) -> None:
        counts = engine.counts
        shown = _COUNTERS | (_SPEC_COUNTERS if self._settings.k or not self._frontend.per_engine else {})
        for name, count in shown.items():
            self._add(name, counts[count], number)
        # The Rust frontend makes a position's series with its first draft, the Python one with the process.
        if self._settings.k and (self._frontend.per_engine or counts["drafts"]):
            for position, accepted in enumerate(engine.positions(counts)):
                name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
                self._add(name, accepted, number, position=str(position))
        prompt = counts["prompt computed"] + counts["prompt cached"]
        self._add("vllm:prompt_tokens_total", prompt, number)
        self._add("vllm:prefix_cache_queries_total", prompt, number)
        for source, count in _SOURCES.items():
            self._add("vllm:prompt_tokens_by_source_total", counts[count], number, source=source)
        for source, count in _TIERS.items():
            self._add("vllm:prompt_tokens_cached_by_source_total", counts[count], number, source=source)
        for reason, requests in engine.success.items():
            self._add("vllm:request_success_total", requests, number, finished_reason=reason)

    def _gauges(self, number: int, rank: Scheduler) -> None:
        self._add("vllm:num_requests_running", len(rank.running), number)
        self._add("vllm:num_requests_waiting", len(rank.waiting), number)
        for reason, waiting in (("capacity", len(rank.waiting)), ("deferred", 0)):
            self._add("vllm:num_requests_waiting_by_reason", waiting, number, reason=reason)
        for state in ("awake", "weights_offloaded", "discard_all"):
            self._add("vllm:engine_sleep_state", int(state == "awake"), number, sleep_state=state)
        labels = self._frontend.labels(number)
        usage = kv_usage(self._settings, rank)
        self._rows[self._frontend.name("vllm:kv_cache_usage_perc")].append((labels, usage))
        config = _CACHE_CONFIG | {"engine": str(number)}
        self._rows["vllm:cache_config_info"].append((tuple(sorted(config.items())), 1.0))

    def _process(self, at: float) -> None:
        up = at - self._life.began_at
        for generation, objects in (("0", 15_222), ("1", 1_372), ("2", 1_495)):
            labels = (("generation", generation),)
            self._rows["python_gc_objects_collected_total"].append((labels, float(objects)))
            self._rows["python_gc_objects_uncollectable_total"].append((labels, 0.0))
            self._rows["python_gc_collections_total"].append((labels, float(objects // 10)))
        info = {"implementation": "CPython", "major": "3", "minor": "12", "patchlevel": "11", "version": "3.12.11"}
        self._rows["python_info"].append((tuple(info.items()), 1.0))
        self._rows["process_start_time_seconds"].append(((), round(self._life.began_at, 2)))
        self._rows["process_cpu_seconds_total"].append(((), round(10 + 0.3 * up, 2)))
        for name, value in _PROCESS.items():
            self._rows[name].append(((), value))

    def _http(self, http: HttpState) -> None:
        if not http.durations:
            return
        highest = Histogram(http.bounds["http_request_duration_highr_seconds"])
        for (method, handler, status), seconds in sorted(http.durations.items(), key=itemgetter(0)):
            count = self._frontend.value(seconds.count)
            labels = self._frontend.http_labels(method=method, handler=handler, status=status)
            self._rows[self._frontend.name("http_requests_total")].append((labels, count))
            by_handler = self._frontend.http_labels(method=method, handler=handler)
            self._rows["http_request_duration_seconds"].append((by_handler, seconds))
            for family, size in (("http_request_size_bytes", 305), ("http_response_size_bytes", 865)):
                summary = Histogram()
                summary.observe(size, seconds.count)
                self._rows[family].append((self._frontend.http_labels(handler=handler), summary))
            highest.observe(0.2, seconds.count)
        self._rows["http_request_duration_highr_seconds"].append(((), highest))

    def _fill(self, http: HttpState, missing: int) -> None:
        """More handlers, for a page of about as many lines as were asked for."""
        for histogram in tuple(http.durations.values())[:1]:
            for number in range(missing // (len(histogram.bounds) + 3)):
                labels = self._frontend.http_labels(method="GET", handler=f"/emulated/{number}")
                self._rows["http_request_duration_seconds"].append((labels, histogram))


class HttpState:
    """Answers by method, handler and class of status, and how long they took."""

    def __init__(self, bounds: dict[str, tuple[float, ...]]) -> None:
        self.bounds = bounds
        self.durations: dict[tuple[str, str, str], Histogram] = {}

    def answered(self, method: str, handler: str, status: int, seconds: float) -> None:
        """One more."""
        key = method, handler if status != 404 else "none", f"{status // 100}xx"
        if key not in self.durations:
            self.durations[key] = Histogram(self.bounds["http_request_duration_seconds"])
        self.durations[key].observe(seconds)


def kv_usage(settings: Settings, rank: Scheduler) -> float:
    """Share of an engine's KV cache in use."""
    return sum(one.context for one in rank.running) / settings.kv_capacity_tokens
