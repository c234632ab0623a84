"""Facts in groups, as people look for them, with what each one means and where it was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, tzinfo

from acceptance.facts import KNOWN, Fact, FactValue
from service import copy

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Speculation",
        (
            *("speculative", "algorithm", "drafter", "k", "num_draft_tokens", "verify_mode"),
            *("synthetic_acceptance", "lifetime_acc_len"),
        ),
    ),
    ("Kernels", ("draft_attention_backend", "decode_attention_backend", "cuda_graph_disabled")),
    (
        "Server",
        (
            *("engine", "version", "model", "role", "startup_time"),
            *("tensor_parallel", "data_parallel", "context_parallel"),
        ),
    ),
    ("Scheduling", ("max_running_requests", "chunked_prefill_size", "mixed_chunk", "decode_log_interval")),
)
OTHERS = "Others"


@dataclass(frozen=True, slots=True)
class FactLine:
    """One fact: ``value`` as people read it, ``meaning`` "" where the name says all there is."""

    name: str
    value: str
    meaning: str
    source: str
    at: float


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts that belong together; a group without facts is left out."""

    title: str
    facts: tuple[FactLine, ...]


def fact_groups(facts: Iterable[Fact], now: float, zone: tzinfo = UTC) -> tuple[FactGroup, ...]:
    """All of ``facts``, those that no group knows last, by name."""
    by_name = {fact.name: fact for fact in facts}
    grouped = [(title, [name for name in names if name in by_name]) for title, names in _GROUPS]
    known = {name for _, names in grouped for name in names}
    grouped.append((OTHERS, sorted(by_name.keys() - known)))
    return tuple(
        FactGroup(title, tuple(_line(by_name[name], now, zone) for name in names)) for title, names in grouped if names
    )


def _line(fact: Fact, now: float, zone: tzinfo) -> FactLine:
    return FactLine(fact.name, _value(fact.name, fact.value, now, zone), KNOWN.get(fact.name, ""), fact.source, fact.at)


def _value(name: str, value: FactValue, now: float, zone: tzinfo) -> str:
    match value:
        case None:
            return "unset"
        case bool():
            return "yes" if value else "no"
        case int() | float() if name == "startup_time":
            return f"{copy.clock(value, now, zone)}, {copy.age(now - value)} ago"
        case float() if name == "lifetime_acc_len":
            return copy.length(value)
        case float():
            return f"{value:g}"
        case _:
            return str(value)
