"""What the API, the UI and the CLI read. Plain values; every method blocks, so callers on a loop use a thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from acceptance.facts import Unseen, unseen
from acceptance.hits import Hit
from acceptance.query import AcceptanceQuery, BadQuery, Sum
from acceptance.series import DIMENSIONS, Dimension
from acceptance.sources import Answer, choose
from acceptance.statistics import bounds
from acceptance.window import Source
from service.catalog import Catalog, TargetStatus
from service.present import by_target
from service.states import RECENT_SECONDS, Recent, TargetState, fresh_seconds, state_of
from store.history import History
from store.state import AlertRecord, Delivery, StateStore

MAX_ROWS = 50_000
"""Most rows of one answer, empty buckets included."""


@dataclass(frozen=True, slots=True)
class AcceptanceRow:
    """Acceptance of one series in (start, end], unix seconds. Every figure is None where there is no data.

    key             dimension -> value, for the dimensions asked for; None where the source cannot tell
    lower, upper    bounds of ``acc_len`` at 95 %, None where the evidence gives none
    bias_bound      by how much ``acc_len`` may be too low, since the source counts after end-of-text trimming
    source          which source told; several, joined by commas, only where several targets were added up
    exact           every source counts; False where one of them estimates
    first, last     what the windows behind the figures really span
    note            why a lesser source answered, where one did
    """

    key: Mapping[Dimension, str | None]
    start: float
    end: float
    acc_len: float | None = None
    lower: float | None = None
    upper: float | None = None
    bias_bound: float | None = None
    accept_rate: float | None = None
    draft_yield: float | None = None
    step_time_seconds: float | None = None
    steps: float | None = None
    emitted: float | None = None
    proposed: float | None = None
    requests: float | None = None
    source: str | None = None
    exact: bool | None = None
    windows: int = 0
    first: float | None = None
    last: float | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class TargetView:
    """A target as people see it. ``alerts`` are those that are not resolved, ``recent`` the last 15 minutes."""

    status: TargetStatus
    state: TargetState
    recent: AcceptanceRow
    unseen: tuple[Unseen, ...]
    alerts: tuple[AlertRecord, ...]


class Reads:
    """Everything there is to read about acceptance, targets, alerts and messages. ``clock`` gives unix seconds."""

    def __init__(self, history: History, state: StateStore, catalog: Catalog, clock: Callable[[], float]) -> None:
        self._history = history
        self._state = state
        self._catalog = catalog
        self._clock = clock

    def now(self) -> float:
        """The time at which ``now`` in a query is read."""
        return self._clock()

    def acceptance(self, query: AcceptanceQuery) -> list[AcceptanceRow]:
        """Rows in the order of key and time; raises ``BadQuery`` where there would be more than ``MAX_ROWS``.

        With a step, every series seen in the range has a row for every bucket, so that "no data" is told and a chart
        breaks where there was none.
        """
        buckets = bucket_count(query)
        if buckets > 1:
            # The answer's size is known before it is fetched: a month by rank and category would not fit in memory.
            _refuse_too_many(buckets * len({item.key for item in self._history.query(replace(query, step=None))}))
        answers = choose(self._history.query(query), query)
        _refuse_too_many(buckets * len({answer.key for answer in answers}))
        return list(_with_gaps(answers, query, buckets))

    def latest(
        self, where: Mapping[Dimension, tuple[str, ...]] | None = None, source: Source | None = None
    ) -> list[AcceptanceRow]:
        """The newest window of every series, from the best source of its target that is still fresh.

        Nothing that ended longer ago than ``fresh_seconds`` of its target is told: it would not be about now. Nor is
        what a target told under an earlier revision.
        """
        now = self._clock()
        fresh = {status.target.name: fresh_seconds(status) for status in self._catalog.statuses()}
        sums = [
            item
            for item in self._history.latest(where or {}, now, max(fresh.values(), default=0.0))
            if item.counts.steps and now - item.bucket <= fresh.get(item.target, 0.0) and source in (None, item.source)
        ]
        query = AcceptanceQuery(start=0.0, end=now, by=DIMENSIONS, where=where or {}, source=source)
        # One bucket for all: windows of a target's series need not end together.
        answers = choose((replace(item, bucket=0.0) for item in _newest_revision(sums)), query)
        return [_row(answer, DIMENSIONS, answer.first, answer.last) for answer in answers]

    def targets(self) -> list[TargetView]:
        """All targets, in the order of their names."""
        now = self._clock()
        sums = self._history.query(_recent_query(now))
        alerts = self._state.alerts()
        return [_view(status, sums, alerts, now) for status in self._catalog.statuses()]

    def target(self, name: str) -> TargetView | None:
        """One target, None where there is none of this name."""
        status = self._catalog.get(name)
        if status is None:
            return None
        now = self._clock()
        sums = self._history.query(replace(_recent_query(now), where={"target": (name,)}))
        return _view(status, sums, self._state.alerts(), now)

    def hits(self, target: str) -> list[Hit]:
        """Signatures seen in the logs of a target, newest first."""
        return self._state.hits(target)

    def alerts(self, resolved_within: float | None = None) -> list[AlertRecord]:
        """Alerts that are not resolved, and those resolved in the last ``resolved_within`` seconds."""
        since = None if resolved_within is None else self._clock() - resolved_within
        return self._state.alerts(resolved_since=since)

    def deliveries(self, limit: int, alert_key: str | None = None) -> list[Delivery]:
        """Messages with every attempt at delivering them, newest first."""
        return self._state.deliveries(limit, alert_key)


def bucket_count(query: AcceptanceQuery) -> int:
    """How many buckets (start, start + step] a query has; the last one ends with it."""
    return 1 if query.step is None else max(1, ceil((query.end - query.start) / query.step))


def _refuse_too_many(rows: int) -> None:
    if rows > MAX_ROWS:
        raise BadQuery(
            "step", f"gives up to {rows} rows, more than {MAX_ROWS}: take a longer step, less time or fewer series"
        )


def _with_gaps(answers: Sequence[Answer], query: AcceptanceQuery, buckets: int) -> Iterable[AcceptanceRow]:
    start, end = query.start - query.offset, query.end - query.offset
    step = query.step or end - start
    told = {(answer.key, round((answer.bucket - start) / step)): answer for answer in answers}
    buckets = max([buckets, *(index + 1 for _, index in told)])
    for key in dict.fromkeys(answer.key for answer in answers):
        for index in range(buckets):
            bucket, until = start + index * step, min(start + (index + 1) * step, end)
            answer = told.get((key, index))
            if answer is None:
                yield AcceptanceRow(dict(zip(query.by, key, strict=True)), bucket, until)
            else:
                yield _row(answer, query.by, bucket, until)


def _row(answer: Answer, by: Sequence[Dimension], start: float, end: float) -> AcceptanceRow:
    counts = answer.counts
    interval = bounds(counts)
    return AcceptanceRow(
        key=dict(zip(by, answer.key, strict=True)),
        start=start,
        end=end,
        acc_len=counts.acc_len,
        lower=None if interval is None else interval.lower,
        upper=None if interval is None else interval.upper,
        bias_bound=counts.bias_bound,
        accept_rate=counts.accept_rate,
        draft_yield=counts.draft_yield,
        step_time_seconds=counts.step_time_seconds,
        steps=counts.steps,
        emitted=counts.emitted,
        proposed=counts.proposed,
        requests=counts.requests,
        source=",".join(answer.sources),
        exact=answer.exact,
        windows=answer.windows,
        first=answer.first,
        last=answer.last,
        note=answer.note,
    )


def _newest_revision(sums: Iterable[Sum]) -> Iterable[Sum]:
    """Per target and source only what it told as it is now: after a restart two drafters may both be fresh."""
    position = DIMENSIONS.index("revision")
    groups: dict[tuple[str, Source], list[Sum]] = defaultdict(list)
    for item in sums:
        groups[item.target, item.source].append(item)
    for items in groups.values():
        newest = max(items, key=lambda item: item.bucket)
        yield from (item for item in items if item.key[position] == newest.key[position])


def _recent_query(now: float) -> AcceptanceQuery:
    return AcceptanceQuery(start=now - RECENT_SECONDS, end=now, by=("target", "category"))


def _view(status: TargetStatus, sums: Sequence[Sum], alerts: Sequence[AlertRecord], now: float) -> TargetView:
    name = status.target.name
    own = [item for item in sums if item.target == name]
    query = replace(_recent_query(now), by=("target",))
    row = next(iter(_with_gaps(choose(by_target(own), query), query, 1)), None)
    row = row or AcceptanceRow({"target": name}, query.start, query.end)
    recent = Recent(row.steps, row.last) if row.steps and row.last is not None else None
    of_target = tuple(alert for alert in alerts if alert.target == name)
    return TargetView(
        status=status,
        state=state_of(status, recent, of_target, now),
        recent=row,
        unseen=unseen(
            {fact.name: fact.value for fact in status.facts.values()},
            has_log=status.has_log,
            has_categories=any(item.key[1] is not None for item in own),
        ),
        alerts=of_target,
    )
