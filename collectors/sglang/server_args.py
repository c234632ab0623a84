"""SGLang's resolved server arguments as facts: the same names in the start-up line and in ``/server_info``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from acceptance.facts import FactValue

LONGEST_TEXT = 256

_PLAIN: Mapping[str, str] = {
    "decode_log_interval": "decode_log_interval",
    "max_running_requests": "max_running_requests",
    "tp_size": "tensor_parallel",
    "dp_size": "data_parallel",
    "dcp_size": "context_parallel",
    "chunked_prefill_size": "chunked_prefill_size",
    "speculative_draft_model_path": "drafter",
    "speculative_draft_attention_backend": "draft_attention_backend",
}
"""Argument -> fact, where the value is stated as it is."""

_ROLES: Mapping[str, str] = {"null": "unified", "prefill": "prefill", "decode": "decode"}


def facts_of_server_args(args: Mapping[str, object]) -> dict[str, FactValue]:
    """What the arguments say; an argument that is absent or None says nothing. No secret is among what is read."""
    facts: dict[str, FactValue] = {}
    for name, fact in _PLAIN.items():
        facts[fact] = _scalar(args.get(name))
    facts["model"] = _scalar(args.get("served_model_name")) or _scalar(args.get("model_path"))
    facts["role"] = _ROLES.get(str(args.get("disaggregation_mode")))
    facts["decode_attention_backend"] = _scalar(args.get("decode_attention_backend")) or _scalar(
        args.get("attention_backend")
    )
    facts["cuda_graph_disabled"] = _graphs_disabled(args)
    if "speculative_algorithm" in args:
        algorithm = _scalar(args["speculative_algorithm"])
        facts["speculative"] = algorithm is not None
        facts["algorithm"] = algorithm
        k, tokens = draft_limit(args), _count(args.get("speculative_num_draft_tokens"))
        if k is not None and args.get("speculative_eagle_topk") == 1:
            # Whatever was asked for is adjusted to the length of the chain.
            tokens = k + 1
        facts["k"], facts["num_draft_tokens"] = k, tokens
        if algorithm is not None and algorithm != "DSPARK":
            # DSpark's verify mode is an environment variable: only its own start-up line tells it.
            facts["verify_mode"] = _scalar(args.get("speculative_attention_mode"))
    return {name: value for name, value in facts.items() if value is not None}


def draft_limit(args: Mapping[str, object]) -> int | None:
    """Draft tokens a step can have accepted (k); None where the arguments do not tell.

    A chain verifies num_draft_tokens, the last accepted token of the step before among them. A tree (topk > 1) is
    num_steps deep, however many tokens it has. DSpark and n-gram drafts have no steps of their own.
    """
    algorithm = args.get("speculative_algorithm")
    if algorithm is None:
        return None
    steps, topk = _count(args.get("speculative_num_steps")), _count(args.get("speculative_eagle_topk"))
    tokens, block = _count(args.get("speculative_num_draft_tokens")), _count(args.get("speculative_dspark_block_size"))
    if algorithm not in ("DSPARK", "DFLASH", "NGRAM") and steps and topk is not None:
        return steps
    if tokens:
        return tokens - 1
    return block if algorithm == "DSPARK" else None


def _graphs_disabled(args: Mapping[str, object]) -> bool | None:
    if args.get("disable_cuda_graph") is True or args.get("disable_decode_cuda_graph") is True:
        return True
    config = args.get("cuda_graph_config")
    decode = cast("Mapping[str, object]", config).get("decode") if isinstance(config, dict) else None
    if isinstance(decode, dict) and cast("Mapping[str, object]", decode).get("backend") == "disabled":
        return True
    return False if args.get("disable_cuda_graph") is False else None


def _scalar(value: object) -> FactValue:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    return value if isinstance(value, int | float) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000 else None
