"""Limits: what a detector holds evidence against, as resolved for one series at one level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from alerts.evidence import Level
from alerts.verdicts import Severity


@dataclass(frozen=True, slots=True)
class Enough:
    """One set of minimums, all of which must hold. Evidence is enough where any set of an entry holds.

    where_requests_unknown   the set counts only where the source does not tell requests
    where_windows_below      the set counts only where fewer windows than this exist at all
    """

    min_windows: int = 0
    min_steps: float = 0.0
    min_requests: float = 0.0
    min_span_seconds: float = 0.0
    where_requests_unknown: bool = False
    where_windows_below: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one finding for one series.

    need         sets of minimums, any of which is enough evidence
    thresholds   by the names that the detector declares
    fact         a fact that says it outright, where the entry names one
    """

    finding: str
    severity: Severity
    level: Level
    need: tuple[Enough, ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])
    fact: str | None = None

    def given(self, windows: int) -> Limits:
        """These limits where ``windows`` is how many windows exist: sets that do not apply are left out."""
        need = tuple(
            replace(enough, where_windows_below=None)
            for enough in self.need
            if enough.where_windows_below is None or windows < enough.where_windows_below
        )
        return replace(self, need=need)

    def needing(self, min_windows: int) -> Limits:
        """These limits with ``min_windows`` in place of every number of windows asked for."""
        return replace(
            self,
            need=tuple(
                replace(
                    enough,
                    min_windows=min_windows if enough.min_windows else 0,
                    where_windows_below=None if enough.where_windows_below is None else min_windows,
                )
                for enough in self.need
            ),
        )
