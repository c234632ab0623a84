"""Scopes: verdicts on a target as a whole, then on its ranks, then on its categories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from urllib.parse import quote

from acceptance.series import UNLABELLED, Series
from acceptance.window import SOURCES
from alerts.evidence import Evidence, Level
from alerts.rules import Resolved, Rulebook
from alerts.verdicts import SEVERITIES, Clear, Finding, NotEnough, Severity, Verdict, as_severe, worst

log = logging.getLogger(__name__)

Active = Callable[[str], Severity | None]
"""Alert key -> the severity at which it fires now (or is still kept firing), None where it does not."""

Lately = Callable[[str, float], Severity | None]
"""Alert key, seconds -> the severity at which it fired until it was resolved so lately, None where it was not."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one finding and scope, all sources taken together."""

    key: str
    finding: str
    series: Series
    resolved: Resolved
    verdict: Verdict


@dataclass(slots=True)
class Judgement:
    """Verdicts on one target. ``failed`` are keys whose detector raised: nothing is known, so nothing changes."""

    judged: list[Judged] = field(default_factory=list[Judged])
    failed: set[str] = field(default_factory=set[str])


def alert_key(finding: str, series: Series) -> str:
    """Stable over restarts, sources and revisions: ``dead-drafter target=decode-3 rank=1``."""
    parts = [finding, f"target={_quoted(series.target)}"]
    if series.rank is not None:
        parts.append(f"rank={_quoted(series.rank)}")
    if series.category is not None:
        parts.append(f"category={_quoted(series.category)}")
    return " ".join(parts)


def _never(_key: str, _seconds: float) -> Severity | None:
    return None


def judge(
    evidence: Sequence[Evidence], rulebook: Rulebook, level: Level, active: Active, lately: Lately = _never
) -> Judgement:
    """Every finding's verdicts on one target.

    A scope keeps quiet while a wider one tells the same finding, and a finding while one it yields to is told of the
    same scope, a wider one, or a rank of it: what is pending ends, what fires keeps firing. One that judges a long
    past keeps quiet until the other's time has left it: requests that ran through the fault are counted when they end.
    """
    result = Judgement()
    told: dict[str, Severity] = {}
    scopes_by_kind = {
        of_target: scopes_of(item for item in evidence if (item.source is None) == of_target)
        for of_target in (True, False)
    }
    categories = categories_of(evidence)
    for finding, entry in rulebook.entries.items():
        of_target = rulebook.detector(finding).about == "target"
        scopes = scopes_by_kind[of_target]
        wider: Severity | None = None
        for scope, sources in scopes:
            key = alert_key(finding, scope)
            resolved = rulebook.resolve(finding, scope, level, () if of_target else categories)
            if not resolved.enabled:
                continue
            try:
                verdict = judge_sources(sources, resolved, rulebook, finding)
            except Exception:
                log.exception("a detector failed: finding=%s target=%s", finding, scope.target)
                result.failed.add(key)
                continue
            verdict = _quiet(verdict, wider, "the target as a whole")
            reach = resolved.limits.thresholds.get("window_seconds", 0.0)
            for better in entry.unless if isinstance(verdict, Finding) else ():
                keys = keys_telling(better, scope, scopes)
                others: list[Severity | None] = [told.get(other) or lately(other, reach) for other in keys]
                verdict = _quiet(verdict, worst(*others), better)
            severity = worst(verdict.severity if isinstance(verdict, Finding) else None, active(key))
            if severity is not None:
                told[key] = severity
            if scope.rank is None and scope.category is None:
                wider = severity
            result.judged.append(Judged(key, finding, scope, resolved, verdict))
    return result


def keys_telling(finding: str, scope: Series, scopes: Iterable[tuple[Series, Sequence[Evidence]]]) -> Iterable[str]:
    """Keys under which ``finding`` would explain what ``scope`` shows.

    Those of the scope itself and of its target; for a target also those of its ranks, since a dead one pulls the
    whole down.
    """
    whole = scope.only()
    yield alert_key(finding, whole)
    if scope.rank is not None or scope.category is not None:
        yield alert_key(finding, scope)
    else:
        yield from (alert_key(finding, finer) for finer, _ in scopes if finer.rank is not None)


def judge_sources(sources: Iterable[Evidence], resolved: Resolved, rulebook: Rulebook, finding: str) -> Verdict:
    """Each source judged on its own; any with enough evidence may find something. May raise."""
    detector = rulebook.detector(finding)
    return merged([detector.judge(evidence, resolved.limits) for evidence in sources])


def merged(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst finding, of the source that is trusted most; clear only where none finds and at least one says so."""
    if len(verdicts) == 1:
        return verdicts[0]
    found = [verdict for verdict in verdicts if isinstance(verdict, Finding)]
    if found:
        return max(found, key=lambda finding: (SEVERITIES.index(finding.severity), -_place(finding.source)))
    clear = [verdict for verdict in verdicts if isinstance(verdict, Clear)]
    if clear:
        return Clear("; ".join(verdict.why for verdict in clear if verdict.why), all(v.recovered for v in clear))
    reasons = [verdict.why for verdict in verdicts if isinstance(verdict, NotEnough)]
    return NotEnough("; ".join(dict.fromkeys(reasons)) or "no evidence")


def _place(source: str) -> int:
    """In the order in which a query prefers sources, those that are none last."""
    return [*SOURCES, source].index(source)


def _quiet(verdict: Verdict, other: Severity | None, told_by: str) -> Verdict:
    """A finding that another one tells already, at no lower severity."""
    if not isinstance(verdict, Finding) or other is None:
        return verdict
    if not as_severe(other, verdict.severity):
        return verdict
    return Clear(f"told by {told_by}", recovered=False)


def scopes_of(evidence: Iterable[Evidence]) -> list[tuple[Series, list[Evidence]]]:
    """Evidence by scope, the target as a whole first."""

    def place(item: Evidence) -> tuple[bool, bool, str, str]:
        series = item.series
        return series.category is not None, series.rank is not None, series.rank or "", series.category or ""

    grouped = [list(items) for _, items in groupby(sorted(evidence, key=place), key=place)]
    return [(items[0].series, items) for items in grouped]


def categories_of(evidence: Iterable[Evidence]) -> Collection[str]:
    """What the traffic of a target is made of, where a source tells."""
    return {item.series.category for item in evidence if item.series.category is not None}


@lru_cache(maxsize=2**16)
def _quoted(value: str) -> str:
    return quote(value, safe=":/.@+,~") if value != UNLABELLED else '""'


def by_target(evidence: Iterable[Evidence]) -> Mapping[str, list[Evidence]]:
    """Evidence by target, in the order in which targets come."""
    targets: dict[str, list[Evidence]] = {}
    for item in evidence:
        targets.setdefault(item.series.target, []).append(item)
    return targets
