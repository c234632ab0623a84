"""One evaluation: evidence of the whole fleet, verdicts, states, and what channels are to be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from acceptance.facts import Subject
from acceptance.series import Series
from alerts.evidence import Baseline, Beside, Evidence, gather
from alerts.messages import Links, Routes, messages
from alerts.recent import Recent
from alerts.rules import Resolved, Rule, Rulebook
from alerts.scopes import by_target, judge
from alerts.states import Transition, step
from alerts.verdicts import Clear, NotEnough, Severity, Verdict, severity_of
from store.history import History
from store.state import AlertChange, AlertRecord, Message, StateStore

log = structlog.get_logger(__name__)

_UNKNOWN_KEEP = 300.0
"""How long the alert of a finding that no longer exists is kept firing."""

REMEMBERED_SECONDS = 7 * 86400.0
"""How long a resolved alert is remembered as the same one if its fault comes back."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an evaluation needs to know beside history and state; replaced whole when the configuration changes.

    signatures   signature id -> finding id
    """

    rulebook: Rulebook
    routes: Routes = field(default_factory=Routes)
    links: Links = field(default_factory=Links)
    signatures: Mapping[str, str] = field(default_factory=dict[str, str])
    baseline: Baseline | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Who is watched now.

    lives   target -> incarnations of its logs' processes that live now, where they are known
    """

    subjects: Sequence[Subject]
    lives: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What one evaluation did. ``verdicts`` counts finding, clear and not-enough; ``failures`` what raised."""

    at: float
    targets: int
    verdicts: Mapping[str, int]
    transitions: Sequence[tuple[AlertRecord, Transition]]
    failures: int


class Evaluator:
    """Judges the fleet. Blocks: run it in a thread, one evaluation at a time.

    What raises for one target, finding or rule is logged and counted, and leaves the alerts it is about as they were.
    What raises for all (a store that fails) is the caller's, and changes nothing either.
    """

    def __init__(
        self, history: History, state: StateStore, fleet: Callable[[], Fleet], surroundings: Surroundings
    ) -> None:
        self._recent = Recent(history)
        self._state = state
        self._fleet = fleet
        self.surroundings = surroundings

    def evaluate(self, now: float) -> Evaluated:
        """One tick. Records and the messages about them are written in one transaction."""
        fleet, tick = self._fleet(), _Tick(self.surroundings, now)
        if not fleet.subjects:
            # A discovery that finds nothing has not seen the whole fleet go: nothing is judged, nothing is removed.
            return tick.evaluated(0)
        tick.records = {record.key: record for record in self._state.alerts(resolved_since=now - REMEMBERED_SECONDS)}
        beside = Beside(
            hits=self._state.hits(),
            signatures=self.surroundings.signatures,
            lives=fleet.lives,
            baseline=self.surroundings.baseline,
        )
        evidence = by_target(gather(self._recent, fleet.subjects, beside, now, add_up=self._recent.add_up))
        for target, items in evidence.items():
            tick.judge(target, items)
        tick.judge_absent(evidence)
        if tick.changes:
            self._state.apply(tick.changes)
        if tick.forgotten:
            self._state.forget_alerts(tick.forgotten)
        return tick.evaluated(len(evidence))


class _Tick:
    """What accumulates during one evaluation."""

    def __init__(self, surroundings: Surroundings, now: float) -> None:
        self._surroundings = surroundings
        self._now = now
        self._seen: set[str] = set()
        self._failed_targets: set[str] = set()
        self._verdicts: Counter[str] = Counter()
        self._transitions: list[tuple[AlertRecord, Transition]] = []
        self._failures = 0
        self.records: dict[str, AlertRecord] = {}
        self.changes: list[AlertChange] = []
        self.forgotten: list[str] = []

    def judge(self, target: str, evidence: Sequence[Evidence]) -> None:
        """All verdicts on one target, and what they change."""
        try:
            judgement = judge(evidence, self._surroundings.rulebook, "page", self._active, self._lately)
        except Exception:
            log.exception("a target could not be judged", target=target)
            self._failed_targets.add(target)
            self._failures += 1
            return
        self._seen |= judgement.failed
        self._failures += len(judgement.failed)
        for judged in judgement.judged:
            self._seen.add(judged.key)
            self._verdicts[type(judged.verdict).__name__] += 1
            self._step(judged.key, judged.verdict, judged.resolved.rule)

    def judge_absent(self, targets: Collection[str]) -> None:
        """Alerts about which nothing was judged: of gone targets, findings turned off, series without evidence."""
        for record in self.records.values():
            if (
                record.phase != "resolved"
                and record.key not in self._seen
                and record.target not in self._failed_targets
            ):
                resolved = self._resolved(record)
                verdict: Verdict = NotEnough("no evidence")
                if record.target not in targets:
                    verdict = Clear("the target is no longer listed")
                elif resolved is None or not resolved.enabled:
                    verdict = Clear("the finding is turned off")
                self._step(record.key, verdict, Rule(0.0, _UNKNOWN_KEEP) if resolved is None else resolved.rule)

    def evaluated(self, targets: int) -> Evaluated:
        """The account of it."""
        return Evaluated(self._now, targets, self._verdicts, self._transitions, self._failures)

    def _step(self, key: str, verdict: Verdict, rule: Rule) -> None:
        try:
            before = self.records.get(key)
            after, transition = step(before, verdict, rule, self._now, key)
            told = [] if after is None or transition is None else self._messages(after, transition)
        except Exception:
            log.exception("an alert could not be judged", alert=key)
            self._failures += 1
            return
        record = after or before
        if record is not None and transition is not None:
            self._transitions.append((record, transition))
        if after is None and before is not None:
            self.forgotten.append(key)
        elif after is not None and after is not before:
            self.changes.append(AlertChange(after, told))

    def _messages(self, record: AlertRecord, transition: Transition) -> list[Message]:
        entry = self._surroundings.rulebook.entries.get(record.finding)
        if entry is None:
            return []
        return messages(record, transition, entry, self._surroundings.routes, self._surroundings.links, self._now)

    def _active(self, key: str) -> Severity | None:
        record = self.records.get(key)
        if record is None or record.phase not in ("firing", "recovering"):
            return None
        return severity_of(record.severity)

    def _lately(self, key: str, seconds: float) -> Severity | None:
        record = self.records.get(key)
        if record is None or record.resolved_at is None or self._now - record.resolved_at >= seconds:
            return None
        return severity_of(record.severity)

    def _resolved(self, record: AlertRecord) -> Resolved | None:
        if record.finding not in self._surroundings.rulebook.entries:
            return None
        series = Series(**{"target": record.target, **record.detail.get("series", {})})
        return self._surroundings.rulebook.resolve(record.finding, series, "page")
