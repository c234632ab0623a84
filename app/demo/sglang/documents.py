"""What SGLang 0.5.23 tells as JSON: its configuration, and what became of a request."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from typing import Any

from app.demo.exposition import surface
from app.demo.request import Request
from app.demo.settings import Life, Settings
from app.demo.sglang.page import startup_times
from app.demo.sglang.state import RankState

VERSION = "0.5.23"


def server_args(settings: Settings, life: Life) -> dict[str, Any]:
    """The resolved arguments: those of the Kimi K3 recipe, and what was asked for here."""
    args = dict(surface("sglang-server-args"))
    args |= {
        "model_path": settings.model,
        "tokenizer_path": settings.model,
        "served_model_name": settings.model,
        "host": "127.0.0.1",
        "port": settings.port,
        "random_seed": 219_638_083 + 7919 * life.number + settings.seed,
        "tp_size": settings.ranks if settings.ranks > 1 else settings.tp,
        "dp_size": settings.ranks,
        "attn_dp_size": settings.ranks,
        "enable_dp_attention": settings.ranks > 1,
        "dcp_size": 1 if settings.ranks > 1 else settings.tp,
        "max_running_requests": settings.pace.max_running,
        "chunked_prefill_size": settings.pace.chunk,
        "context_length": settings.context_length,
        "decode_log_interval": settings.pace.report_every,
        "enable_metrics": True,
        "log_requests": settings.log_requests,
        "log_requests_format": "json" if settings.log_requests else "text",
        "tokenizer_metrics_allowed_custom_labels": [settings.label] if settings.label else None,
    }
    if settings.k:
        args |= {
            "speculative_algorithm": "DSPARK",
            "speculative_draft_model_path": settings.draft_model,
            "speculative_num_steps": 1,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": settings.k + 1,
            "speculative_dspark_block_size": settings.k,
        }
    else:
        args |= {name: None for name in args if name.startswith("speculative_num") or name.endswith("block_size")}
        args |= {
            "speculative_algorithm": None,
            "speculative_draft_model_path": None,
            "speculative_eagle_topk": None,
            "speculative_draft_attention_backend": None,
        }
    return args


def server_info(settings: Settings, life: Life, ranks: Sequence[RankState]) -> dict[str, Any]:
    """``/server_info``. The drafter's own fallback is not in it, as in the real one: only the log tells."""
    args = server_args(settings, life)
    times: dict[str, Any] = dict(startup_times(settings, life))
    graph = {"decode": 3.2, "target_verify": 0.0, "draft_decode": 0.6, "draft_extend": 0.0}
    states: list[dict[str, Any]] = []
    for rank in ranks:
        state = {
            **args,
            "world_size": args["tp_size"],
            "startup_time": times,
            "effective_max_running_requests_per_dp": settings.pace.max_running,
            "last_gen_throughput": rank.gauges.get("sglang:gen_throughput", 0.0),
            "memory_usage": {
                "weight": 182.4,
                "kvcache": 41.7,
                "startup_available": 21.3,
                "token_capacity": settings.kv_capacity_tokens,
                "token_capacity_swa": None,
                "graph": graph,
            },
            "decode_cuda_graph_bs": [1, 2, 4, 8, 12, 16, 24, 32, 40, 48],
        }
        if settings.k and rank.mean_accept_length is not None:
            state["avg_spec_accept_length"] = rank.mean_accept_length
        states.append(state)
    return {
        **args,
        "launch_command": launch_command(settings),
        "status": "ready",
        "max_total_num_tokens": settings.kv_capacity_tokens,
        "max_req_input_len": settings.context_length - 6,
        "startup_time": times,
        "kv_events": None,
        "internal_states": states,
        "version": VERSION,
        "frontend": "python",
    }


def launch_command(settings: Settings) -> str:
    """As it was typed."""
    words = ["sglang serve --trust-remote-code --model-path", settings.model, "--tp-size", str(settings.tp)]
    words += ["--enable-metrics --port", str(settings.port)]
    if settings.ranks > 1:
        words += ["--enable-dp-attention --dp-size", str(settings.ranks)]
    if settings.k:
        words += ["--speculative-algorithm DSPARK --speculative-draft-model-path", settings.draft_model]
        words += ["--speculative-dspark-block-size", str(settings.k)]
    if settings.label:
        words += ["--tokenizer-metrics-allowed-custom-labels", settings.label]
    return " ".join(words)


def models(settings: Settings, life: Life) -> dict[str, Any]:
    """``/v1/models``."""
    card = {"id": settings.model, "object": "model", "created": int(life.ready_at), "owned_by": "sglang"}
    return {
        "object": "list",
        "data": [{**card, "root": settings.model, "parent": None, "max_model_len": settings.context_length}],
    }


def model_info(settings: Settings) -> dict[str, Any]:
    """``/model_info``, in part."""
    return {
        "model_path": settings.model,
        "served_model_name": settings.model,
        "tokenizer_path": settings.model,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
    }


def meta_info(settings: Settings, life: Life, request: Request) -> dict[str, Any]:
    """What ``/generate`` tells about a finished request. Lengths have the bias of prefill's token, as the real ones."""
    order, first, finished = request.order, request.first_token_at, request.finished_at
    assert first is not None
    assert finished is not None
    told: dict[str, Any] = {
        "id": request_id(settings, life, request),
        "finish_reason": _finish_reason(request),
        "prompt_tokens": order.prompt_tokens,
        "weight_version": "default",
        "num_retractions": 0,
        "forward_entry_time": request.admitted_at,
        "prefill_finished_time": first,
        "queue_time": request.admitted_at - request.arrived_at,
        "reasoning_tokens": 0,
        "completion_tokens": request.sent,
        "cached_tokens": order.cached_tokens,
        "weight_versions": [{"version": "default", "start": 0, "end": request.sent}],
        "cached_tokens_details": None,
        "dp_rank": request.rank if settings.ranks > 1 else None,
        "e2e_latency": finished - request.arrived_at,
    }
    if settings.k and request.steps:
        proposed, histogram = request.steps * settings.k, request.histogram.tolist()
        while histogram[-1] == 0:
            histogram.pop()
        told |= {
            "spec_accept_rate": request.accepted / proposed,
            "spec_accept_length": request.sent / request.steps,
            "spec_num_correct_drafts": request.accepted,
            "spec_num_proposed_drafts": proposed,
            "spec_verify_ct": request.steps,
            "spec_correct_drafts_histogram": histogram,
        }
    return told | {
        "request_received_ts": request.arrived_at,
        "first_token_latency": first - request.arrived_at,
        "api_server_dispatch_finish_ts": request.arrived_at,
        "request_finished_ts": finished,
        "decode_throughput": (request.sent - 1) / (finished - first) if finished > first else 0.0,
        "response_sent_to_client_ts": finished,
    }


def request_id(settings: Settings, life: Life, request: Request) -> str:
    """A hexadecimal name, as a uuid without dashes."""
    text = f"{settings.name} {settings.seed} {life.number} {request.number}"
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _finish_reason(request: Request) -> dict[str, Any]:
    match request.order.reason:
        case "length":
            return {"type": "length", "length": request.sent}
        case "abort":
            return {"type": "abort", "message": "Client disconnected", "status_code": None, "err_type": None}
        case _:
            return {"type": "stop", "matched": 163586}
