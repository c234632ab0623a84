"""Episodes: findings over a past that lies whole before us (``inspect``). They open and close; each is one finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from acceptance.query import Sum
from alerts import spans
from alerts.evidence import Evidence, Level
from alerts.limits import Limits
from alerts.rules import Rulebook
from alerts.scopes import alert_key, by_target, categories_of, keys_telling, merged, scopes_of
from alerts.verdicts import Clear, Finding, as_severe

MOST_SPANS = 2000
NEWEST = 240
"""A long log is judged in so many spans, at each place of the slide the newest of them: days take a second."""

REFERENCE_WINDOWS = 3
"""How much of the past makes a reference."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A finding that began at ``start``, the earliest time its evidence speaks of, and was last seen at ``end``."""

    finding: Finding
    start: float
    end: float

    def meets(self, other: Episode) -> bool:
        """Whether they share any time."""
        return self.start <= other.end and other.start <= self.end


def inspect_findings(
    evidence: Sequence[Evidence], rulebook: Rulebook, *, level: Level = "look", min_windows: int | None = None
) -> list[Finding]:
    """The findings in evidence that reaches over any time, in the order of target and beginning.

    ``min_windows`` is an operator's word that so many busy windows are enough. ``Finding.resolved`` says that a
    warning or critical episode ended within the evidence. What means something only while time passes (a server that
    does not answer, a log that ends) is not asked.
    """
    found: list[Finding] = []
    for items in by_target(map(_coarser, evidence)).values():
        found += sorted(_of_target(items, rulebook, level, min_windows), key=lambda finding: finding.since)
    return found


def _coarser(evidence: Evidence) -> Evidence:
    others = {source: spans.coarser(windows, MOST_SPANS) for source, windows in evidence.others.items()}
    return replace(evidence, windows=spans.coarser(evidence.windows, MOST_SPANS), others=others)


def _of_target(
    evidence: Sequence[Evidence], rulebook: Rulebook, level: Level, min_windows: int | None
) -> list[Finding]:
    told: dict[str, list[Episode]] = {}
    for finding, entry in rulebook.entries.items():
        detector = rulebook.detector(finding)
        if detector.live:
            continue
        wider: list[Episode] = []
        of_target = detector.about == "target"
        scopes = scopes_of(item for item in evidence if (item.source is None) == of_target)
        for scope, sources in scopes:
            resolved = rulebook.resolve(finding, scope, level, () if of_target else categories_of(evidence))
            if not resolved.enabled:
                continue
            limits = resolved.limits if min_windows is None else resolved.limits.needing(min_windows)
            if of_target:
                verdict = merged([detector.judge(item, limits) for item in sources])
                episodes = [Episode(verdict, verdict.since, verdict.since)] if isinstance(verdict, Finding) else []
            else:
                episodes = _slid(sources, rulebook, finding, limits)
            keys = [key for name in entry.unless for key in keys_telling(name, scope, scopes)]
            better = [episode for key in keys for episode in told.get(key, ())]
            episodes = [item for item in episodes if not _told_by(item, better, sources, limits)]
            episodes = [item for item in episodes if not any(item.meets(other) for other in wider)]
            told[alert_key(finding, scope)] = episodes
            if scope.rank is None and scope.category is None:
                wider = episodes
    return [episode.finding for episodes in told.values() for episode in episodes]


def _slid(sources: Sequence[Evidence], rulebook: Rulebook, finding: str, limits: Limits) -> list[Episode]:
    """Episodes of all sources; where sources tell the same time, the one that rests on most steps."""
    episodes = [episode for item in sources for episode in _of_source(item, rulebook, finding, limits)]
    kept: list[Episode] = []
    for episode in sorted(episodes, key=lambda item: -(item.finding.steps or 0.0)):
        if not any(episode.meets(other) for other in kept):
            kept.append(episode)
    return kept


def _of_source(evidence: Evidence, rulebook: Rulebook, finding: str, limits: Limits) -> list[Episode]:
    """Judge at the end of every span in turn: a finding opens an episode, recovery closes it."""
    judge = rulebook.detector(finding).judge
    windows = evidence.windows
    limits = limits.given(spans.number_of(windows))
    past = _Past(windows)
    episodes: list[Episode] = []
    current: Episode | None = None
    reference: float | None = None
    for index, window in enumerate(windows, start=1):
        newest = windows[max(0, index - NEWEST) : index]
        if current is None:
            reference = past.acc_len(index - len(spans.shortest(newest, limits.need)))
        verdict = judge(replace(evidence, now=window.last, windows=newest, reference=reference), limits)
        if isinstance(verdict, Finding):
            current = _extended(current, verdict, window)
        elif current is not None and isinstance(verdict, Clear) and verdict.recovered:
            ended = as_severe(current.finding.severity, "warning")
            episodes.append(replace(current, finding=replace(current.finding, resolved=ended)))
            current = None
    if current is not None:
        episodes.append(current)
    return [_whole(episode, windows) for episode in episodes]


def _whole(episode: Episode, windows: Sequence[Sum]) -> Episode:
    """The episode, whose worst figures are told, with what it comes to in all."""
    own = spans.with_steps([window for window in windows if episode.start < window.last <= episode.end])
    counts = spans.added(own)
    if counts.acc_len is None or (counts.steps or 0.0) <= (episode.finding.steps or 0.0):
        return episode
    whole = f"; in all acc_len {counts.acc_len:.2f} over {spans.amount(own, counts)}, until {spans.clock(episode.end)}"
    return replace(episode, finding=replace(episode.finding, why=episode.finding.why + whole))


class _Past:
    """acc_len of the first spans of many, in constant time."""

    def __init__(self, windows: Sequence[Sum]) -> None:
        told = [(w.counts.steps, w.counts.emitted, w.windows) if w.counts.emitted else (0.0, 0.0, 0) for w in windows]
        self._steps = [0.0, *accumulate(steps or 0.0 for steps, _, _ in told)]
        self._emitted = [0.0, *accumulate(emitted for _, emitted, _ in told)]
        self._windows = [0, *accumulate(number for _, _, number in told)]

    def acc_len(self, spans_before: int) -> float | None:
        """None where they are too few to be a reference."""
        if self._windows[spans_before] < REFERENCE_WINDOWS or not self._steps[spans_before]:
            return None
        return self._emitted[spans_before] / self._steps[spans_before]


def _extended(episode: Episode | None, finding: Finding, window: Sum) -> Episode:
    """The episode with its worst figures, and since when it has lasted."""
    if episode is None:
        return Episode(finding, finding.since, window.last)
    held = episode.finding
    graver = not as_severe(held.severity, finding.severity)
    worse = finding.severity == held.severity and (finding.value or 0.0) <= (held.value or 0.0)
    since = min(held.since, finding.since)
    # While it recovers, a lesser finding may still be true: that is no longer this episode's time.
    end = window.last if as_severe(finding.severity, held.severity) else episode.end
    return Episode(replace(finding if graver or worse else held, since=since), since, end)


def _told_by(episode: Episode, better: Sequence[Episode], sources: Sequence[Evidence], limits: Limits) -> bool:
    """Whether better findings of the same time leave it less than the evidence it needs.

    The spans next to theirs are not its own: they hold the change itself, half one and half the other.
    """
    telling = [other for other in better if as_severe(other.finding.severity, episode.finding.severity)]
    if not any(other.meets(episode) for other in telling):
        return False
    for item in sources:
        if item.source == episode.finding.source:
            told = [any(other.start < window.last <= other.end for other in telling) for window in item.windows]
            own = [
                window
                for index, window in enumerate(item.windows)
                if episode.start < window.last <= episode.end and not any(told[max(0, index - 1) : index + 2])
            ]
            if spans.shortest(own, limits.given(spans.number_of(own)).need):
                return False
    return True
