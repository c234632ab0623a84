"""Beats: what every target did in each tick of the recent past."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from acceptance.counts import NO_COUNTS, Counts
from acceptance.query import AcceptanceQuery
from acceptance.sources import choose
from acceptance.window import SOURCES
from collectors.scrape import METRICS
from service.buckets import Buckets, bucket_starts, bucket_width
from service.catalog import LOG_PREFIX
from store.history import History, Looked, Timed

TICKS = 48
FRESH_SECONDS = 30.0
"""Ticks that are not settled are read anew so often; what is so now comes from elsewhere."""

SPANS_KEPT = 4
"""So many ranges may be looked at in turn without reading their past again."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A target in one tick. Every figure is None where nothing told it.

    counts        what the best source told
    step_time_seconds   mean of the passes that were timed
    running       mean number of running requests
    tokens_per_second   generated tokens
    up            whether it answered at any time; None where nobody looked
    speculating   whether a look saw speculation
    """

    counts: Counts = NO_COUNTS
    step_time_seconds: float | None = None
    running: float | None = None
    tokens_per_second: float | None = None
    up: bool | None = None
    speculating: bool | None = None


NO_BEAT = Beat()


@dataclass(frozen=True, slots=True)
class Strips:
    """``by_target``: target -> start of a tick -> beat; ticks of which nothing is known are absent."""

    step: float
    starts: tuple[float, ...]
    by_target: Mapping[str, Mapping[float, Beat]] = field(default_factory=dict[str, Mapping[float, Beat]])

    def of(self, target: str) -> Mapping[float, Beat]:
        """The beats of one target, by the start of their ticks."""
        return self.by_target.get(target, {})

    def until(self, target: str, end: float) -> list[Beat]:
        """Those of a target's beats that had ended by then, oldest first."""
        strip = self.of(target)
        return [strip[start] for start in self.starts if start in strip and start + self.step <= end]


@dataclass(frozen=True, slots=True)
class _Placed:
    target: str
    start: float
    beat: Beat


class Beats:
    """Reads ticks from history, and the settled ones only once. For any thread."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = Lock()
        self._kept: OrderedDict[float, Buckets[_Placed]] = OrderedDict()

    def read(self, now: float, span_seconds: float, scrape_interval: float) -> Strips:
        """The ticks of the last ``span_seconds``, the one that lasts included."""
        step = bucket_width(span_seconds, TICKS, scrape_interval)
        starts = bucket_starts(now - span_seconds, now, step)[-TICKS:]
        by_target: dict[str, dict[float, Beat]] = defaultdict(dict)
        with self._lock:
            for placed in self._buckets(step).between(starts, now).values():
                for item in placed:
                    by_target[item.target][item.start] = item.beat
        return Strips(step, tuple(starts), by_target)

    def _buckets(self, step: float) -> Buckets[_Placed]:
        buckets = self._kept.pop(step, None)
        if buckets is None:
            buckets = Buckets(
                step, lambda start, end: self._read(start, end, step), lambda item: item.start, FRESH_SECONDS
            )
            if len(self._kept) >= SPANS_KEPT:
                self._kept.popitem(last=False)
        self._kept[step] = buckets
        return buckets

    def _read(self, start: float, end: float, step: float) -> Iterable[_Placed]:
        beats = loads(self._history, start, end, step)
        query = AcceptanceQuery(start=start, end=end, step=step, by=("target",))
        for answer in choose(self._history.query(query), query):
            place = answer.key[0] or "", answer.bucket
            beats[place] = replace(beats.get(place, NO_BEAT), counts=answer.counts)
        return [_Placed(target, bucket, beat) for (target, bucket), beat in beats.items()]


def loads(
    history: History, start: float, end: float, step: float, target: str | None = None
) -> dict[tuple[str, float], Beat]:
    """(target, bucket) -> load, output and step time of all targets, or of one; without counts."""
    beats = {place: seen(looks) for place, looks in _by_target(history.looked(start, end, step, target)).items()}
    for place, seconds in step_times(history.timed(start, end, step, target)).items():
        beats[place] = replace(beats.get(place, NO_BEAT), step_time_seconds=seconds)
    return beats


def _by_target(looked: Iterable[Looked]) -> Mapping[tuple[str, float], Sequence[Looked]]:
    groups: dict[tuple[str, float], list[Looked]] = defaultdict(list)
    for item in looked:
        groups[item.target, item.bucket].append(item)
    return groups


def seen(looks: Sequence[Looked]) -> Beat:
    """What the looks at one target's surfaces say together. Its page speaks for it, and its logs where it has none."""
    telling = [item for item in looks if item.surface == METRICS]
    telling = telling or [item for item in looks if item.surface.startswith(LOG_PREFIX)]
    speculating = [item.speculating for item in looks if item.speculating is not None]
    running = [item.running for item in telling if item.running is not None]
    tokens = [rate for item in telling if (rate := item.tokens_per_second) is not None]
    return Beat(
        running=sum(running) if running else None,
        tokens_per_second=sum(tokens) if tokens else None,
        up=any(item.up for item in telling) if telling else None,
        speculating=any(speculating) if speculating else None,
    )


def step_times(timed: Iterable[Timed]) -> Mapping[tuple[str, float], float]:
    """(target, bucket) -> mean time of a decode pass, as the best source that timed any tells it."""
    best: dict[tuple[str, float], Timed] = {}
    for item in sorted(timed, key=lambda item: SOURCES.index(item.source)):
        best.setdefault((item.target, item.bucket), item)
    return {place: item.step_time_seconds for place, item in best.items()}
