"""Evidence: what a detector judges. The one place where history is read for verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from acceptance.facts import Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.query import Sum
from acceptance.series import Series
from acceptance.window import Source

Level = Literal["look", "page"]
"""look: a person asked (``inspect``, the UI). page: it will be sent to somebody."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source, or a target as a whole, shows at ``now``.

    series     whom the verdict would be about
    source     the acceptance source judged; None for detectors about the target as a whole
    windows    sums of this series and source, oldest first, each a span of its own; only busy windows count
    others     windows of the target's other sources over the same time (is a fresher one moving?)
    health     looks at the target's surfaces, oldest first
    hits       signatures of the target's current incarnation
    baseline   normal acc_len that somebody stated or that was learned
    """

    subject: Subject
    series: Series
    now: float
    source: Source | None = None
    windows: Sequence[Sum] = ()
    others: Mapping[Source, Sequence[Sum]] = field(default_factory=dict[Source, Sequence[Sum]])
    health: Sequence[Health] = ()
    hits: Sequence[Hit] = ()
    baseline: float | None = None
