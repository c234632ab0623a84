"""Log lines of SGLang 0.5.23, by its own format strings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from app.demo.events import Prefill
from app.demo.exposition import surface
from app.demo.face import local_time
from app.demo.settings import EXPECTED_DRAFT_BACKEND, RESET_MAX_RUNNING, Life, Settings


def stamped(at: float, message: str, prefix: str = "") -> str:
    """``prefix`` names the rank."""
    return f"[{local_time('%Y-%m-%d %H:%M:%S', at)}{prefix}] {message}"


def prefix_of(settings: Settings, rank: int) -> str:
    """How the lines of a scheduler begin: nothing where there is one rank only."""
    if settings.ranks > 1:
        return f" DP{rank} TP{rank}"
    return " TP0" if settings.tp > 1 else ""


class Usage:
    """The part of a line that tells how full the KV pool is."""

    def __init__(self, settings: Settings, tokens: int, running: int) -> None:
        self.tokens = tokens
        self.share = tokens / settings.kv_capacity_tokens
        self.states = 5 * running
        self.states_share = self.states / (5 * settings.pace.max_running + 5)
        self._hybrid = settings.hybrid

    def decode(self) -> str:
        if not self._hybrid:
            return f"#token: {self.tokens}, token usage: {self.share:.2f}, "
        return (
            f"#full token: {self.tokens}, full token usage: {self.share:.2f}, "
            f"mamba num: {self.states}, mamba usage: {self.states_share:.2f}, "
        )

    def prefill(self) -> str:
        if not self._hybrid:
            return f"token usage: {self.share:.2f}, "
        return f"full token usage: {self.share:.2f}, mamba usage: {self.states_share:.2f}, "


def prefill_line(batch: Prefill, usage: Usage, tokens_per_second: float) -> str:
    """After every prefill batch."""
    return (
        f"Prefill batch, #new-seq: {batch.requests}, #new-token: {batch.computed}, #cached-token: {batch.cached}, "
        f"{usage.prefill()}#running-req: {batch.running}, #queue-req: {batch.queued}, "
        f"#pending-token: {batch.pending}, cuda graph: False, input throughput (token/s): {tokens_per_second:.2f}"
    )


def decode_line(
    running: int, usage: Usage, accept: tuple[float, float] | None, eager: bool, tokens_per_second: float, queued: int
) -> str:
    """Every decode_log_interval passes; ``accept`` is length and rate, None without speculation."""
    speculation = "" if accept is None else f"accept len: {accept[0]:.2f}, accept rate: {accept[1]:.2f}, "
    return (
        f"Decode batch, #running-req: {running}, {usage.decode()}{speculation}cuda graph: {not eager}, "
        f"gen throughput (token/s): {tokens_per_second:.2f}, #queue-req: {queued}"
    )


def finished_line(at: float, result: dict[str, Any], asked: dict[str, Any]) -> str:
    """With --log-requests --log-requests-format json."""
    timestamp = f"{local_time('%Y-%m-%dT%H:%M:%S', at)}.{int(at % 1 * 1e6):06d}"
    event = {"timestamp": timestamp, "event": "request.finished", "rid": result["id"]}
    return json.dumps({**event, "obj": asked, "out": {"meta_info": result}})


def start_up(settings: Settings, life: Life, server_args: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """What is logged until the server is ready, and when."""
    told = {"always", "speculation" if settings.k else "no speculation"}
    if settings.k:
        expected = settings.draft_attention_backend == EXPECTED_DRAFT_BACKEND
        told.add("expected drafter" if expected else "drafter fallback")
        if settings.pace.max_running == RESET_MAX_RUNNING:
            told.add("requests capped")
    fields = {
        "k": settings.k,
        "window": settings.k + 1,
        "running": settings.pace.max_running,
        "chunk": settings.pace.chunk,
        "capacity": settings.kv_capacity_tokens,
        "context": settings.context_length,
        "draft_backend": settings.draft_attention_backend,
        "pid": life.pid,
        "port": settings.port,
        "server_args": repr(server_args),
    }
    for row in surface("sglang-start"):
        if row["when"] in told:
            at = life.began_at + row["share"] * (life.ready_at - life.began_at)
            yield at, stamped(at, row["text"].format(**fields), prefix_of(settings, 0) if row["on_rank"] else "")
