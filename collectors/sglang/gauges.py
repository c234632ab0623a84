"""Windows of SGLang's acceptance gauge: by data-parallel rank, and fresh while requests still run.

The gauge is the mean of the last ``decode_log_interval`` decode passes of a scheduler, set every so many passes. It
freezes when idle and is 0.0 when speculation is off or nothing was decoded yet. So it is evidence only where it was
set anew: a few tokens of a health probe must not repeat for hours what it showed last.

Passes go onto these windows and not onto the counters', since schedulers count them by rank and as they run, while
the counters know no rank and move when a request finishes.
"""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.counts import Counts, Spread
from acceptance.facts import Subject
from collectors.deltas import Change
from collectors.sglang.page import Rank

DECODE_LOG_INTERVAL = 40.0
"""SGLang's default of decode passes between two reports."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A rank at the look before, in the same process: its running requests, its gauge, and the decode passes since
    the gauge was known to be set.
    """

    running: float = 0.0
    length: float | None = None
    passes: float = 0.0


@dataclass(frozen=True, slots=True)
class RankLook:
    """One look at a rank after the first. ``decoded``: its realtime decode tokens since the look before, None where
    no such counter spans the gauge (before 0.5.7, or a first page taken as a window).
    """

    name: str
    rank: Rank
    change: Change
    earlier: Earlier
    decoded: float | None
    seconds: float

    def interval(self, subject: Subject) -> float:
        """Decode passes between two settings of the gauge."""
        return subject.number("decode_log_interval") or DECODE_LOG_INTERVAL

    def passes(self, prefix: str) -> float | None:
        """Passes of the modes that begin with ``prefix``; None where none are counted or their change is unknown.

        A mode appears on the page with its first pass.
        """
        if not self.rank.modes:
            return None
        modes = [mode for mode in self.rank.modes if mode.startswith(prefix)]
        known = [
            self.change.counters[key] for mode in modes if (key := ("passes", self.name, mode)) in self.change.counters
        ]
        return sum(known) if len(known) == len(modes) else None

    def unset_passes(self) -> float:
        """Decode passes since the gauge was known to be set, counted or else estimated from tokens."""
        length, counted = self.rank.gauge("spec_accept_length"), self.passes("decode_")
        if counted is None and length is not None:
            running = max(self.rank.gauge("num_running_reqs") or 0.0, self.earlier.running, 1.0)
            counted = (self.decoded or 0.0) / length / running
        return self.earlier.passes + (counted or 0.0)

    def is_set_anew(self, subject: Subject) -> bool:
        """Whether the gauge was set since the look before: it moved, or so many passes cannot have left it."""
        moved = self.rank.gauge("spec_accept_length") != self.earlier.length
        return moved or self.unset_passes() >= self.interval(subject)

    def remember(self, subject: Subject) -> Earlier:
        """What the next look needs."""
        return Earlier(
            running=self.rank.gauge("num_running_reqs") or 0.0,
            length=self.rank.gauge("spec_accept_length"),
            passes=0.0 if self.is_set_anew(subject) else self.unset_passes(),
        )

    def counts(self, subject: Subject) -> Counts | None:
        """What the rank did since the look before, an estimate; None where the gauge is no evidence.

        emitted is what was decoded, and steps = emitted / length. Where that is not told, steps = running requests x
        decode_log_interval, and emitted = steps x length.
        """
        length = self.rank.gauge("spec_accept_length")
        if length is None:
            return None
        if self.decoded is None:
            steps = (self.rank.gauge("num_running_reqs") or 0.0) * self.interval(subject)
            emitted = steps * length
        else:
            steps = self.decoded / length if self.is_set_anew(subject) else 0.0
            emitted = self.decoded
        if not steps:
            return None
        k, draft_tokens, passes = self.rank.k(subject), self.rank.draft_tokens(subject), self.passes("decode_")
        steady = self.earlier.running > 0.0 and self.rank.gauge("num_running_reqs") is not None
        return Counts(
            steps=steps,
            emitted=emitted,
            proposed=None if draft_tokens is None else (draft_tokens - 1) * steps,
            slots=None if k is None else k * steps,
            trim_bound=0.0,
            passes=passes,
            eager_passes=None if passes is None else self.passes("decode_none") or 0.0,
            pass_seconds=self.seconds if steady and self.passes("prefill_") == 0.0 else None,
            spread=Spread.of(emitted, steps),
        )
