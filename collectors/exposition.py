r"""Reading a metrics page: the wanted samples of Prometheus text 0.0.4 or OpenMetrics, and nothing else.

A page has thousands of lines of which a monitor needs a hundred. Wanted lines are found by one search in memory for
a newline and any of the names, so other lines are never looked at. Of a wanted line all but the value is the same
text at every look, and is taken apart once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick

from collectors.reading import Rejected

LONGEST_LINE_BYTES = 64 * 1024
LONGEST_CACHED_BYTES = 1024
MOST_REJECTED = 20
"""Rejections listed of one page; the rest are counted in the last one."""


class Sample(NamedTuple):
    """One line: its name as on the page, its labels, its value (may be NaN or infinite). Timestamps are dropped."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Page:
    """The wanted samples of a page, each name's in page order, and the lines of theirs that are malformed."""

    samples: tuple[Sample, ...]
    rejected: tuple[Rejected, ...] = ()


def read(page: bytes, names: Iterable[str]) -> Page:
    """The samples of ``names``: exact sample names (``x_total``, ``x_count``), so never ``_created`` or ``_bucket``.

    Equals prometheus_client's text and OpenMetrics parsers on what it keeps. A malformed line of a wanted name, and a
    series given a second time, is rejected and breaks nothing else.
    """
    search = _search(tuple(names))
    found = _read(page, search)
    if not found.samples and not found.rejected:
        # A pasted page may be indented; looking for that on every page would cost as much as reading it.
        return _read(_INDENT.sub(b"", page), search)
    return found


class Malformed(ValueError):
    """A line that is not a sample: why."""


_QUOTED = rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_LABELS = rb"\{(?P<labels>(?:[^\"{}\n]++|" + _QUOTED + rb")*+)\}"
_INDENT = re.compile(rb"^[ \t]+", re.MULTILINE)
_NAME = re.compile(rb"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)(?=[{ \t]|\Z)")
_HEAD = re.compile(_NAME.pattern + rb"(?:" + _LABELS + rb")?")
_LINE = re.compile(
    _NAME.pattern + rb"[ \t]*+(?:" + _LABELS + rb")?[ \t]*+"
    rb"(?P<value>[^\s{}\"#]++)(?:[ \t]++[^\s{}\"#]++)?"  # the second is a timestamp
    rb"(?:[ \t]++\#[ \t]*+\{[^\n]*+)?[ \t\r]*+"  # an exemplar
)
_LABEL = re.compile(
    rb"[ \t]*+(?:(?P<name>[a-zA-Z_][a-zA-Z0-9_]*+)|(?P<quoted>" + _QUOTED + rb"))[ \t]*+=[ \t]*+"
    rb"(?P<value>" + _QUOTED + rb")[ \t]*+(?:,|\Z)"
)
_ESCAPE = re.compile(r'\\([\\n"])')
_ESCAPED = {"\\": "\\", "n": "\n", '"': '"'}


class _Series(NamedTuple):
    """What stands before a value. ``text`` (name and labels as on the page) tells the series of a page apart."""

    name: str
    labels: Mapping[str, str]
    text: tuple[bytes, bytes]


class _Search:
    """Finds the lines that begin with one of some names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)
        beginnings: list[bytes] = []
        for name in sorted(name.encode() for name in self.names):
            # None begins another one, so that each line is found once.
            if not beginnings or not name.startswith(beginnings[-1]):
                beginnings.append(name)
        self._beginnings = tuple(beginnings)
        self._automaton = BytesAhoCorasick([b"\n" + beginning for beginning in beginnings])

    def lines(self, page: bytes) -> Iterator[tuple[int, bytes]]:
        """Where a line starts, and the line without its end."""
        starts = [at + 1 for _, at, _ in self._automaton.find_matches_as_indexes(page)]
        for start in [0, *starts] if page.startswith(self._beginnings) else starts:
            end = page.find(b"\n", start)
            yield start, page[start:] if end < 0 else page[start:end]


_search = lru_cache(maxsize=64)(_Search)


def _read(page: bytes, search: _Search) -> Page:
    samples: list[Sample] = []
    rejected: list[Rejected] = []
    seen: set[tuple[bytes, bytes]] = set()
    for start, line in search.lines(page):
        quick = _quickly(line)
        name = _name(line) if quick is None else quick[0].name
        if name not in search.names:
            continue
        try:
            series, value = quick or _carefully(line)
            if series.text in seen:
                raise Malformed("the series is given twice")
        except Malformed as problem:
            number = page.count(b"\n", 0, start) + 1
            rejected.append(Rejected(f"line {number}: {name}", str(problem)))
        else:
            seen.add(series.text)
            samples.append(Sample(name, series.labels, value))
    return Page(tuple(samples), _capped(rejected))


def _quickly(line: bytes) -> tuple[_Series, float] | None:
    """A line as nearly all are, ``NAME{LABELS} VALUE``; None for any other."""
    head, _, value = line.rpartition(b" ")
    if len(head) > LONGEST_CACHED_BYTES or b"_" in value:
        return None
    try:
        return _cached_series(head), float(value)
    except ValueError:
        return None


def _carefully(line: bytes) -> tuple[_Series, float]:
    """Any line. Raises ``Malformed``."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise Malformed("not NAME{LABELS} VALUE [TIMESTAMP]")
    if len(line) > LONGEST_LINE_BYTES:
        raise Malformed(f"longer than {LONGEST_LINE_BYTES} bytes")
    return _series(match), _number(match["value"])


def _name(line: bytes) -> str:
    match = _NAME.match(line)
    return "" if match is None else match["name"].decode()


def _parse_head(head: bytes) -> _Series:
    match = _HEAD.fullmatch(head)
    if match is None:
        raise Malformed("not NAME{LABELS}")
    return _series(match)


_cached_series = lru_cache(maxsize=32_768)(_parse_head)
"""Name and labels of a series are the same text at every look."""


def _series(match: re.Match[bytes]) -> _Series:
    return _Series(match["name"].decode(), _labels(match["labels"] or b""), (match["name"], match["labels"] or b""))


def _number(text: bytes) -> float:
    """A float as Prometheus writes it; Python's ``1_000`` is none."""
    try:
        if b"_" not in text:
            return float(text)
    except ValueError:
        pass
    raise Malformed("the value is not a number")


def _labels(text: bytes) -> Mapping[str, str]:
    """Name -> unescaped value."""
    labels: dict[str, str] = {}
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _LABEL.match(text, at)
        if match is None:
            raise Malformed('labels are not NAME="VALUE" with commas between')
        name = _unescaped(match["name"] or match["quoted"][1:-1])
        if name in labels:
            raise Malformed("a label is given twice")
        labels[name] = _unescaped(match["value"][1:-1])
        at = match.end()
    return MappingProxyType(labels)


def _unescaped(text: bytes) -> str:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    return intern(_ESCAPE.sub(lambda match: _ESCAPED[match[1]], decoded) if "\\" in decoded else decoded)


def _capped(rejected: list[Rejected]) -> tuple[Rejected, ...]:
    if len(rejected) <= MOST_REJECTED:
        return tuple(rejected)
    kept, rest = rejected[: MOST_REJECTED - 1], rejected[MOST_REJECTED - 1 :]
    return (*kept, Rejected(rest[0].where, rest[0].reason, len(rest)))
