"""What vLLM 0.33 tells as JSON, and what it logs until it is ready."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from typing import Any

from app.demo.exposition import surface
from app.demo.request import Request
from app.demo.settings import Life, Settings
from app.demo.vllm.frontends import Frontend

VERSION = "0.33.0"


def models(settings: Settings, life: Life) -> dict[str, Any]:
    """``/v1/models``."""
    card = {"id": settings.model, "object": "model", "created": int(life.ready_at), "owned_by": "vllm"}
    card |= {"root": settings.model, "parent": None, "max_model_len": settings.context_length, "permission": []}
    return {"object": "list", "data": [card]}


def speculative_config(settings: Settings) -> dict[str, Any] | None:
    """As in ``--speculative-config``."""
    if not settings.k:
        return None
    return {
        "method": "dspark",
        "model": settings.draft_model,
        "num_speculative_tokens": settings.k,
        "draft_sample_method": "probabilistic",
        "rejection_sample_method": "block",
    }


def server_info(settings: Settings) -> dict[str, Any]:
    """``/server_info?config_format=json`` of a development server, in part."""
    speculative = speculative_config(settings)
    return {
        "vllm_config": {
            "model_config": {"model": settings.model, "max_model_len": settings.context_length, "enforce_eager": False},
            "cache_config": {"block_size": 64, "cache_dtype": "fp8", "enable_prefix_caching": True},
            "parallel_config": {"tensor_parallel_size": settings.tp, "data_parallel_size": settings.ranks},
            "scheduler_config": {
                "max_num_seqs": settings.pace.max_running,
                "max_num_batched_tokens": settings.pace.chunk,
                "enable_chunked_prefill": True,
            },
            "speculative_config": speculative and speculative | {"attention_backend": None, "kv_cache_dtype": None},
            "observability_config": {"per_request_spec_decode_metrics": "summary"},
        },
        "vllm_env": {"VLLM_SERVER_DEV_MODE": True, "VLLM_LOG_STATS_INTERVAL": 10.0},
    }


def completion(settings: Settings, life: Life, frontend: Frontend, request: Request) -> dict[str, Any]:
    """The response to a finished chat completion. The Rust frontend tells no acceptance there."""
    order = request.order
    told: dict[str, Any] = {
        "id": f"chatcmpl-{request_id(settings, life, request)}",
        "object": "chat.completion",
        "created": int(request.arrived_at),
        "model": settings.model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": order.reason},
        ],
        "system_fingerprint": f"vllm-{VERSION}-tp{settings.tp}-1a2b3c4d",
        "usage": {
            "prompt_tokens": order.prompt_tokens,
            "total_tokens": order.prompt_tokens + request.sent,
            "completion_tokens": request.sent,
        },
    }
    if frontend.tells_acceptance:
        timing = ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms", "tokens_per_second")
        acceptance = {"speculative_decoding": speculative_decoding(request, settings.k)} if settings.k else {}
        told["metrics"] = dict.fromkeys(timing) | acceptance
    return told


def speculative_decoding(request: Request, k: int) -> dict[str, Any]:
    """``metrics.speculative_decoding`` of a response, summary level: exact, before trimming."""
    steps, accepted = request.steps, request.accepted
    return {
        "mean_acceptance_length": 1 + accepted / steps if steps else 1.0,
        "draft_acceptance_rate": accepted / (steps * k) if steps else 0.0,
        "acceptance_histogram": request.histogram.tolist(),
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": steps * k,
        "num_spec_tokens": k,
        "per_step_accepted": None,
        "per_step_drafted": None,
    }


def request_id(settings: Settings, life: Life, request: Request) -> str:
    """Sixteen hexadecimal digits."""
    text = f"{settings.name} {settings.seed} {life.number} {request.number}"
    return md5(text.encode(), usedforsecurity=False).hexdigest()[:16]


def start_up(settings: Settings, frontend: Frontend) -> Iterator[tuple[float, str, str, str, str]]:
    """Share of the time until the server is ready, process, level, source and message of what it logs."""
    speculative = speculative_config(settings)
    told = {"always", "speculation" if speculative else "no speculation"}
    told |= {"python frontend"} if frontend.per_engine else set()
    told |= {"several servers"} if settings.api_servers > 1 and frontend.per_engine else set()
    args: dict[str, Any] = {"model_tag": settings.model, "port": settings.port, "trust_remote_code": True}
    args |= {"tensor_parallel_size": settings.tp, "gpu_memory_utilization": 0.95}
    args |= {"max_model_len": settings.context_length, "kv_cache_dtype": "fp8"}
    args |= {"data_parallel_size": settings.ranks} if settings.ranks > 1 else {}
    args |= {"api_server_count": settings.api_servers} if settings.api_servers > 1 else {}
    args |= {"speculative_config": speculative} if speculative else {}
    args |= {"per_request_spec_decode_metrics": "summary"} if frontend.tells_acceptance else {}
    config = f"SpeculativeConfig(method='dspark', model='{settings.draft_model}', num_spec_tokens={settings.k})"
    fields = {
        "args": args,
        "chunk": settings.pace.chunk,
        "context": settings.context_length,
        "model": settings.model,
        "port": settings.port,
        "ranks": settings.ranks,
        "speculative": config if speculative else None,
        "tp": settings.tp,
        "version": VERSION,
    }
    for row in surface("vllm-start"):
        if row["when"] in told:
            yield row["share"], row["process"], row["level"], row["source"], row["text"].format(**fields)
