"""State: facts, signatures seen, alerts, and the outbox of messages about them. One small transactional database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from acceptance.facts import Fact
from acceptance.hits import Hit

Phase = Literal["pending", "firing", "recovering", "resolved"]
"""pending: true, but not yet for long enough. recovering: false, but still kept firing. Inactive alerts are absent."""


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """The state of one alert; identity is ``key`` (finding id, target, rank, category).

    active_since   when the condition became true (unix seconds)
    true_seconds   time it was seen true while pending; time in which nobody evaluated does not count
    fired_at       when it began to fire
    clear_since    when it was first seen false again while firing
    resolved_at    when it stopped firing
    evaluated_at   the last evaluation that could tell
    episode        raised each time it fires: message ids derive from it
    detail         the finding as JSON (``alerts.verdicts.Finding``), newest while true
    """

    key: str
    finding: str
    severity: str
    target: str
    phase: Phase
    active_since: float
    evaluated_at: float
    true_seconds: float = 0.0
    fired_at: float | None = None
    clear_since: float | None = None
    resolved_at: float | None = None
    episode: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell a channel. ``id`` is stable over retries: receivers drop repeats by it.

    kind   firing, resolved
    body   what channels render: JSON, already free of secrets
    """

    id: str
    channel: str
    alert_key: str
    kind: str
    body: Mapping[str, Any]
    created_at: float


DeliveryStatus = Literal["waiting", "delivered", "refused", "expired"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at delivering a message. ``outcome``: delivered, retry, refused."""

    at: float
    outcome: str
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message with its fate. ``next_at`` is when it is due (None once it is final)."""

    message: Message
    status: DeliveryStatus
    attempts: Sequence[Attempt]
    next_at: float | None


@dataclass(frozen=True, slots=True)
class AlertChange:
    """What one evaluation changed about one alert; record and messages are written in one transaction."""

    record: AlertRecord
    messages: Sequence[Message] = ()


class StateStore(Protocol):
    """Methods block; callers run them in a thread. Every method that writes is one durable transaction."""

    def record(self, facts: Sequence[Fact], hits: Sequence[Hit]) -> None:
        """Keep the newest fact per (target, name), and count hits per (target, incarnation, signature, rank).

        Repeating a call changes nothing: it is made before the cursor that covers it is committed. A hit is known by
        its time and excerpt. Excerpts are cut to 500 characters; of a target's hits the 1,000 seen last are kept.
        """
        ...

    def facts(self) -> dict[str, dict[str, Fact]]:
        """Target -> fact name -> fact."""
        ...

    def hits(self, target: str | None = None) -> list[Hit]:
        """Signatures seen, newest first; one entry per (target, incarnation, signature, rank) with its count."""
        ...

    def alerts(self, *, resolved_since: float | None = None) -> list[AlertRecord]:
        """Alerts that are not resolved, and those resolved at or after ``resolved_since``."""
        ...

    def apply(self, changes: Sequence[AlertChange]) -> None:
        """Write records and their messages; a message id that exists is left as it is."""
        ...

    def forget_alerts(self, keys: Sequence[str]) -> None:
        """Remove alerts that became inactive without firing (a pending condition that turned false).

        One that fired in an earlier episode goes back to resolved instead: were its episode forgotten, the messages of
        the next would bear ids that exist already, and be dropped.
        """
        ...

    def forget_before(self, at: float) -> None:
        """Retention: remove final messages created before ``at``, unless the alert they began is still open, and
        alerts resolved before ``at`` of which no message is left.
        """
        ...

    def due(self, now: float, limit: int, skip: Collection[str] = ()) -> list[Delivery]:
        """Waiting messages whose time has come (``next_at <= now``), longest due first; none of a channel in ``skip``.

        Only the oldest waiting message of each alert in each channel counts: a resolved message never overtakes its
        firing one, not even while that waits for its next try. ``skip`` keeps a stuck channel from using up ``limit``.
        """
        ...

    def attempted(
        self, message_id: str, channel: str, attempt: Attempt, status: DeliveryStatus, next_at: float | None
    ) -> None:
        """Write down an attempt and what follows from it."""
        ...

    def deliveries(self, limit: int, alert_key: str | None = None) -> list[Delivery]:
        """Messages with their attempts, newest first."""
        ...

    def close(self) -> None: ...
