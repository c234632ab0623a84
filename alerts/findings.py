"""Findings: what can be found, as findings.yaml states it. The loader says what is wrong with an entry, and where."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, cast

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from acceptance.query import BadQuery, parse_duration
from alerts.detectors import detectors
from alerts.limits import Enough
from alerts.verdicts import Severity


class BadFindings(ValueError):
    """findings.yaml cannot be used: every problem with its entry and field, one a line."""


def _seconds(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration("", value)
    except BadQuery:
        raise ValueError("must be a duration above 0 (say 30s, 2m, 1h)") from None


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0)]
Text = Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Enough(_Section):
    min_windows: int = Field(0, ge=0)
    min_steps: float = Field(0.0, ge=0)
    min_requests: float = Field(0.0, ge=0)
    min_span: Seconds = 0.0
    where_requests_unknown: bool = False
    where_windows_below: int | None = Field(None, ge=1)

    def enough(self) -> Enough:
        return Enough(
            self.min_windows,
            self.min_steps,
            self.min_requests,
            self.min_span,
            self.where_requests_unknown,
            self.where_windows_below,
        )


class Need(_Section):
    """Evidence asked for, by level: any of the sets is enough. A level without a set is never judged."""

    look: tuple[_Enough, ...] = ()
    page: tuple[_Enough, ...] = ()


class Remedy(_Section):
    """What to do: first for any engine, then for the one it is about."""

    any: tuple[Text, ...] = ()
    sglang: tuple[Text, ...] = ()
    vllm: tuple[Text, ...] = ()

    def lines(self, engine: str | None) -> tuple[str, ...]:
        """The lines for an engine; where it is unknown, those of every engine with its name."""
        if engine == "sglang":
            return self.any + self.sglang
        if engine == "vllm":
            return self.any + self.vllm
        named = [f"{name}: {line}" for name, lines in (("SGLang", self.sglang), ("vLLM", self.vllm)) for line in lines]
        return (*self.any, *named)


class Entry(_Section):
    """One finding: what it is called, how it is judged, what it means and what to do.

    short            the title in two words, for a column of a table
    measure          what the value of the finding is a value of, None where it has none
    unless           findings of the same series that tell the same fault better: at their severity or below, this one
                     keeps quiet while one of them is active
    fact             a fact that says it outright
    for              how long it must be true before it fires, as seen by evaluations
    keep_firing_for  how long it must be false before it is resolved
    """

    title: Text
    short: Text | None = None
    severity: Severity
    measure: Text | None = None
    cause: Text
    remedy: Remedy
    detector: str
    evidence: Need = Need()
    thresholds: Mapping[str, float] = Field(default_factory=dict[str, float])
    unless: tuple[str, ...] = ()
    fact: Text | None = None
    for_seconds: Seconds = Field(0.0, alias="for")
    keep_firing_seconds: Seconds = Field(300.0, alias="keep_firing_for")


def parse_findings(text: str) -> Mapping[str, Entry]:
    """Entries by id, those that others yield to first; raises ``BadFindings``."""
    try:
        document: Any = yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise BadFindings(f"findings: not YAML: {error}") from error
    if not isinstance(document, dict):
        raise BadFindings("findings: must be a mapping of finding ids")
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for name, body in cast("dict[object, object]", document).items():
        try:
            entries[str(name)] = Entry.model_validate(body)
        except ValidationError as error:
            problems += [f"{name}.{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors()]
    problems += [problem for name, entry in entries.items() for problem in _problems(name, entry, entries)]
    if problems:
        raise BadFindings("\n".join(problems))
    try:
        order = TopologicalSorter({name: entry.unless for name, entry in entries.items()}).static_order()
        return MappingProxyType({name: entries[name] for name in order})
    except CycleError as error:
        raise BadFindings(f"unless: findings yield to each other: {' -> '.join(error.args[1])}") from error


def _problems(name: str, entry: Entry, entries: Mapping[str, Entry]) -> list[str]:
    """What only the whole file shows to be wrong."""
    detector = detectors().get(entry.detector)
    if detector is None:
        return [f"{name}.detector: {entry.detector!r} is none of {', '.join(sorted(detectors()))}"]
    given = set(entry.thresholds)
    found = [f"{name}.thresholds.{missing}: missing" for missing in sorted(detector.thresholds - given)]
    found += [
        f"{name}.thresholds.{unknown}: not one of detector {entry.detector}"
        for unknown in sorted(given - detector.thresholds - detector.optional)
    ]
    found += [f"{name}.unless: {other!r} is no finding" for other in entry.unless if other not in entries]
    return found


@cache
def findings() -> Mapping[str, Entry]:
    """The entries of the findings.yaml that comes with the program."""
    return parse_findings(files("alerts").joinpath("findings.yaml").read_text(encoding="utf-8"))
