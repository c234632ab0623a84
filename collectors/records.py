"""Per-request results: JSON documents and lines, and the window that a request's acceptance makes.

Only counts, times and labels are read. Prompts, outputs and everything else of a request are dropped unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import orjson

from acceptance.contexts import context_of
from acceptance.counts import Counts, Spread
from acceptance.facts import Subject
from acceptance.series import UNLABELLED
from acceptance.window import Window, window_id
from collectors.document import Object
from collectors.logtime import full_time
from collectors.reading import Reading, Rejected, Text

SURFACE = "requests"
LONGEST_LABEL = 64
MOST_POSITIONS = 1024
LARGEST_COUNT = 10**9


class Contradiction(ValueError):
    """Figures of a request that cannot all be true."""


@dataclass(frozen=True, slots=True)
class Record:
    """Acceptance of one request. None where the record does not tell.

    steps       verify steps
    accepted    draft tokens accepted
    emitted     tokens the steps yielded where ``accepted`` is unknown: cut at the end of the text, so low by up to k
    proposed    draft tokens proposed
    histogram   steps that accepted 0, 1, ... draft tokens
    k           draft tokens a step can have accepted
    category    what whoever posted the record says it is
    labels      custom labels of the request: empty where it had none, None where the record does not show the request
    prompt_tokens
    """

    steps: int
    accepted: int | None = None
    emitted: int | None = None
    proposed: int | None = None
    histogram: tuple[int, ...] | None = None
    k: int | None = None
    id: str | None = None
    start: float | None = None
    end: float | None = None
    rank: str | None = None
    category: str | None = None
    labels: Object | None = None
    prompt_tokens: int | None = None


def read_records(
    subject: Subject, text: Text, engine: str, records_of: Callable[[Object], Iterator[Record]]
) -> Reading:
    """Windows of source ``request``, one a request that verified something. A broken record leaves the others be."""
    windows: list[Window] = []
    rejected: list[Rejected] = []
    for where, document in _documents(text):
        if document is None:
            rejected.append(Rejected(f"byte {where[0]}", "not a JSON object"))
            continue
        try:
            found = [record for record in records_of(document) if record.steps > 0]
            for at, record in enumerate(found):
                position = ":".join(map(str, (*where, at) if record.id is None else (record.id, at)))
                windows.append(window_of(record, subject, engine, text.at, position))
        except Contradiction as problem:
            rejected.append(Rejected(f"byte {where[0]}", str(problem)))
    return Reading(windows=tuple(windows), rejected=tuple(rejected))


def window_of(record: Record, subject: Subject, engine: str, at: float, position: str) -> Window:
    """The window of a record that was read at ``at``; raises ``Contradiction``.

    ``position`` tells it from others of the series and start; a request's id does, in whatever file it is.
    """
    end = record.end if record.end is not None else at
    start = min(record.start, end) if record.start is not None else end
    context = None if record.prompt_tokens is None else context_of(record.prompt_tokens)
    series = subject.series(engine=engine, rank=record.rank, category=_category(record, subject), context=context)
    return Window(
        id=window_id(series, "", SURFACE, start, position),
        series=series,
        start=start,
        end=end,
        source="request",
        exact=record.accepted is not None,
        counts=_counts(record, subject.k if record.k is None else record.k),
    )


def objects_in(value: object) -> Iterator[Object]:
    """The objects of a list, or the one object that stands in its place."""
    for item in cast("list[object]", value) if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield cast("Object", item)


def count(fields: Object, *names: str) -> int | None:
    """The first of the names that is there, as a count. Raises ``Contradiction`` for what cannot be one."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT:
            raise Contradiction(f"{name} is not a count")
        return value
    return None


def histogram(fields: Object, *names: str) -> tuple[int, ...] | None:
    """The first of the names that holds a histogram of counts; an empty one says nothing."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list) and value:
            steps = cast("list[object]", value)
            counts = [each for each in steps if isinstance(each, int) and 0 <= each <= LARGEST_COUNT]
            if len(counts) != len(steps) or len(steps) > MOST_POSITIONS:
                raise Contradiction(f"{name} is not a histogram")
            return tuple(counts)
    return None


def moment(*values: object) -> float | None:
    """The first of the values that is a time: unix seconds or ISO 8601."""
    for value in values:
        seconds = full_time(value) if isinstance(value, str) else value
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and _FIRST <= seconds <= _LAST:
            return float(seconds)
    return None


def label(value: object) -> str | None:
    """A label from outside, cut to size; None where it is none."""
    return str(value)[:LONGEST_LABEL] if isinstance(value, str | int) else None


_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2020, 2100))
_LOG_PREFIX = re.compile(rb"\s*(?:data:\s*|\[[^\]\n]{0,200}\] )?(?=\{)")
_NOTHING = re.compile(rb"\s*(?:data:\s*\[DONE\]|event:.*|:.*)?\s*")

Where = tuple[int, int]


def _documents(text: Text) -> Iterator[tuple[Where, Object | None]]:
    """The JSON objects of a document, of an array, of JSON lines, of a stream's events; None for what is none."""
    whole = _loaded(text.body)
    if whole is not None:
        for index, document in enumerate(objects_in(whole)):
            yield (text.offset, index), document
        return
    start = text.offset
    for line in text.body.split(b"\n"):
        if not _NOTHING.fullmatch(line):
            prefix = _LOG_PREFIX.match(line)
            loaded = None if prefix is None else _loaded(line[prefix.end() :])
            yield (start, 0), cast("Object", loaded) if isinstance(loaded, dict) else None
        start += len(line) + 1


def _loaded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _category(record: Record, subject: Subject) -> str | None:
    if record.category is not None or record.labels is None:
        return record.category
    return label(record.labels.get(subject.category_label)) or UNLABELLED


def _counts(record: Record, k: int | None) -> Counts:
    steps, accepted, shares = record.steps, record.accepted, record.histogram
    if shares is not None:
        told = sum(position * number for position, number in enumerate(shares))
        if sum(shares) != steps or accepted not in (None, told):
            raise Contradiction("the histogram does not add up to the counts")
        accepted = told
    if accepted is not None and record.proposed is not None and accepted > record.proposed:
        raise Contradiction("more draft tokens accepted than proposed")
    emitted = record.emitted if accepted is None else steps + accepted
    return Counts(
        steps=steps,
        emitted=emitted,
        proposed=record.proposed,
        by_position=None if shares is None else tuple(float(sum(shares[at + 1 :])) for at in range(len(shares) - 1)),
        requests=1,
        slots=None if k is None else k * steps,
        trim_bound=0.0 if accepted is not None else k,
        spread=None if emitted is None else Spread.of(emitted, steps),
    )
