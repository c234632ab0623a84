"""From the printed figures of a SpecDecoding line back to the counts they were rounded from.

The line prints drafted and accepted tokens as integers, but not the number of drafts (verify steps) that its mean
length and its positions were divided by. That number is an integer, and the roundings leave few to choose from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, inf

from acceptance.counts import Counts, Spread
from collectors.vllm.lines import SpecLine, Torn

LENGTH_ERROR = 0.005
SHARE_ERROR = 0.0005
ROUNDING_SLACK = 1e-9
MOST_CANDIDATES = 500

VARIABLE_METHODS = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods whose drafts are often shorter than k, so that drafted / k is not the number of drafts."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """Verify steps of a line.

    ``exact``: they are drafted / k, which fits all figures (a draft that a grammar emptied whole is not seen), or no
    other number fits.
    """

    steps: float
    exact: bool


def counts_of(line: SpecLine, k: int | None, method: str | None) -> tuple[Counts, bool]:
    """Counts of a line, and whether they are exact; raises ``Torn`` where its figures contradict each other.

    k, method: as the start-up line told them, None where unknown (k is the number of positions where they are printed)
    """
    k = len(line.positions) if line.positions else k
    drafts = _drafts(_without_contradicting_positions(line), k, variable=method in VARIABLE_METHODS)
    if drafts is None:
        return Counts(proposed=line.drafted), False
    emitted = drafts.steps + line.accepted
    return (
        Counts(
            steps=drafts.steps,
            emitted=emitted,
            proposed=line.drafted,
            by_position=_by_position(line, drafts.steps),
            slots=None if k is None else k * drafts.steps,
            trim_bound=0.0,
            spread=Spread.of(emitted, drafts.steps),
        ),
        drafts.exact,
    )


def _drafts(line: SpecLine, k: int | None, *, variable: bool) -> Drafts | None:
    """None where the line does not tell: 0.8.4 without k, or an interval without draft tokens."""
    if not line.drafted:
        return None
    whole = None if k is None else line.drafted / k
    mean = _accepted_per_step(line)
    if not line.accepted or mean is None:
        # Nothing accepted says nothing of their number; the shortest reading is that all drafts were k long.
        return None if whole is None else Drafts(whole, exact=whole == int(whole) and not variable)
    low, high = _limits(line, mean, whole)
    if low > high + 1:
        raise Torn("a mean length that does not follow from the tokens")
    if whole is not None and whole == int(whole) and not variable and _fits(line, mean, int(whole)):
        return Drafts(int(whole), exact=True)
    middle = min(max(_middle(line, mean, whole), low), high)
    if high - low > MOST_CANDIDATES:
        return Drafts(round(middle), exact=False)
    candidates = [steps for steps in range(low, int(high) + 1) if _fits(line, mean, steps)]
    if not candidates:
        return Drafts(middle, exact=False)
    return Drafts(min(candidates, key=lambda steps: abs(steps - middle)), exact=len(candidates) == 1)


def _without_contradicting_positions(line: SpecLine) -> SpecLine:
    """Positions whose sum is not the mean say nothing of the number of steps."""
    mean = _accepted_per_step(line)
    if mean is None or line.positions is None:
        return line
    error = LENGTH_ERROR + SHARE_ERROR * len(line.positions) + ROUNDING_SLACK
    return line if abs(sum(line.positions) - mean) <= error else replace(line, positions=None)


def _limits(line: SpecLine, mean: float, whole: float | None) -> tuple[int, float]:
    """Fewest and most steps that the rounded mean, the positions' sum and the drafted tokens allow."""
    low, high = 1, inf
    rounded = [(mean, LENGTH_ERROR)]
    if line.positions is not None:
        rounded.append((sum(line.positions), SHARE_ERROR * len(line.positions)))
    for value, error in rounded:
        low = max(low, ceil(line.accepted / (value + error) - ROUNDING_SLACK))
        if value > error:
            high = min(high, floor(line.accepted / (value - error) + ROUNDING_SLACK))
    return max(low, ceil(whole or 0)), high


def _middle(line: SpecLine, mean: float, whole: float | None) -> float:
    """The likeliest number of steps. Positions have a decimal more than the length."""
    total = sum(line.positions or ())
    for per_step in (total, mean):
        if per_step > 0:
            return line.accepted / per_step
    return whole or float(line.accepted)


def _accepted_per_step(line: SpecLine) -> float | None:
    """Accepted tokens per step as printed. 0.8.5 printed them as the length; all since add the bonus token.

    Which of the two a line means follows from its positions, whose sum is the same figure.
    """
    if line.length is None:
        return None
    if line.positions is None:
        return line.length - 1 if line.length >= 1 else line.length
    total = sum(line.positions)
    return min((line.length - 1, line.length), key=lambda mean: abs(mean - total))


def _fits(line: SpecLine, mean: float, steps: int) -> bool:
    if abs(line.accepted / steps - mean) > LENGTH_ERROR + ROUNDING_SLACK:
        return False
    if line.positions is None:
        return True
    ranges = [_range(share, steps) for share in line.positions]
    return all(low <= high for low, high in ranges) and (
        sum(low for low, _ in ranges) <= line.accepted <= sum(high for _, high in ranges)
    )


def _range(share: float, steps: float) -> tuple[int, int]:
    """Accepted tokens at a position that print as ``share``."""
    low = ceil(steps * (share - SHARE_ERROR) - ROUNDING_SLACK)
    return max(low, 0), floor(steps * (share + SHARE_ERROR) + ROUNDING_SLACK)


def _by_position(line: SpecLine, steps: float) -> tuple[float, ...] | None:
    """Accepted tokens per position as printed, summing up to all that were accepted where the shares allow it.

    Over 1,000 steps a share of three decimals leaves several integers; the first positions take up the difference.
    """
    if line.positions is None:
        return None
    counts = [round(share * steps) for share in line.positions]
    missing = line.accepted - sum(counts)
    for position, share in enumerate(line.positions):
        low, high = _range(share, steps)
        moved = min(max(counts[position] + missing, low), high) if low <= high else counts[position]
        missing -= moved - counts[position]
        counts[position] = moved
    return tuple(map(float, counts))
