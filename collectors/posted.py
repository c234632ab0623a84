"""Records that others post: an engine's own result of a request, with its target and what is known of the request.

Beside the engine's fields a record has ``target`` (required), ``id`` (where the result has none), ``at`` (when it
ended), ``category``, ``headers``, ``route``, ``api_key_alias``, ``lora`` and ``request``, the body as it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson

from acceptance.categories import Request
from acceptance.facts import Subject
from acceptance.series import Series
from acceptance.window import Window, window_id
from collectors.document import Object, inner
from collectors.engines import engines
from collectors.records import Contradiction, Record, moment, window_of
from collectors.requested import request_of

SURFACE = "posted"
MOST_RECORDS = 10_000
MOST_RESULTS = 128
"""Results of one request (``n``, or prompts of a batch)."""
LONGEST_ID = 200
LONGEST_TARGET = 200


class Unreadable(ValueError):
    """A body of which nothing can be taken: why."""


class TooMany(Unreadable):
    """More records than are taken at once."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A record that can be counted, and the line (or the item of the array) that it is, from 1."""

    line: int
    target: str
    windows: tuple[Window, ...]

    @property
    def id(self) -> int:
        """The same whenever it is sent again: that of its first window."""
        return self.windows[0].id


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that cannot, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a record is read against.

    subject      name of a target -> what is known of it; raises ``Contradiction`` that says why it is not taken
    category     target and request -> category
    prompts      whether categories look at prompts
    """

    subject: Callable[[str], Subject]
    category: Callable[[str, Request], str | None]
    prompts: bool = False


def read_posted(body: bytes, surroundings: Surroundings, at: float) -> Iterator[Posted | Refusal]:
    """Every record of NDJSON or of a JSON array, in order; ``at`` is now. Raises ``Unreadable``."""
    for line, document in documents_in(body):
        if document is None:
            yield Refusal(line, "not a JSON object")
            continue
        try:
            yield _posted(line, document, surroundings, at)
        except Contradiction as problem:
            yield Refusal(line, str(problem))


def documents_in(body: bytes, most: int | None = MOST_RECORDS) -> Iterator[tuple[int, Object | None]]:
    """JSON objects with their numbers, None for what is none; blank lines are skipped. Raises ``Unreadable``."""
    if body.lstrip()[:1] == b"[":
        items = _array(body)
        _limit(len(items), most)
        for number, item in enumerate(items, 1):
            yield number, cast("Object", item) if isinstance(item, dict) else None
        return
    _limit(body.rstrip().count(b"\n") + 1, most)
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            yield number, _object(line)


def _limit(records: int, most: int | None) -> None:
    if most is not None and records > most:
        raise TooMany(f"{records} records at once; {most} are taken")


def _array(body: bytes) -> list[object]:
    try:
        return cast("list[object]", orjson.loads(body))
    except orjson.JSONDecodeError as problem:
        raise Unreadable(f"not a JSON array: {problem.msg} (line {problem.lineno})") from None


def _object(line: bytes) -> Object | None:
    try:
        loaded: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return cast("Object", loaded) if isinstance(loaded, dict) else None


def _posted(line: int, document: Object, surroundings: Surroundings, at: float) -> Posted:
    target = document.get("target")
    if not isinstance(target, str) or not 0 < len(target) <= LONGEST_TARGET or not target.isprintable():
        raise Contradiction("target is missing, or is no name")
    subject = surroundings.subject(target)
    request = request_of(document, with_prompt=surroundings.prompts)
    engine, records = _results(document)
    identity = _identity(document, records[0])
    ended = moment(document.get("at"))
    if ended is None and document.get("at") is not None:
        raise Contradiction("at is not a time")
    windows: list[Window] = []
    for number, record in enumerate(records):
        window = window_of(record, subject, engine, at, f"{identity}:{number}")
        end = window.end if ended is None else ended
        category = surroundings.category(target, replace(request, category=window.series.category))
        windows.append(
            replace(
                window,
                # Of target and request alone: sent again, a record is the same whatever was learned or changed since.
                id=window_id(Series(target), "", SURFACE, 0.0, f"{identity}:{number}"),
                start=end - (window.end - window.start),
                end=end,
                series=replace(window.series, category=category),
            )
        )
    return Posted(line, target, tuple(windows))


def _results(document: Object) -> tuple[str, list[Record]]:
    """The engine whose shape it has, and its results that verified something."""
    for engine in engines().values():
        records = [record for record in engine.records(document) if record.steps > 0]
        if len(records) > MOST_RESULTS:
            raise Contradiction(f"more than {MOST_RESULTS} results in one record")
        if records:
            return engine.name, records
    raise Contradiction("tells no verify steps, in the shape of either engine")


def _identity(document: Object, record: Record) -> str:
    for value in (document.get("id"), inner(document, "meta_info").get("id"), document.get("rid"), record.id):
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            if len(str(value)) > LONGEST_ID:
                raise Contradiction(f"id is longer than {LONGEST_ID} characters")
            return str(value)
    raise Contradiction("has no id: it could not be told from others when it is sent again")
