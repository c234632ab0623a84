"""The present: what every target did in the last minutes, from one query for windows, one for looks, one for passes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from acceptance.counts import NO_COUNTS, Counts, total
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import Dimension
from acceptance.sources import Answer, choose
from acceptance.window import Source
from service.beats import NO_BEAT, Beat, loads
from service.catalog import TargetStatus
from service.cells import Cell, cell, of_mix, published
from service.states import RECENT_SECONDS, Recent, TargetState, state_of
from store.history import History
from store.state import AlertRecord

NOW_SECONDS = 300.0
"""Load, output and step time are of so long: they change faster than an acc_len can be judged."""


@dataclass(frozen=True, slots=True)
class Present:
    """A target now.

    alerts       those that are not resolved
    counts       of all its traffic in the last ``RECENT_SECONDS``, ``source`` told them
    categories   the same by category, as the source tells that tells them best: ``""`` is unlabelled, None untold
    normal       what is expected of each category, None where nobody knows
    whole        what is expected of its mix
    last_step    end of the newest window with steps, None where there was none lately
    beat         load, output and step time of the last ``NOW_SECONDS``
    sums         everything that was told in the last ``RECENT_SECONDS``, by source and category
    """

    status: TargetStatus
    state: TargetState
    alerts: tuple[AlertRecord, ...]
    counts: Counts = NO_COUNTS
    source: str | None = None
    categories: Mapping[str | None, Answer] = field(default_factory=dict[str | None, Answer])
    normal: Mapping[str | None, float | None] = field(default_factory=dict[str | None, float | None])
    whole: float | None = None
    last_step: float | None = None
    beat: Beat = NO_BEAT
    sums: Sequence[Sum] = ()

    @property
    def name(self) -> str:
        """Of the target."""
        return self.status.target.name

    @property
    def acc_len(self) -> Cell:
        """The cell of all its traffic."""
        return cell(self.counts, self.source, self.whole)

    def cells(self) -> Mapping[str, Cell]:
        """The cells of its categories, by their names; unlabelled traffic is ``""``."""
        return {
            name: cell(answer.counts, ",".join(answer.sources), self.normal.get(name))
            for name, answer in self.categories.items()
            if name is not None
        }


def presents(
    history: History,
    statuses: Sequence[TargetStatus],
    alerts: Sequence[AlertRecord],
    now: float,
    where: Mapping[Dimension, tuple[str, ...]] | None = None,
) -> list[Present]:
    """All of ``statuses``, in their order. ``where`` narrows what history is asked for."""
    query = AcceptanceQuery(start=now - RECENT_SECONDS, end=now, by=("target", "category"), where=where or {})
    sums: dict[str, list[Sum]] = defaultdict(list)
    for item in history.query(query):
        sums[item.target].append(item)
    beats = {target: beat for (target, _), beat in loads(history, now - NOW_SECONDS, now, NOW_SECONDS).items()}
    of_target: dict[str, list[AlertRecord]] = defaultdict(list)
    for alert in alerts:
        if alert.phase != "resolved":
            of_target[alert.target].append(alert)
    return [
        _present(
            status,
            sums.get(status.target.name, []),
            beats.get(status.target.name, NO_BEAT),
            tuple(of_target.get(status.target.name, ())),
            query,
        )
        for status in statuses
    ]


def _present(
    status: TargetStatus, sums: Sequence[Sum], beat: Beat, alerts: tuple[AlertRecord, ...], query: AcceptanceQuery
) -> Present:
    whole = next(iter(choose(by_target(sums), replace(query, by=("target",)))), None)
    counts = NO_COUNTS if whole is None else whole.counts
    recent = Recent(counts.steps, whole.last) if whole is not None and counts.steps else None
    categories = {answer.key[1]: answer for answer in choose(sums, query)}
    normal = {name: published(status, name) for name in categories}
    parts = {name: answer.counts for name, answer in categories.items()}
    return Present(
        status=status,
        state=state_of(status, recent, alerts, query.end),
        alerts=alerts,
        counts=counts,
        source=None if whole is None else ",".join(whole.sources),
        categories=categories,
        normal=normal,
        whole=of_mix(parts, normal),
        last_step=None if recent is None else recent.last,
        beat=replace(beat, counts=counts),
        sums=sums,
    )


def by_target(sums: Iterable[Sum]) -> Iterable[Sum]:
    """Sums by target and something finer, added up to sums by target; sources stay apart."""
    groups: dict[tuple[str, Source], list[Sum]] = defaultdict(list)
    for item in sums:
        groups[item.target, item.source].append(item)
    for (target, _), items in groups.items():
        yield replace(
            items[0],
            key=(target,),
            counts=total(item.counts for item in items),
            windows=sum(item.windows for item in items),
            exact=all(item.exact for item in items),
            first=min(item.first for item in items),
            last=max(item.last for item in items),
        )
