"""Incidents: alerts that fire, with what changed, what it costs and what to do first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from acceptance.counts import Counts, total
from acceptance.query import AcceptanceQuery
from acceptance.series import Dimension, Series
from acceptance.sources import choose
from alerts.findings import Entry
from alerts.verdicts import SEVERITIES, Severity, severity_of
from service import copy
from service.beats import Beat, loads
from service.cells import NORMAL_BELOW, below
from service.labels import short_name
from service.likeness import lost_tokens_per_second, normal_step_time
from service.peers import Peers, began, wants_somebody
from service.present import NOW_SECONDS, Present
from service.remedy import flag_of
from service.showing import ACC_LEN, expected_by
from service.states import ENOUGH_STEPS
from store.history import History
from store.state import AlertRecord, StateStore

BEFORE_SECONDS = 1800.0
"""So much of the time before a fault says what was normal."""

ONSET_SECONDS = 60.0
"""The last of it is left out: a fault is seen some time after it began."""

MOST_TOLD = 12
"""Of so many incidents the channels are looked up, worst first."""

LOAD_SECONDS = 30.0
"""Load before a fault is told in pieces of so long, to find those that were like the load now."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that wants somebody: an alert that fires.

    figures   label -> value, as text ("acc_len" -> "4.22 → 1.02")
    remedy    the first thing to do, "" where none is known; ``flag``: the part of it to copy, where it is one
    told      names of the channels that were told
    flag_verb   what to do about the flag: Set, Remove, Replace, Update, Raise, Lower
    short     the finding in two words
    scope     rank or category that it is about ("rank 3", "category code"), "" for the whole target
    recovering   it is no longer seen, but kept firing for a while
    lost_tokens_per_second   what it costs, None where that is not known
    """

    key: str
    finding: str
    severity: Severity
    target: str
    title: str
    since: float
    why: str
    cause: str
    figures: tuple[tuple[str, str], ...] = ()
    remedy: str = ""
    flag: str | None = None
    told: tuple[str, ...] = ()
    flag_verb: str = ""
    short: str = ""
    scope: str = ""
    recovering: bool = False
    lost_tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class _Before:
    """What was before a fault: counts of the rank or category it is about, and loads of its target."""

    counts: Counts
    beats: Sequence[Beat]


@dataclass(frozen=True, slots=True)
class _Around:
    """What a fault's target did before it and does since. ``step_time`` is what is normal at its load."""

    before: Counts
    now: Counts
    beat: Beat
    step_time: float | None
    lost: float | None
    expected: float | None


def scope_of(alert: AlertRecord) -> str:
    """What of its target an alert is about: ``rank 3``, ``category code``, "" for all of it."""
    series: Mapping[str, str] = alert.detail.get("series", {})
    return ", ".join(f"{name} {series[name] or '(unlabelled)'}" for name in ("rank", "category") if name in series)


def title_of(alert: AlertRecord, entry: Entry | None) -> str:
    """``Drafter is dead on k3-h200-03, category code``."""
    title = alert.finding if entry is None else entry.title
    return ", ".join(part for part in (f"{title} on {alert.target}", scope_of(alert)) if part)


@dataclass(slots=True)
class Incidents:
    """Builds incidents, and remembers what was before each: that does not change while it lasts.

    Not for several threads at once.
    """

    history: History
    state: StateStore
    _before: dict[tuple[str, int], _Before] = field(default_factory=dict[tuple[str, int], "_Before"])

    def of(
        self, presents: Sequence[Present], peers: Peers, entries: Mapping[str, Entry], now: float
    ) -> tuple[Incident, ...]:
        """Worst first, then those that do not recover, then the newest."""
        firing = [(present, alert) for present in presents for alert in present.alerts if wants_somebody(alert)]
        kept = {(alert.key, alert.episode) for _, alert in firing}
        self._before = {place: told for place, told in self._before.items() if place in kept}
        since = self._since([present.name for present, alert in firing if not _of_acc_len(alert, entries)], now)
        found = [
            self._incident(alert, entries.get(alert.finding), self._around(present, alert, peers, since))
            for present, alert in firing
        ]
        found.sort(key=lambda item: (-SEVERITIES.index(item.severity), item.recovering, -item.since, item.key))
        return tuple(
            replace(item, told=self._told(item)) if number < MOST_TOLD else item for number, item in enumerate(found)
        )

    def _since(self, names: Sequence[str], now: float) -> Mapping[str, Sequence[tuple[float, Counts]]]:
        """Target -> minutes of the last ``NOW_SECONDS`` with their counts: those after the fault are of now."""
        if not names:
            return {}
        query = AcceptanceQuery(now - NOW_SECONDS, now, 60.0, ("target",), {"target": tuple(dict.fromkeys(names))})
        minutes: dict[str, list[tuple[float, Counts]]] = {name: [] for name in names}
        for answer in choose(self.history.query(query), query):
            minutes[answer.key[0] or ""].append((answer.bucket, answer.counts))
        return minutes

    def _around(
        self,
        present: Present,
        alert: AlertRecord,
        peers: Peers,
        since: Mapping[str, Sequence[tuple[float, Counts]]],
    ) -> _Around:
        start = began(alert)
        before = self._before_of(alert, start)
        return _Around(
            before=before.counts,
            now=total(counts for bucket, counts in since.get(present.name, ()) if bucket + ONSET_SECONDS / 2 >= start),
            beat=present.beat,
            step_time=normal_step_time(present.beat, before.beats, peers.of(present)),
            lost=lost_tokens_per_second(present.beat, before.beats, peers.of(present)),
            expected=expected_by(alert, present),
        )

    def _before_of(self, alert: AlertRecord, start: float) -> _Before:
        place = alert.key, alert.episode
        if place not in self._before:
            begin, end = start - BEFORE_SECONDS, start - ONSET_SECONDS
            series = Series(**{"target": alert.target, **alert.detail.get("series", {})})
            where: dict[Dimension, tuple[str, ...]] = {"target": (alert.target,)}
            if series.rank is not None:
                where["rank"] = (series.rank,)
            if series.category is not None:
                where["category"] = (series.category,)
            query = AcceptanceQuery(start=begin, end=end, by=("target",), where=where)
            counts = total(answer.counts for answer in choose(self.history.query(query), query))
            beats = loads(self.history, begin, end, LOAD_SECONDS, alert.target)
            self._before[place] = _Before(counts, list(beats.values()))
        return self._before[place]

    def _incident(self, alert: AlertRecord, entry: Entry | None, around: _Around) -> Incident:
        engine = alert.detail.get("series", {}).get("engine")
        lines = () if entry is None else entry.remedy.lines(engine)
        flag = flag_of(lines[0]) if lines else None
        return Incident(
            key=alert.key,
            finding=alert.finding,
            severity=severity_of(alert.severity),
            target=alert.target,
            title=title_of(alert, entry),
            since=alert.active_since if alert.fired_at is None else alert.fired_at,
            why=str(alert.detail.get("why") or ""),
            cause=str(alert.detail.get("cause") or ("" if entry is None else entry.cause)),
            figures=tuple(_figures(alert, entry, around)),
            remedy=lines[0] if lines else "",
            flag=None if flag is None else flag[1],
            flag_verb="" if flag is None else flag[0],
            short=short_name(alert.finding, alert.severity, {} if entry is None else {alert.finding: entry}),
            scope=scope_of(alert),
            recovering=alert.phase == "recovering",
            lost_tokens_per_second=around.lost,
        )

    def _told(self, incident: Incident) -> tuple[str, ...]:
        """Channels that took the message about this episode."""
        deliveries = self.state.deliveries(50, incident.key)
        return tuple(
            dict.fromkeys(
                delivery.message.channel
                for delivery in reversed(deliveries)
                if delivery.message.kind == "firing"
                and delivery.status == "delivered"
                and delivery.message.created_at >= incident.since
            )
        )


def _of_acc_len(alert: AlertRecord, entries: Mapping[str, Entry]) -> bool:
    """Whether the figure that an alert tells is the acc_len since its fault."""
    return alert.finding in entries and entries[alert.finding].measure == ACC_LEN


def _figures(alert: AlertRecord, entry: Entry | None, around: _Around) -> Iterator[tuple[str, str]]:
    measure = None if entry is None else entry.measure
    value = alert.detail.get("value")
    if measure == ACC_LEN and isinstance(value, int | float):
        before = around.before.acc_len if (around.before.steps or 0.0) >= ENOUGH_STEPS else None
        yield "acc_len", copy.length(value) if before is None else f"{copy.length(before)}{copy.ARROW}{value:.2f}"
        if around.expected is not None:
            yield "expected", copy.length(around.expected)
    else:
        if measure is not None and isinstance(value, int | float):
            yield measure, copy.percent(value)
        yield from _step_time(around)
        yield from _unchanged(around)
    if around.lost:
        yield "Cost", f"{copy.rate(-around.lost, signed=True)} tok/s"


def _step_time(around: _Around) -> Iterator[tuple[str, str]]:
    now, before = around.beat.step_time_seconds, around.step_time
    if now is not None and before is not None:
        times = f"{copy.milliseconds(before)}{copy.ARROW}{copy.step_time(now)}"
        yield "Step time", f"{times} {copy.ratio(now / before)}"
    elif now is not None:
        yield "Step time", copy.step_time(now)


def _unchanged(around: _Around) -> Iterator[tuple[str, str]]:
    """acc_len beside a fault that is not about it: that it stays is what tells a slow kernel from a bad drafter."""
    now = around.now
    if now.acc_len is None or (now.steps or 0.0) < ENOUGH_STEPS:
        return
    usual = around.before.acc_len if (around.before.steps or 0.0) >= ENOUGH_STEPS else around.expected
    share = below(now.acc_len, usual)
    if share is None:
        yield "acc_len", copy.length(now.acc_len)
    elif share < NORMAL_BELOW:
        yield "acc_len", f"{copy.length(now.acc_len)} normal"
    else:
        yield "acc_len", f"{copy.length(usual)}{copy.ARROW}{copy.length(now.acc_len)}"
