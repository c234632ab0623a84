"""What a reader makes of some text, and the protocol of readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from acceptance.facts import Fact, Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.window import Window

State = Mapping[str, Any]
"""How far a reader is, as a JSON object: it is stored as the surface's cursor. ``{}`` before anything was read."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Input that looked like the engine's but could not be read: where and why. Counted, never guessed."""

    where: str
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of one page or of some lines."""

    windows: tuple[Window, ...] = ()
    facts: tuple[Fact, ...] = ()
    hits: tuple[Hit, ...] = ()
    health: tuple[Health, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            self.windows + other.windows,
            self.facts + other.facts,
            self.hits + other.hits,
            self.health + other.health,
            self.rejected + other.rejected,
        )


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a surface.

    body     a whole metrics page or JSON document, or whole log lines (each ending in a newline)
    at       when it was read, unix seconds: the sample time of a page, the clock against which log times resolve
    offset   byte offset of ``body`` in its file (logs)
    """

    body: bytes
    at: float
    offset: int = 0


class Reader(Protocol):
    """Pure: live service, ``inspect`` and backtest all use it. Never raises on input, however broken."""

    surface: str

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """Read on from ``state``; the new state and what was read."""
        ...
