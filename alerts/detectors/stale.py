"""A surface that used to tell has gone silent, while others show traffic."""

from __future__ import annotations

from acceptance.window import Source
from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Of the sources that go on as long as there is traffic, one has ended and another has not."""
    told = {
        source: windows
        for source in _steady(evidence)
        if (windows := spans.with_steps(evidence.others.get(source, ())))
    }
    if not told:
        return NotEnough("no surface told anything that could end")
    for source, windows in told.items():
        ended = windows[-1].last
        if evidence.now - ended < limits.thresholds["silent_seconds"]:
            continue
        for other, theirs in evidence.others.items():
            later = spans.since(spans.with_steps(theirs), ended)
            if other != source and (judged := spans.shortest(later, limits.need)):
                return Finding(
                    id=limits.finding,
                    severity=limits.severity,
                    series=evidence.series,
                    since=ended,
                    source=source,
                    why=f"the {source} has told nothing since {spans.clock(ended)}, while the {other} shows "
                    f"{spans.amount(judged, spans.added(judged))}",
                )
    fresh = any(evidence.now - windows[-1].last < limits.thresholds["silent_seconds"] for windows in told.values())
    return Clear("every surface goes on") if fresh else NotEnough("idle")


def _steady(evidence: Evidence) -> tuple[Source, ...]:
    """SGLang's counters stand still while long generations run, and request records are a sample: both may pause."""
    return ("log", "counter") if evidence.subject.text("engine") == "vllm" else ("log",)


DETECTOR = Detector(name="stale", about="target", judge=judge, thresholds=frozenset({"silent_seconds"}), live=True)
