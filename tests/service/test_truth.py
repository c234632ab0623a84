"""What is stored of emulated engines is what they did, as integers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import numpy as np
import pytest

from acceptance.counts import Counts

pytestmark = pytest.mark.process

Make = Callable[..., Awaitable[Any]]
Truth = Mapping[str, Any]

OUTPUTS = (1, 2, 20, 400, 4_000)
SGLANG = ("steps", "emitted", "requests", "proposed")
VLLM = {"steps": "steps", "emitted_untrimmed": "emitted", "requests": "requests", "proposed": "proposed"}


def asked(*categories: str, outputs: tuple[int, ...] = OUTPUTS) -> list[dict[str, Any]]:
    return [
        {"category": category, "output_tokens": tokens, "streaming": streaming, "count": 2}
        for category in categories
        for tokens in outputs
        for streaming in (True, False)
    ]


def exposed(lives: list[Truth], first: Truth, share: str, by: str) -> dict[str, dict[str, Any]]:
    """What all incarnations showed when they were looked at last, less what the first had shown at the first look."""
    found: dict[str, dict[str, Any]] = {}
    shown = [(life["exposed"][share][by], 1) for life in lives if life["exposed"] is not None]
    for tallies, sign in (*shown, (first["exposed"][share][by], -1)):
        for key, tally in tallies.items():
            own = found.setdefault(key, {})
            for name, value in tally.items():
                own[name] = own.get(name, 0) + sign * np.array(value)
    plain = {key: {name: value.tolist() for name, value in own.items()} for key, own in found.items()}
    return {key: own for key, own in plain.items() if own["requests"] or own["steps"]}


def of_sglang(counts: Counts) -> tuple[float | None, ...]:
    return tuple(getattr(counts, name) for name in SGLANG)


@pytest.mark.parametrize("seed", ["0", "7"])
async def test_sglang_by_category(bench: Make, seed: str) -> None:
    world = await bench(("sg-1", "--engine", "sglang", "--seed", seed), quiet=True, scrape_seconds=5.0)
    engine = world["sg-1"]
    (first,) = engine.lives()
    engine.post("requests", asked("code", "chat", "creative", ""))
    await world.finish()
    truth = exposed(engine.lives(), first, "finished", "by_category")
    assert truth == exposed(engine.lives(), first, "all", "by_category")
    stored = {category: counts for (category,), counts in world.sums("counter", ("category",)).items()}
    assert {category: of_sglang(counts) for category, counts in stored.items()} == {
        category: tuple(tally[name] for name in SGLANG) for category, tally in truth.items()
    }
    assert set(stored) == {"code", "chat", "creative", ""}
    for category, counts in stored.items():
        untrimmed = truth[category]["emitted_untrimmed"] / truth[category]["steps"]
        assert counts.acc_len is not None
        assert counts.bias_bound is not None
        assert 0 < untrimmed - counts.acc_len <= counts.bias_bound


async def test_sglang_without_a_label(bench: Make) -> None:
    world = await bench(("sg-1", "--engine", "sglang", "--label", ""), quiet=True, scrape_seconds=5.0)
    engine = world["sg-1"]
    (first,) = engine.lives()
    engine.post("requests", asked("code", "chat", outputs=(2, 20, 400)))
    await world.finish()
    tallies = exposed(engine.lives(), first, "finished", "by_category").values()
    assert {key: of_sglang(counts) for key, counts in world.sums("counter", ("category",)).items()} == {
        (None,): tuple(sum(tally[name] for tally in tallies) for name in SGLANG)
    }


@pytest.mark.parametrize(("engine", "options"), [("vllm", ("--ranks", "2")), ("vllm-rust", ())])
async def test_vllm_by_rank_and_position(bench: Make, engine: str, options: tuple[str, ...]) -> None:
    world = await bench(("vl-1", "--engine", engine, *options), scrape_seconds=5.0)
    served = world["vl-1"]
    (first,) = served.lives()
    served.post("requests", asked("", outputs=(2, 20, 400, 4_000)))
    # With traffic of its own, and looked at in the middle of it: these counters move with every pass.
    await world.run(90.0)
    truth = exposed(served.lives(), first, "all", "by_rank")
    stored = {rank: counts for (rank,), counts in world.sums("counter", ("rank",)).items()}
    assert set(stored) == set(truth)
    for rank, counts in stored.items():
        told = {name: getattr(counts, ours) for name, ours in VLLM.items()}
        assert told == {name: truth[rank][name] for name in VLLM}
        assert list(counts.by_position or ()) == truth[rank]["accepted_by_position"]
        assert counts.acc_len == truth[rank]["emitted_untrimmed"] / truth[rank]["steps"]


DOWN_SECONDS = (4.0, 40.0, 0.0)
"""Within one interval, over two, and with no time at all between two processes."""


async def test_sglang_through_restarts(bench: Make) -> None:
    world = await bench(("sg-1", "--engine", "sglang", "--categories", "code,chat"))
    engine = world["sg-1"]
    (first,) = engine.lives()
    for seconds in DOWN_SECONDS:
        await world.run(120.0)
        engine.fault("restart", seconds=seconds)
    await world.run(120.0)
    lives = engine.lives()
    truth = exposed(lives, first, "finished", "by_category")
    assert len(lives) == 4
    assert all(life["exposed"]["finished"]["total"]["steps"] for life in lives)
    assert {category: of_sglang(counts) for (category,), counts in world.sums("counter", ("category",)).items()} == {
        category: tuple(tally[name] for name in SGLANG) for category, tally in truth.items()
    }


@pytest.mark.parametrize("engine", ["vllm", "vllm-rust"])
async def test_vllm_through_restarts(bench: Make, engine: str) -> None:
    world = await bench(("vl-1", "--engine", engine))
    served = world["vl-1"]
    (first,) = served.lives()
    for seconds in DOWN_SECONDS:
        await world.run(75.0)
        served.fault("restart", seconds=seconds)
    await world.run(75.0)
    lives = served.lives()
    truth = exposed(lives, first, "all", "by_rank")["0"]
    assert len(lives) == 4
    (counts,) = world.sums("counter", ("target",)).values()
    assert {name: getattr(counts, ours) for name, ours in VLLM.items()} == {name: truth[name] for name in VLLM}
    assert list(counts.by_position or ()) == truth["accepted_by_position"]


async def test_our_own_restart_leaves_no_gap(bench: Make) -> None:
    world = await bench(("sg-1", "--engine", "sglang"), ("vl-1", "--engine", "vllm"))
    first = {name: engine.lives()[0] for name, engine in world.engines.items()}
    await world.run(60.0)
    await world.close()
    await world.pass_unseen(300.0)
    await world.open()
    await world.run(60.0)
    by_category = exposed(world["sg-1"].lives(), first["sg-1"], "finished", "by_category")
    assert {key: of_sglang(counts) for key, counts in world.sums("counter", ("category",), target="sg-1").items()} == {
        (category,): tuple(tally[name] for name in SGLANG) for category, tally in by_category.items()
    }
    (vllm,) = world.sums("counter", ("rank",), target="vl-1").values()
    truth = exposed(world["vl-1"].lives(), first["vl-1"], "all", "by_rank")["0"]
    assert (vllm.steps, vllm.emitted) == (truth["steps"], truth["emitted_untrimmed"])


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
async def test_the_log_comes_within_one_percent(bench: Make, engine: str) -> None:
    world = await bench(("one", "--engine", engine), quiet=True)
    served = world["one"]
    (first,) = served.lives()
    served.ask(20_000, category="code", count=4)
    await world.finish()
    (life,) = served.lives()
    truth, earlier = life["all"]["total"], first["all"]["total"]
    steps, emitted = (truth[name] - earlier[name] for name in ("steps", "emitted_untrimmed"))
    (log,) = world.sums("log", ("target",)).values()
    assert log.acc_len == pytest.approx(emitted / steps, rel=0.01)
    assert log.steps == pytest.approx(steps, rel=0.01)
    assert log.emitted == pytest.approx(emitted, rel=0.01)
