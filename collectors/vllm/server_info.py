"""vLLM's ``/server_info`` (dev mode only; 404 otherwise): text in old versions and by default, JSON where asked.

Either is the API server's copy of the configuration. What a worker changed later (its graph mode, the attention
backend it chose) is not in it.
"""

from __future__ import annotations

from typing import cast

from acceptance.facts import FactValue, Subject
from collectors.document import NotReadable, Object, inner, parse, refused, tell
from collectors.reading import Reading, State, Text
from collectors.reprs import read_fields
from collectors.vllm.startup import facts_of_config, facts_of_speculation

LONGEST_TEXT = 300
_NO_GRAPHS = ("NONE", "0")
_WITHOUT_SPECULATION = ("algorithm", "drafter", "k", "draft_attention_backend")


class ServerInfoReader:
    """Facts of the configuration; the environment beside it is not looked at, since it may hold secrets."""

    surface = "server_info"

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """A whole document, in either form."""
        try:
            facts = _facts(parse(text.body))
        except NotReadable as problem:
            return refused(problem, self.surface, state)
        return tell({"engine": "vllm", **facts}, self.surface, subject, state, text.at)


def _facts(document: Object) -> dict[str, FactValue]:
    config = document.get("vllm_config")
    if isinstance(config, str):
        fields = read_fields(f"{config})")
        return _settled(facts_of_config(fields), without=fields.get("speculative_config", "") is None)
    if isinstance(config, dict):
        return _of_json(cast("Object", config))
    raise NotReadable("no vllm_config in it")


def _of_json(config: Object) -> dict[str, FactValue]:
    model, parallel = inner(config, "model_config"), inner(config, "parallel_config")
    scheduler = inner(config, "scheduler_config")
    facts: dict[str, FactValue] = {
        "model": _scalar(model.get("served_model_name")) or _scalar(model.get("model")),
        "tensor_parallel": _scalar(parallel.get("tensor_parallel_size")),
        "data_parallel": _scalar(parallel.get("data_parallel_size")),
        "context_parallel": _scalar(parallel.get("decode_context_parallel_size")),
        "max_running_requests": _scalar(scheduler.get("max_num_seqs")),
        "decode_attention_backend": _scalar(inner(config, "attention_config").get("backend")),
        "cuda_graph_disabled": _graphs_disabled(
            model.get("enforce_eager"), inner(config, "compilation_config").get("cudagraph_mode")
        ),
        **facts_of_speculation(inner(config, "speculative_config")),
    }
    if scheduler.get("enable_chunked_prefill") is True:
        facts["chunked_prefill_size"] = _scalar(scheduler.get("max_num_batched_tokens"))
    known: dict[str, FactValue] = {name: value for name, value in facts.items() if value is not None}
    return _settled(known, without=config.get("speculative_config", "") is None)


def _settled(facts: dict[str, FactValue], *, without: bool) -> dict[str, FactValue]:
    """Withdraw what an earlier process may have stated: a drafter that is none, or all about drafting."""
    if without:
        return {**facts, "speculative": False, **dict.fromkeys(_WITHOUT_SPECULATION)}
    if "algorithm" in facts and facts.get("drafter") in (None, "None", facts["algorithm"]):
        # A method without a draft model names itself in its place.
        facts["drafter"] = None
    return facts


def _graphs_disabled(eager: object, mode: object) -> bool | None:
    """Without graphs on purpose: eager mode, or graph mode NONE (0 in JSON)."""
    if eager is None and mode is None:
        return None
    return eager is True or (mode is not None and str(mode).upper() in _NO_GRAPHS)


def _scalar(value: object) -> FactValue:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    return value if isinstance(value, int | float) else None
