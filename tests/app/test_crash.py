"""kill -9 of a real service under a firing alert: nothing is lost, and nobody is told twice but under one id."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acceptance.facts import Subject
from acceptance.query import AcceptanceQuery, parse_time
from acceptance.window import Source
from collectors.engines import engines
from collectors.reading import Text
from store.duckdb import DuckHistory
from store.failpoints import NAMES
from store.sql import SqlState

pytestmark = pytest.mark.process

SPEED = 20.0
FALLBACK = "draft-attention-backend-fallback"
SGLANG = (
    "sg-1",
    "--engine",
    "sglang",
    "--draft-attention-backend",
    "triton",
    "--categories",
    "code,chat",
    "--rate",
    "0",
)
VLLM = ("vl-1", "--engine", "vllm", "--ranks", "2", "--rate", "0")
RUNS = int(os.environ.get("DRAFTGAUGE_TEST_RUNS", "5"))


class Scene:
    """Emulated engines that run ahead of the wall's clock, the service that is killed, and who is told."""

    def __init__(self, engines: list[Any], served: Any, receiver: Any, folder: Path) -> None:
        self.engines = engines
        self.served = served
        self.receiver = receiver
        self.folder = folder
        self.first: dict[str, Any] = {}

    def configure(self, *, logs: bool, more: int = 0) -> None:
        """``more`` targets are known by their logs only."""
        extra = [{"name": f"extra-{number}", "logs": [str(self.extra_log(number))]} for number in range(more)]
        watched = [
            {"name": one.name, "url": one.url, "group": one.group, **({"logs": [str(one.log)]} if logs else {})}
            for one in self.engines
        ]
        self.served.configure(
            targets=[*watched, *extra],
            scrape={"interval": "1s"},
            evaluation={"interval": "1s"},
            channels={"pager": {"kind": "webhook", "url": f"{self.receiver.url}/hook"}},
        )

    def extra_log(self, number: int) -> Path:
        return self.folder / f"extra-{number}.log"

    def write_extra_log(self, number: int) -> None:
        """The start of another server whose drafter fell back: one alert more."""
        shutil.copy(self.folder / "start.log", self.extra_log(number))

    def begin(self) -> None:
        """Look at the engines before they have done anything: what they count from then on is known to be new."""
        shutil.copy(self.engines[0].log, self.folder / "start.log")
        self.first = {one.name: one.lives()[0]["all"] for one in self.engines}
        self.configure(logs=False)
        self.served.start()
        for one in self.engines:
            self.served.until(lambda name=one.name: (self.served.target(name)["looks"].get("metrics") or {}).get("up"))
        assert self.served.stop() == 0
        for one in self.engines:
            one.post("resume")

    def finish(self) -> None:
        """Let all requests end, run the service until it has seen that, and stop it."""
        for one in self.engines:
            one.post("pause")
        while any(one.get("clock")["unfinished"] for one in self.engines):
            time.sleep(0.1)
        ended = time.time()
        self.served.start()
        for one in self.engines:
            self.served.until(lambda name=one.name: self._seen_since(name, ended))
        self.served.until(lambda: all(self._waiting(one.name) == 0 for one in self.engines))
        assert self.served.stop() == 0

    def _seen_since(self, name: str, at: float) -> bool:
        look = self.served.target(name)["looks"].get("metrics")
        return bool(look) and look["up"] and parse_time("at", look["at"], at) > at

    def _waiting(self, name: str) -> float:
        """Decode lines of the log that are not stored yet."""
        rows = self.served.get("/api/acceptance", **{"from": 0, "to": 4e9, "source": "log", "target": name})["rows"]
        return log_of(self._engine(name))[0] - sum(row["windows"] for row in rows)

    def _engine(self, name: str) -> Any:
        return next(one for one in self.engines if one.name == name)

    @contextmanager
    def stores(self) -> Iterator[tuple[DuckHistory, SqlState]]:
        history = DuckHistory(self.served.data / "history.duckdb")
        state = SqlState(f"sqlite:///{self.served.data / 'state.sqlite'}")
        yield history, state
        history.close()
        state.close()


def log_of(engine: Any) -> tuple[int, float, float]:
    """Windows, steps and emitted of a whole log, read at once."""
    reader = engines()["sglang" if engine.name.startswith("sg") else "vllm"].logs
    _, reading = reader.feed(Subject(engine.name), {}, Text(engine.log.read_bytes(), time.time()))
    busy = [window.counts for window in reading.windows if window.busy]
    return len(busy), sum(each.steps or 0.0 for each in busy), sum(each.emitted or 0.0 for each in busy)


def stored(history: DuckHistory, name: str, source: Source) -> tuple[int, float, float]:
    sums = history.query(AcceptanceQuery(0.0, 4e9, where={"target": (name,)}, source=source))
    return (
        sum(item.windows for item in sums),
        sum(item.counts.steps or 0.0 for item in sums),
        sum(item.counts.emitted or 0.0 for item in sums),
    )


def truth(engine: Any, first: Mapping[str, Any]) -> tuple[float, float]:
    """Steps, and tokens as the engine's counters have them."""
    (life,) = engine.lives()
    emitted = "emitted" if engine.name.startswith("sg") else "emitted_untrimmed"
    after, before = life["all"]["total"], first["total"]
    return after["steps"] - before["steps"], after[emitted] - before[emitted]


@pytest.fixture
def scene(emulate: Callable[..., list[Any]], served: Any, receiver: Any, tmp_path: Path) -> Scene:
    return Scene(emulate(SGLANG, VLLM, speed=SPEED), served, receiver, tmp_path)


def assert_all_is_there(scene: Scene, history: DuckHistory) -> None:
    for one in scene.engines:
        assert stored(history, one.name, "counter")[1:] == truth(one, scene.first[one.name])
        assert stored(history, one.name, "log") == pytest.approx(log_of(one))
        assert stored(history, one.name, "log")[0] > 20


def assert_told_once(scene: Scene, state: SqlState, kills: int) -> None:
    """One firing episode of every alert, one message about it, sent again at most once a kill."""
    alerts = {record.key: record for record in state.alerts()}
    deliveries = state.deliveries(1000)
    for record in alerts.values():
        if record.severity in ("warning", "critical"):
            assert record.phase == "firing"
    assert Counter(delivery.message.alert_key for delivery in deliveries) == Counter(
        key for key, record in alerts.items() if record.severity in ("warning", "critical")
    )
    assert {delivery.status for delivery in deliveries} == {"delivered"}
    received = Counter(message.headers["webhook-id"] for message in scene.receiver.messages)
    assert set(received) == {delivery.message.id for delivery in deliveries}
    assert sum(received.values()) - len(received) <= kills


def fallen(state: SqlState) -> set[str]:
    return {record.target for record in state.alerts() if record.finding == FALLBACK}


def test_at_every_commit_boundary(scene: Scene) -> None:
    """Each death is picked up by the next process, which finds another alert to fire."""
    scene.begin()
    scene.configure(logs=True, more=len(NAMES))
    for number, name in enumerate(NAMES):
        scene.write_extra_log(number)
        process = scene.served.spawn(DRAFTGAUGE_FAILPOINT=name)
        assert process.wait(120) == -signal.SIGKILL, name
    scene.finish()
    with scene.stores() as (history, state):
        assert_all_is_there(scene, history)
        assert_told_once(scene, state, kills=len(NAMES))
        assert fallen(state) == {"sg-1", *(f"extra-{number}" for number in range(len(NAMES)))}
    # One of the deaths came after a message was sent and before that was written down.
    assert len(scene.receiver.messages) > 1 + len(NAMES)


def test_at_random_moments(scene: Scene) -> None:
    """Every process finds an alert to fire and a message that its receiver refuses at first."""
    moments = random.Random(17)
    scene.begin()
    scene.configure(logs=True, more=RUNS)
    for number in range(RUNS):
        scene.write_extra_log(number)
        scene.receiver.statuses[:] = [503] * moments.randrange(3)
        began = time.monotonic()
        if moments.random() < 0.2:
            scene.served.spawn()
        else:
            scene.served.start()
            began = time.monotonic()
        time.sleep(max(0.0, moments.uniform(0.0, 4.0) - (time.monotonic() - began)))
        scene.served.kill()
    scene.receiver.statuses.clear()
    scene.finish()
    with scene.stores() as (history, state):
        assert_all_is_there(scene, history)
        assert_told_once(scene, state, kills=RUNS)
        assert fallen(state) == {"sg-1", *(f"extra-{number}" for number in range(RUNS))}
