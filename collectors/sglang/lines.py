"""SGLang's log lines, read field by field: what stands before a message, and the decode and prefill lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from collectors.logtime import full_time

LONGEST_PREFIX = 200

_BEFORE = re.compile(r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)(?: [^\s\[]{1,64}){0,6} (?=\[)")
"""What a logging formatter of the operator's own puts before the bracket: time, level, pid."""

_LATER_STAGE = re.compile(r"(?:^|\s)PP[1-9]\d{0,3}(?=\s|$)")
_RANK = re.compile(r"(?:^|\s)DP(?P<rank>\d{1,4})(?=\s|$)")


class Prefix(NamedTuple):
    """What stands before a message.

    at      its time, unix seconds; None where the line has none
    rank    data-parallel rank (DPn), None where the line names none
    echoes  it is of a later pipeline stage (PPn), which repeats what the first one says
    """

    at: float | None = None
    rank: str | None = None
    echoes: bool = False


NO_PREFIX = Prefix()


def split_prefix(text: str) -> tuple[Prefix, str]:
    """Prefix and message of ``[2026-12-01 07:07:29 DP0 TP0] message`` and of formatters that write the time before
    the bracket. A line without a bracket at its start is all message.
    """
    start, time = 0, None
    if not text.startswith("["):
        before = _BEFORE.match(text)
        if before is None:
            return NO_PREFIX, text
        start, time = before.end(), before["time"]
    end = text.find("] ", start, start + LONGEST_PREFIX)
    if end < 0:
        return NO_PREFIX, text
    return _prefix(text[start + 1 : end], time), text[end + 2 :]


@lru_cache(maxsize=4096)
def _prefix(inside: str, time: str | None) -> Prefix:
    """Cached: a second has many lines of the same rank."""
    rank = _RANK.search(inside)
    at = full_time(inside if time is None else time)
    return Prefix(at, str(int(rank["rank"])) if rank else None, _LATER_STAGE.search(inside) is not None)


class Torn(ValueError):
    """A line that was cut or garbled on its way: nothing on it is trusted."""


class DecodeLine(NamedTuple):
    """A decode line. None where it does not have the field.

    running, queued   requests
    cached_tokens tokens in the KV cache
    accept_len    tokens per verify step since the line before, bonus token included; 0 where nothing was verified,
                  None without speculation
    accept_rate   as printed: its meaning changed in 0.5.7 and 0.5.11
    graph         the last pass ran in a graph
    throughput    tokens per second since the line before
    disaggregated the server only decodes: requests come in without a prefill line
    """

    running: int | None
    queued: int | None
    cached_tokens: int | None
    accept_len: float | None
    accept_rate: float | None
    graph: bool | None
    throughput: float | None
    disaggregated: bool


_HEAD = re.compile(r"(?:Decode|Prefill) batch(?: \[\d{1,18}\])?[.,] ")
_WHOLE = re.compile(r"\d{1,12}")
_HUNDREDTHS = re.compile(r"\d{1,9}\.\d\d")
_GRAPH = {"True": True, "False": False}

RUNNING, QUEUED = "#running-req", "#queue-req"
_TRANSFERS, _ALLOCATED = "#transfer-req", "pre-allocated usage"
_LENGTH, _RATE, _THROUGHPUT = "accept len", "accept rate", "gen throughput (token/s)"


def decode_line(message: str) -> DecodeLine:
    """A message that begins with ``Decode batch``; raises ``Torn``.

    Fields come and go with versions, platforms and forks, so each is read by its name, and a field that is unknown is
    passed over. A line is torn where a field that matters is no number of the printed form, where text stands between
    fields, or where the end is missing: an accept length could then be a part of one, or be missing by accident.
    """
    fields = _fields(message)
    if _THROUGHPUT not in fields and _LENGTH not in fields:
        raise Torn("a decode line that ends early")
    length = _hundredths(fields, _LENGTH)
    if length is not None and 0 < length < 1:
        raise Torn("an accept length below 1")
    if length is None and "accept" in message:
        raise Torn("a decode line whose accept length is garbled")
    return DecodeLine(
        running=_whole(fields, RUNNING),
        queued=_whole(fields, QUEUED),
        cached_tokens=_whole(fields, "#token" if "#token" in fields else "#full token"),
        accept_len=length,
        accept_rate=_hundredths(fields, _RATE),
        graph=next((_GRAPH.get(value) for name, value in fields.items() if name.endswith(" graph")), None),
        throughput=_hundredths(fields, _THROUGHPUT),
        disaggregated=_TRANSFERS in fields or _ALLOCATED in fields,
    )


def load_of(message: str) -> tuple[int | None, int | None]:
    """Running and queued requests of a decode or prefill line; raises ``Torn``."""
    fields = _fields(message)
    return _whole(fields, RUNNING), _whole(fields, QUEUED)


def _fields(message: str) -> dict[str, str]:
    head = _HEAD.match(message)
    if head is None:
        raise Torn("a batch line in an unknown form")
    fields: dict[str, str] = {}
    for part in message[head.end() :].rstrip(", ").split(", "):
        name, colon, value = part.partition(": ")
        if colon:
            fields[name] = value
        elif not part.endswith("]"):
            # The one part without a name is the end of an interval, "2.71 [2.66, 2.76]".
            raise Torn("text between the fields of a batch line")
    return fields


def _whole(fields: Mapping[str, str], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not _WHOLE.fullmatch(value):
        raise Torn(f"{name} is not a number")
    return int(value)


def _hundredths(fields: Mapping[str, str], name: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    if not _HUNDREDTHS.fullmatch(value):
        raise Torn(f"{name} is not a number of two decimals")
    return float(value)
