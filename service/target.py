"""One target as a page shows it: state, findings with what to do, facts, and what cannot be seen. Values, no markup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from threading import Lock

from acceptance.facts import Unseen, unseen
from acceptance.hits import Hit
from acceptance.query import AcceptanceQuery
from acceptance.sources import choose
from alerts.rules import Rulebook
from alerts.verdicts import Severity
from service import copy
from service.about import parallelism, what_runs
from service.beats import loads
from service.cards import FindingCard, card_of, gravest_first
from service.catalog import Catalog, TargetStatus
from service.cells import Cell, cell
from service.fact_groups import FactGroup, fact_groups
from service.incidents import Incidents
from service.kpis import Kpi
from service.labels import label
from service.likeness import normal_step_time
from service.peers import Peers, began, wants_somebody
from service.present import Present, presents
from service.ranks import RankRow, ranks_note
from service.showing import showing
from service.states import RECENT_SECONDS, TargetState
from service.surfaces import SourceRow, SurfaceRow, sources_of, surfaces_of
from service.target_verdict import target_verdict
from store.history import History
from store.state import StateStore

__all__ = [
    "FactGroup",
    "FindingCard",
    "RankRow",
    "SourceRow",
    "SurfaceRow",
    "TargetPage",
    "TargetReads",
]

RESOLVED_SECONDS = 86400.0
"""Findings that were resolved in so long are recent."""

MOST_HITS = 20

SETTLED_SECONDS, NORMAL_SECONDS = 600.0, 1800.0
"""A step time is held against so long a time before, which ended so long ago (or when a fault began)."""

LOAD_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class TargetPage:
    """What the page of a target shows at ``at``.

    findings   what is active, gravest first; ``recent`` what was resolved lately, newest first
    ranks      data-parallel ranks side by side, where a source tells them; ``ranks_note`` what they say together
    sources    what each source alone says
    categories   cells by category, "" being unlabelled
    rejected   pieces of input that could not be read since the service began
    """

    at: float
    target: str
    group: str | None
    url: str | None
    state: TargetState
    label: str
    severity: Severity | None
    pending: bool
    verdict: str
    status: tuple[str, ...]
    figures: tuple[Kpi, ...]
    acc_len: Cell
    categories: Mapping[str, Cell]
    findings: tuple[FindingCard, ...]
    recent: tuple[FindingCard, ...]
    facts: tuple[FactGroup, ...]
    unseen: tuple[Unseen, ...]
    ranks: tuple[RankRow, ...]
    ranks_note: str
    sources: tuple[SourceRow, ...]
    surfaces: tuple[SurfaceRow, ...]
    hits: tuple[Hit, ...]
    rejected: int


class TargetReads:
    """Reads one target for its page. Blocks; any thread may ask, one at a time is answered."""

    def __init__(self, history: History, state: StateStore, catalog: Catalog, rulebook: Callable[[], Rulebook]) -> None:
        self._history = history
        self._state = state
        self._catalog = catalog
        self._rulebook = rulebook
        self._incidents = Incidents(history, state)
        self._lock = Lock()

    def page(self, name: str, now: float, zone: tzinfo = UTC) -> TargetPage | None:
        """The page of a target, None where there is none of this name. ``zone`` is that of the times in words."""
        status = self._catalog.get(name)
        if status is None:
            return None
        with self._lock:
            return self._page(status, now, zone)

    def _page(self, status: TargetStatus, now: float, zone: tzinfo) -> TargetPage:
        entries, name = self._rulebook().entries, status.target.name
        alerts = self._state.alerts(resolved_since=now - RESOLVED_SECONDS)
        group = [status, *self._of_group(status)]
        names = tuple(each.target.name for each in group)
        present, *others = presents(self._history, group, alerts, now, {"target": names})
        peers = Peers(others)
        incidents = self._incidents.of([present], peers, entries, now)
        said = label(present.state, showing(present.alerts, present, entries), entries, present.last_step, now)
        step_time = self._normal_step_time(present, peers, now)
        cards = [card_of(alert, entries.get(alert.finding), incidents) for alert in alerts if alert.target == name]
        ranks = self._ranks(present, now)
        return TargetPage(
            at=now,
            target=name,
            group=status.target.group,
            url=status.target.url,
            state=present.state,
            label=said.text,
            severity=said.severity,
            pending=said.pending,
            verdict=target_verdict(present, incidents, entries, step_time, now, zone),
            status=_status(status, now),
            figures=tuple(_figures(present, step_time)),
            acc_len=present.acc_len,
            categories=present.cells(),
            findings=tuple(sorted((card for card in cards if card.phase != "resolved"), key=gravest_first)),
            recent=tuple(
                sorted((card for card in cards if card.phase == "resolved"), key=lambda card: -(card.ended or 0.0))
            ),
            facts=fact_groups(status.facts.values(), now, zone),
            unseen=unseen(
                {fact.name: fact.value for fact in status.facts.values()},
                has_log=status.has_log,
                has_categories=any(item.key[1] is not None for item in present.sums),
            ),
            ranks=ranks,
            ranks_note=ranks_note(ranks),
            sources=tuple(sources_of(present)),
            surfaces=tuple(surfaces_of(status)),
            hits=tuple(self._state.hits(name)[:MOST_HITS]),
            rejected=status.rejected,
        )

    def _of_group(self, status: TargetStatus) -> list[TargetStatus]:
        if status.target.group is None:
            return []
        return [
            other
            for other in self._catalog.statuses()
            if other.target.group == status.target.group and other.target.name != status.target.name
        ]

    def _normal_step_time(self, present: Present, peers: Peers, now: float) -> float | None:
        """Its step time at like load before, or that of its group now."""
        faults = [began(alert) for alert in present.alerts if wants_somebody(alert)]
        until = min([now - SETTLED_SECONDS, *faults])
        own = loads(self._history, until - NORMAL_SECONDS, until, LOAD_SECONDS, present.name).values()
        return normal_step_time(present.beat, own, peers.of(present))

    def _ranks(self, present: Present, now: float) -> tuple[RankRow, ...]:
        query = AcceptanceQuery(
            start=now - RECENT_SECONDS, end=now, by=("target", "rank"), where={"target": (present.name,)}
        )
        told = [
            RankRow(answer.key[1], cell(answer.counts, ",".join(answer.sources), present.whole))
            for answer in choose(self._history.query(query), query)
            if answer.key[1] is not None
        ]
        return tuple(sorted(told, key=lambda row: (not row.rank.isdigit(), len(row.rank), row.rank)))


def _status(status: TargetStatus, now: float) -> tuple[str, ...]:
    k, started = status.fact("k"), status.fact("startup_time")
    runs = what_runs(status, k if isinstance(k, int) else None)
    known = [*runs, parallelism(status), str(status.fact("role") or "")]
    if isinstance(started, int | float) and started <= now:
        known.append(f"up {copy.age(now - started)}")
    return tuple(part for part in known if part)


def _figures(present: Present, normal_step_time: float | None) -> Iterable[Kpi]:
    """The figures in one row; those of which nothing is known are left out."""
    counts, beat = present.counts, present.beat
    if beat.step_time_seconds is not None:
        note = "" if normal_step_time is None else f"usually {copy.milliseconds(normal_step_time)} at like load"
        yield Kpi("Step time", copy.milliseconds(beat.step_time_seconds), "ms", note)
    if counts.acc_len is not None:
        steps = f"{copy.amount(counts.steps)} steps"
        note = steps if present.whole is None else f"expected {copy.length(present.whole)}, {steps}"
        yield Kpi("acc_len", copy.length(counts.acc_len), "", note)
    if beat.tokens_per_second is not None:
        note = "" if beat.running is None else f"at {beat.running:.0f} running"
        yield Kpi("Output", copy.rate(beat.tokens_per_second), "tok/s", note)
    if counts.draft_yield is not None:
        yield Kpi("Yield", f"{counts.draft_yield * 100:.1f}", "%", f"(acc_len {copy.MINUS} 1) / k")
