"""A fleet whose past is written by hand: windows and looks in memory, alerts in SQLite, a real catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from acceptance.counts import Counts, Spread
from acceptance.facts import Fact
from acceptance.health import Health
from acceptance.series import Series
from acceptance.window import Source, Window
from alerts.findings import findings
from alerts.rules import Override, Rulebook
from collectors.reading import Reading
from collectors.sink import Read
from collectors.target import Target
from service.catalog import Catalog
from service.fleet import FleetReads, FleetView
from store.history import Batch
from store.memory import MemoryHistory
from store.sql import SqlState
from store.state import AlertChange, AlertRecord, Attempt, DeliveryStatus, Message

NOW = 1_796_126_700.0
"""12:05 UTC on the first of December 2026, on the grid of every bucket up to five minutes."""

EVERY = 15.0
RADIX = {"engine": "sglang", "drafter": "RadixArk/Kimi-K3-DSpark", "k": 7, "model": "moonshotai/Kimi-K3"}


class World:
    """Times are seconds from ``NOW``: -900 is a quarter of an hour ago."""

    now = NOW

    def __init__(self, state: SqlState) -> None:
        self.history = MemoryHistory()
        self.state = state
        self.catalog = Catalog()
        self.overrides: list[Override] = []
        self._targets: dict[str, Target] = {}
        self._numbers = count(1)

    def target(
        self,
        name: str,
        *,
        group: str | None = None,
        facts: Mapping[str, Any] | None = None,
        url: str | None = "http://x",
        interval: float = EVERY,
    ) -> None:
        """A target that is listed; nothing is known of it but ``facts``."""
        self._targets[name] = Target(name, url, group, scrape_interval_seconds=interval)
        self.catalog.replace(self._targets.values(), NOW)
        told = tuple(Fact(name, key, value, "server_info", NOW - 9000) for key, value in (facts or {}).items())
        self._observe(name, "server_info", Reading(facts=told))

    def look(self, name: str, at: float = -5.0, *, surface: str = "metrics", **told: Any) -> None:
        """The newest look at a surface of it."""
        look = Health(name, surface, NOW + at, **{"up": True, "running": 4.0, **told})
        self._observe(name, surface, Reading(health=(look,)), at)
        self.history.append(Batch(health=[look]))

    def looks(self, name: str, start: float, end: float, *, rate: float | None = None, **told: Any) -> None:
        """Looks every 15 s; ``rate`` is generated tokens a second."""
        tokens = {} if rate is None else {"decode_tokens": rate * EVERY}
        times = [start + EVERY * number for number in range(1, int((end - start) // EVERY) + 1)]
        looks = [Health(name, "metrics", NOW + at, **{"up": True, "running": 4.0, **tokens, **told}) for at in times]
        self.history.append(Batch(health=looks))
        if looks and looks[-1].at <= NOW:
            self._observe(name, "metrics", Reading(health=(looks[-1],)), times[-1])

    def traffic(
        self,
        name: str,
        start: float,
        end: float,
        acc_len: float,
        *,
        category: str | None = None,
        rank: str | None = None,
        steps: float = 40.0,
        k: int = 7,
        source: Source = "counter",
        step_time: float | None = None,
        requests: float | None = 4.0,
        scatter: float = 0.1,
    ) -> None:
        """Windows of 15 s with ``steps`` each; lengths lie alternately ``scatter`` above and below ``acc_len``."""
        group = self._targets[name].group if name in self._targets else None
        series = Series(name, group=group, rank=rank, category=category)
        windows: list[Window] = []
        for number in range(1, int((end - start) // EVERY) + 1):
            emitted = steps * max(1.0, acc_len + (scatter if number % 2 else -scatter) * (acc_len > 1.2))
            counts = Counts(
                steps=steps,
                emitted=emitted,
                requests=requests,
                slots=k * steps,
                trim_bound=0.0,
                passes=None if step_time is None else 100.0,
                pass_seconds=None if step_time is None else 100.0 * step_time,
                spread=Spread.of(emitted, steps),
            )
            at = NOW + start + EVERY * number
            windows.append(Window(next(self._numbers), series, at - EVERY, at, source, True, counts))
        self.history.append(Batch(windows=windows))

    def healthy(self, name: str, start: float = -1800.0, *, acc_len: float = 4.2, **options: Any) -> None:
        """A target that serves from ``start`` until now."""
        if name not in self._targets:
            self.target(name)
        self.traffic(name, start, 0.0, acc_len, **options)
        self.looks(name, start, 0.0)

    def alert(
        self,
        finding: str,
        target: str,
        *,
        severity: str = "critical",
        phase: Any = "firing",
        since: float = -600.0,
        fired: float | None = None,
        resolved: float | None = None,
        **detail: Any,
    ) -> AlertRecord:
        """An alert that became true at ``since`` and fires since ``fired`` (two minutes later, unless pending)."""
        fired_at = since + 120 if fired is None and phase != "pending" else fired
        scope = " ".join(f"{name}={value}" for name, value in detail.get("series", {}).items())
        record = AlertRecord(
            key=f"{finding} target={target} {scope}".strip(),
            finding=finding,
            severity=severity,
            target=target,
            phase=phase,
            active_since=NOW + since,
            evaluated_at=NOW - 5,
            fired_at=None if fired_at is None else NOW + fired_at,
            resolved_at=None if resolved is None else NOW + resolved,
            episode=int(NOW // 60),
            detail={"since": NOW + since, **detail},
        )
        self.state.apply([AlertChange(record)])
        return record

    def told(self, record: AlertRecord, channel: str, *, delivered: bool = True) -> None:
        """A message about an alert, and whether its channel took it."""
        assert record.fired_at is not None
        message = Message(f"{record.key} {channel}", channel, record.key, "firing", {}, record.fired_at)
        self.state.apply([AlertChange(record, [message])])
        fate: DeliveryStatus = "delivered" if delivered else "refused"
        self.state.attempted(message.id, channel, Attempt(NOW, fate, "", 0.1), fate, None)

    def rulebook(self) -> Rulebook:
        return Rulebook(findings(), self.overrides)

    def fleet(self, span: float = 4 * 3600.0) -> FleetView:
        return self.reads().view(NOW, span)

    def reads(self) -> FleetReads:
        return FleetReads(self.history, self.state, self.catalog, self.rulebook)

    def _observe(self, name: str, surface: str, reading: Reading, at: float = -5.0) -> None:
        self.catalog.observe(Read(name, surface, NOW + at, {}, reading))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    state = SqlState(f"sqlite:///{tmp_path / 'state.sqlite'}")
    yield World(state)
    state.close()


@pytest.fixture
def row_of(world: World) -> Callable[..., Any]:
    """A row of the fleet by the name of its target."""

    def find(name: str, span: float = 4 * 3600.0) -> Any:
        return next(row for row in world.fleet(span).rows if row.target == name)

    return find
