"""Reader of vLLM's log: SpecDecoding lines as windows, engine lines as load, start-up lines as facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

from acceptance.facts import FactValue, Subject
from acceptance.health import Health
from acceptance.window import Window, window_id
from collectors.gathering import Gathering
from collectors.logtime import LineClock, full_time, yearless_time
from collectors.reading import Reading, State, Text
from collectors.scan import LineFinder
from collectors.signatures import Match, Matcher, signatures
from collectors.unwrap import Line, unwrap
from collectors.vllm.lines import SPEC_LINE, EngineLine, Torn, engine_line, spec_line, split_prefix
from collectors.vllm.startup import ARGUMENTS, CONFIG, facts_of_arguments, facts_of_engine
from collectors.vllm.steps import counts_of

DEFAULT_INTERVAL_SECONDS = 10.0
"""VLLM_LOG_STATS_INTERVAL, where a line's throughputs do not tell its interval."""

LONGEST_INTERVAL_SECONDS = 86400.0
CLOCK_SECONDS = 1.0
"""Log times are cut to whole seconds."""

LOAD_SECONDS = 60.0
"""An engine that printed nothing for so long does not count to the load of its server."""

BUSY_TOKENS_PER_SECOND = 0.5
MOST_PROCESSES = 256
ONE_RANK = "0"

_OLD_SPEC_LINE = "Speculative metrics: "
_MARKS = (SPEC_LINE.strip(), "Avg generation t", ARGUMENTS.strip(), " LLM engine (v", _OLD_SPEC_LINE.strip())
_DP_RANK = re.compile(r"_DP(\d{1,4})(?:\b|_)")
_USERS = ("Received request ", "Generated response ")
"""Messages that go on with text from users."""

MOST_SELECTIONS = 4
SELECTED, MODEL_LENGTH, SHORT_DRAFT = "attn-selected", "max-model-len-selected", "draft-maxlen-short"


class LogReader:
    """Reads vLLM's log, of the Python and of the Rust frontend.

    A SpecDecoding line is a window of source ``log``: 10 s or longer, exact where its figures leave one number of
    steps. It does not name its engine: that is the one of the engine line before it, of the same process.
    ``Health.speculating`` is False where an engine generated and no SpecDecoding line followed its line.
    """

    surface = "log"

    @cached_property
    def _matcher(self) -> Matcher:
        return signatures("vllm")

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
class _Process:
    """What a process said last.

    told      it printed an engine line: ``rank`` is its engine, None where that was of several
    unspoken  the engine generated, and no SpecDecoding line followed yet
    lengths   "Using max model len" of the target, then of the drafter
    backends  attention backends it selected, in the order of selection
    """

    told: bool = False
    rank: str | None = None
    unspoken: bool = False
    lengths: list[int] = field(default_factory=list[int])
    backends: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Engine:
    """An engine as one process tells it: its load at ``at``, and the end of its last window."""

    rank: str | None
    at: float = 0.0
    running: int | None = None
    waiting: int | None = None
    window_end: float | None = None


class _Run:
    """One feed."""

    def __init__(self, subject: Subject, state: State, text: Text, matcher: Matcher) -> None:
        self._gathering = Gathering("vllm", subject, state, matcher)
        self._matcher = matcher
        self._read_at = text.at
        self._clock = LineClock(state.get("at"), text.at)
        self._processes = {pid: _Process(**fields) for pid, fields in state.get("processes", {}).items()}
        self._engines = {key: _Engine(**fields) for key, fields in state.get("engines", {}).items()}
        self._windows: list[Window] = []
        self._newest: float | None = None
        self._spoken = self._silent = False
        self._tokens: float | None = None

    @property
    def state(self) -> State:
        return {
            **self._gathering.state,
            "at": self._clock.seen,
            "processes": {pid: asdict(process) for pid, process in self._processes.items()},
            "engines": {key: asdict(engine) for key, engine in self._engines.items()},
        }

    def read(self, offset: int, raw: bytes, literals: list[int]) -> None:
        """One line in which ``literals`` stand; only what begins a message is the engine's."""
        line = unwrap(raw)
        time, message = split_prefix(line.text)
        at = self._clock.at(line.at if line.at is not None else self._time(time))
        if message.startswith(SPEC_LINE):
            self._spec(offset, at, line, message)
        elif message.startswith(ARGUMENTS):
            self._start(facts_of_arguments(message), at)
        elif config := CONFIG.match(message):
            self._config(config, message, at)
        elif message.startswith(_OLD_SPEC_LINE):
            self._gathering.reject(offset, "a line of the V0 engine: its figures are totals since the start")
        elif load := engine_line(message):
            self._load(at, line, load)
        elif not message.startswith(_USERS):
            match = self._matcher.match(message, [each - len(_MARKS) for each in literals if each >= len(_MARKS)])
            if match is not None:
                self._hit(match, message, line, at)

    def reading(self) -> Reading:
        return self._gathering.reading(self._windows, self._health())

    def _time(self, time: str | None) -> float | None:
        if time is None:
            return None
        return full_time(time) if time[4] == "-" else yearless_time(time, self._read_at)

    def _spec(self, offset: int, at: float, line: Line, message: str) -> None:
        subject = self._gathering.subject
        try:
            printed = spec_line(message)
            counts, exact = counts_of(printed, subject.k, subject.text("algorithm"))
        except Torn as problem:
            self._gathering.reject(offset, str(problem))
            return
        self._gathering.working(at)
        process = self._process(line)
        process.unspoken, self._spoken, self._newest = False, True, at
        engine = self._engine(line, self._rank(process, line))
        seconds = min(printed.seconds or DEFAULT_INTERVAL_SECONDS, LONGEST_INTERVAL_SECONDS)
        end = at
        if engine.window_end is not None:
            if self._clock.seen is None:
                # A log without any times: its windows follow each other.
                end = max(at, engine.window_end + seconds)
            seconds = min(seconds, max(end - engine.window_end, 0.0) + CLOCK_SECONDS)
        engine.window_end = end
        series = subject.series(engine="vllm", rank=engine.rank)
        window = Window(
            id=window_id(series, self._gathering.incarnation, LogReader.surface, end - seconds, offset),
            series=series,
            start=end - seconds,
            end=end,
            source="log",
            exact=exact,
            counts=counts,
            busy=printed.drafted > 0,
            reported_length=printed.length,
            reported_rate=printed.rate,
        )
        self._windows.append(window)

    def _load(self, at: float, line: Line, load: EngineLine) -> None:
        self._gathering.working(at)
        process = self._process(line)
        self._silent = self._silent or process.unspoken
        process.unspoken = load.generated >= BUSY_TOKENS_PER_SECOND and bool(load.running)
        process.told, process.rank = True, load.rank
        if load.engines is None and self._gathering.subject.number("data_parallel") == 1:
            process.rank = ONE_RANK
        engine = self._engine(line, process.rank)
        engine.at, engine.running, engine.waiting = at, load.running, load.waiting
        self._newest = at
        self._tokens = (self._tokens or 0.0) + load.generated * DEFAULT_INTERVAL_SECONDS

    def _start(self, facts: Mapping[str, FactValue], at: float) -> None:
        self._processes.clear()
        self._engines.clear()
        self._gathering.started(facts, at)

    def _config(self, config: re.Match[str], message: str, at: float) -> None:
        facts = facts_of_engine(message, config)
        if not self._gathering.is_starting:
            self._start(facts, at)
        if self._gathering.subject.number("data_parallel") is not None:
            # A rank's engine calls itself one of one.
            facts.pop("data_parallel", None)
        for name, value in facts.items():
            self._gathering.fact(name, value, at)

    def _hit(self, match: Match, message: str, line: Line, at: float) -> None:
        rank = _rank_in(line.process)
        self._gathering.hit(match, message, rank, at)
        if match.signature.id == SELECTED:
            self._selected(self._process(line).backends, match.captures["backend"], at)
        elif match.signature.id == MODEL_LENGTH:
            lengths = self._process(line).lengths
            lengths.append(int(match.captures["length"]))
            if len(lengths) == 2 and lengths[1] < lengths[0]:
                short = Match(
                    self._matcher.signatures[SHORT_DRAFT], {"target": str(lengths[0]), "drafter": str(lengths[1])}
                )
                self._gathering.hit(short, message, rank, at)
            del lengths[MOST_SELECTIONS:]

    def _selected(self, backends: list[str], backend: str, at: float) -> None:
        """The target's backend is selected first, then the drafter's; each distinct one is printed once.

        With a third one it can no longer be told which is the drafter's.
        """
        if backend in backends or len(backends) >= MOST_SELECTIONS:
            return
        backends.append(backend)
        if len(backends) == 1:
            self._gathering.fact("decode_attention_backend", backend, at)
        elif self._gathering.subject.text("drafter") is not None:
            self._gathering.fact("draft_attention_backend", backend if len(backends) == 2 else None, at)

    def _process(self, line: Line) -> _Process:
        pid = line.pid or line.process or ""
        process = self._processes.pop(pid, None) or _Process()
        self._processes[pid] = process
        if len(self._processes) > MOST_PROCESSES:
            del self._processes[next(iter(self._processes))]
        return process

    def _engine(self, line: Line, rank: str | None) -> _Engine:
        key = f"{line.pid or line.process or ''}/{'' if rank is None else rank}"
        engine = self._engines.pop(key, None) or _Engine(rank)
        self._engines[key] = engine
        if len(self._engines) > MOST_PROCESSES:
            del self._engines[next(iter(self._engines))]
        return engine

    def _rank(self, process: _Process, line: Line) -> str | None:
        """Whose the SpecDecoding line is."""
        if process.told:
            return process.rank
        named = _rank_in(line.process)
        if named is not None:
            return named
        return ONE_RANK if (self._gathering.subject.number("data_parallel") or 1) == 1 else None

    def _health(self) -> Health | None:
        """The load of all engines that lately printed, at the newest engine line of this feed."""
        if self._newest is None:
            return None
        live = {engine.rank: engine for engine in self._engines.values() if engine.at >= self._newest - LOAD_SECONDS}
        running = [engine.running for engine in live.values() if engine.running is not None]
        waiting = [engine.waiting for engine in live.values() if engine.waiting is not None]
        return Health(
            target=self._gathering.subject.target,
            surface=LogReader.surface,
            at=self._newest,
            up=True,
            running=sum(running) if running else None,
            queued=sum(waiting) if waiting else None,
            speculating=True if self._spoken else False if self._silent else None,
            decode_tokens=self._tokens,
        )


def _rank_in(process: str | None) -> str | None:
    """Data-parallel rank in a process's name (``EngineCore_DP1``, ``Worker_DP1_TP0``)."""
    match = _DP_RANK.search(process or "")
    return str(int(match[1])) if match else None
