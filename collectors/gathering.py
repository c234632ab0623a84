"""Gathering: what one feed of a log tells beside its windows, and of which process it tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from acceptance.facts import Fact, FactValue, Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.series import Engine
from acceptance.window import Window
from collectors.reading import Reading, Rejected, State
from collectors.signatures import Match, Matcher

LONGEST_EXCERPT = 500
LONGEST_FACT = 256
MOST_OF_A_START = 64
SOURCE = "log"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Gathering:
    """Collects facts, hits and rejected lines of one feed.

    A log holds the lives of many processes (incarnations). What the process before told of itself is forgotten when a
    new one starts, and said to be unknown (None) where the new one does not tell it again.
    """

    def __init__(self, engine: Engine, subject: Subject, state: State, matcher: Matcher) -> None:
        self._engine: Engine = engine
        self._base = subject
        self._matcher = matcher
        self._known: dict[str, FactValue] = dict(state.get("facts", {}))
        self._start: list[dict[str, Any]] = list(state.get("start", ()))
        self._number: int = state.get("incarnation", 0)
        self._worked: bool = state.get("worked", True)
        self._facts: dict[str, Fact] = {}
        self._hits: dict[tuple[str, str, str | None, float], Hit] = {}
        self._rejected: dict[str, list[int]] = {}
        self.subject = subject.knowing(self._known)

    @property
    def incarnation(self) -> str:
        """The life of the writing process, as windows and hits name it."""
        return str(self._number)

    @property
    def state(self) -> dict[str, Any]:
        """What the next feed has to know."""
        return {
            "incarnation": self._number,
            "worked": self._worked,
            "facts": self._known,
            "start": self._start,
        }

    @property
    def is_starting(self) -> bool:
        """A process told its arguments and has not worked yet."""
        return not self._worked

    def started(self, facts: Mapping[str, FactValue], at: float) -> None:
        """A new process tells its arguments. What it said before that was already of the new process."""
        self._number += 1
        self._worked = False
        before, self._known = self._known, {}
        for seen in self._start:
            signature = self._matcher.signatures.get(seen["signature"])
            if signature is not None:
                match = Match(signature, seen["captures"])
                self._known.update(match.facts)
                self._count(match, seen["excerpt"], seen["rank"], seen["at"])
        self._start = []
        self._known.update({"engine": self._engine, **{name: _short(value) for name, value in facts.items()}})
        for name in {**before, **self._known}:
            self._tell(name, at)

    def working(self, at: float) -> None:
        """The process works: what it said before was not said by one that starts."""
        self._worked = True
        if self._start:
            self._start = []
        if "engine" not in self._known:
            self.fact("engine", self._engine, at)

    def fact(self, name: str, value: FactValue, at: float) -> None:
        """The process tells something of itself."""
        if name not in self._known or self._known[name] != value:
            self._known[name] = _short(value)
            self._tell(name, at)

    def hit(self, match: Match, message: str, rank: str | None, at: float) -> None:
        """A message is a signature."""
        excerpt = _CONTROL.sub(" ", message[:LONGEST_EXCERPT])
        self._count(match, excerpt, rank, at)
        if not match.signature.while_serving and len(self._start) < MOST_OF_A_START:
            self._start.append(
                {
                    "signature": match.signature.id,
                    "captures": dict(match.captures),
                    "excerpt": excerpt,
                    "rank": rank,
                    "at": at,
                }
            )
        for name, value in match.facts.items():
            self.fact(name, value, at)

    def reject(self, offset: int, reason: str) -> None:
        """A line looked like the engine's but could not be read; told once a reason, with their number."""
        self._rejected.setdefault(reason, []).append(offset)

    def reading(self, windows: list[Window], health: Health | None) -> Reading:
        """All of it, with the windows that were read."""
        return Reading(
            windows=tuple(windows),
            facts=tuple(self._facts.values()),
            hits=tuple(self._hits.values()),
            health=() if health is None else (health,),
            rejected=tuple(
                Rejected(f"byte {offsets[0]}", reason, len(offsets)) for reason, offsets in self._rejected.items()
            ),
        )

    def _tell(self, name: str, at: float) -> None:
        self._facts[name] = Fact(self._base.target, name, self._known.get(name), SOURCE, at)
        self.subject = self._base.knowing(self._known)

    def _count(self, match: Match, excerpt: str, rank: str | None, at: float) -> None:
        """Repeats within a second are counted, not listed."""
        signature = match.signature.id
        key = (self.incarnation, signature, rank, at)
        seen = self._hits.get(key)
        self._hits[key] = (
            Hit(self._base.target, self.incarnation, signature, at, rank, excerpt, match.captures)
            if seen is None
            else replace(seen, count=seen.count + 1)
        )


def _short(value: FactValue) -> FactValue:
    return _CONTROL.sub(" ", value[:LONGEST_FACT]) if isinstance(value, str) else value
