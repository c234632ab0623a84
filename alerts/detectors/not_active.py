"""Speculation was asked for, but under load nothing shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from alerts import spans
from alerts.detectors import Detector
from alerts.evidence import LOG_PREFIX, Evidence
from alerts.limits import Limits
from alerts.verdicts import Clear, Finding, NotEnough, Verdict


class Sign(NamedTuple):
    """Something that would show speculation, had there been any: a look under load, or decode passes."""

    at: float
    surface: str
    number: int


def judge(evidence: Evidence, limits: Limits) -> Verdict:
    """Looks under load and decode lines without a trace of speculation, since the last that had one."""
    if evidence.verifies_nothing:
        return NotEnough("a prefill server verifies nothing")
    if evidence.subject.facts.get("speculative") is not True:
        return NotEnough("nothing says that speculation was asked for")
    active = _last_active(evidence)
    signs = sorted(sign for sign in _signs(evidence) if sign.at > active)
    if not signs:
        return Clear("speculation is running") if active else NotEnough("no load, no evidence")
    number, span = sum(sign.number for sign in signs), signs[-1].at - signs[0].at
    if not any(number >= enough.min_windows and span >= enough.min_span_seconds for enough in limits.need):
        return NotEnough(f"{number} looks under load are too few")
    surfaces = " and ".join(sorted({sign.surface for sign in signs}))
    return Finding(
        id=limits.finding,
        severity=limits.severity,
        series=evidence.series,
        since=signs[0].at,
        source="health",
        why=f"speculation was asked for, but {number} looks at {surfaces} under load show none of it",
    )


def _last_active(evidence: Evidence) -> float:
    """When it was last seen to run: what shows none before that may lie before a restart."""
    steps = [windows[-1].last for told in evidence.others.values() if (windows := spans.with_steps(told))]
    looks = [look.at for look in evidence.health if look.speculating]
    return max([*steps, *looks], default=0.0)


def _signs(evidence: Evidence) -> Iterator[Sign]:
    for look in evidence.health:
        under_load = look.up and ((look.running or 0.0) > 0.0 or (look.decode_tokens or 0.0) > 0.0)
        if look.speculating is False and under_load:
            yield Sign(look.at, LOG_PREFIX if look.surface.startswith(LOG_PREFIX) else look.surface, 1)
    for window in evidence.others.get("log", ()):
        if window.counts.passes and not window.counts.steps:
            yield Sign(window.last, LOG_PREFIX, window.windows)


DETECTOR = Detector(name="not_active", about="target", judge=judge)
