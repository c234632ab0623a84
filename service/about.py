"""What a target is: engine, models and how it is split, in the few words that stand beside its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from service.catalog import TargetStatus

ENGINES: Mapping[str, str] = MappingProxyType({"sglang": "SGLang", "vllm": "vLLM"})
"""Engine -> what it calls itself."""

_SIZES = (("TP", "tensor_parallel"), ("DP", "data_parallel"), ("CP", "context_parallel"))


def text(status: TargetStatus, name: str) -> str | None:
    """A fact as text, None where it is unknown."""
    value = status.fact(name)
    return None if value is None else str(value)


def engine(status: TargetStatus) -> str:
    """``SGLang``, "" where it is unknown."""
    name = text(status, "engine") or ""
    return ENGINES.get(name, name)


def parallelism(status: TargetStatus) -> str:
    """``TP8 DP2``; what is split in one part is not split."""
    sizes = [(short, status.fact(name)) for short, name in _SIZES]
    return " ".join(f"{short}{size}" for short, size in sizes if isinstance(size, int) and size > 1)


def about(status: TargetStatus) -> str:
    """``SGLang · TP8 DP2``; "" where nothing of it is known."""
    return " · ".join(part for part in (engine(status), parallelism(status)) if part)


def what_runs(status: TargetStatus, k: int | None) -> list[str]:
    """``["SGLang 0.5.23", "Kimi-K3 + Kimi-K3-DSpark, k = 7"]``, as much of it as is known."""
    version = " ".join(part for part in (engine(status), text(status, "version") or "") if part)
    models = [name.rstrip("/").rsplit("/", 1)[-1] for fact in ("model", "drafter") if (name := text(status, fact))]
    drafted = " + ".join(models) + ("" if k is None else f"{', ' if models else ''}k = {k}")
    return [part for part in (version, drafted) if part]
