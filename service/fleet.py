"""The fleet as a page shows it: a verdict in words, what it rests on, and a row a target. Values only, no markup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from alerts.verdicts import Severity
from service.states import TargetState

TickState = Literal["ok", "notice", "warning", "critical", "pending", "idle", "no-data", "off"]


@dataclass(frozen=True, slots=True)
class Cell:
    """acc_len of a target, of all its traffic or of one category.

    expected   what is normal for its drafter and category (``acceptance.baselines``), None where nobody knows
    below      share by which it is under what is expected (0.25 is a quarter), None where it cannot be judged
    trusted    at least 200 steps: fewer get no colour whatever the value
    """

    acc_len: float | None = None
    lower: float | None = None
    upper: float | None = None
    steps: float | None = None
    requests: float | None = None
    source: str | None = None
    expected: float | None = None
    below: float | None = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """One span of a heartbeat strip, (start, end] in unix seconds."""

    start: float
    end: float
    state: TickState


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A target.

    label       the state in words as the table shows it ("Dead drafter", "Idle 12 min", "OK")
    severity    of its gravest active alert, None where there is none
    pending     that alert is still pending
    about       engine, model parallelism and the like ("SGLang · TP8")
    step_time_seconds, step_time_ratio   now, and against its own normal where that is known
    engine, model   as facts name them ("sglang", "Kimi-K3"), None where unknown: the table can be grouped by them
    """

    target: str
    group: str | None
    state: TargetState
    label: str
    severity: Severity | None
    pending: bool
    about: str
    acc_len: Cell
    categories: Mapping[str, Cell] = field(default_factory=dict[str, Cell])
    step_time_seconds: float | None = None
    step_time_ratio: float | None = None
    output_tokens_per_second: float | None = None
    heartbeat: tuple[Tick, ...] = ()
    engine: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that wants somebody: an alert that fires.

    figures   label -> value, as text ("acc_len" -> "4.22 → 1.02")
    remedy    the first thing to do, "" where none is known; ``flag``: the part of it to copy, where it is one
    told      names of the channels that were told
    """

    key: str
    finding: str
    severity: Severity
    target: str
    title: str
    since: float
    why: str
    cause: str
    figures: tuple[tuple[str, str], ...] = ()
    remedy: str = ""
    flag: str | None = None
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kpi:
    """A figure of the whole fleet; ``trend`` is its recent past, oldest first, None where there is no data."""

    label: str
    value: str
    unit: str = ""
    note: str = ""
    trend: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetView:
    """What the fleet page shows at ``at``. ``alarm`` is the second sentence of the verdict, "" where all is well."""

    at: float
    verdict: str
    alarm: str
    status: tuple[str, ...]
    incidents: tuple[Incident, ...]
    kpis: tuple[Kpi, ...]
    categories: tuple[tuple[str, float | None], ...]
    rows: tuple[FleetRow, ...]
    firing: int
    tick_seconds: float
