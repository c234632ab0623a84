"""How an emulated engine was started."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from app.demo.scheduler import Pace
from app.demo.workload import Workload

EXPECTED_DRAFT_BACKEND = "trtllm_mha"
RESET_MAX_RUNNING = 48
"""What SGLang resets the limit of running requests to, where speculation is on and nobody set it."""
SLOW_DRAFTER = 1.35


@dataclass(frozen=True, slots=True)
class Settings:
    """One engine.

    engine      name of its face: "sglang", "vllm" or "vllm-rust"
    k           draft tokens a verify step proposes; 0 is speculation off
    ranks       data-parallel ranks (vLLM: engines)
    tp          tensor-parallel ranks (SGLang, without data parallelism)
    label       custom label of SGLang's metrics that carries the category; "" is none
    hybrid      its KV pool has a part for linear attention, as that of Kimi K3; SGLang logs it differently
    api_servers API server processes (vLLM): with more than one, pages lack some series and logs lack the statistics
    development vLLM's development endpoints are on (``/server_info``)
    log_requests   SGLang logs each finished request as JSON
    lines       the metrics page is filled up to about so many lines
    """

    engine: str = "sglang"
    name: str = "emulator-0"
    model: str = "moonshotai/Kimi-K3"
    draft_model: str = "RadixArk/Kimi-K3-DSpark"
    seed: int = 0
    k: int = 7
    ranks: int = 1
    tp: int = 8
    label: str = "category"
    hybrid: bool = True
    api_servers: int = 1
    development: bool = False
    log_requests: bool = False
    warm_up: bool = True
    lines: int = 0
    draft_attention_backend: str = EXPECTED_DRAFT_BACKEND
    context_length: int = 1_048_576
    kv_capacity_tokens: int = 1_523_712
    port: int = 30_000
    workload: Workload = field(default_factory=Workload)
    pace: Pace = field(default_factory=Pace)

    @property
    def actual_pace(self) -> Pace:
        """How fast it really is: a drafter on another attention backend than the expected one is slow."""
        if self.draft_attention_backend == EXPECTED_DRAFT_BACKEND or not self.k:
            return self.pace
        seconds = {name: getattr(self.pace, name) * SLOW_DRAFTER for name in ("pass_seconds", "root_seconds")}
        return replace(self.pace, **seconds)


@dataclass(frozen=True, slots=True)
class Life:
    """One process's life: ``number`` counts the restarts before it."""

    number: int
    began_at: float
    ready_at: float

    @property
    def pid(self) -> int:
        """Of the emulated process."""
        return 4121 + 1013 * self.number
