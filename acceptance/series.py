"""Series: whose counts they are."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

Engine = Literal["sglang", "vllm"]
Role = Literal["unified", "prefill", "decode"]

UNLABELLED = ""
"""A category label that the request left empty."""
OTHER = "other"
"""The category of requests that matched no rule."""


@dataclass(frozen=True, slots=True)
class Series:
    """The identity of counts. ``None`` means that the source cannot tell.

    target     name of the server as configured or discovered
    group      replicas that should behave alike
    revision   hash of what makes figures comparable (``acceptance.facts.revision``)
    role       unified, prefill or decode
    engine     sglang or vllm
    model      target model, as served
    drafter    draft model
    rank       data-parallel rank (vLLM's ``engine`` label, SGLang's DP rank; "0" where there is one)
    category   request category; ``""`` unlabelled, ``other`` matched no rule
    context    bucket of the prompt length
    """

    target: str
    group: str | None = None
    revision: str | None = None
    role: str | None = None
    engine: str | None = None
    model: str | None = None
    drafter: str | None = None
    rank: str | None = None
    category: str | None = None
    context: str | None = None

    def key(self) -> tuple[str | None, ...]:
        """Values in the order of ``DIMENSIONS``."""
        return tuple(getattr(self, name) for name in DIMENSIONS)

    def only(self, *dimensions: str) -> Series:
        """This series with every dimension but the target and those named forgotten."""
        forgotten = {name: None for name in DIMENSIONS if name != "target" and name not in dimensions}
        return replace(self, **forgotten)


Dimension = Literal["target", "group", "revision", "role", "engine", "model", "drafter", "rank", "category", "context"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
assert tuple(field.name for field in fields(Series)) == DIMENSIONS
