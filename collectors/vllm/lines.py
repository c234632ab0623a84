"""vLLM's log lines, read by key: what stands before a message, the engine line and the SpecDecoding line."""

from __future__ import annotations

import re
from dataclasses import dataclass

SPEC_LINE = "SpecDecoding metrics: "

_PREFIX = re.compile(
    r"\[?(?:(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\s+)?"
    r"(?:(?P<time>(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d{1,9})?\s+)?"
    r"(?:\[?[\w./\-]{1,200}:\d{1,6}\]\s)?"
)
"""``INFO 12-01 06:50:12 [metrics.py:120] ``; every part may be missing (0.6 had no opening bracket)."""


def split_prefix(text: str) -> tuple[str | None, str]:
    """The time as printed, None where there is none, and the message."""
    match = _PREFIX.match(text)
    assert match is not None
    return match["time"], text[match.end() :]


class Torn(ValueError):
    """A line that was cut or garbled on its way: nothing on it is trusted."""


@dataclass(frozen=True, slots=True)
class EngineLine:
    """The line about an engine's load that stands before its SpecDecoding line.

    rank        engine index; None where the figures are of several engines together, or of all of the server's
    engines     how many engines the figures are of, None where the line does not tell (Rust frontend)
    running, waiting   requests
    generated   tokens per second
    """

    rank: str | None
    engines: int | None
    running: int | None
    waiting: int | None
    generated: float


_ENGINE = re.compile(
    r"(?:Engine (?P<rank>\d{1,6}): |(?P<engines>\d{1,6}) Engines Aggregated: )?"
    r"Avg prompt (?:throughput|tput): [\d.]+ (?:tokens|toks)/s, "
    r"Avg generation (?:throughput|tput): (?P<generated>\d{1,9}(?:\.\d+)?) (?:tokens|toks)/s"
)
_RUNNING = re.compile(r", (?:Reqs )?Running: (\d{1,7})\b")
_WAITING = re.compile(r", Waiting: (\d{1,7})\b")


def engine_line(message: str) -> EngineLine | None:
    """The engine line of either frontend; None where the message is none."""
    match = _ENGINE.match(message)
    if match is None:
        return None
    running, waiting = _RUNNING.search(message), _WAITING.search(message)
    return EngineLine(
        rank=None if match["rank"] is None else str(int(match["rank"])),
        engines=1 if match["rank"] else int(match["engines"]) if match["engines"] else None,
        running=int(running[1]) if running else None,
        waiting=int(waiting[1]) if waiting else None,
        generated=float(match["generated"]),
    )


@dataclass(frozen=True, slots=True)
class SpecLine:
    """The figures of a SpecDecoding line, as printed. None where it does not have the field (or says nan).

    accepted, drafted    draft tokens in the line's interval
    positions            share of the drafts in which position 0, 1, ... was accepted, to three decimals
    length               mean acceptance length, to two decimals: with the bonus token, but for 0.8.5
    rate                 accepted over drafted, as a fraction
    seconds              length of the interval, from the throughput with more digits
    """

    accepted: int
    drafted: int
    positions: tuple[float, ...] | None
    length: float | None
    rate: float | None
    seconds: float | None


_TOKENS = re.compile(r"(\d{1,12}) tokens")
_SPEED = re.compile(r"(\d{1,12}\.\d{2}) tokens/s")
_LENGTH = re.compile(r"\d{1,4}\.\d\d|nan")
_PERCENT = re.compile(r"(\d{1,3}\.\d)%|nan%")
_SHARE = re.compile(r"[01]\.\d{3}|nan")
_RAY_SUFFIX = " [repeated "
_POSITIONS = "Per-position acceptance rate"


def spec_line(message: str) -> SpecLine:
    """A message that begins with ``SPEC_LINE``; raises ``Torn``.

    All generations of the line have the same fields in other orders; fields of forks are passed over.
    """
    fields, positions = _fields(message.removeprefix(SPEC_LINE).split(_RAY_SUFFIX)[0].strip())
    accepted, drafted = _tokens(fields, "Accepted"), _tokens(fields, "Drafted")
    if accepted > drafted:
        raise Torn("more tokens accepted than drafted")
    speeds = [(accepted, _speed(fields, "Accepted")), (drafted, _speed(fields, "Drafted"))]
    tokens, speed = max(speeds, key=lambda item: item[1])
    length = _field(fields, "Mean acceptance length", _LENGTH)
    percent = _field(fields, "Avg Draft acceptance rate", _PERCENT) or _field(fields, "Draft acceptance rate", _PERCENT)
    return SpecLine(
        accepted=accepted,
        drafted=drafted,
        positions=_shares(positions),
        length=None if length is None or length[0] == "nan" else float(length[0]),
        rate=None if percent is None or percent[1] is None else round(float(percent[1]) / 100, 4),
        seconds=tokens / speed if tokens and speed else None,
    )


def _fields(body: str) -> tuple[dict[str, str], list[str]]:
    fields: dict[str, str] = {}
    positions: list[str] = []
    name = ""
    for part in body.rstrip(", ").split(", "):
        found, colon, value = part.partition(": ")
        if colon:
            name = found
            fields[name] = value
        if name == _POSITIONS:
            positions.append(value if colon else part)
        elif not colon:
            raise Torn("text between the fields of a SpecDecoding line")
    return fields, positions


def _field(fields: dict[str, str], name: str, form: re.Pattern[str]) -> re.Match[str] | None:
    value = fields.get(name)
    if value is None:
        return None
    match = form.fullmatch(value)
    if match is None:
        raise Torn(f"{name} is not a number of the printed form")
    return match


def _tokens(fields: dict[str, str], name: str) -> int:
    match = _field(fields, name, _TOKENS)
    if match is None:
        raise Torn(f"a SpecDecoding line without {name}")
    return int(match[1])


def _speed(fields: dict[str, str], name: str) -> float:
    match = _field(fields, f"{name} throughput", _SPEED)
    return 0.0 if match is None else float(match[1])


def _shares(positions: list[str]) -> tuple[float, ...] | None:
    for position in positions:
        if not _SHARE.fullmatch(position):
            raise Torn("a position is not a share of three decimals")
    return tuple(map(float, positions)) if positions and "nan" not in positions else None
