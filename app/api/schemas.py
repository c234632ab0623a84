"""What answers look like: the models behind OpenAPI. Tests hold every answer against them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from acceptance.window import Source
from alerts.verdicts import Severity
from service.states import StateName
from store.state import DeliveryStatus, Phase

Time = str
"""ISO 8601 in UTC."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Figures(_Answer):
    """Figures of acceptance; null wherever there is no data, which is neither 0 nor 1."""

    acc_len: float | None = Field(description="tokens per verify step, bonus token included: 1 to k + 1")
    lower: float | None = Field(description="lower bound of acc_len at 95 %")
    upper: float | None = Field(description="upper bound of acc_len at 95 %")
    bias_bound: float | None = Field(description="by how much acc_len may be too low, from end-of-text trimming")
    accept_rate: float | None = Field(description="accepted / proposed draft tokens; compare within one k only")
    draft_yield: float | None = Field(description="accepted / (k * steps): comparable across k")
    step_time_seconds: float | None = Field(description="mean time of a decode pass")
    steps: float | None = Field(description="verify steps")
    emitted: float | None = Field(description="tokens that the steps yielded")
    proposed: float | None = Field(description="draft tokens proposed")
    requests: float | None = Field(description="requests behind the steps")
    source: str | None = Field(
        description="counter, request, log or gauge; joined by commas where targets with different ones were added up"
    )
    exact: bool | None = Field(description="counted throughout; false where a source estimates")
    windows: int = Field(description="windows added up")
    first: Time | None = Field(description="start of the earliest of them")
    last: Time | None = Field(description="end of the latest of them")
    note: str | None = Field(description="why a lesser source answered")


class AcceptanceRow(Figures):
    """Acceptance of one series in (start, end]. Of the dimensions, those named in `by` are present."""

    start: Time
    end: Time
    target: str | None = Field(None, description="the server")
    group: str | None = Field(None, description="replicas that should behave alike")
    revision: str | None = Field(None, description="hash of version, drafter, k, draft backend and verify mode")
    role: str | None = Field(None, description="unified, prefill or decode")
    engine: str | None = Field(None, description="sglang or vllm")
    model: str | None = Field(None, description="target model")
    drafter: str | None = Field(None, description="draft model")
    rank: str | None = Field(None, description="data-parallel rank")
    category: str | None = Field(None, description='request category; "" unlabelled, "other" matched no rule')
    context: str | None = Field(None, description="bucket of the prompt length")


class QueryEcho(_Answer):
    """The query as it was understood."""

    start: Time = Field(alias="from")
    end: Time = Field(alias="to")
    step_seconds: float | None
    offset_seconds: float
    by: list[str]
    where: dict[str, list[str]]
    source: Source | None


class AcceptanceAnswer(_Answer):
    """Rows in the order of series and time."""

    query: QueryEcho
    rows: list[AcceptanceRow]


class LatestAnswer(_Answer):
    """The newest window of every series that is fresh; rows hold every dimension."""

    at: Time
    rows: list[AcceptanceRow]


class State(_Answer):
    """A target's state in a word and a sentence."""

    name: StateName
    why: str
    since: Time | None


class Look(_Answer):
    """The newest look at a surface."""

    at: Time
    up: bool
    error: str | None
    running: float | None
    queued: float | None
    speculating: bool | None
    seconds: float | None


class Fact(_Answer):
    """One statement about a target, and where it was read."""

    value: str | int | float | bool | None
    source: str
    at: Time


class Unseen(_Answer):
    """What nothing has told, and the one thing that would show it."""

    what: str
    needs: str


class Hit(_Answer):
    """A signature seen in a log. `excerpt` comes from outside."""

    signature: str
    at: Time
    rank: str | None
    incarnation: str
    excerpt: str
    captures: dict[str, str]
    count: int


class TargetSummary(_Answer):
    """A target. `recent` is its acceptance over the last 15 minutes, `alerts` the ids of findings that fire."""

    name: str
    url: str | None
    group: str | None
    engine: str | None
    state: State
    alerts: list[str]
    recent: Figures
    facts: dict[str, Fact]
    unseen: list[Unseen]
    looks: dict[str, Look]
    rejected: int = Field(description="pieces of input that could not be read since the service began")


class TargetDetail(TargetSummary):
    """A target with the signatures seen in its logs."""

    logs: list[str]
    hits: list[Hit]


class TargetsAnswer(_Answer):
    """All targets, in the order of their names."""

    demo: bool = Field(description="the targets are emulated engines, no real servers")
    targets: list[TargetSummary]


class Alert(_Answer):
    """An alert. `detail` is the finding with its figures and bounds."""

    key: str
    finding: str
    severity: Severity
    target: str
    phase: Phase
    active_since: Time
    fired_at: Time | None
    clear_since: Time | None
    resolved_at: Time | None
    evaluated_at: Time
    episode: int
    detail: dict[str, Any]


class AlertsAnswer(_Answer):
    """Alerts, worst and then newest first."""

    alerts: list[Alert]


class Attempt(_Answer):
    """One try at delivering a message."""

    at: Time
    outcome: str
    detail: str
    seconds: float


class Delivery(_Answer):
    """A message to a channel and its fate."""

    id: str
    channel: str
    alert: str
    kind: str
    created_at: Time
    status: DeliveryStatus
    next_at: Time | None
    attempts: list[Attempt]
    body: dict[str, Any]


class DeliveriesAnswer(_Answer):
    """Messages, newest first."""

    deliveries: list[Delivery]


class Health(_Answer):
    """`ok`."""

    status: Literal["ok"]


class ProblemAnswer(BaseModel):
    """An error (RFC 9457). Further members tell more: `parameter`, `incident`, `missing`."""

    type: str
    title: str
    status: int
    detail: str
    parameter: str | None = Field(None, description="the parameter at fault")


class RejectedRecord(_Answer):
    """A posted record that was not taken."""

    line: int = Field(description="line of the body, or item of the array, from 1")
    reason: str = Field(description="what is wrong with it")


class RecordsAnswer(_Answer):
    """What became of posted records."""

    accepted: int = Field(description="records that are new, and on disk now")
    duplicates: int = Field(description="records that were there already, or twice in the body")
    rejected: list[RejectedRecord] = Field(description="records that were not taken")
