"""A drafter dies, and what else may happen to a server: who is told what, on the emulators' clock."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.demo.fleet import DEMO

pytestmark = pytest.mark.process

Make = Callable[..., Awaitable[Any]]

SLACK, HOOK = "/services/T0/B0/secret", "/hook"
CATEGORIES = ("code", "chat", "creative", "agentic")
ACCEPTANCE = {"dead-drafter", "low-acceptance", "acceptance-drop", "acceptance-decay"}
STILL = "the counters have not moved"

BUSY = ("sg-1", "--engine", "sglang", "--categories", ",".join(CATEGORIES), "--rate", "0.3")


def told(receiver: Any) -> list[tuple[str, str, str]]:
    """What both channels were told; they are told the same."""
    slack = [message.body["text"].split(":")[0] for message in receiver.at(SLACK)]
    alerts = receiver.alerts(HOOK)
    assert slack == ["RESOLVED" if status == "resolved" else severity.upper() for _, severity, status in alerts]
    return alerts


async def test_the_drafter_dies_in_the_middle_of_long_generations(bench: Make, receiver: Any) -> None:
    world = await bench(("sg-1", "--engine", "sglang"), quiet=True)
    engine = world["sg-1"]
    for category in CATEGORIES:
        engine.ask(20_000, category=category)
    await world.run(15.0)
    engine.fault("drafter-dies")
    died = world.now
    assert await world.run(180.0, until=lambda: bool(receiver.messages))
    assert engine.get("clock")["unfinished"] == len(CATEGORIES)
    assert told(receiver) == [("dead-drafter", "critical", "firing")]
    (message,), (page,) = receiver.at(SLACK), receiver.at(HOOK)
    (alert,) = page.body["alerts"]
    assert alert["labels"]["target"] == "sg-1"
    assert alert["annotations"]["source"] == "log"
    assert float(alert["annotations"]["value"]) == 1.0
    assert STILL in alert["annotations"]["description"]
    assert not world.sums("counter", ("target",), start=died)
    for words in ("dead-drafter", "sg-1", "acc_len 1.00", STILL, "*Source*\\nlog", "verify steps"):
        assert words in message.text
    assert "http://draftgauge.test/trends?" in message.text

    await world.run(300.0)
    engine.fault("none")
    engine.post("requests", [{"category": category, "output_tokens": 3_000, "count": 6} for category in CATEGORIES])
    await world.run(300.0)
    engine.post("requests", [{"category": category, "output_tokens": 3_000, "count": 6} for category in CATEGORIES])
    await world.run(300.0)
    assert told(receiver) == [("dead-drafter", "critical", "firing"), ("dead-drafter", "critical", "resolved")]


@pytest.mark.parametrize("seed", ["2", "5"])
async def test_the_drafter_dies_under_traffic_of_every_length(bench: Make, receiver: Any, seed: str) -> None:
    world = await bench((*BUSY, "--seed", seed))
    engine = world["sg-1"]
    await world.run(300.0)
    engine.fault("drafter-dies")
    assert await world.run(180.0, until=lambda: bool(receiver.messages))
    await world.run(420.0)
    assert told(receiver) == [("dead-drafter", "critical", "firing")]
    assert STILL not in receiver.messages[0].text
    engine.fault("none")
    # Requests that ran through the fault are counted when they end, long after it.
    await world.run(900.0)
    assert told(receiver) == [("dead-drafter", "critical", "firing"), ("dead-drafter", "critical", "resolved")]


@pytest.mark.parametrize("eager", [False, True])
async def test_a_slower_kernel_is_no_loss_of_acceptance(bench: Make, receiver: Any, eager: bool) -> None:
    world = await bench(BUSY)
    began = world.now
    await world.run(300.0)
    broke = world.now
    world["sg-1"].fault("kernel-fallback", factor=1.8, eager=eager)
    await world.run(600.0)
    before, after = (
        next(item for item in world.parts.history.timed(start, end, end - start) if item.source == "log")
        for start, end in ((began, broke), (broke, world.now))
    )
    # Slower passes let requests pile up, and a larger batch takes longer still.
    assert 1.5 <= after.step_time_seconds / before.step_time_seconds <= 2.5
    (healthy,), (slow,) = (world.sums("log", ("target",), start=at).values() for at in (began, broke))
    assert slow.acc_len == pytest.approx(healthy.acc_len, rel=0.15)
    assert not ACCEPTANCE & {finding for finding, _ in world.fired("warning", "critical")}
    assert {finding for finding, _, _ in told(receiver)} == ({"cuda-graph-decode-off"} if eager else set())


async def test_idle_and_restarted_servers_page_nobody(bench: Make, receiver: Any) -> None:
    world = await bench(BUSY, ("vl-1", "--engine", "vllm"))
    await world.run(120.0)
    for name in world.engines:
        world[name].fault("restart", seconds=40.0)
    await world.run(120.0)
    for name in world.engines:
        world[name].fault("idle")
    await world.run(1200.0)
    assert world.fired("warning", "critical") == set()
    assert receiver.messages == []


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
async def test_one_dead_rank_is_named(bench: Make, receiver: Any, engine: str) -> None:
    world = await bench(("dp", "--engine", engine, "--ranks", "4", "--rate", "0.8"))
    await world.run(120.0)
    world["dp"].fault("drafter-dies", rank=2)
    assert await world.run(180.0, until=lambda: bool(receiver.messages))
    await world.run(300.0)
    assert told(receiver) == [("dead-drafter", "critical", "firing")]
    (page,) = receiver.at(HOOK)
    assert page.body["alerts"][0]["labels"]["rank"] == "2"


async def test_one_bad_rank_is_named(bench: Make, receiver: Any) -> None:
    world = await bench(("dp", "--engine", "vllm", "--ranks", "2", "--rate", "0.8"))
    world["dp"].fault("bad-rank", rank=1, scale=0.3)
    assert await world.run(1500.0, until=lambda: bool(receiver.messages))
    assert told(receiver) == [("low-acceptance", "warning", "firing")]
    assert receiver.at(HOOK)[0].body["alerts"][0]["labels"]["rank"] == "1"


async def test_a_healthy_fleet_is_left_alone(bench: Make, receiver: Any) -> None:
    minutes = float(os.environ.get("DRAFTGAUGE_TEST_MINUTES", "20"))
    fleet = [
        (f"{spec.name}-{each}", *spec.options, "--seed", str(each))
        for spec in DEMO
        for each in range(min(spec.count, 2))
    ]
    world = await bench(*fleet)
    await world.run(60.0 * minutes)
    assert len(world.engines) == len(fleet) == 5
    assert all(world.sums("counter", ("target",), target=name) for name in world.engines)
    assert world.fired("warning", "critical") == set()
    assert receiver.messages == []
    assert sum(evaluated.failures for evaluated in world.evaluated) == 0
