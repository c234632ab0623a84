"""The catalog: every target being watched, with what is known of it at this moment."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from acceptance.facts import Fact, FactValue, Subject
from acceptance.health import Health
from collectors.scrape import METRICS
from collectors.sink import Read
from collectors.target import Target

REMOVED_KEPT_SECONDS = 3600.0
"""How long a target that is no longer listed is still shown, as removed."""

LOG_PREFIX = "log:"


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """A target as it is known now. Mappings are by surface (``metrics``, ``log:PATH``, ``server_info``) or by name.

    looks          surface -> newest look at it
    read_at        surface -> when something was last read from it, unix seconds
    facts          name -> newest fact
    incarnations   surface -> life of the process that it showed last, where the surface tells
    rejected       pieces of input that could not be read since the service began
    removed_at     when it was no longer listed, None while it is
    """

    target: Target
    looks: Mapping[str, Health] = field(default_factory=dict[str, Health])
    read_at: Mapping[str, float] = field(default_factory=dict[str, float])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    incarnations: Mapping[str, str] = field(default_factory=dict[str, str])
    rejected: int = 0
    removed_at: float | None = None

    def fact(self, name: str) -> FactValue:
        """The value of a fact, None where it is unknown."""
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    @property
    def look(self) -> Health | None:
        """The newest look at the surface that tells whether the target is there: its page, else any of its logs."""
        if self.target.url is not None:
            return self.looks.get(METRICS)
        return max(self.looks.values(), key=lambda look: look.at, default=None)

    @property
    def told_at(self) -> float | None:
        """When that surface last told something, None where it never has."""
        if self.target.url is not None:
            return self.read_at.get(METRICS)
        return max(self.read_at.values(), default=None)

    @property
    def has_log(self) -> bool:
        """Whether anything was read of a log of it."""
        return any(surface.startswith(LOG_PREFIX) for surface in self.read_at)


class Catalog:
    """Targets by name. Collectors write (``observe``) and everybody reads, each from any thread.

    ``facts`` are those of ``StateStore.facts()``: what was learned before this service began.
    """

    def __init__(self, targets: Iterable[Target] = (), facts: Mapping[str, Mapping[str, Fact]] | None = None) -> None:
        self._lock = threading.Lock()
        self._statuses: dict[str, TargetStatus] = {}
        self._earlier = dict(facts or {})
        self.replace(targets, at=0.0)

    def replace(self, targets: Iterable[Target], at: float) -> None:
        """Watch these from ``at`` on. Those no longer listed stay for a while, marked as removed."""
        listed = {target.name: target for target in targets}
        with self._lock:
            for name, target in listed.items():
                known = self._statuses.get(name) or TargetStatus(target, facts=self._earlier.get(name, {}))
                self._statuses[name] = replace(known, target=target, removed_at=None)
            for name in set(self._statuses) - set(listed):
                status = self._statuses[name]
                if status.removed_at is None:
                    self._statuses[name] = replace(status, removed_at=at)
                elif at - status.removed_at > REMOVED_KEPT_SECONDS:
                    del self._statuses[name]

    def observe(self, read: Read) -> None:
        """Learn from a reading at once, before it is committed. One of a target that is not listed is ignored."""
        with self._lock:
            status = self._statuses.get(read.target)
            if status is not None:
                self._statuses[read.target] = _learned(status, read)

    def subject(self, target: Target) -> Subject:
        """What readers and detectors need to know of a target."""
        status = self.get(target.name)
        facts = {} if status is None else {name: fact.value for name, fact in status.facts.items()}
        return target.subject(facts)

    def get(self, name: str) -> TargetStatus | None:
        """One target, None where there is none of this name."""
        with self._lock:
            return self._statuses.get(name)

    def statuses(self) -> list[TargetStatus]:
        """All targets in the order of their names."""
        with self._lock:
            return [self._statuses[name] for name in sorted(self._statuses)]


def _learned(status: TargetStatus, read: Read) -> TargetStatus:
    reading = read.reading
    answered = all(look.up for look in reading.health)
    # The state of a log is its position with the state of its reader.
    incarnation = read.state.get("reader", read.state).get("incarnation")
    return replace(
        status,
        looks=_newest(status.looks, {look.surface: look for look in reading.health}),
        read_at={**status.read_at, read.surface: read.at} if answered else status.read_at,
        facts=_newest(status.facts, {fact.name: fact for fact in reading.facts}),
        incarnations=status.incarnations
        if incarnation is None
        else {**status.incarnations, read.surface: str(incarnation)},
        rejected=status.rejected + sum(item.count for item in reading.rejected),
    )


Dated = TypeVar("Dated", Fact, Health)


def _newest(known: Mapping[str, Dated], told: Mapping[str, Dated]) -> Mapping[str, Dated]:
    """``known`` with what is newer in ``told``; a log read late does not undo what a page said since."""
    newer = {name: item for name, item in told.items() if name not in known or item.at >= known[name].at}
    return {**known, **newer} if newer else known
