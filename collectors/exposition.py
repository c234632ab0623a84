r"""Reading a metrics page: the wanted samples of Prometheus text 0.0.4 or OpenMetrics, and nothing else.

A page has thousands of lines of which a monitor needs a hundred. Wanted lines are found by a memory search for a
newline and the beginning of a name, so most lines of other families are never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from collectors.reading import Rejected

LONGEST_LINE_BYTES = 64 * 1024
LONGEST_CACHED_LABELS_BYTES = 1024
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
    wanted = {name.encode(): name for name in names}
    found = _read(page, wanted)
    if not found.samples and not found.rejected:
        # A pasted page may be indented; looking for that on every page would cost as much as reading it.
        return _read(_INDENT.sub(b"", page), wanted)
    return found


class Malformed(ValueError):
    """A line that is not a sample: why."""


_QUOTED = rb'"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'
_INDENT = re.compile(rb"^[ \t]+", re.MULTILINE)
_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*+(?=[{ \t])")
_AFTER_NAME = re.compile(
    rb"[ \t]*+(?:\{(?P<labels>(?:[^\"{}\n]++|" + _QUOTED + rb")*+)\})?[ \t]*+"
    rb"(?P<value>[^\s{}\"#]++)(?:[ \t]++[^\s{}\"#]++)?"  # the second is a timestamp
    rb"(?:[ \t]++\#[ \t]*+\{[^\n]*+)?[ \t\r]*+(?:\n|\Z)"  # an exemplar
)
_LABEL = re.compile(
    rb"[ \t]*+(?:(?P<name>[a-zA-Z_][a-zA-Z0-9_]*+)|(?P<quoted>" + _QUOTED + rb"))[ \t]*+=[ \t]*+"
    rb"(?P<value>" + _QUOTED + rb")[ \t]*+(?:,|\Z)"
)
_ESCAPE = re.compile(r'\\([\\n"])')
_ESCAPED = {"\\": "\\", "n": "\n", '"': '"'}
_STEM_BYTES = 12
"""Names are searched by their first bytes: one search finds all of ``sglang:spec_*``."""


def _read(page: bytes, wanted: Mapping[bytes, str]) -> Page:
    samples: list[Sample] = []
    rejected: list[Rejected] = []
    seen: set[tuple[bytes, bytes]] = set()
    for name, start, end in _lines(page, wanted):
        try:
            labels, value = _fields(page, end)
            if (name, labels) in seen:
                raise Malformed("the series is given twice")
            seen.add((name, labels))
            samples.append(Sample(wanted[name], _labels(labels), _number(value)))
        except Malformed as problem:
            line = page.count(b"\n", 0, start) + 1
            rejected.append(Rejected(f"line {line}: {wanted[name]}", str(problem)))
    return Page(tuple(samples), _capped(rejected))


def _lines(page: bytes, wanted: Mapping[bytes, str]) -> Iterator[tuple[bytes, int, int]]:
    """Name, start of the line, end of the name, for every line of a wanted name."""
    for stem in _stems(wanted):
        for start in _starts(page, stem):
            match = _NAME.match(page, start)
            if match is not None and match[0] in wanted:
                yield match[0], start, match.end()


def _stems(names: Iterable[bytes]) -> list[bytes]:
    """Beginnings of names, none of which begins another: each line is found once."""
    stems: list[bytes] = []
    for stem in sorted({name[:_STEM_BYTES] for name in names}):
        if not stems or not stem.startswith(stems[-1]):
            stems.append(stem)
    return stems


def _starts(page: bytes, stem: bytes) -> Iterator[int]:
    if page.startswith(stem):
        yield 0
    needle = b"\n" + stem
    at = page.find(needle)
    while at >= 0:
        yield at + 1
        at = page.find(needle, at + 1)


def _fields(page: bytes, at: int) -> tuple[bytes, bytes]:
    """Label text and value text of the line that goes on at ``at``, after its name."""
    match = _AFTER_NAME.match(page, at)
    if match is None:
        raise Malformed("not NAME{LABELS} VALUE [TIMESTAMP]")
    if match.end() - at > LONGEST_LINE_BYTES:
        raise Malformed(f"longer than {LONGEST_LINE_BYTES} bytes")
    return match["labels"] or b"", match["value"]


def _number(text: bytes) -> float:
    """A float as Prometheus writes it; Python's ``1_000`` is none."""
    try:
        if b"_" not in text:
            return float(text)
    except ValueError:
        pass
    raise Malformed("the value is not a number")


def _labels(text: bytes) -> Mapping[str, str]:
    return _cached_labels(text) if len(text) <= LONGEST_CACHED_LABELS_BYTES else _parse_labels(text)


def _parse_labels(text: bytes) -> Mapping[str, str]:
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


_cached_labels = lru_cache(maxsize=32_768)(_parse_labels)
"""The labels of a series are the same text at every look."""


def _unescaped(text: bytes) -> str:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], decoded) if "\\" in decoded else decoded


def _capped(rejected: list[Rejected]) -> tuple[Rejected, ...]:
    if len(rejected) <= MOST_REJECTED:
        return tuple(rejected)
    kept, rest = rejected[: MOST_REJECTED - 1], rejected[MOST_REJECTED - 1 :]
    return (*kept, Rejected(rest[0].where, rest[0].reason, len(rest)))
