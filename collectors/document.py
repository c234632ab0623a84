"""JSON documents that an engine serves about itself: parsed once, and told as facts when they change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import orjson

from acceptance.facts import Fact, FactValue, Subject
from collectors.reading import Reading, Rejected, State

Object = Mapping[str, object]


class NotReadable(ValueError):
    """A body that is no JSON object: why."""


def parse(body: bytes) -> Object:
    """The JSON object in ``body``; raises ``NotReadable``."""
    try:
        document: object = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise NotReadable(f"not JSON: {problem.msg} (line {problem.lineno}, column {problem.colno})") from None
    if not isinstance(document, dict):
        raise NotReadable("not a JSON object")
    return cast("Object", document)


def inner(document: Object, name: str) -> Object:
    """The object under ``name``; empty where there is none."""
    value = document.get(name)
    return cast("Object", value) if isinstance(value, dict) else {}


def tell(
    facts: Mapping[str, FactValue], source: str, subject: Subject, state: State, at: float
) -> tuple[State, Reading]:
    """The facts that are news: not known, and not stated by this document before.

    What it repeats is left out: another surface may have told better since (the log knows the backend that the
    drafter really got), and each poll would overrule it. A fact of None withdraws an earlier statement.
    """
    stated: Mapping[str, FactValue] = state.get("stated", {})
    news: list[Fact] = []
    for name, value in facts.items():
        known = subject.facts.get(name)
        repeated = name in stated and stated[name] == value
        if known != value and (known is None or not repeated):
            news.append(Fact(subject.target, name, value, source, at))
    return {"stated": dict(facts)}, Reading(facts=tuple(news))


def refused(problem: NotReadable, where: str, state: State) -> tuple[State, Reading]:
    """A body that could not be read changes nothing."""
    return state, Reading(rejected=(Rejected(where, str(problem)),))
