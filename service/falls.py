"""Falls: which lines of a chart fell, when, and what that says. Counts before and after are compared, never lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from itertools import accumulate
from statistics import median
from types import MappingProxyType

from acceptance.counts import Counts, total
from acceptance.statistics import bounds
from service import copy
from service.cells import NORMAL_BELOW, below
from service.states import ENOUGH_STEPS

FELL = 0.8
"""At or under this share of what was before, a line fell: less is what traffic does by itself."""

CONFIDENCE, ENOUGH_REQUESTS = 0.999, 20
"""Of hundreds of places where a line could be split the best is judged: by chance, one is always best."""

TOGETHER_SECONDS = 300.0
"""Lines that fall within so long (or two buckets) fell together: counters move when requests finish."""

LEVEL_STEPS = 2000.0
"""So many of the newest steps are held against what was published: a few hundred may be one request's."""

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Course:
    """One line: its counts by bucket (``NO_COUNTS`` where there is no data), and what is expected of it."""

    name: str
    counts: Sequence[Counts]
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Fall:
    """When a line fell, and its acc_len before and after."""

    at: float
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Grid:
    """Starts of the buckets and their width; ``dead`` is where a drafter counts as dead."""

    starts: Sequence[float]
    step: float
    dead: float
    now: float
    zone: tzinfo = field(default=UTC)


def fall_of(course: Course, starts: Sequence[float], dead: float) -> Fall | None:
    """Where the line splits best in two levels, if the later one is lower beyond doubt and lasts until the end.

    The best split makes the weighted squares within both parts least (so those between them most), and both hold
    ``ENOUGH_STEPS``. Requests differ far more from each other than steps of one do, and the split was sought: bounds
    at ``CONFIDENCE`` must not overlap. A dead drafter knows no such differences, and needs none.
    """
    told = [(start, counts) for start, counts in zip(starts, course.counts, strict=True) if counts.steps]
    split = _best_split([counts for _, counts in told])
    if split is None:
        return None
    before, after = (total(counts for _, counts in part) for part in (told[:split], told[split:]))
    was, then = before.acc_len, after.acc_len
    assert was is not None
    assert then is not None
    if then > FELL * was or _lately([counts for _, counts in told[split:]]) > (was + then) / 2:
        return None
    surely = (_newest(course.counts).acc_len or 0.0) <= dead or _beyond_doubt(before, after)
    return Fall(told[split][0], was, then) if surely else None


def _lately(after: Sequence[Counts]) -> float:
    """The median bucket of the newest quarter: one long request that ran through a dip must not make it last."""
    return median(counts.acc_len or 0.0 for counts in after[-max(3, len(after) // 4) :])


def _best_split(told: Sequence[Counts]) -> int | None:
    steps = [0.0, *accumulate(counts.steps or 0.0 for counts in told)]
    emitted = [0.0, *accumulate(counts.emitted or 0.0 for counts in told)]
    between = {
        at: emitted[at] ** 2 / steps[at] + (emitted[-1] - emitted[at]) ** 2 / (steps[-1] - steps[at])
        for at in range(1, len(told))
        if steps[at] >= ENOUGH_STEPS and steps[-1] - steps[at] >= ENOUGH_STEPS
    }
    return max(between, key=between.__getitem__, default=None)


def _beyond_doubt(before: Counts, after: Counts) -> bool:
    if any(counts.requests is not None and counts.requests < ENOUGH_REQUESTS for counts in (before, after)):
        return False
    high, low = bounds(before, CONFIDENCE), bounds(after, CONFIDENCE)
    return high is not None and low is not None and low.upper < high.lower


def _newest(counts: Sequence[Counts], enough: float = ENOUGH_STEPS) -> Counts:
    """The newest part of a line that holds ``enough`` steps, all of it where it holds fewer."""
    newest: list[Counts] = []
    steps = 0.0
    for item in reversed(counts):
        if item.steps and steps < enough:
            newest.append(item)
            steps += item.steps
    return total(newest)


@dataclass(frozen=True, slots=True)
class _Words:
    """How a dimension is spoken of: its plural, what it says when all of it fell, and when one of it did."""

    plural: str
    together: str
    alone: str
    alone_timed: bool = True


_WORDS: Mapping[str, _Words] = MappingProxyType(
    {
        "category": _Words("categories", "the drafter, not the prompts", "look at prompts, template or context length"),
        "rank": _Words("ranks", "the whole server, not one GPU", "one GPU or its link", alone_timed=False),
        "target": _Words("targets", "what they share, not one server", "look at what changed on it"),
        "group": _Words("groups", "what they share, not one group", "look at what changed in it"),
        "context": _Words(
            "context lengths", "the drafter, not the length of prompts", "look at prompts of that length"
        ),
        "model": _Words("models", "what they share", "look at what changed about it"),
        "drafter": _Words("drafters", "what they share, not one drafter", "look at what changed about it"),
        "engine": _Words("engines", "what they share, not one engine", "look at what changed about it"),
        "role": _Words("roles", "what they share", "look at what changed about it"),
        "revision": _Words("revisions", "the traffic or what they share", "look at what that revision changed"),
    }
)


def trends_verdict(courses: Sequence[Course], by: str, grid: Grid) -> str:
    """What the lines say together, by the counts in them and nothing else."""
    judged = [course for course in courses if _steps(course) >= ENOUGH_STEPS]
    if not judged:
        most = max((_steps(course) for course in courses), default=0.0)
        return f"Too few steps to judge: {most:.0f} of {ENOUGH_STEPS}." if most else "No data in this range."
    falls = [(course, fall) for course in judged if (fall := fall_of(course, grid.starts, grid.dead)) is not None]
    if falls:
        return _fell(falls, judged, _WORDS[by], by, grid)
    dead = [course for course in judged if (_newest(course.counts).acc_len or grid.dead + 1) <= grid.dead]
    if dead:
        return _dead(dead, judged, _WORDS[by], by)
    return _steady(judged, _WORDS[by], by)


def _fell(falls: Sequence[tuple[Course, Fall]], judged: Sequence[Course], words: _Words, by: str, grid: Grid) -> str:
    times = sorted(fall.at for _, fall in falls)
    together = times[-1] - times[0] <= max(TOGETHER_SECONDS, 2 * grid.step)
    first, last = _clock(times[0], grid), _clock(times[-1], grid)
    at = f"at {_clock(median(times), grid)}" if together else f"between {first} and {last}"
    names = [spoken(course.name, by) for course, _ in falls]
    if len(judged) == 1:
        fall = falls[0][1]
        return f"{copy.sentence(names[0])} fell {at}, from {copy.length(fall.before)} to {copy.length(fall.after)}."
    if len(falls) == len(judged):
        if together:
            return f"All {len(judged)} {words.plural} fell together {at}: {words.together}."
        return f"All {len(judged)} {words.plural} fell, {at}."
    if len(falls) == 1:
        return f"Only {names[0]} fell{f', {at}' if words.alone_timed else ''}: {words.alone}."
    return f"{len(falls)} of {len(judged)} {words.plural} fell {at}: {_some(names)}."


def _dead(dead: Sequence[Course], judged: Sequence[Course], words: _Words, by: str) -> str:
    worst = max(_newest(course.counts).acc_len or 0.0 for course in dead)
    names = [spoken(course.name, by) for course in dead]
    if len(judged) == 1:
        return f"{copy.sentence(names[0])} is at {copy.length(worst)}: next to no draft token is accepted."
    if len(dead) == len(judged):
        return f"All {len(judged)} {words.plural} are at {copy.length(worst)} or less: {words.together}."
    return f"{len(dead)} of {len(judged)} {words.plural} are at {copy.length(worst)} or less: {_some(names)}."


def _steady(judged: Sequence[Course], words: _Words, by: str) -> str:
    now = {course.name: _newest(course.counts, LEVEL_STEPS).acc_len for course in judged}
    low = [course for course in judged if (below(now[course.name], course.expected) or 0.0) >= NORMAL_BELOW]
    known = all(course.expected is not None for course in judged)
    name = copy.sentence(spoken(judged[0].name, by))
    if low:
        if len(judged) == 1:
            share = copy.whole_percent(below(now[low[0].name], low[0].expected) or 0.0)
            return f"{name} is {share} below what was published."
        names = _some([spoken(course.name, by) for course in low])
        return f"{len(low)} of {len(judged)} {words.plural} are below what was published: {names}."
    if len(judged) == 1:
        return f"{name} is as expected." if known else f"{name} is steady at {copy.length(now[judged[0].name])}."
    return (
        f"All {len(judged)} {words.plural} are as expected."
        if known
        else f"None of the {len(judged)} {words.plural} fell."
    )


def spoken(name: str, by: str) -> str:
    """A line's name in a sentence: rank 3 is DP3, as engines write it."""
    if by == "rank":
        return f"DP{name}" if name.isdigit() else f"rank {name}"
    return name or "unlabelled traffic"


def _some(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED:
        return copy.listed(names)
    return copy.listed([*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"])


def _steps(course: Course) -> float:
    return sum(counts.steps or 0.0 for counts in course.counts)


def _clock(at: float, grid: Grid) -> str:
    return copy.clock(at, grid.now, grid.zone)
