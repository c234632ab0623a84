"""Figures of the whole fleet. One that cannot be computed from what was told is left out, never guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from acceptance.counts import Counts, total
from acceptance.series import UNLABELLED
from service import copy
from service.beats import Beat, Strips
from service.cells import MOST_UNEXPECTED
from service.present import Present


@dataclass(frozen=True, slots=True)
class Kpi:
    """A figure of the whole fleet; ``trend`` is its recent past, oldest first, None where there is no data."""

    label: str
    value: str
    unit: str = ""
    note: str = ""
    trend: tuple[float | None, ...] = ()


def kpis(serving: Sequence[Present], strips: Strips) -> tuple[Kpi, ...]:
    """Over the targets that verify now; none where none does."""
    return tuple(_kpis(serving, strips)) if serving else ()


def _kpis(serving: Sequence[Present], strips: Strips) -> Iterator[Kpi]:
    ticks = _ticks(serving, strips)
    told = [total(beat.counts for beat in beats if beat.counts.steps) for beats in ticks]
    counts = total(present.counts for present in serving if present.counts.steps)
    if counts.acc_len is not None:
        note = _against(counts.acc_len, expected_of(serving))
        yield Kpi("acc_len, all serving", copy.length(counts.acc_len), "", note, tuple(tick.acc_len for tick in told))
    yield from _output(serving, ticks)
    yield from _step_time(serving, ticks)
    if counts.draft_yield is not None:
        note = _of_k(serving)
        value = f"{counts.draft_yield * 100:.1f}"
        yield Kpi("Yield", value, "%", note, tuple(tick.draft_yield for tick in told))
    covered = coverage(serving, counts)
    if covered is not None:
        yield Kpi("Coverage", f"{covered * 100:.1f}", "%", "of steps carry a category")


def expected_of(serving: Sequence[Present]) -> float | None:
    """What is expected of all their traffic together, where it is known for nearly all of it."""
    told = [(present.counts.emitted or 0.0, present.whole) for present in serving]
    known = [(emitted, normal) for emitted, normal in told if normal is not None]
    covered = sum(emitted for emitted, _ in known)
    if not covered or covered < (1 - MOST_UNEXPECTED) * sum(emitted for emitted, _ in told):
        return None
    return covered / sum(emitted / normal for emitted, normal in known)


def coverage(serving: Sequence[Present], counts: Counts) -> float | None:
    """Share of verify steps of which a category is known; None where nothing tells steps.

    Requests are a sample of what the counters count, so the steps of the source that tells categories are held
    against those of the source that tells most.
    """
    if not counts.steps:
        return None
    labelled = everything = 0.0
    for present in serving:
        by_category = {name: answer.counts.steps or 0.0 for name, answer in present.categories.items()}
        labelled += sum(steps for name, steps in by_category.items() if name is not None and name != UNLABELLED)
        everything += max(present.counts.steps or 0.0, sum(by_category.values()))
    return labelled / everything


def _ticks(serving: Sequence[Present], strips: Strips) -> list[list[Beat]]:
    """The beats of the serving targets, a list a tick. The one that lasts is too short to be a point of a line."""
    own = [strips.of(present.name) for present in serving]
    return [[beat for strip in own if (beat := strip.get(start)) is not None] for start in strips.starts[:-1]]


def _output(serving: Sequence[Present], ticks: Sequence[Sequence[Beat]]) -> Iterator[Kpi]:
    known = [rate for present in serving if (rate := present.beat.tokens_per_second) is not None]
    if known:
        note = "all serving" if len(known) == len(serving) else f"of {len(known)} of {len(serving)} serving"
        trend = (_sum([beat.tokens_per_second for beat in beats]) for beats in ticks)
        yield Kpi("Output", copy.rate(sum(known)), "tok/s", note, tuple(trend))


def _step_time(serving: Sequence[Present], ticks: Sequence[Sequence[Beat]]) -> Iterator[Kpi]:
    known = [seconds for present in serving if (seconds := present.beat.step_time_seconds) is not None]
    if known:
        note = f"median of {copy.counted(len(known), 'target', 'targets')}"
        trend = (_median([beat.step_time_seconds for beat in beats]) for beats in ticks)
        yield Kpi("Step time", copy.milliseconds(median(known)), "ms", note, tuple(trend))


def _against(acc_len: float, normal: float | None) -> str:
    if normal is None:
        return ""
    return f"expected {copy.length(normal)}, {copy.percent(acc_len / normal - 1, signed=True)}"


def _of_k(serving: Sequence[Present]) -> str:
    known = {present.status.fact("k") for present in serving}
    formula = f"(acc_len {copy.MINUS} 1) / k"
    return f"{formula}, k = {next(iter(known))}" if len(known) == 1 and None not in known else formula


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
