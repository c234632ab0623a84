"""Python reprs in logs (``ServerArgs(tp_size=8, ...)``, ``{'tp_size': 8, ...}``), read field by field.

They hold enums, objects and cut ends that no evaluator takes, and nothing from a log is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Field = str | int | float | bool | None | dict[str, "Field"]

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[\[({]|[\])}]|,|[^'\"\[\](){},]+")
_NAME = re.compile(r"\s*(?:['\"](?P<key>[^'\"\\]{1,128})['\"]\s*:|(?P<word>\w{1,128})\s*=)\s*(?P<value>.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,3})?")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote)", re.DOTALL)

DEEPEST = 4
LONGEST = 256 * 1024


def read_fields(text: str, depth: int = DEEPEST) -> dict[str, Field]:
    """The fields of a call or a dict whose inside begins ``text``, up to its closing bracket.

    A field that has no end (the line was cut) is left out. Values: strings, numbers, booleans, None, nested dicts;
    any other is its own text.
    """
    fields: dict[str, Field] = {}
    for part in _parts(text[:LONGEST]):
        match = _NAME.fullmatch(part)
        if match is not None:
            fields[match["key"] or match["word"]] = _value(match["value"].strip(), depth - 1)
    return fields


def _parts(text: str) -> Iterator[str]:
    """What stands between the outermost commas."""
    depth = start = at = 0
    while (token := _TOKEN.match(text, at)) is not None:
        first, at = text[at], token.end()
        if first in "[({":
            depth += 1
        elif first in "])}":
            depth -= 1
        if depth < 0 or (first == "," and depth == 0):
            yield text[start : token.start()]
            start = at
        if depth < 0:
            return


def _value(text: str, depth: int) -> Field:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text or "e" in text else int(text)
    if quoted := _QUOTED.fullmatch(text):
        return re.sub(r"\\(.)", r"\1", quoted["text"])
    if text.startswith("{") and depth > 0:
        return read_fields(text[1:], depth)
    return text


_WORDS: dict[str, Field] = {"None": None, "True": True, "False": False}
