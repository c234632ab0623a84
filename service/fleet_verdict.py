"""The verdict on a fleet: one sentence that says whether speculation pays, and one that says who needs somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from service import copy
from service.states import ENOUGH_STEPS, TargetState

Kind = Literal["serving", "few", "idle", "stale", "no-data", "unanswered", "unread", "off", "prefill", "removed"]

_COUNTED: tuple[tuple[Kind, str], ...] = (
    ("serving", "serving"),
    ("few", "with few steps"),
    ("idle", "idle"),
    ("stale", "stale"),
    ("unanswered", "not answering"),
    ("unread", "with a scrape error"),
    ("no-data", "without data"),
    ("off", "without speculation"),
    ("prefill", "that only prefill"),
)
NO_TARGETS = "No targets yet. Add one to draftgauge.yaml, or let discovery find them."


@dataclass(frozen=True, slots=True)
class Standing:
    """What the verdict needs to know of a target.

    steps    verify steps of the last minutes
    fires    an alert of it wants somebody
    waits    one may fire
    lost     tokens a second that its fault costs, None where that is not known
    """

    kind: Kind
    steps: float
    fires: bool
    waits: bool
    lost: float | None = None


def kind_of(state: TargetState, steps: float, running: float | None) -> Kind:
    """What a target does, whatever its alerts say."""
    match state.name:
        case "ok" | "low-evidence":
            return "serving" if steps >= ENOUGH_STEPS else "few"
        case "alerting":
            return ("serving" if steps >= ENOUGH_STEPS else "few") if steps else "idle" if running == 0 else "no-data"
        case "idle" | "stale" | "no-data" | "removed":
            return state.name
        case "target-down":
            return "unanswered"
        case "scrape-error":
            return "unread"
        case "spec-not-active":
            return "off"
        case "role-has-none":
            return "prefill"


def fleet_verdict(standings: Sequence[Standing]) -> tuple[str, str]:
    """The verdict and its second sentence, "" where nobody is needed. Targets no longer listed do not count."""
    listed = [standing for standing in standings if standing.kind != "removed"]
    if not listed:
        return NO_TARGETS, ""
    return _verdict(listed), _alarm(listed)


def target_counts(standings: Sequence[Standing]) -> str:
    """``24 targets: 19 serving, 3 idle, 1 stale, 1 without speculation``."""
    kinds = [standing.kind for standing in standings if standing.kind != "removed"]
    parts = [f"{kinds.count(kind):,} {words}" for kind, words in _COUNTED if kind in kinds]
    return f"{copy.counted(len(kinds), 'target', 'targets')}{': ' if parts else ''}{', '.join(parts)}"


def _verdict(listed: Sequence[Standing]) -> str:
    serving = [standing for standing in listed if standing.kind == "serving"]
    if not serving:
        return _nothing(listed)
    paying, judged = sum(not standing.fires for standing in serving), len(serving)
    if judged == 1:
        return "Speculation pays on the only serving target." if paying else "One target is serving."
    if paying == judged:
        return f"Speculation pays on all {copy.number(judged)} serving targets."
    if not paying:
        return f"Speculation pays on none of the {copy.number(judged)} serving targets."
    return f"Speculation pays on {copy.number(paying)} of {copy.number(judged)} serving targets."


def _nothing(listed: Sequence[Standing]) -> str:
    few = [standing.steps for standing in listed if standing.kind == "few"]
    if few:
        return f"Too few steps to judge: {max(few):.0f} of {ENOUGH_STEPS}."
    kinds = {standing.kind for standing in listed}
    if "off" in kinds and kinds <= {"off", "prefill"}:
        count = len(listed)
        return f"Speculation is off on {'the only target' if count == 1 else f'all {copy.number(count)} targets'}."
    return "Nothing is serving, so there is nothing to judge."


def _alarm(listed: Sequence[Standing]) -> str:
    firing = [standing for standing in listed if standing.fires]
    if not firing:
        waiting = sum(standing.waits for standing in listed)
        return f"{copy.sentence(copy.number(waiting))} may be falling." if waiting else ""
    count, one = copy.sentence(copy.number(len(firing))), len(firing) == 1
    lost = [standing.lost for standing in firing if standing.lost is not None]
    total = sum(lost)
    if len(lost) < len(firing) or total <= 0:
        return f"{count} {'needs' if one else 'need'} you."
    return f"{count} {'is' if one else 'are'} losing {copy.rate(total)} tok/s."
