"""vLLM's configuration as its start-up lines print it, as facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from acceptance.facts import FactValue
from collectors.reprs import Field, read_fields

ARGUMENTS = "non-default args: "
CONFIG = re.compile(r"Initializing a V\d LLM engine \(v(?P<version>[^\s)]{1,64})\) with config: ")

_PLAIN: Mapping[str, str] = {
    "tensor_parallel_size": "tensor_parallel",
    "data_parallel_size": "data_parallel",
    "decode_context_parallel_size": "context_parallel",
    "max_num_seqs": "max_running_requests",
}
_KV_ROLES: Mapping[object, str] = {"kv_producer": "prefill", "kv_consumer": "decode"}
_FIRST_NAME = re.compile(r"\['(?P<name>[^'\\]{1,256})'")


def facts_of_arguments(message: str) -> dict[str, FactValue]:
    """``non-default args: {...}``: what the operator asked for. What it does not name says nothing."""
    return facts_of_config(read_fields(message.removeprefix(ARGUMENTS).removeprefix("{")))


def facts_of_engine(message: str, match: re.Match[str]) -> dict[str, FactValue]:
    """``Initializing a V1 LLM engine (v0.33.0) with config: ...``: what the engine runs with."""
    fields = read_fields(message[match.end() :])
    facts: dict[str, FactValue] = {"version": match["version"], **facts_of_config(fields)}
    if "speculative_config" in fields and fields["speculative_config"] is None:
        facts["speculative"] = False
    return facts


def facts_of_config(config: Mapping[str, Field]) -> dict[str, FactValue]:
    """Facts of arguments or of a printed config, which share their names."""
    facts: dict[str, FactValue] = {fact: _scalar(config.get(name)) for name, fact in _PLAIN.items()}
    facts["model"] = _model(config)
    facts["cuda_graph_disabled"] = _graphs_disabled(config)
    transfer = config.get("kv_transfer_config")
    if isinstance(transfer, dict):
        facts["role"] = _KV_ROLES.get(transfer.get("kv_role"))
    facts.update(facts_of_speculation(_nested(config.get("speculative_config"))))
    return {name: value for name, value in facts.items() if value is not None}


def facts_of_speculation(speculation: Mapping[str, object]) -> dict[str, FactValue]:
    """Facts of a speculative config (JSON of the command line, dict of the arguments, repr of the engine)."""
    if not speculation:
        return {}
    tokens = speculation.get("num_speculative_tokens", speculation.get("num_spec_tokens"))
    synthetic = speculation.get("rejection_sample_method") == "synthetic"
    return {
        "speculative": True,
        "algorithm": _scalar(speculation.get("method")),
        "drafter": _scalar(speculation.get("model")),
        "k": tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else None,
        "draft_attention_backend": _scalar(speculation.get("attention_backend")),
        "synthetic_acceptance": True if synthetic else None,
    }


def _nested(value: Field) -> Mapping[str, object]:
    if isinstance(value, dict):
        return cast("Mapping[str, object]", value)
    if isinstance(value, str) and value.startswith("SpeculativeConfig("):
        return cast("Mapping[str, object]", read_fields(value.removeprefix("SpeculativeConfig(")))
    return {}


def _model(config: Mapping[str, Field]) -> FactValue:
    served = config.get("served_model_name")
    if isinstance(served, str):
        first = _FIRST_NAME.match(served)
        return first["name"] if first else _scalar(served)
    return _scalar(config.get("model")) or _scalar(config.get("model_tag"))


def _graphs_disabled(config: Mapping[str, Field]) -> bool | None:
    eager = config.get("enforce_eager")
    compilation = config.get("compilation_config")
    mode = compilation.get("cudagraph_mode") if isinstance(compilation, dict) else None
    if eager is True or (isinstance(mode, str) and re.fullmatch(r"(?:<CUDAGraphMode\.)?NONE\b.*", mode)):
        return True
    return False if eager is False else None


def _scalar(value: object) -> FactValue:
    return value if isinstance(value, str | int | float) else None
