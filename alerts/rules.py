"""Rules: the entries of findings.yaml with what the configuration changed, resolved for one series."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import inf

from acceptance.series import Dimension, Series
from alerts.detectors import Detector, detectors
from alerts.evidence import Level
from alerts.findings import Entry
from alerts.limits import Limits
from alerts.verdicts import Severity

PRECEDENCE: tuple[Dimension, ...] = ("target", "category", "drafter", "model", "group", "rank")
"""Which dimension is more specific, where two overrides name equally many."""


@dataclass(frozen=True, slots=True)
class Override:
    """What the configuration changes about a finding, for the series it names. None leaves a value as it was.

    finding      id in findings.yaml
    where        dimension -> accepted values (``*`` and ``?`` match as in file names); all of them must match
    enabled      False: not judged
    thresholds   by name; they replace those of the entry one by one
    """

    finding: str
    where: Mapping[Dimension, tuple[str, ...]] = field(default_factory=dict[Dimension, tuple[str, ...]])
    enabled: bool | None = None
    severity: Severity | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])
    for_seconds: float | None = None
    keep_firing_seconds: float | None = None

    def matches(self, series: Series) -> bool:
        """Whether it is about this series; a dimension that the series does not tell matches nothing."""
        return all(
            value is not None and any(fnmatchcase(value, pattern) for pattern in patterns)
            for value, patterns in ((getattr(series, name), patterns) for name, patterns in self.where.items())
        )

    @property
    def specificity(self) -> tuple[int, int]:
        """Greater is more specific: more dimensions, then the one that ``PRECEDENCE`` puts first."""
        places = [PRECEDENCE.index(name) for name in self.where if name in PRECEDENCE]
        return len(self.where), -min(places, default=len(PRECEDENCE))


@dataclass(frozen=True, slots=True)
class Rule:
    """How long things must last. All in seconds.

    hold             how long it must be seen true before it fires
    keep             how long it must be seen false before it is resolved
    interval         between two evaluations: a longer gap is time in which nobody looked, and counts as one interval
    pending_lapse    without a verdict for so long, what is pending begins anew
    firing_lapse     without a verdict for so long, what fires is resolved as no longer known
    flap_window      an alert that fires again so soon after its resolution is flapping
    flap_factor      by which ``keep`` grows while it is
    """

    hold: float
    keep: float
    interval: float = 15.0
    pending_lapse: float = 3600.0
    firing_lapse: float = 86400.0
    flap_window: float = 3600.0
    flap_factor: float = 4.0


@dataclass(frozen=True, slots=True)
class Resolved:
    """An entry for one series: whether it is judged, against what, and how long things must last."""

    enabled: bool
    limits: Limits
    rule: Rule


class Rulebook:
    """Entries and overrides. Pure and immutable; a new configuration is a new rulebook.

    Raises ``ValueError`` for an override of a finding or a threshold that does not exist.
    """

    def __init__(
        self, entries: Mapping[str, Entry], overrides: Sequence[Override] = (), *, interval_seconds: float = 15.0
    ) -> None:
        for override in overrides:
            _check(override, entries)
        self.entries = entries
        self._interval = interval_seconds
        ordered = sorted(overrides, key=lambda override: override.specificity)
        self._overrides = {name: [item for item in ordered if item.finding == name] for name in entries}
        self._plain: dict[tuple[str, Level], Resolved] = {}

    def detector(self, finding: str) -> Detector:
        """Who judges a finding."""
        return detectors()[self.entries[finding].detector]

    def resolve(self, finding: str, series: Series, level: Level, categories: Collection[str] = ()) -> Resolved:
        """The finding's limits and rule for ``series``.

        ``categories`` are those that a target's traffic is made of: a series of all of them is held to the most
        lenient of their limits, since the configuration said that such traffic is all right.
        """
        if not self._overrides[finding]:
            return self._one(finding, series, level)
        mixed = [replace(series, category=name) for name in categories] if series.category is None else []
        return min((self._one(finding, item, level) for item in mixed or [series]), key=_strictness)

    def _one(self, finding: str, series: Series, level: Level) -> Resolved:
        applied = [override for override in self._overrides[finding] if override.matches(series)]
        if applied:
            return self._apply(finding, applied, level)
        if (finding, level) not in self._plain:
            self._plain[finding, level] = self._apply(finding, (), level)
        return self._plain[finding, level]

    def _apply(self, finding: str, overrides: Sequence[Override], level: Level) -> Resolved:
        entry = self.entries[finding]
        enabled, severity, thresholds = True, entry.severity, dict(entry.thresholds)
        hold, keep = entry.for_seconds, entry.keep_firing_seconds
        for override in overrides:
            enabled = enabled if override.enabled is None else override.enabled
            severity = override.severity or severity
            thresholds.update(override.thresholds)
            hold = hold if override.for_seconds is None else override.for_seconds
            keep = keep if override.keep_firing_seconds is None else override.keep_firing_seconds
        need = tuple(item.enough() for item in getattr(entry.evidence, level))
        limits = Limits(finding, severity, level, need, thresholds, entry.fact)
        return Resolved(enabled, limits, Rule(hold, keep, self._interval))


def _strictness(resolved: Resolved) -> tuple[bool, float]:
    """Smaller is more lenient. Where no acc_len is given, the default counts."""
    thresholds = resolved.limits.thresholds
    return resolved.enabled, thresholds.get("acc_len", thresholds.get("default_acc_len", inf))


def _check(override: Override, entries: Mapping[str, Entry]) -> None:
    entry = entries.get(override.finding)
    if entry is None:
        raise ValueError(f"{override.finding}: no such finding")
    detector = detectors()[entry.detector]
    for name in override.thresholds:
        if name not in detector.thresholds | detector.optional:
            known = ", ".join(sorted(detector.thresholds | detector.optional)) or "none"
            raise ValueError(f"{override.finding}.thresholds.{name}: no such threshold ({known})")
