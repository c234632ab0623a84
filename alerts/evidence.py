"""Evidence: what a detector judges. The one place where history is read for verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from acceptance.counts import total
from acceptance.facts import Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.query import AcceptanceQuery, Sum
from acceptance.series import DIMENSIONS, UNLABELLED, Series
from acceptance.window import SOURCES, Source, Window

METRICS = "metrics"
LOG_PREFIX = "log"
"""Surfaces, as ``Health`` names them."""

Level = Literal["look", "page"]
"""look: a person asked (``inspect``, the UI). page: it will be sent to somebody."""

LOOKBACK_SECONDS = 900.0
HEALTH_LOOKBACK_SECONDS = 300.0
STEP_SECONDS = 15.0

Baseline = Callable[[Series], float | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source, or a target as a whole, shows at ``now``.

    series     whom the verdict would be about: the target, and a rank or a category where it is about one of them
    source     the acceptance source judged; None for detectors about the target as a whole
    windows    sums of this series and source, oldest first, each a span of its own; only busy windows count
    others     windows of the target's other sources over the same time (is a fresher one moving?); where ``source``
               is None, of all of them
    health     looks at the target's surfaces, oldest first
    logged     a log of the target is read
    hits       signatures of the target's current incarnation
    signatures   signature id -> finding id
    doubts     what readers found to be impossible, in their words
    baseline   normal acc_len that somebody stated or that was learned
    reference  acc_len of the series' own earlier windows, where the evidence reaches back (``inspect``)
    """

    subject: Subject
    series: Series
    now: float
    source: Source | None = None
    windows: Sequence[Sum] = ()
    others: Mapping[Source, Sequence[Sum]] = field(default_factory=dict[Source, Sequence[Sum]])
    health: Sequence[Health] = ()
    logged: bool = False
    hits: Sequence[Hit] = ()
    signatures: Mapping[str, str] = field(default_factory=dict[str, str])
    doubts: Sequence[str] = ()
    baseline: float | None = None
    reference: float | None = None

    @property
    def verifies_nothing(self) -> bool:
        """A prefill server runs no verify step: no acceptance finding can be about it."""
        return "prefill" in (self.series.role, self.subject.text("role"))


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside windows, of the whole fleet.

    lives      target -> incarnations of its logs' processes that live now
    baseline   normal acc_len of a series, where somebody knows
    doubts     target -> what readers found to be impossible
    """

    hits: Sequence[Hit] = ()
    signatures: Mapping[str, str] = field(default_factory=dict[str, str])
    lives: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    baseline: Baseline | None = None
    doubts: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])


AddUp = Callable[[Sequence[Sum]], Sum]


class Told(Protocol):
    """What is asked of a history: ``store.history.History``, or ``alerts.recent.Recent`` in its place."""

    def query(self, query: AcceptanceQuery) -> list[Sum]: ...

    def health(self, start: float, end: float, target: str | None = None) -> list[Health]: ...


def added_up(items: Sequence[Sum]) -> Sum:
    """Sums of one target, source and bucket as one.

    Its number of windows is that of the series with most: ranks at one moment are not samples one after the other.
    """
    windows: dict[tuple[str | None, ...], int] = defaultdict(int)
    for item in items:
        windows[item.key] += item.windows
    return Sum(
        target=items[0].target,
        source=items[0].source,
        bucket=items[0].bucket,
        key=(),
        counts=total(item.counts for item in items),
        windows=max(windows.values()),
        exact=all(item.exact for item in items),
        first=min(item.first for item in items),
        last=max(item.last for item in items),
    )


def gather(
    history: Told,
    subjects: Iterable[Subject],
    beside: Beside,
    now: float,
    lookback: float = LOOKBACK_SECONDS,
    step: float = STEP_SECONDS,
    add_up: AddUp = added_up,
) -> list[Evidence]:
    """The evidence on ``subjects`` in (now - lookback, now]: history is asked once for windows and once for looks.

    Buckets lie on multiples of ``step``, so that those of the next call are the same ones; ``add_up`` may remember
    what it added up before.
    """
    start = (now - lookback) // step * step
    sums = history.query(AcceptanceQuery(start=start, end=now, step=step, by=DIMENSIONS))
    looks = history.health(now - min(lookback, HEALTH_LOOKBACK_SECONDS), now)
    return _assemble(subjects, sums, looks, beside, now, add_up)


def from_windows(
    windows: Iterable[Window], subjects: Iterable[Subject], looks: Sequence[Health], beside: Beside, now: float
) -> list[Evidence]:
    """The evidence in readings that no history holds (``inspect``): every time at which windows end is a span."""
    sums = [
        Sum(w.series.target, w.source, w.end, w.series.key(), w.counts, 1, w.exact, w.start, w.end)
        for w in windows
        if w.busy
    ]
    return _assemble(subjects, sums, looks, beside, now, added_up)


def _assemble(
    subjects: Iterable[Subject],
    sums: Iterable[Sum],
    looks: Iterable[Health],
    beside: Beside,
    now: float,
    add_up: AddUp,
) -> list[Evidence]:
    by_target: dict[str, dict[Source, list[Sum]]] = defaultdict(lambda: defaultdict(list))
    for item in sums:
        by_target[item.target][item.source].append(item)
    health: dict[str, list[Health]] = defaultdict(list)
    for look in looks:
        health[look.target].append(look)
    hits: dict[str, list[Hit]] = defaultdict(list)
    for hit in beside.hits:
        hits[hit.target].append(hit)
    evidence: list[Evidence] = []
    for subject in subjects:
        name = subject.target
        whole = Evidence(
            subject=subject,
            series=Series(name, subject.group),
            now=now,
            health=health.get(name, ()),
            logged="log" in by_target.get(name, {})
            or any(look.surface.startswith(LOG_PREFIX) for look in health.get(name, ())),
            hits=_current(hits.get(name, ()), beside.lives.get(name, ())),
            signatures=beside.signatures,
            doubts=beside.doubts.get(name, ()),
        )
        evidence += _of_target(whole, by_target.get(name, {}), beside.baseline, add_up)
    return evidence


def _of_target(
    whole: Evidence, by_source: Mapping[Source, Sequence[Sum]], baseline: Baseline | None, add_up: AddUp
) -> list[Evidence]:
    """Evidence on the target as a whole, then of every source on the target, its ranks and its categories."""
    ordered = {source: _newest_revision(by_source[source]) for source in SOURCES if source in by_source}
    merged = {source: _merged(sums, add_up) for source, sums in ordered.items()}
    result = [replace(whole, series=whole.subject.series(), others=merged)]
    for source, sums in ordered.items():
        others = {other: windows for other, windows in merged.items() if other != source}
        for series, windows in [(_series(sums[-1]).only(*_SHARED), merged[source]), *_finer(sums, add_up)]:
            result.append(
                replace(
                    whole,
                    series=series,
                    source=source,
                    windows=windows,
                    others=others,
                    baseline=None if baseline is None else baseline(series),
                )
            )
    return result


_SHARED = ("group", "revision", "role", "engine", "model", "drafter")
_RANK, _CATEGORY = DIMENSIONS.index("rank"), DIMENSIONS.index("category")


def _finer(sums: Sequence[Sum], add_up: AddUp) -> list[tuple[Series, Sequence[Sum]]]:
    """The ranks where there are several, and the categories where requests name one."""
    ranks, categories = _split(sums, _RANK), _split(sums, _CATEGORY)
    found: list[tuple[Series, Sequence[Sum]]] = []
    if len(ranks) > 1:
        found += [(_series(part[-1]).only(*_SHARED, "rank"), _merged(part, add_up)) for part in ranks.values()]
    if set(categories) - {UNLABELLED}:
        found += [(_series(part[-1]).only(*_SHARED, "category"), _merged(part, add_up)) for part in categories.values()]
    return found


def _split(sums: Iterable[Sum], dimension: int) -> dict[str, list[Sum]]:
    """By a value of the key, in the order of the values; those that cannot tell it belong to none."""
    parts: dict[str, list[Sum]] = defaultdict(list)
    for item in sums:
        value = item.key[dimension]
        if value is not None:
            parts[value].append(item)
    return dict(sorted(parts.items()))


def _series(item: Sum) -> Series:
    return Series(item.target, *item.key[1:])


def _newest_revision(sums: Iterable[Sum]) -> list[Sum]:
    """Oldest first, only those of the configuration that runs now: figures of another are not comparable."""
    ordered = sorted(sums, key=lambda item: item.last)
    revision = ordered[-1].key[DIMENSIONS.index("revision")]
    return [item for item in ordered if item.key[DIMENSIONS.index("revision")] == revision]


def _merged(sums: Iterable[Sum], add_up: AddUp) -> list[Sum]:
    """One sum a bucket."""
    buckets: dict[float, list[Sum]] = defaultdict(list)
    for item in sums:
        buckets[item.bucket].append(item)
    return [items[0] if len(items) == 1 else add_up(items) for _, items in sorted(buckets.items())]


def _current(hits: Sequence[Hit], lives: Collection[str]) -> list[Hit]:
    """Hits of the processes that live now; where nobody knows those, of the one that spoke last."""
    if not hits:
        return []
    current = lives or (max(hits, key=lambda hit: hit.at).incarnation,)
    return [hit for hit in hits if hit.incarnation in current]
