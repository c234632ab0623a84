"""Verdicts: what a detector says about evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from acceptance.series import Series

Severity = Literal["info", "notice", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "notice", "warning", "critical")


def severity_of(text: str) -> Severity:
    """The severity of this name; the least for a name that is none."""
    return text if text in SEVERITIES else "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something is wrong (or worth knowing), with the figures it rests on.

    id          entry of findings.yaml
    series      whom it is about: target, and rank or category where the finding is about one of them
    since       unix seconds since when the evidence shows it
    value       the figure judged (an acc_len unless the entry says otherwise), None where there is none
    lower, upper   its bounds at 95 %, None where the evidence gives none
    threshold   what the figure was held against
    steps, requests   evidence behind the value, None where the source cannot tell
    source      which source told: counter, request, log, gauge, or health, facts, signature
    cause       the likeliest cause in one sentence
    why         the evidence in one sentence, with figures
    resolved    the episode ended within the evidence (``inspect`` only)
    """

    id: str
    severity: Severity
    series: Series
    since: float
    source: str
    why: str
    cause: str = ""
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    threshold: float | None = None
    steps: float | None = None
    requests: float | None = None
    resolved: bool = False


@dataclass(frozen=True, slots=True)
class Clear:
    """The evidence is enough, and nothing is wrong.

    recovered   False: no longer past the threshold, but not past the recovery threshold either (or another finding
                tells the same fault already). What is pending ends, what fires keeps firing
    """

    why: str = ""
    recovered: bool = True


@dataclass(frozen=True, slots=True)
class NotEnough:
    """The evidence does not suffice for a verdict: an alert's state stays as it is."""

    why: str


Verdict = Finding | Clear | NotEnough


def detail(finding: Finding) -> dict[str, Any]:
    """The finding as a JSON object: its fields, and what is known of its series."""
    fields = asdict(finding)
    return {**fields, "series": {name: value for name, value in fields["series"].items() if value is not None}}


def worst(*severities: Severity | None) -> Severity | None:
    """The worst of those given, None where none is."""
    ranks = [SEVERITIES.index(severity) for severity in severities if severity is not None]
    return SEVERITIES[max(ranks)] if ranks else None


def as_severe(left: Severity, right: Severity) -> bool:
    """Whether ``left`` is ``right`` or worse."""
    return SEVERITIES.index(left) >= SEVERITIES.index(right)
