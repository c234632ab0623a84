"""Hits: log lines that matched a signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hit:
    """A signature seen in a target's log. Identity is (target, incarnation, signature, rank); repeats are counted.

    signature   id in collectors/signatures/*.yaml
    at          time of the line, unix seconds
    excerpt     the line, cut to 500 characters, control characters removed; from outside, so hostile
    captures    named groups of the pattern
    """

    target: str
    incarnation: str
    signature: str
    at: float
    rank: str | None = None
    excerpt: str = ""
    captures: Mapping[str, str] = field(default_factory=dict[str, str])
    count: int = 1
