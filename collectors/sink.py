"""Where readings go. What was read and how far reading got travel together and are committed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from acceptance.facts import Subject
from collectors.reading import Reading, State
from collectors.target import Target


@dataclass(frozen=True, slots=True)
class Read:
    """A reading of a surface, and the state of its reader afterwards: the cursor to commit with it."""

    target: str
    surface: str
    at: float
    state: State
    reading: Reading


class Sink(Protocol):
    """The service behind the collectors. Bounded: when it is full, scrapes coalesce and tailers wait."""

    def subject(self, target: Target) -> Subject:
        """What is known of a target now."""
        ...

    def offer(self, read: Read) -> bool:
        """Take a reading, or refuse it when full: the caller then keeps its old state, and loses nothing."""
        ...

    async def put(self, read: Read) -> None:
        """Take a reading, waiting for room."""
        ...
