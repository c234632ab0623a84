"""Reader of SGLang's log: decode lines as windows, start-up lines as facts, signatures as hits."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from acceptance.counts import Counts, Spread
from acceptance.facts import Subject
from acceptance.health import Health
from acceptance.series import Series
from acceptance.window import Window, window_id
from collectors.gathering import Gathering
from collectors.reading import Reading, State, Text
from collectors.reprs import read_fields
from collectors.scan import LineFinder
from collectors.sglang.lines import DecodeLine, Torn, decode_line, load_of, split_prefix
from collectors.sglang.requests import read_requests
from collectors.sglang.server_args import facts_of_server_args
from collectors.signatures import Matcher, signatures
from collectors.unwrap import unwrap

DEFAULT_DECODE_LOG_INTERVAL = 40
"""``--decode-log-interval`` where neither the start-up line nor ``/server_info`` told it."""

BUSY_TOKENS_PER_SECOND = 0.5
"""Below it a line with an accept length is of an idle server that a health probe woke, or mostly of idle time."""

ONE_RANK = "0"
CLOCK_SECONDS = 1.0
"""Log times are cut to whole seconds."""

LOAD_SECONDS = 60.0
"""A rank that printed nothing for so long does not count to the load of its server."""

LONGEST_SPAN_SECONDS = 3600.0

_DECODE, _PREFILL, _ARGUMENTS, _POOL = "Decode batch", "Prefill batch", "server_args=", "max_total_num_tokens="
_FINISHED = "request.finished"
_MARKS = (_DECODE, _PREFILL, _ARGUMENTS, _POOL, "raph begin", _FINISHED)
_CAPTURE = re.compile(r"Capture (?:target verify |decode |verify )?\w+ graph begin", re.IGNORECASE)


class LogReader:
    """Reads SGLang's log.

    A decode line with an accept length is a window of source ``log``. Its verify steps are running requests times
    ``decode_log_interval``: an estimate. A decode line without one is a window too, but with its passes only: steps
    None, since nothing was verified. ``Health.speculating`` is then False, which tells "no accept length on decode
    lines" apart from "no decode line" (no health at all). An eager pass is one whose line says ``graph: False``, be
    the word before it cuda, npu, cpu or musa. Finished requests that the server logs as JSON are windows of source
    ``request``.
    """

    surface = "log"

    @cached_property
    def _matcher(self) -> Matcher:
        return signatures("sglang")

    @cached_property
    def _finder(self) -> LineFinder:
        return LineFinder([*_MARKS, *self._matcher.literals])

    def feed(self, subject: Subject, state: State, text: Text) -> tuple[State, Reading]:
        """Read whole lines on from ``state``."""
        run = _Run(subject, state, text, self._matcher)
        for start, line, literals in self._finder.find(text.body):
            run.read(text.offset + start, line, literals)
        return run.state, run.reading()


@dataclass(slots=True)
class _Rank:
    """Where a rank stands.

    at        its last batch line
    decode_at its last decode line, with as many requests as ``running``
    prefilled it prefilled since
    """

    at: float
    decode_at: float | None = None
    running: int | None = None
    queued: int | None = None
    prefilled: bool = False


@dataclass(frozen=True, slots=True)
class _Told:
    """What facts say that every decode line needs.

    interval    decode passes between two decode lines
    proposals   draft tokens proposed a step (in a tree more than k)
    series      of each rank
    """

    subject: Subject
    interval: int
    k: int | None
    proposals: int | None
    series: dict[str, Series]


class _Run:
    """One feed."""

    def __init__(self, subject: Subject, state: State, text: Text, matcher: Matcher) -> None:
        self._gathering = Gathering("sglang", subject, state, matcher)
        self._matcher = matcher
        self._at: float | None = state.get("at")
        self._began: float | None = state.get("began")
        self._clock = text.at
        self._ranks = {name: _Rank(**rank) for name, rank in state.get("ranks", {}).items()}
        self._prefills: dict[str, str] = {}
        self._windows: list[Window] = []
        self._last_told: _Told | None = None
        self._load_at: float | None = None
        self._speculating: bool | None = None
        self._tokens: float | None = None

    @property
    def state(self) -> State:
        ranks: dict[str, Any] = {name: asdict(rank) for name, rank in self._ranks.items()}
        return {**self._gathering.state, "at": self._at, "began": self._began, "ranks": ranks}

    def read(self, offset: int, raw: bytes, literals: list[int]) -> None:
        """One line in which ``literals`` stand; only what begins a message is the engine's."""
        line = unwrap(raw)
        prefix, message = split_prefix(line.text)
        at = line.at if line.at is not None else prefix.at
        if at is not None:
            self._at = at
        elif self._at is not None:
            at = self._at
        else:
            at = self._clock
        if prefix.echoes and message.startswith((_DECODE, _PREFILL)):
            return
        if message.startswith(_DECODE):
            self._decode(offset, at, prefix.rank or ONE_RANK, message)
        elif message.startswith(_PREFILL):
            self._prefill(at, prefix.rank or ONE_RANK, message)
        elif message.startswith(_ARGUMENTS):
            self._ranks.clear()
            self._began = at
            self._gathering.started(facts_of_server_args(_arguments(message)), at)
        elif message.startswith(_POOL):
            self._pool(message, at)
        elif _CAPTURE.match(message):
            self._gathering.fact("cuda_graph_disabled", False, at)
        elif message.startswith("{"):
            self._finished(offset, at, message)
        elif match := self._matcher.match(message, [each - len(_MARKS) for each in literals if each >= len(_MARKS)]):
            self._gathering.hit(match, message, prefix.rank, at)

    def reading(self) -> Reading:
        return self._gathering.reading(self._windows, self._health())

    def _decode(self, offset: int, at: float, name: str, message: str) -> None:
        try:
            line = decode_line(message)
        except Torn as problem:
            self._gathering.reject(offset, str(problem))
            return
        self._gathering.working(at)
        rank = self._rank(name, at)
        window, tokens = self._window(offset, at, name, rank, line)
        self._windows.append(window)
        self._speculating = line.accept_len is not None
        if window.busy:
            self._tokens = (self._tokens or 0.0) + tokens
        self._prefills.pop(name, None)
        rank.decode_at, rank.running, rank.queued, rank.prefilled = at, line.running, line.queued, False

    def _prefill(self, at: float, name: str, message: str) -> None:
        self._gathering.working(at)
        self._rank(name, at).prefilled = True
        self._prefills[name] = message

    def _rank(self, name: str, at: float) -> _Rank:
        self._load_at = at
        rank = self._ranks.get(name)
        if rank is None:
            rank = self._ranks[name] = _Rank(at)
        rank.at = at
        return rank

    def _window(self, offset: int, at: float, name: str, rank: _Rank, line: DecodeLine) -> tuple[Window, float]:
        """The window of a line, and the tokens its passes gave."""
        told = self._told()
        running = line.running or 0
        steps = running * told.interval
        tokens = steps * (line.accept_len or 1.0)
        busy = running > 0 and _works(line)
        span = tokens / line.throughput if tokens and line.throughput else CLOCK_SECONDS
        before = self._began if rank.decode_at is None else rank.decode_at
        gap = LONGEST_SPAN_SECONDS if before is None else max(at - before, 0.0)
        start = at - min(span, gap + CLOCK_SECONDS)
        same_batch = not rank.prefilled and line.running == rank.running and not line.disaggregated
        timed = busy and same_batch and abs(gap - span) <= CLOCK_SECONDS
        verified = bool(line.accept_len) and running > 0
        series = self._series(told, name)
        window = Window(
            id=window_id(series, self._gathering.incarnation, LogReader.surface, start, offset),
            series=series,
            start=start,
            end=at,
            source="log",
            exact=False,
            counts=Counts(
                steps=steps if verified else None,
                emitted=tokens if verified else None,
                proposed=steps * told.proposals if verified and told.proposals is not None else None,
                slots=steps * told.k if verified and told.k is not None else None,
                trim_bound=0.0 if verified else None,
                passes=told.interval,
                eager_passes=None if line.graph is None else 0 if line.graph else told.interval,
                pass_seconds=span if timed else None,
                spread=Spread.of(tokens, steps) if verified else None,
            ),
            busy=busy,
            reported_length=line.accept_len,
            reported_rate=line.accept_rate,
        )
        return window, tokens

    def _told(self) -> _Told:
        """What the facts say, looked up once for each change of them."""
        subject = self._gathering.subject
        if self._last_told is None or self._last_told.subject is not subject:
            tree = subject.number("num_draft_tokens")
            self._last_told = _Told(
                subject=subject,
                interval=int(subject.number("decode_log_interval") or DEFAULT_DECODE_LOG_INTERVAL),
                k=subject.k,
                proposals=subject.k if tree is None else int(tree) - 1,
                series={},
            )
        return self._last_told

    def _series(self, told: _Told, rank: str) -> Series:
        series = told.series.get(rank)
        if series is None:
            series = told.series[rank] = told.subject.series(engine="sglang", rank=rank)
        return series

    def _finished(self, offset: int, at: float, message: str) -> None:
        """A line of ``--log-requests-format json``. The text format puts the user's text between the fields."""
        reading = read_requests(self._gathering.subject, Text(message.encode(), at, offset))
        self._windows += reading.windows
        for problem in reading.rejected:
            self._gathering.reject(offset, problem.reason)

    def _pool(self, message: str, at: float) -> None:
        fields = read_fields(message)
        for name in ("max_running_requests", "chunked_prefill_size"):
            value = fields.get(name)
            if isinstance(value, int):
                self._gathering.fact(name, value, at)

    def _health(self) -> Health | None:
        """The load of all ranks that lately printed, at the newest line of this feed."""
        if self._load_at is None:
            return None
        for name, message in self._prefills.items():
            try:
                self._ranks[name].running, self._ranks[name].queued = load_of(message)
            except Torn:
                continue
        live = [rank for rank in self._ranks.values() if rank.at >= self._load_at - LOAD_SECONDS]
        running = [rank.running for rank in live if rank.running is not None]
        queued = [rank.queued for rank in live if rank.queued is not None]
        return Health(
            target=self._gathering.subject.target,
            surface=LogReader.surface,
            at=self._load_at,
            up=True,
            running=sum(running) if running else None,
            queued=sum(queued) if queued else None,
            speculating=self._speculating,
            decode_tokens=self._tokens,
        )


def _works(line: DecodeLine) -> bool:
    """Whether requests were decoded. A health probe wakes an idle server for a token that is in no cache yet."""
    if line.accept_len is None:
        return bool(line.cached_tokens)
    return (line.throughput or 0.0) >= BUSY_TOKENS_PER_SECOND


def _arguments(message: str) -> dict[str, Any]:
    """The inside of ``server_args=ServerArgs(...)`` (to 0.5.18) or ``server_args={...}``."""
    inside = message.removeprefix(_ARGUMENTS).removeprefix("ServerArgs(").removeprefix("{")
    return dict(read_fields(inside))
