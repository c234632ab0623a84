"""The engine told it itself: a line of its log matched a signature, or a fact says so."""

from __future__ import annotations

from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Hits of the finding's signatures. For a page, those older than ``fresh_seconds`` do not count, where given."""
    fresh = limits.thresholds.get("fresh_seconds") if limits.level == "page" else None
    hits = [
        hit
        for hit in evidence.hits
        if evidence.signatures.get(hit.signature) == limits.finding
        and (fresh is None or evidence.now - hit.at <= fresh)
    ]
    stated = None if limits.fact is None else evidence.subject.facts.get(limits.fact)
    if hits:
        newest = max(hits, key=lambda hit: hit.at)
        times = sum(hit.count for hit in hits)
        return Finding(
            id=limits.finding,
            severity=limits.severity,
            series=evidence.series,
            since=min(hit.at for hit in hits),
            source="signature",
            why=f"{times} x in the log, last at {spans.clock(newest.at)}: {newest.excerpt}",
        )
    if stated is True:
        return Finding(
            id=limits.finding,
            severity=limits.severity,
            series=evidence.series,
            since=evidence.subject.number("startup_time") or evidence.now,
            source="facts",
            why=f"the server's own settings say {limits.fact}",
        )
    if stated is False or evidence.logged:
        return Clear("the log of this process does not say so")
    return NotEnough("no log is read")


DETECTOR = Detector(name="told", about="target", judge=judge, optional=frozenset({"fresh_seconds"}))
