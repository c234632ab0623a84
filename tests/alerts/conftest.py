"""Evidence built from sums, and a clock that tests set."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import pytest

from acceptance.counts import Counts, Spread
from acceptance.facts import FactValue, Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.query import Sum
from acceptance.series import Series
from acceptance.window import Source
from alerts.detectors import Detector
from alerts.evidence import Evidence, Level
from alerts.findings import findings
from alerts.limits import Limits
from alerts.rules import Rulebook
from alerts.verdicts import Verdict

BEGAN = 1_796_000_000.0


@dataclass(frozen=True)
class Builder:
    """Windows of ``seconds`` each, one after the other from ``began``."""

    target: str = "decode-1"
    source: Source = "counter"
    seconds: float = 15.0
    began: float = BEGAN
    k: int | None = 7
    series: Mapping[str, str | None] = field(default_factory=dict[str, str | None])

    def window(
        self, at: int, acc_len: float, steps: float = 400.0, requests: float | None = 4.0, **more: object
    ) -> Sum:
        emitted = acc_len * steps
        counts = Counts(
            steps=steps,
            emitted=emitted,
            proposed=None if self.k is None else self.k * steps,
            slots=None if self.k is None else self.k * steps,
            requests=requests,
            trim_bound=0.0,
            spread=Spread.of(emitted, steps),
        )
        counts = replace(counts, **more)  # type: ignore[arg-type]
        first = self.began + at * self.seconds
        key = Series(self.target, **self.series).key()
        return Sum(
            self.target, self.source, first, key, counts, 1, self.source == "counter", first, first + self.seconds
        )

    def windows(self, lengths: Sequence[float], steps: float = 400.0, **more: object) -> list[Sum]:
        return [self.window(at, length, steps, **more) for at, length in enumerate(lengths)]  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """Evidence and the limits of findings.yaml, put before a detector."""

    finding: str
    level: Level = "page"
    facts: Mapping[str, FactValue] = field(default_factory=dict[str, FactValue])
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])

    def evidence(
        self,
        windows: Sequence[Sum] = (),
        *,
        now: float | None = None,
        source: Source | None = None,
        others: Mapping[Source, Sequence[Sum]] | None = None,
        health: Sequence[Health] = (),
        logged: bool = False,
        hits: Sequence[Hit] = (),
        signatures: Mapping[str, str] | None = None,
        baseline: float | None = None,
        reference: float | None = None,
    ) -> Evidence:
        if now is None:
            ends = [window.last for window in windows] + [look.at for look in health]
            now = max(ends, default=BEGAN)
        return Evidence(
            subject=Subject("decode-1", facts=self.facts),
            series=Series("decode-1"),
            now=now,
            source=source or (windows[0].source if windows else None),
            windows=windows,
            others=others or {},
            health=health,
            logged=logged,
            hits=hits,
            signatures=signatures or {},
            baseline=baseline,
            reference=reference,
        )

    @property
    def limits(self) -> Limits:
        limits = Rulebook(findings()).resolve(self.finding, Series("decode-1"), self.level).limits
        return replace(limits, thresholds={**limits.thresholds, **self.thresholds})

    def judge(self, windows: Sequence[Sum] = (), **more: object) -> Verdict:
        detector = Rulebook(findings()).detector(self.finding)
        return detector.judge(self.evidence(windows, **more), self.limits)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def build() -> type[Builder]:
    return Builder


@pytest.fixture(scope="session")
def case() -> type[Case]:
    return Case


@pytest.fixture(scope="session")
def began() -> float:
    return BEGAN


@pytest.fixture(scope="session")
def rulebook() -> Callable[..., Rulebook]:
    return lambda *overrides: Rulebook(findings(), overrides)


@pytest.fixture(scope="session")
def simulated_hours() -> float:
    return float(os.environ.get("DRAFTGAUGE_TEST_HOURS", "6"))


@pytest.fixture
def broken_detector(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], AbstractContextManager[None]]:
    """A detector that raises whatever it is asked, until the context ends."""

    def judge(evidence: Evidence, limits: Limits) -> Verdict:
        raise RuntimeError("broken on purpose")

    @contextmanager
    def broken(name: str) -> Iterator[None]:
        sound = Rulebook.detector

        def detector(book: Rulebook, finding: str) -> Detector:
            found = sound(book, finding)
            return replace(found, judge=judge) if found.name == name else found

        with monkeypatch.context() as patch:
            patch.setattr(Rulebook, "detector", detector)
            yield

    return broken
