"""Unwrapping: what containers, journals, Ray and launchers put around the line that a process wrote.

Layers come off from the outside inwards, in whatever order they stand. Text that the engine itself wrote is not looked
into here: a wrapper that a user's prompt imitates stays within that prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import orjson

from collectors.logtime import full_time
from collectors.scan import COLOUR

MOST_LAYERS = 6


class Line(NamedTuple):
    """A line as its process wrote it.

    text      without colours and line end; the message alone where the logger wrote JSON
    process   who wrote it as the prefix says (``APIServer``, ``EngineCore_DP0``), None without a prefix
    pid       its process id
    at        when the carrier or a JSON logger says it was written, unix seconds
    """

    text: str
    process: str | None = None
    pid: str | None = None
    at: float | None = None


def unwrap(raw: bytes) -> Line:
    """The engine's own line within ``raw``. Never fails: invalid UTF-8 is replaced, an unknown wrapper stays."""
    if b"\x1b" in raw:
        raw = COLOUR.sub(b"", raw)
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    if "\r" in text:
        # A progress bar returned to the line's start before the engine wrote on.
        text = text[text.rindex("\r") + 1 :]
    if text.startswith("[") and not text.startswith("[pod/"):
        return Line(text)
    line = Line(text)
    for _ in range(MOST_LAYERS):
        inner = _peel(line)
        if inner is None:
            break
        line = inner
    return line


def _peel(line: Line) -> Line | None:
    """The line without its outermost layer; None where none is known."""
    text = line.text
    if text.startswith("{"):
        return _from_json(line)
    for pattern in _PREFIXES:
        match = pattern.match(text)
        if match is not None:
            told = match.groupdict()
            stamp = full_time(told["time"]) if "time" in told else None
            return Line(
                text=text[match.end() :],
                process=told.get("process", line.process),
                pid=told.get("pid", line.pid),
                at=line.at if stamp is None else stamp,
            )
    return None


_ZONED = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
_PREFIXES = (
    # Ray and vLLM: "(APIServer pid=6485) ", "(ServeReplica:llm:app pid=1187, ip=192.0.2.7) "
    re.compile(r"\((?P<process>[^\s()=]{1,128}) pid=(?P<pid>\d{1,10})(?:, ip=[^\s)]{1,64})?\) ?"),
    # Kubernetes (CRI): "2026-12-01T07:07:29.123456789Z stdout F "
    re.compile(rf"(?P<time>{_ZONED}) std(?:out|err) [FP](?::\S*)? "),
    # journalctl -o short-iso: "2026-12-01T07:07:29+0000 host unit[123]: "
    re.compile(rf"(?P<time>{_ZONED}) \S{{1,253}} [^\s\[\]:]{{1,128}}(?:\[\d+\])?: "),
    # docker logs --timestamps, kubectl logs --timestamps
    re.compile(rf"(?P<time>{_ZONED}) "),
    # journalctl, syslog: "Dec 01 07:07:29 host unit[123]: "
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S{1,253} [^\s\[\]:]{1,128}(?:\[\d+\])?: "),
    # docker compose: "name-1  | "
    re.compile(r"[A-Za-z0-9][\w.\-/]{0,127} +\| ?"),
    # kubectl logs --prefix: "[pod/name/container] "
    re.compile(r"\[pod/[^\s\]]{1,253}\] "),
)

_MESSAGES = ("log", "message", "MESSAGE", "msg")
_TIMES = ("time", "asctime", "timestamp", "ts", "@timestamp")


def _from_json(line: Line) -> Line | None:
    """The message of a container runtime's, a journal's or a JSON logger's record."""
    try:
        record: Any = orjson.loads(line.text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(record, dict):
        return None
    fields = cast("Mapping[str, object]", record)
    message = next((value for name in _MESSAGES if isinstance(value := fields.get(name), str)), None)
    if message is None:
        return None
    process, pid = fields.get("processName"), fields.get("process")
    return Line(
        text=COLOUR.sub(b"", message.encode("utf-8", "replace")).decode().rstrip("\r\n"),
        process=process if isinstance(process, str) else line.process,
        pid=str(pid) if isinstance(pid, int | str) else line.pid,
        at=_time_of(fields) or line.at,
    )


def _time_of(fields: Mapping[str, object]) -> float | None:
    journal = fields.get("__REALTIME_TIMESTAMP")
    if isinstance(journal, str) and journal.isdecimal() and len(journal) <= len("1796108849000000"):
        return int(journal) / 1e6
    for name in _TIMES:
        value = fields.get(name)
        if isinstance(value, str) and (seconds := full_time(value)) is not None:
            return seconds
        if isinstance(value, int | float) and not isinstance(value, bool) and _PLAUSIBLE[0] < value < _PLAUSIBLE[1]:
            return float(value)
    return None


_PLAUSIBLE = (
    datetime(2020, 1, 1, tzinfo=UTC).timestamp(),
    datetime(2100, 1, 1, tzinfo=UTC).timestamp(),
)
"""Numbers in this range are unix seconds; others count something else."""
