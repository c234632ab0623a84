"""The fleet as a page shows it: a verdict in words, what it rests on, and a row a target. Values only, no markup."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from acceptance.baselines import categories as plain_categories
from acceptance.baselines import plain_category
from acceptance.series import UNLABELLED
from alerts.findings import Entry
from alerts.rules import Rulebook
from alerts.verdicts import Severity, worst
from service import copy
from service.about import about, text
from service.beats import Beats, Strips
from service.catalog import Catalog
from service.cells import Cell
from service.fleet_verdict import Standing, fleet_verdict, kind_of, target_counts
from service.heartbeat import Tick, TickState, heartbeat, present_tick, stretches
from service.incidents import Incident, Incidents
from service.kpis import Kpi, kpis
from service.labels import Label, label
from service.likeness import normal_step_time
from service.peers import Peers, began, wants_somebody
from service.present import Present, presents
from service.showing import showing
from service.states import RECENT_SECONDS, TargetState
from store.history import History
from store.state import AlertRecord, StateStore

__all__ = ["Cell", "FleetReads", "FleetRow", "FleetView", "Incident", "Kpi", "Tick", "TickState"]

SPAN_SECONDS = 4 * 3600.0
MOST_CATEGORIES = 12
"""Columns of the table: those with most steps."""

SETTLING_TICKS = 2
"""The newest ticks of a target are not what its present step time is held against."""

LIVE_SECONDS = 60.0
"""While something was read this lately, the view is live."""


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A target.

    label       the state in words as the table shows it ("Dead drafter", "Idle 12 min", "OK")
    severity    of the alert that the label is about, None where there is none
    pending     that alert is still pending
    recovering  that alert is no longer true, but kept firing for a while
    about       engine, model parallelism and the like ("SGLang · TP8")
    acc_len     of all traffic in the last 15 minutes, ``categories`` by category, "" being unlabelled
    step_time_seconds, step_time_ratio   now, and against its own normal at like load where that is known
    heartbeat   oldest first, as many as there are in every row
    """

    target: str
    group: str | None
    state: TargetState
    label: str
    severity: Severity | None
    pending: bool
    about: str
    acc_len: Cell
    categories: Mapping[str, Cell] = field(default_factory=dict[str, Cell])
    step_time_seconds: float | None = None
    step_time_ratio: float | None = None
    output_tokens_per_second: float | None = None
    heartbeat: tuple[Tick, ...] = ()
    model: str | None = None
    drafter: str | None = None
    engine: str | None = None
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class FleetView:
    """What the fleet page shows at ``at``.

    alarm        the second sentence of the verdict, "" where all is well
    alarm_severity   of what it is about; None where it only says that something may come, or where there is none
    categories   columns of the table, each with what is expected of it where that is the same for all targets
    rows         worst first
    firing       alerts that want somebody
    told_at      when a target last told something, None where none ever did
    """

    at: float
    verdict: str
    alarm: str
    status: tuple[str, ...]
    incidents: tuple[Incident, ...]
    kpis: tuple[Kpi, ...]
    categories: tuple[tuple[str, float | None], ...]
    rows: tuple[FleetRow, ...]
    firing: int
    tick_seconds: float
    alarm_severity: Severity | None = None
    told_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Shown:
    """A target with what is said of it."""

    present: Present
    label: Label
    row: FleetRow
    standing: Standing


class FleetReads:
    """Reads the fleet for its page. Blocks; any thread may ask, one at a time is answered.

    ``rulebook`` gives the rules as they are configured now.
    """

    def __init__(self, history: History, state: StateStore, catalog: Catalog, rulebook: Callable[[], Rulebook]) -> None:
        self._history = history
        self._state = state
        self._catalog = catalog
        self._rulebook = rulebook
        self._beats = Beats(history)
        self._incidents = Incidents(history, state)
        self._lock = Lock()

    def view(self, now: float, span_seconds: float = SPAN_SECONDS) -> FleetView:
        """The fleet at ``now``, with heartbeats over the last ``span_seconds``."""
        with self._lock:
            return self._view(now, span_seconds)

    def _view(self, now: float, span_seconds: float) -> FleetView:
        statuses, entries = self._catalog.statuses(), self._rulebook().entries
        interval = max((status.target.scrape_interval_seconds for status in statuses), default=0.0)
        strips = self._beats.read(now, span_seconds, interval)
        alerts = self._state.alerts(resolved_since=strips.starts[0])
        targets = presents(self._history, statuses, alerts, now)
        peers = Peers(targets)
        incidents = self._incidents.of(targets, peers, entries, now)
        shown = _shown(targets, peers, strips, alerts, incidents, entries, now)
        severities: list[Severity] = [incident.severity for incident in incidents]
        verdict, alarm = fleet_verdict([item.standing for item in shown])
        return FleetView(
            at=now,
            verdict=verdict,
            alarm=alarm,
            status=_status(shown, now),
            incidents=incidents,
            kpis=kpis([item.present for item in shown if item.standing.kind == "serving"], strips),
            categories=columns(targets),
            rows=tuple(item.row for item in shown),
            firing=len(incidents),
            tick_seconds=strips.step,
            alarm_severity=worst(*severities),
            told_at=_told_at(shown),
        )


def _shown(
    targets: Sequence[Present],
    peers: Peers,
    strips: Strips,
    alerts: Iterable[AlertRecord],
    incidents: Iterable[Incident],
    entries: Mapping[str, Entry],
    now: float,
) -> list[_Shown]:
    """Targets, worst first."""
    of_target: dict[str, list[AlertRecord]] = defaultdict(list)
    for alert in alerts:
        of_target[alert.target].append(alert)
    losses: dict[str, list[float | None]] = defaultdict(list)
    for incident in incidents:
        losses[incident.target].append(incident.lost_tokens_per_second)
    shown: list[_Shown] = []
    for present in targets:
        name = present.name
        telling = showing(of_target[name], present, entries)
        active = [alert for alert in telling if alert.phase != "resolved"]
        said = label(present.state, active, entries, _last_step(present, strips), now)
        episodes = [stretch for alert in telling for stretch in stretches(alert, now)]
        tick = present_tick(present.state, said)
        ticks = heartbeat(strips.starts, strips.step, strips.of(name), episodes, tick, now)
        row = _row(present, said, ticks, _step_time_ratio(present, strips, peers, now))
        shown.append(_Shown(present, said, row, _standing(present, said, losses[name])))
    return sorted(shown, key=_worst_first)


def columns(targets: Sequence[Present]) -> tuple[tuple[str, float | None], ...]:
    """The categories that requests name, known ones first, in an order that does not change with the traffic."""
    steps: Counter[str] = Counter()
    expected: dict[str, set[float | None]] = {}
    for present in targets:
        for name, answer in present.categories.items():
            if name is not None and name != UNLABELLED and answer.counts.steps:
                steps[name] += round(answer.counts.steps)
                expected.setdefault(name, set()).add(present.normal.get(name))
    order = {name: place for place, name in enumerate(plain_categories())}
    names = sorted(
        (name for name, _ in steps.most_common(MOST_CATEGORIES)),
        key=lambda name: (order.get(plain_category(name), len(order)), name),
    )
    return tuple((name, next(iter(expected[name])) if len(expected[name]) == 1 else None) for name in names)


def _row(present: Present, said: Label, ticks: tuple[Tick, ...], step_time_ratio: float | None) -> FleetRow:
    status = present.status
    return FleetRow(
        target=present.name,
        group=status.target.group,
        state=present.state,
        label=said.text,
        severity=said.severity,
        pending=said.pending,
        about=about(status),
        acc_len=present.acc_len,
        categories=present.cells(),
        step_time_seconds=present.beat.step_time_seconds,
        step_time_ratio=step_time_ratio,
        output_tokens_per_second=present.beat.tokens_per_second,
        heartbeat=ticks,
        model=text(status, "model"),
        drafter=text(status, "drafter"),
        engine=text(status, "engine"),
        recovering=said.recovering,
    )


def _standing(present: Present, said: Label, losses: Sequence[float | None]) -> Standing:
    """A target with several faults loses what the dearest of them costs: they are seen in the same output."""
    steps = present.counts.steps or 0.0
    known = [lost for lost in losses if lost is not None]
    return Standing(
        kind=kind_of(present.state, steps, present.beat.running),
        steps=steps,
        fires=bool(losses),
        waits=said.pending,
        lost=max(known) if known and len(known) == len(losses) else None,
    )


def _worst_first(item: _Shown) -> tuple[int, float, float, str]:
    """By state, then by cost, then by how far acc_len is below what is expected."""
    return item.label.rank, -(item.standing.lost or 0.0), -(item.row.acc_len.below or 0.0), item.row.target


def _last_step(present: Present, strips: Strips) -> float | None:
    """When the target last verified, to the tick where that is long ago."""
    if present.last_step is not None:
        return present.last_step
    strip = strips.of(present.name)
    return max((start + strips.step for start, beat in strip.items() if beat.counts.steps), default=None)


def _step_time_ratio(present: Present, strips: Strips, peers: Peers, now: float) -> float | None:
    if present.beat.step_time_seconds is None:
        return None
    settled = now - SETTLING_TICKS * strips.step
    until = min([settled, *(began(alert) for alert in present.alerts if wants_somebody(alert))])
    normal = normal_step_time(present.beat, strips.until(present.name, until), peers.of(present))
    return None if not normal else present.beat.step_time_seconds / normal


def _status(shown: Sequence[_Shown], now: float) -> tuple[str, ...]:
    if not shown:
        return ()
    steps = sum(item.standing.steps for item in shown)
    return (
        _live(_told_at(shown), now),
        target_counts([item.standing for item in shown]),
        f"{copy.amount(steps)} verify steps in the last {RECENT_SECONDS / 60:.0f} min",
    )


def _told_at(shown: Sequence[_Shown]) -> float | None:
    return max((at for item in shown if (at := item.present.status.told_at) is not None), default=None)


def _live(told_at: float | None, now: float) -> str:
    if told_at is None:
        return "nothing was read yet"
    ago = copy.age(now - told_at)
    return f"live, {ago} ago" if now - told_at <= LIVE_SECONDS else f"nothing was read for {ago}"
