"""Signatures: messages by which an engine tells of a slow path, a changed argument, or what it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, cast, get_args

import yaml

from acceptance.facts import FactValue
from acceptance.series import Engine

FINDINGS = frozenset(
    {
        "allreduce-fallback",
        "attention-backend-fallback",
        "cudagraph-downgrade",
        "draft-attention-backend-fallback",
        "draft-context-limit",
        "draft-graph-disabled",
        "max-running-requests-reset",
        "mixed-chunk-disabled",
        "moe-kernel-fallback",
        "sampling-param-ignored",
        "spec-args-adjusted",
        "spec-overlap-off",
        "stats-logging-off",
        "synthetic-acceptance",
        "verify-on-prefill-backend",
        "zombie-requests",
    }
)
"""Every finding that a signature can mean (``synthetic-acceptance`` comes from a fact)."""

LONGEST_MESSAGE = 2000
LONGEST_CAPTURE = 200
LONGEST_NUMBER = 15


@dataclass(frozen=True, slots=True)
class Signature:
    """One message of an engine.

    literal    a part of it that every variant has: lines are found by it
    pattern    matched from the start of the message; "" where a reader derives the signature from several lines
    versions   versions of the engine that were seen to have it
    cost       what it means for the running server
    remedy     what to do about it, "" where there is nothing
    finding    id in ``FINDINGS``; None where it only states how the engine runs
    facts      group of ``pattern`` -> name of the fact it tells
    while_serving   a server prints it at work, not (only) at its start
    """

    id: str
    versions: str
    cost: str
    literal: str = ""
    pattern: str = ""
    remedy: str = ""
    finding: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    while_serving: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A signature that a message is, with what the groups of its pattern captured."""

    signature: Signature
    captures: Mapping[str, str]

    @property
    def facts(self) -> dict[str, FactValue]:
        """What the message tells of the target."""
        return {fact: _value(self.captures[group]) for group, fact in self.signature.facts.items()}


class Matcher:
    """Tells which signature a message is. ``literals`` find the lines worth asking about (``LineFinder``)."""

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self.signatures: Mapping[str, Signature] = MappingProxyType({each.id: each for each in signatures})
        by_literal: dict[str, list[Signature]] = {}
        for signature in signatures:
            if signature.pattern:
                by_literal.setdefault(signature.literal, []).append(signature)
        self.literals: tuple[str, ...] = tuple(by_literal)
        self._candidates = tuple(by_literal.values())

    def match(self, message: str, literals: Iterable[int]) -> Match | None:
        """The signature of ``message``; ``literals`` are the indexes in ``self.literals`` of those that stand in it."""
        text = message[:LONGEST_MESSAGE]
        for literal in literals:
            for signature in self._candidates[literal]:
                # Compiled when first met (re keeps it): most are never met, and a start should not wait for them.
                found = re.match(signature.pattern, text)
                if found is not None:
                    return Match(signature, _captures(found))
        return None


@cache
def signatures(engine: Engine) -> Matcher:
    """The signatures of ``engine``, read from its file."""
    text = files(__name__).joinpath(f"{engine}.yaml").read_text("utf-8")
    entries = cast("list[dict[str, Any]]", yaml.load(text, Loader=yaml.CSafeLoader))
    return Matcher([Signature(**entry) for entry in entries])


@cache
def finding_of_signature() -> Mapping[str, str]:
    """Signature id -> finding id, of the signatures of every engine that have one."""
    return MappingProxyType(
        {
            signature.id: signature.finding
            for engine in cast("tuple[Engine, ...]", get_args(Engine))
            for signature in signatures(engine).signatures.values()
            if signature.finding is not None
        }
    )


def _captures(found: re.Match[str]) -> dict[str, str]:
    return {name: value[:LONGEST_CAPTURE] for name, value in found.groupdict().items() if value is not None}


def _value(text: str) -> FactValue:
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else text
