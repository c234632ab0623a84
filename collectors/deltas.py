"""Changes of cumulative counters between two looks at a page. Pure; the state is a JSON object.

A counter only grows while its process lives and begins at 0 with it. So a change needs to know whether the process
is still the same one: by the time it began or a token of it where something tells, and otherwise by a counter that
fell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import nan
from typing import Any, Literal

from collectors.reading import State

Key = tuple[str, ...]
"""Which counter: a family and the labels that tell its series apart."""

SINCE_START: State = {"since_start": True}
"""The state to begin with where a first page shall count as one window since its process began (``inspect``)."""

MOST_TOKENS = 16
"""Tokens remembered, so that a server that is met again is not taken for a restarted one."""

MOST_COUNTERS = 20_000
"""Counters followed of one process; labels come from users."""

LARGEST_COUNT = 2.0**63
"""A million tokens a second for 290,000 years; squares of more would soon be infinite."""

_ROUNDING = 1e-9
"""A sum of fractions over several files may be added up in another order: such a fall is none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look showed of one process.

    counters   cumulative values; NaN, negative ones and those no counter reaches count as unreadable
    started    unix seconds at which the process began
    token      differs between two processes, without telling which is the newer one
    complete   False where lines of the page could not be read: what is missing may have been there, and a counter
               added up from several series may lack some of them
    """

    counters: Mapping[Key, float]
    started: float | None = None
    token: str | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """What happened since the look before.

    start      since when, unix seconds
    counters   changes that are known, none below 0; a counter that is missing here is unknown, not unchanged
    known      False at the first look at a process: nothing can be said yet
    problem    why nothing, or not of all counters, can be said, where that needs saying
    """

    incarnation: str
    start: float
    counters: Mapping[Key, float] = field(default_factory=dict[Key, float])
    known: bool = False
    problem: str | None = None


def follow(state: State, processes: Mapping[str, Seen], at: float) -> tuple[State, dict[str, Change]]:
    """The changes of every process on a page; ``processes`` by name, ``""`` where there is one.

    A process that the look before did not show is new to us: nothing can be said of it yet. A page older than the
    one before says nothing and leaves the state as it is. ``state["incarnation"]`` names the processes.
    """
    if at < state.get("at", at):
        problem = "the page is older than the one read before"
        return state, {name: Change("", at, problem=problem) for name in processes}
    before: Mapping[str, Any] = state.get("processes", {})
    after: dict[str, Any] = {}
    changes: dict[str, Change] = {}
    for name, seen in processes.items():
        values = {key: _readable(value) for key, value in seen.counters.items()}
        if name in before:
            after[name], changes[name] = _next_look(before[name], seen, values, at)
        else:
            after[name], changes[name] = _first_look(seen, values, at, since_start=bool(state.get("since_start")))
    incarnations = {name: process["incarnation"] for name, process in (after or before).items()}
    incarnation = " ".join(f"{name}={life}" if name else life for name, life in incarnations.items())
    return {"incarnation": incarnation, "at": at, "processes": after or before}, changes


def count_of(value: float) -> float:
    """What a sample adds to a counter: not a number where it is no count, so that the sum is none either."""
    return value if value >= 0.0 else nan


def kept(state: State, about: State) -> State:
    """The state, unless it was made of something else (another engine's page, other labels), whose counters are not
    those that are read now: all of them would count anew. ``about`` goes into the next state.
    """
    return state if all(state.get(name, value) == value for name, value in about.items()) else {}


def set_back(state: State, at: float) -> State:
    """The state as if its look had been at ``at``: the clock was set back, and pages of now are no older ones."""
    processes: Mapping[str, Any] = state.get("processes", {})
    return {**state, "at": at, "processes": {name: {**process, "at": at} for name, process in processes.items()}}


_Values = Mapping[Key, float | None]
_Process = Mapping[str, Any]


def _first_look(seen: Seen, values: _Values, at: float, *, since_start: bool) -> tuple[_Process, Change]:
    process = _life(seen, number=0, newest=seen.started, met=[])
    start = seen.started if since_start and seen.started is not None and seen.started < at else at
    known = _known(values) if since_start else {}
    return _remember(process, values, seen, at), Change(process["incarnation"], start, known, since_start)


def _next_look(before: _Process, seen: Seen, values: _Values, at: float) -> tuple[_Process, Change]:
    last: dict[Key, float | None] = {tuple(key): value for key, value in before["counters"]}
    # A sum that lacks a series falls, and rises again, without anything having happened.
    comparable = before.get("torn", False) is not seen.complete
    fell = comparable and any(_fell(last.get(key), value) for key, value in values.items())
    match _identity(before, seen, fell=fell):
        case "same":
            process = {
                **before,
                "started": seen.started if before["started"] is None else before["started"],
                "token": seen.token if before["token"] is None else before["token"],
                "newest": _newest(before["newest"], seen.started),
                "met": _met(before["met"], seen.token),
            }
            after = _remember(process, {**last, **values}, seen, at)
            differences = _differences(last, values, complete=before["complete"]) if comparable else {}
            return after, Change(before["incarnation"], before["at"], differences, known=True, problem=_beyond(values))
        case "restarted":
            process = _life(seen, before["number"] + 1, _newest(before["newest"], seen.started), before["met"])
            if seen.started == before["started"] and seen.token == before["token"]:
                # Its counters fell before anything that names the new process was read.
                process |= {"started": None, "token": None, "incarnation": str(process["number"])}
            start: float = before["at"]
            if seen.started is not None and start < seen.started <= at:
                start = seen.started
            change = Change(process["incarnation"], start, _known(values), known=True)
            return _remember(process, values, seen, at), change
        case "stranger":
            process = _life(seen, before["number"] + 1, before["newest"], before["met"])
            problem = "another process answered than before, not a newer one: several servers behind one address?"
            return _remember(process, values, seen, at), Change(process["incarnation"], at, problem=problem)


def _identity(before: _Process, seen: Seen, *, fell: bool) -> Literal["same", "restarted", "stranger"]:
    """Whose look this is.

    A process that began later than all before it is a restart; one that began earlier is somebody else. So is one of
    a token met before, and one of a new token that counts on: it may have counted for long, so its values are no
    changes.
    """
    if seen.started is not None and before["started"] is not None and seen.started != before["started"]:
        return "restarted" if seen.started > before["newest"] else "stranger"
    if seen.token is not None and before["token"] is not None and seen.token != before["token"]:
        return "restarted" if fell and seen.token not in before["met"] else "stranger"
    return "restarted" if fell else "same"


def _life(seen: Seen, number: int, newest: float | None, met: list[str]) -> dict[str, Any]:
    name = repr(seen.started) if seen.started is not None else seen.token or str(number)
    return {
        "incarnation": name,
        "number": number,
        "started": seen.started,
        "token": seen.token,
        "newest": newest,
        "met": _met(met, seen.token),
    }


def _met(tokens: list[str], token: str | None) -> list[str]:
    return tokens if token is None or token in tokens else [*tokens, token][-MOST_TOKENS:]


def _newest(earlier: float | None, started: float | None) -> float | None:
    return max((time for time in (earlier, started) if time is not None), default=None)


def _remember(process: _Process, values: _Values, seen: Seen, at: float) -> _Process:
    """What the next look needs. Counters beyond the limit stay unknown for ever: the page cannot be complete."""
    counters = [[list(key), value] for key, value in islice(values.items(), MOST_COUNTERS)]
    complete = seen.complete and len(values) <= MOST_COUNTERS
    return {**process, "at": at, "complete": complete, "torn": not seen.complete, "counters": counters}


def _beyond(values: _Values) -> str | None:
    if len(values) <= MOST_COUNTERS:
        return None
    return f"{len(values)} counters, of which {MOST_COUNTERS} are followed: too many categories or models"


def _differences(last: _Values, values: _Values, *, complete: bool) -> dict[Key, float]:
    """A counter that was not there before counted from 0, unless the page before had lines that nobody could read."""
    differences: dict[Key, float] = {}
    for key, value in values.items():
        earlier = last.get(key, 0.0 if complete else None)
        if value is not None and earlier is not None:
            differences[key] = max(value - earlier, 0.0)
    return differences


def _fell(earlier: float | None, value: float | None) -> bool:
    return earlier is not None and value is not None and value < earlier * (1.0 - _ROUNDING)


def _known(values: _Values) -> dict[Key, float]:
    return {key: value for key, value in values.items() if value is not None}


def _readable(value: float) -> float | None:
    return value if 0.0 <= value < LARGEST_COUNT else None
