"""``inspect``: what the files of a bundle say, through the readers and detectors of the live service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from acceptance.facts import Fact, FactValue, Subject, Unseen, unseen
from acceptance.series import Series
from acceptance.window import Window
from alerts.episodes import inspect_findings
from alerts.evidence import Beside, from_windows
from alerts.findings import findings
from alerts.rules import Rulebook
from alerts.verdicts import Finding
from collectors.deltas import SINCE_START
from collectors.engines import EngineReaders, engine_of, engine_of_log, engines
from collectors.launch import facts_of
from collectors.reading import Reader, Reading, State, Text
from collectors.signatures import finding_of_signature
from service.bundle import Attachment, Bundle

CHUNK_BYTES = 1024 * 1024
SECONDS_BETWEEN_PAGES = 15.0
"""Between two pages of which nobody said when they were taken."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One window as a file tells it, judged or not."""

    file: str
    window: Window


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one bundle says.

    rejected   file -> reasons why parts of it could not be read, with how often
    unknown    files that no reader knows
    """

    name: str
    samples: tuple[Sample, ...]
    findings: tuple[Finding, ...]
    facts: Mapping[str, FactValue]
    unseen: tuple[Unseen, ...]
    rejected: Mapping[str, Mapping[str, int]]
    unknown: tuple[str, ...]
    problems: tuple[str, ...]


def inspect(bundle: Bundle) -> Inspection:
    """Read every file of a bundle and judge what they say together."""
    told = _Told(bundle)
    for file in bundle.of("launch"):
        told.learn(facts_of(file.body.decode("utf-8", "replace")))
    told.learn(bundle.operator.facts)
    for file in bundle.of("document"):
        told.read_document(file)
    told.read_pages(list(bundle.of("metrics")))
    for file in bundle.of("log"):
        told.read_log(file)
    return told.judged()


class _Told:
    """What accumulates while the files of a bundle are read."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._subject = Subject(bundle.name)
        self._samples: list[Sample] = []
        self._reading = Reading()
        self._rejected: dict[str, dict[str, int]] = {}
        self._unknown = [file.name for file in bundle.of("unknown")]

    def learn(self, facts: Mapping[str, FactValue]) -> None:
        self._subject = self._subject.knowing(facts)

    def read_document(self, file: Attachment) -> None:
        """A JSON document: the one reader that makes something of it is the one it is for."""
        text = Text(file.body, file.modified)
        for reader in _document_readers(file.name):
            _, reading = reader.feed(self._subject, {}, text)
            if reading.windows or reading.facts:
                self._take(file, reading)
                return
        self._unknown.append(file.name)

    def read_pages(self, files: Sequence[Attachment]) -> None:
        """Metrics pages one after the other; a single one is a window since its process began."""
        state: State = SINCE_START if len(files) == 1 else {}
        for file, at in zip(files, self._times(files), strict=True):
            readers = engines()[engine_of(file.body) or ""]
            self.learn({"engine": readers.name})
            state, reading = readers.metrics.feed(self._subject, state, Text(file.body, at))
            self._take(file, reading)

    def read_log(self, file: Attachment) -> None:
        readers = self._readers_of_log(file)
        if readers is None:
            self._unknown.append(file.name)
            return
        state: State = {}
        for offset, body in _pieces(file.body):
            state, reading = readers.logs.feed(self._subject, state, Text(body, file.modified, offset))
            self._take(file, reading)

    def judged(self) -> Inspection:
        windows = [sample.window for sample in self._samples]
        operator = self._bundle.operator
        baseline = operator.baseline_acc_len
        subject = self._subject
        beside = Beside(
            hits=self._reading.hits,
            signatures=finding_of_signature(),
            baseline=None if baseline is None else lambda _: baseline,
            doubts={subject.target: [reason for reasons in self._rejected.values() for reason in reasons]},
        )
        now = max(
            (window.end for window in windows), default=max((f.modified for f in self._bundle.files), default=0.0)
        )
        evidence = from_windows(_of_now(windows, subject), [subject], self._reading.health, beside, now)
        found = inspect_findings(evidence, Rulebook(findings()), min_windows=operator.min_windows)
        return Inspection(
            name=self._bundle.name,
            samples=tuple(self._samples),
            findings=tuple(found),
            facts=subject.facts,
            unseen=unseen(
                subject.facts,
                has_log=any(self._bundle.of("log")),
                has_categories=any(window.series.category is not None for window in windows),
            ),
            rejected=self._rejected,
            unknown=tuple(self._unknown),
            problems=self._bundle.problems,
        )

    def _take(self, file: Attachment, reading: Reading) -> None:
        category = self._category(file)
        for window in reading.windows:
            if category is not None and window.series.category is None:
                window = replace(window, series=replace(window.series, category=category))
            self._samples.append(Sample(file.name, window))
        for rejected in reading.rejected:
            reasons = self._rejected.setdefault(file.name, {})
            reasons[rejected.reason] = reasons.get(rejected.reason, 0) + rejected.count
        self.learn(_facts(reading.facts))
        self._reading += replace(reading, windows=(), rejected=())

    def _category(self, file: Attachment) -> str | None:
        if self._bundle.operator.category_by_file:
            _, _, category = file.path.name.split(".")[0].partition("_")
            return category or None
        return self._bundle.operator.category

    def _times(self, files: Sequence[Attachment]) -> list[float]:
        """When each page was taken: as the operator says, counted back from the newest file."""
        spans = self._bundle.operator.seconds_between
        gaps = [spans[i] if i < len(spans) else SECONDS_BETWEEN_PAGES for i in range(len(files) - 1)]
        newest = max((file.modified for file in files), default=0.0)
        return [newest - sum(gaps[i:]) for i in range(len(files))]

    def _readers_of_log(self, file: Attachment) -> EngineReaders | None:
        name = engine_of_log(file.body) or self._subject.text("engine")
        if name is not None:
            self.learn({"engine": name})
        return None if name is None else engines().get(name)


def _of_now(windows: Iterable[Window], subject: Subject) -> Iterator[Window]:
    """Windows under what is known in the end: a fact read late is no other configuration."""
    final = subject.series()
    for window in windows:
        series: Series = replace(
            window.series, group=final.group, revision=final.revision, drafter=final.drafter or window.series.drafter
        )
        yield replace(window, series=series)


def _document_readers(name: str) -> Iterator[Reader]:
    """Readers of documents, those first whose path the file's name holds."""
    documents = [item for engine in engines().values() for item in engine.documents.items()]
    stem = name.partition(".")[0]
    named = [reader for path, reader in documents if path.partition("?")[0].strip("/") in stem]
    yield from named
    yield from (reader for engine in engines().values() for reader in (engine.requests,))
    yield from (reader for _, reader in documents if reader not in named)


def _pieces(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about a megabyte at a time, with where they begin."""
    start = 0
    while start < len(body):
        end = body.find(b"\n", start + CHUNK_BYTES)
        end = len(body) if end < 0 else end + 1
        piece = body[start:end]
        yield start, piece if piece.endswith(b"\n") else piece + b"\n"
        start = end


def _facts(facts: Iterable[Fact]) -> dict[str, FactValue]:
    return {fact.name: fact.value for fact in facts}
