"""Evaluations one after the other on a clock that the test sets, with a real state database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import CapturingLogger

from acceptance.counts import Counts, Spread
from acceptance.facts import FactValue, Subject
from acceptance.health import Health
from acceptance.hits import Hit
from acceptance.series import Series
from acceptance.window import Source, Window, window_id
from alerts.detectors import Detector
from alerts.evidence import Evidence
from alerts.findings import findings
from alerts.limits import Limits
from alerts.messages import Links, Routes
from alerts.rules import Override, Rulebook
from alerts.states import Transition
from alerts.verdicts import Verdict
from service.evaluate import Evaluated, Evaluator, Fleet, Surroundings
from store.history import Batch
from store.memory import MemoryHistory
from store.sql import SqlState
from store.state import AlertChange, Message

BEGAN = 1_796_000_000.0
TICK = 15.0
SGLANG: Mapping[str, FactValue] = {"engine": "sglang", "k": 7, "model": "kimi-k3", "drafter": "dspark"}


@dataclass
class Service:
    """Targets that are scraped and judged every 15 seconds. ``lengths``: target -> source -> acc_len, None is idle."""

    path: Path
    routes: Routes = field(default_factory=lambda: Routes.default(["slack", "hook"]))
    overrides: Sequence[Override] = ()
    targets: list[str] = field(default_factory=lambda: ["decode-1"])
    facts: Mapping[str, FactValue] = field(default_factory=lambda: SGLANG)
    now: float = BEGAN
    requests: float = 4.0
    transitions: list[tuple[float, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = MemoryHistory()
        self.state = SqlState(f"sqlite:///{self.path}")
        self.restart()

    def restart(self) -> None:
        """A new process on the same database."""
        self.state.close()
        self.state = SqlState(f"sqlite:///{self.path}")
        rulebook = Rulebook(findings(), self.overrides, interval_seconds=TICK)
        surroundings = Surroundings(
            rulebook=rulebook,
            routes=self.routes,
            links=Links("https://gauge.example"),
            signatures={"SG-DRAFT-ATTN-FALLBACK": "draft-attention-backend-fallback"},
        )
        self.evaluator = Evaluator(self.history, self.state, self.fleet, surroundings)

    def fleet(self) -> Fleet:
        return Fleet([Subject(name, "prod", facts=self.facts) for name in self.targets])

    def window(self, target: str, source: Source, length: float, **series: Any) -> Window:
        identity = Series(target, "prod", engine="sglang", model="kimi-k3", drafter="dspark", **series)
        steps = 400.0
        counts = Counts(
            steps=steps,
            emitted=steps * length,
            slots=7 * steps,
            requests=self.requests if source == "counter" else None,
            trim_bound=0.0,
            spread=Spread.of(steps * length, steps),
        )
        number = window_id(identity, "1", source, self.now - TICK, self.now)
        return Window(number, identity, self.now - TICK, self.now, source, source == "counter", counts)

    def tick(self, *windows: Window, up: bool = True, judge: bool = True) -> Evaluated | None:
        looks = [Health(name, "metrics", self.now, up=up, running=2.0) for name in self.targets]
        self.history.append(Batch(windows, looks))
        done = self.evaluator.evaluate(self.now) if judge else None
        if done is not None:
            self.transitions += [(self.now - BEGAN, record.key, change.kind) for record, change in done.transitions]
        self.now += TICK
        return done

    def run(self, seconds: float, *, up: bool = True, judge: bool = True, **lengths: float) -> None:
        """Every target of every source named at this acc_len, for so long."""
        for _ in range(int(seconds / TICK)):
            self.tick(
                *[
                    self.window(target, source, length)  # type: ignore[arg-type]
                    for target in self.targets
                    for source, length in lengths.items()
                ],
                up=up,
                judge=judge,
            )

    def phases(self) -> dict[str, str]:
        return {record.key: record.phase for record in self.state.alerts(resolved_since=0.0)}

    def messages(self) -> list[Message]:
        return [delivery.message for delivery in reversed(self.state.deliveries(1000))]

    def kinds(self, channel: str = "slack") -> list[str]:
        return [message.kind for message in self.messages() if message.channel == channel]


DEAD = "dead-drafter target=decode-1"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    started: list[Service] = []

    def start(**more: Any) -> Service:
        started.append(Service(tmp_path / f"state-{len(started)}.db", **more))
        return started[-1]

    yield start
    for each in started:
        each.state.close()


def test_a_drafter_that_dies_while_the_counters_stand_still_is_paged_within_three_minutes(
    service: Callable[..., Service],
) -> None:
    """Four long generations: no request finishes, so only decode lines tell."""
    it = service()
    it.run(600, counter=3.1, log=3.2, judge=False)
    died = it.now - BEGAN
    it.run(300, log=1.0)
    (fired,) = [at for at, key, kind in it.transitions if key == DEAD and kind == "firing"]
    assert fired - died <= 180
    firing = it.messages()
    assert {(message.channel, message.kind) for message in firing} == {("slack", "firing"), ("hook", "firing")}
    body = firing[0].body
    assert (body["severity"], body["source"]) == ("critical", "log")
    assert "the counters have not moved since" in body["why"]


def test_it_is_told_once_when_it_fires_and_once_when_it_is_resolved(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=3.2, judge=False)
    it.run(300, log=1.0)
    it.run(300, log=3.2)
    assert it.kinds() == ["firing", "resolved"]
    assert it.phases()[DEAD] == "resolved"
    assert len({message.id for message in it.messages()}) == len(it.messages())


def test_a_message_says_everything_a_channel_needs(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=3.2, judge=False)
    it.run(300, log=1.0)
    body = it.messages()[0].body
    assert (body["title"], body["finding"], body["status"]) == ("Drafter is dead", "dead-drafter", "firing")
    assert (body["target"], body["group"], body["model"], body["drafter"]) == ("decode-1", "prod", "kimi-k3", "dspark")
    assert (body["rank"], body["category"], body["engine"], body["measure"]) == (None, None, "sglang", "acc_len")
    assert (body["value"], body["threshold"], body["steps"], body["requests"]) == (1.0, 1.1, 800.0, None)
    assert body["since"] == BEGAN + 285
    assert body["fired_at"] > body["since"]
    assert body["resolved_at"] is None
    assert body["cause"].startswith("Draft tokens are proposed and paid for")
    assert any("--speculative-draft-attention-backend" in line for line in body["remedy"])
    assert not any("vLLM" in line or "--speculative-config" in line for line in body["remedy"])
    assert body["link"].startswith("https://gauge.example/trends?from=2026-")
    assert "target=decode-1" in body["link"]
    assert body["runbook"] == "https://gauge.example/runbook#dead-drafter"


def test_a_resolved_message_says_why_and_since_when(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=1.0)
    it.run(300, log=3.2)
    body = it.messages()[-1].body
    assert (body["status"], body["severity"]) == ("resolved", "critical")
    assert body["why"] == "acc_len 3.20"
    assert body["resolved_at"] - body["fired_at"] > 180


def test_an_evaluation_at_the_same_time_changes_nothing(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=1.0)
    before, messages = it.state.alerts(), it.messages()
    for _ in range(5):
        assert it.evaluator.evaluate(it.now - TICK).transitions == []
    assert it.state.alerts() == before
    assert it.messages() == messages


def test_a_restart_while_pending_keeps_the_time_already_counted(service: Callable[..., Service]) -> None:
    it = service()
    it.run(90, log=1.0)
    assert it.phases() == {DEAD: "pending"}
    it.restart()
    it.run(60, log=1.0)
    assert it.phases() == {DEAD: "firing"}
    assert it.kinds() == ["firing"]


def test_a_restart_while_firing_tells_nothing_again(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=1.0)
    it.restart()
    it.run(300, log=1.0)
    assert it.kinds() == ["firing"]
    it.restart()
    it.run(600, log=3.2)
    assert it.kinds() == ["firing", "resolved"]


def test_downtime_neither_fires_nor_resolves(service: Callable[..., Service]) -> None:
    it = service()
    it.run(90, log=1.0)
    it.now += 7200
    it.run(30, log=1.0)
    assert it.phases() == {DEAD: "pending"}


def test_idle_leaves_a_firing_alert_as_it_is(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=1.0)
    it.run(1800)
    assert it.phases()[DEAD] == "firing"
    assert it.kinds() == ["firing"]
    it.run(600, log=3.0)
    assert it.kinds() == ["firing", "resolved"]


def test_scrapes_slower_than_evaluations_fire_all_the_same(service: Callable[..., Service]) -> None:
    it = service(facts={"engine": "vllm", "k": 3})
    for at in range(32):
        windows = [it.window("decode-1", "counter", 1.0)] if at % 4 == 0 else []
        it.tick(*windows)
    assert it.phases()[DEAD] == "firing"


def test_traffic_that_comes_and_goes_never_fires_by_its_gaps(service: Callable[..., Service]) -> None:
    """One bad window every five minutes is never two minutes of death."""
    it = service()
    for _ in range(4):
        it.run(15, log=1.0)
        it.run(285, log=3.2)
    assert not it.messages()


def test_low_acceptance_is_a_warning_and_names_its_bounds(service: Callable[..., Service]) -> None:
    it = service()
    it.run(480, counter=1.7, judge=False)
    it.run(240, counter=1.7)
    (message,) = [message for message in it.messages() if message.channel == "slack"]
    body = message.body
    assert (body["finding"], body["severity"], body["threshold"]) == ("low-acceptance", "warning", 2.0)
    assert body["lower"] <= 1.7 <= body["upper"] < 2.0
    assert body["requests"] >= 20


def test_a_notice_stays_in_the_ui_unless_it_is_routed(service: Callable[..., Service]) -> None:
    it = service()
    it.run(480, counter=2.6, judge=False)
    it.run(240, counter=2.6)
    assert it.phases() == {"low-acceptance target=decode-1": "firing"}
    assert it.messages() == []
    routed = service(routes=Routes({"notice": ("hook", "hook"), "warning": ("slack",)}))
    routed.run(480, counter=2.6, judge=False)
    routed.run(240, counter=2.6)
    assert [(message.channel, message.body["severity"]) for message in routed.messages()] == [("hook", "notice")]


def test_a_notice_that_gets_worse_is_told(service: Callable[..., Service]) -> None:
    it = service()
    it.run(480, counter=2.6, judge=False)
    it.run(240, counter=2.6)
    it.run(900, counter=1.5)
    it.run(1200, counter=3.5)
    assert it.kinds() == ["firing", "resolved"]


def test_a_target_that_goes_away_is_resolved_and_says_so(service: Callable[..., Service]) -> None:
    it = service(targets=["decode-1", "decode-2"])
    it.run(300, log=1.0)
    assert len(it.messages()) == 4
    it.targets = ["decode-2"]
    it.run(600, log=1.0)
    resolved = [message for message in it.messages() if message.kind == "resolved"]
    assert {message.alert_key for message in resolved} == {DEAD}
    assert resolved[0].body["why"] == "the target is no longer listed"
    assert it.phases()["dead-drafter target=decode-2"] == "firing"


def test_a_discovery_that_finds_nothing_resolves_nothing(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=1.0)
    it.targets = []
    it.run(1200)
    assert it.phases()[DEAD] == "firing"


def test_a_category_without_traffic_keeps_its_alert(service: Callable[..., Service]) -> None:
    it = service()

    def minutes(number: float, **lengths: float) -> None:
        for _ in range(int(number * 60 / TICK)):
            it.tick(*[it.window("decode-1", "counter", length, category=name) for name, length in lengths.items()])

    minutes(5, code=4.0, chat=4.0, writing=1.0)
    key = "dead-drafter target=decode-1 category=writing"
    assert it.phases() == {key: "firing"}
    minutes(15, code=4.0, chat=4.0)
    assert it.phases() == {key: "firing"}
    assert it.messages()[0].body["category"] == "writing"
    minutes(10, code=4.0, chat=4.0, writing=4.0)
    assert it.phases() == {key: "resolved"}


def test_a_finding_that_is_turned_off_is_resolved(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=1.0)
    it.overrides = [Override("dead-drafter", {"group": ("prod",)}, enabled=False)]
    it.restart()
    it.run(300, log=1.0)
    assert it.phases()[DEAD] == "resolved"
    assert it.messages()[-1].body["why"] == "the finding is turned off"


def test_a_server_that_does_not_answer(service: Callable[..., Service]) -> None:
    it = service()
    it.run(300, log=3.2)
    it.run(150, up=False)
    assert it.phases() == {"target-down target=decode-1": "firing"}
    it.run(120, log=3.2)
    assert it.kinds() == ["firing", "resolved"]


def test_a_signature_is_an_alert_as_long_as_its_process_lives(service: Callable[..., Service]) -> None:
    it = service()
    it.state.record([], [Hit("decode-1", "1", "SG-DRAFT-ATTN-FALLBACK", BEGAN, excerpt="Falling back to 'flashinfer'")])
    it.run(60, log=3.2)
    (message, _) = it.messages()
    assert message.body["severity"] == "warning"
    assert "Falling back to 'flashinfer'" in message.body["why"]
    it.evaluator = replace_lives(it, {"decode-1": {"2"}})
    it.history.append(Batch(health=[Health("decode-1", "log:/x", it.now, up=True)]))
    it.run(600, log=3.2)
    it.history.append(Batch(health=[Health("decode-1", "log:/x", it.now - 1, up=True)]))
    it.run(330, log=3.2)
    assert it.kinds() == ["firing", "resolved"]


def replace_lives(it: Service, lives: Mapping[str, set[str]]) -> Evaluator:
    return Evaluator(it.history, it.state, lambda: replace(it.fleet(), lives=lives), it.evaluator.surroundings)


def test_one_detector_that_fails_leaves_its_alerts_and_stops_no_other(
    service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alerts.scopes.log", CapturingLogger())
    it = service()
    it.run(300, log=1.0)
    sound = Rulebook.detector

    def judge(evidence: Evidence, limits: Limits) -> Verdict:
        raise RuntimeError("broken on purpose")

    def detector(book: Rulebook, finding: str) -> Detector:
        return replace(sound(book, finding), judge=judge) if finding == "dead-drafter" else sound(book, finding)

    with monkeypatch.context() as patch:
        patch.setattr(Rulebook, "detector", detector)
        it.run(300, log=3.2, up=False)
        done = it.tick(up=False)
    assert done is not None
    assert done.failures == 1
    assert it.phases() == {DEAD: "firing", "target-down target=decode-1": "firing"}
    it.run(600, log=3.2)
    assert it.phases()[DEAD] == "resolved"


def test_one_target_that_cannot_be_judged_stops_no_other(
    service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CapturingLogger()
    monkeypatch.setattr("service.evaluate.log", log)
    it = service(targets=["decode-1", "decode-2"])
    it.run(300, log=1.0)
    sound = Rulebook.resolve

    def resolve(book: Rulebook, finding: str, series: Series, *more: Any) -> Any:
        if series.target == "decode-1":
            raise RuntimeError("broken on purpose")
        return sound(book, finding, series, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Rulebook, "resolve", resolve)
        it.run(300, log=3.2)
    assert {(call.args, call.kwargs["target"]) for call in log.calls} == {
        (("a target could not be judged",), "decode-1")
    }
    assert it.phases() == {DEAD: "firing", "dead-drafter target=decode-2": "resolved"}


def test_a_store_that_fails_loses_no_page(service: Callable[..., Service], monkeypatch: pytest.MonkeyPatch) -> None:
    it = service()
    it.run(135, log=1.0)
    assert it.phases() == {DEAD: "pending"}

    def fail(changes: Sequence[AlertChange]) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(it.state, "apply", fail)
        for _ in range(4):
            with pytest.raises(OSError, match="disk full"):
                it.tick(it.window("decode-1", "log", 1.0))
            it.now += TICK
    assert it.messages() == []
    it.run(60, log=1.0)
    assert it.kinds() == ["firing"]


def test_what_flaps_is_told_ever_less_often(service: Callable[..., Service]) -> None:
    it = service()
    for _ in range(6):
        it.run(240, log=1.0)
        it.run(360, log=3.2)
    assert len([kind for kind in it.kinds() if kind == "firing"]) <= 2


def test_the_account_of_an_evaluation(service: Callable[..., Service]) -> None:
    it = service(targets=["decode-1", "decode-2"])
    it.run(60, log=1.0)
    done = it.tick(it.window("decode-1", "log", 1.0), it.window("decode-2", "log", 3.0))
    assert done is not None
    assert (done.at, done.targets, done.failures) == (it.now - TICK, 2, 0)
    assert done.verdicts["Finding"] >= 1
    assert all(isinstance(transition, Transition) for _, transition in done.transitions)
