"""Finding the few lines of a chunk that matter, so that all others cost next to nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ahocorasick_rs import BytesAhoCorasick

COLOUR = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Terminal escape sequences: colours, cursor movements, titles and links."""

Found = tuple[int, bytes, list[int]]
"""Offset of a line in its chunk, the line without its end, and which literals stand in it."""


class LineFinder:
    """Finds the lines in which any of some literals stands: one search in memory over a whole chunk.

    A literal stands on one line and holds nothing that a JSON string would escape, so that it is found within the JSON
    of a container runtime too. Colours do not hide it.
    """

    def __init__(self, literals: Sequence[str]) -> None:
        self._automaton = BytesAhoCorasick([literal.encode() for literal in literals])

    def find(self, body: bytes) -> Iterator[Found]:
        """Lines with a literal, in their order."""
        return self._find_coloured(body) if b"\x1b" in body else self._find(body)

    def _find(self, body: bytes) -> Iterator[Found]:
        start = end = 0
        literals: list[int] = []
        for literal, at, _ in self._automaton.find_matches_as_indexes(body, overlapping=True):
            if at < end:
                literals.append(literal)
                continue
            if literals:
                yield start, body[start:end], literals
            start, end, literals = body.rfind(b"\n", 0, at) + 1, body.find(b"\n", at), [literal]
            if end < 0:
                end = len(body)
        if literals:
            yield start, body[start:end], literals

    def _find_coloured(self, body: bytes) -> Iterator[Found]:
        """The slow way, line by line, since a colour may stand within a literal."""
        start = 0
        for line in body.split(b"\n"):
            plain = COLOUR.sub(b"", line) if b"\x1b" in line else line
            literals = [literal for literal, _, _ in self._automaton.find_matches_as_indexes(plain, overlapping=True)]
            if literals:
                yield start, plain, literals
            start += len(line) + 1
