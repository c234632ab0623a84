"""What pages say of emulated engines: all well, then a drafter dies and another falls back to a slower kernel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from acceptance.query import AcceptanceQuery
from service.fleet import FleetReads
from service.target import TargetReads
from service.trends import TrendsReads

pytestmark = pytest.mark.process

Make = Callable[..., Awaitable[Any]]

BUSY = ("--categories", "code,chat,creative,agentic", "--rate", "0.6")


async def test_the_pages_through_two_faults(bench: Make) -> None:
    world = await bench(
        *((name, "--engine", "sglang", *BUSY, "--seed", name[-1]) for name in ("sg-1", "sg-2")),
        ("vl-3", "--engine", "vllm", *BUSY, "--seed", "3"),
    )
    parts = world.parts
    fleet, trends, target = (
        kind(parts.history, parts.state, parts.catalog, lambda: parts.evaluator.surroundings.rulebook)
        for kind in (FleetReads, TrendsReads, TargetReads)
    )
    view = fleet.view(world.now)
    assert view.verdict == "Nothing is serving, so there is nothing to judge."
    assert view.status[1] == "3 targets: 3 idle"

    await world.run(600.0)
    view = fleet.view(world.now)
    assert (view.verdict, view.alarm) == ("Speculation pays on all three serving targets.", "")
    assert view.incidents == ()
    assert [item.label for item in view.kpis] == ["acc_len, all serving", "Output", "Step time", "Yield", "Coverage"]
    assert [name for name, _ in view.categories] == ["code", "chat", "agentic", "creative"]
    assert {expected for _, expected in view.categories} == {5.5, 3.9, 4.7, 2.6}
    for row in view.rows:
        assert row.severity not in ("warning", "critical")
        assert 2.5 < (row.acc_len.acc_len or 0.0) < 5.5
        assert row.step_time_seconds is not None
        assert row.output_tokens_per_second is not None
    query = AcceptanceQuery(world.now - 600, world.now, by=("target",))
    assert trends.view(query, world.now).verdict == "None of the 3 targets fell."

    world["sg-1"].fault("drafter-dies")
    world["sg-2"].fault("restart", seconds=30.0, draft_attention_backend="flashinfer")
    await world.run(360.0)
    view = fleet.view(world.now)
    assert view.verdict == "Speculation pays on one of three serving targets."
    assert view.alarm.startswith("Two ")
    assert [row.label for row in view.rows[:2]] == ["Dead drafter", "Slow kernel"]
    dead, slow = view.incidents
    assert dead.title == "Drafter is dead on sg-1"
    assert dict(dead.figures)["acc_len"].endswith(" → 1.00")
    assert "expected" in dict(dead.figures)
    assert set(dead.told) == {"slack", "pager"}
    assert slow.title == "Drafter fell back to another attention backend on sg-2"
    assert dict(slow.figures)["acc_len"].endswith(" normal")
    assert (slow.flag_verb, slow.flag) == ("Remove", "--speculative-draft-attention-backend")
    assert view.rows[0].heartbeat[-1].state == "critical"
    query = AcceptanceQuery(world.now - 900, world.now, by=("target",))
    assert trends.view(query, world.now).verdict.startswith("Only sg-1 fell, at ")
    page = target.page("sg-1", world.now)
    assert page is not None
    assert page.verdict.startswith("Drafter is dead, since ")
    assert {row.source for row in page.sources} == {"counter", "log", "gauge"}
