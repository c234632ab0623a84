"""Which source answers: per target and bucket one, never two added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from acceptance.counts import Counts, total
from acceptance.query import AcceptanceQuery, Sum
from acceptance.window import SOURCES, Source


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of an answer: counts of one combination of the dimensions asked for, in one bucket.

    sources   which sources told (several only where several targets were added up)
    note      why a lesser source answered, where one did
    """

    key: tuple[str | None, ...]
    bucket: float
    counts: Counts
    sources: tuple[Source, ...]
    exact: bool
    windows: int
    first: float
    last: float
    note: str | None = None


def choose(sums: Iterable[Sum], query: AcceptanceQuery) -> list[Answer]:
    """Answers in the order of key and bucket.

    Per target and bucket the best source that tells every dimension asked for answers alone (``SOURCES`` is the
    order); where none tells them all, the one that tells most. A source without steps in a bucket (SGLang's counters
    while requests still run) leaves it to the next.
    """
    by_place: dict[tuple[str, float], dict[Source, list[Sum]]] = defaultdict(lambda: defaultdict(list))
    for item in sums:
        by_place[item.target, item.bucket][item.source].append(item)
    rows: dict[tuple[tuple[str | None, ...], float], list[tuple[Sum, str | None]]] = defaultdict(list)
    counting = {target for (target, _), sources in by_place.items() if "counter" in sources}
    for (target, bucket), sources in by_place.items():
        chosen = min(
            sources,
            key=lambda source: (not _has_steps(sources[source]), _unknown(sources[source]), SOURCES.index(source)),
        )
        still = query.source is None and target in counting and chosen in ("log", "gauge") and "counter" not in sources
        note = "counters did not move in this bucket" if still else None
        for item in sources[chosen]:
            rows[item.key, bucket].append((item, note))
    return [_answer(key, bucket, items) for (key, bucket), items in sorted(rows.items(), key=_order)]


def _has_steps(sums: list[Sum]) -> bool:
    return any(item.counts.steps for item in sums)


def _unknown(sums: list[Sum]) -> int:
    return max(sum(value is None for value in item.key) for item in sums)


def _order(row: tuple[tuple[tuple[str | None, ...], float], object]) -> tuple[tuple[tuple[bool, str], ...], float]:
    key, bucket = row[0]
    return tuple((value is not None, value or "") for value in key), bucket


def _answer(key: tuple[str | None, ...], bucket: float, items: list[tuple[Sum, str | None]]) -> Answer:
    sums = [item for item, _ in items]
    return Answer(
        key=key,
        bucket=bucket,
        counts=total(item.counts for item in sums),
        sources=tuple(source for source in SOURCES if any(item.source == source for item in sums)),
        exact=all(item.exact for item in sums),
        windows=sum(item.windows for item in sums),
        first=min(item.first for item in sums),
        last=max(item.last for item in sums),
        note=next((note for _, note in items if note), None),
    )
