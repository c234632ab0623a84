"""Launch commands and environments of both engines as facts: what the operator asked for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import orjson

from acceptance.facts import FactValue
from acceptance.series import Engine
from collectors.sglang.server_args import facts_of_server_args
from collectors.vllm.startup import facts_of_config, facts_of_speculation

LONGEST_COMMAND = 64 * 1024

_VARIABLE = re.compile(r"(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)", re.DOTALL)
_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w.\-]*)(?:=(?P<value>.*))?", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,15}")

_ALIASES: Mapping[str, str] = {
    "tp": "tensor_parallel_size",
    "tp_size": "tensor_parallel_size",
    "dp": "data_parallel_size",
    "dp_size": "data_parallel_size",
    "dcp": "decode_context_parallel_size",
    "dcp_size": "decode_context_parallel_size",
    "model_path": "model",
    "speculative_draft_model": "speculative_draft_model_path",
    "cuda_graph_backend_decode": "cuda_graph_decode",
    "sc": "speculative_config",
    "spec_method": "speculative_config.method",
    "spec_model": "speculative_config.model",
    "spec_tokens": "speculative_config.num_speculative_tokens",
}
"""Short and old spellings -> the name used here."""

_AS_SERVER_ARGS: Mapping[str, str] = {
    "tensor_parallel_size": "tp_size",
    "data_parallel_size": "dp_size",
    "decode_context_parallel_size": "dcp_size",
    "model": "model_path",
}

Option = str | int | bool


@dataclass(frozen=True, slots=True)
class _Launch:
    words: Sequence[str]
    options: Mapping[str, Option]
    variables: Mapping[str, str]


def facts_of(command_line: str) -> dict[str, FactValue]:
    """What a launch command, its options alone, or a list of environment variables asks for.

    An option that is absent says nothing, except in a whole command, which asks for no speculation by not naming it.
    Options that are not read (keys, tokens) are dropped.
    """
    launch = _parse(command_line[:LONGEST_COMMAND])
    engine = _engine(launch)
    facts: dict[str, FactValue] = {}
    if engine is not None:
        facts["engine"] = engine
        facts |= (_sglang if engine == "sglang" else _vllm)(launch)
        if "speculative" not in facts and _is_whole(launch):
            facts["speculative"] = any(name.startswith("speculative_") for name in launch.options)
    if _simulates(launch.variables.get("SGLANG_SIMULATE_ACC_LEN", "")):
        facts["synthetic_acceptance"] = True
    return {name: value for name, value in facts.items() if value is not None}


def _sglang(launch: _Launch) -> dict[str, FactValue]:
    options = dict(launch.options)
    args: dict[str, object] = {_AS_SERVER_ARGS.get(name, name): value for name, value in options.items()}
    if _is_whole(launch):
        args.setdefault("disaggregation_mode", "null")
    if options.get("cuda_graph_decode") == "disabled":
        args["disable_cuda_graph"] = True
    facts = facts_of_server_args(args)
    if options.get("enable_mixed_chunk") is True:
        facts["mixed_chunk"] = True
    mode = launch.variables.get("SGLANG_RAGGED_VERIFY_MODE", "").lower()
    if facts.get("algorithm") == "DSPARK" and mode:
        facts["verify_mode"] = mode
    return facts


def _vllm(launch: _Launch) -> dict[str, FactValue]:
    config = dict(launch.options)
    if (model := _served(launch.words)) is not None:
        config.setdefault("model", model)
    speculation = _object(config.pop("speculative_config", None))
    dotted = {
        name.removeprefix("speculative_config."): value
        for name, value in config.items()
        if name.startswith("speculative_config.")
    }
    compilation, transfer = _object(config.get("compilation_config")), _object(config.get("kv_transfer_config"))
    facts = facts_of_config({**config, "compilation_config": compilation, "kv_transfer_config": transfer})
    return facts | facts_of_speculation({**speculation, **dotted})


def _engine(launch: _Launch) -> Engine | None:
    """By the program, or by options and variables that only one of the two has."""
    named = " ".join(launch.words)
    names = {*launch.options, *launch.variables}
    for engine, own in _ONLY.items():
        if engine in named:
            return engine
        if any(name.startswith(own) for name in names):
            return engine
    return None


# vLLM first: its one option about speculation begins like SGLang's many.
_ONLY: Mapping[Engine, tuple[str, ...]] = {
    "vllm": (
        "speculative_config",
        "enforce_eager",
        "kv_transfer_config",
        "compilation_config",
        "max_num_seqs",
        "VLLM_",
    ),
    "sglang": ("speculative_", "disaggregation_", "enable_mixed_chunk", "disable_cuda_graph", "SGLANG_"),
}


def _is_whole(launch: _Launch) -> bool:
    """A program with all its options: none is read from a file."""
    named = " ".join(launch.words)
    return "config" not in launch.options and bool(
        re.search(r"launch_server|sglang serve|vllm serve|api_server", named)
    )


def _parse(text: str) -> _Launch:
    try:
        tokens = shlex.split(text, comments=True)
    except ValueError:
        tokens = text.split()
    words: list[str] = []
    options: dict[str, Option] = {}
    variables: dict[str, str] = {}
    waiting: str | None = None
    for token in tokens:
        option = _OPTION.fullmatch(token)
        if option is not None:
            name = _name(option["name"])
            if name in _TRANSPARENT:
                waiting = None
                continue
            options[name] = True if option["value"] is None else _value(option["value"])
            waiting = name if option["value"] is None and name not in _FLAGS else None
        elif waiting is not None:
            options[waiting] = _value(token)
            waiting = None
        elif variable := _VARIABLE.fullmatch(token):
            variables[variable["name"]] = variable["value"]
        else:
            words.append(token)
    return _Launch(words, options, variables)


_TRANSPARENT = frozenset({"m", "e", "env"})
"""``python -m``, ``docker run -e``: what follows counts as if it stood alone."""

_FLAGS = frozenset({"enforce_eager", "disable_cuda_graph", "disable_decode_cuda_graph", "enable_mixed_chunk"})
"""Options without a value."""


def _name(spelled: str) -> str:
    head, dot, tail = spelled.partition(".")
    name = head.replace("-", "_")
    name = _ALIASES.get(name, name)
    return f"{name}.{tail}" if dot else name


def _value(text: str) -> Option:
    if _NUMBER.fullmatch(text):
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _object(value: Option | None) -> dict[str, Any]:
    try:
        loaded: Any = orjson.loads(value) if isinstance(value, str) else None
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}


def _served(words: Sequence[str]) -> str | None:
    """The model of ``vllm serve MODEL``."""
    return next((model for word, model in pairwise(words) if word == "serve"), None)


def _simulates(value: str) -> bool:
    try:
        return float(value) > 0
    except ValueError:
        return False
