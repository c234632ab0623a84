"""The core counts what it does, and looking does not change it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.demo.engine import EmulatedEngine
from app.demo.faults import AnyFault, Decay, DrafterDies, Idle, KernelFallback, NoFault, Restart
from app.demo.settings import Settings
from app.demo.workload import Order, Workload

EPOCH = 1_796_110_000.0


def run(
    engine: str, looks: list[float], changes: dict[float, AnyFault], until: float, seed: int = 1
) -> tuple[Any, ...]:
    """An engine that is looked at and changed at the given seconds; its truth, results, page and log."""
    lines: list[str] = []
    emulated = EmulatedEngine(Settings(engine=engine, seed=seed, ranks=2), EPOCH, lines.extend)
    for second in sorted({*looks, *changes, until}):
        emulated.advance(EPOCH + second)
        if second in changes:
            emulated.fault(changes[second])
            emulated.submit([Order("code", 700, 3000, 0, "stop", True, 4.0)])
    return emulated.truth(), emulated.results(0, 10**6), emulated.metrics(), lines


@settings(max_examples=8)
@given(
    looks=st.lists(st.floats(0, 40), max_size=25),
    engine=st.sampled_from(["sglang", "vllm"]),
    changed_at=st.floats(1, 39),
)
def test_how_often_somebody_looks_changes_nothing(looks: list[float], engine: str, changed_at: float) -> None:
    changes: dict[float, AnyFault] = {changed_at: Decay(seconds=20)}
    often = run(engine, looks, changes, 40.0)
    seldom = run(engine, [], changes, 40.0)
    assert often == seldom


def test_the_seed_decides() -> None:
    assert run("sglang", [], {}, 60.0, seed=5) == run("sglang", [], {}, 60.0, seed=5)
    assert run("sglang", [], {}, 60.0, seed=5)[0] != run("sglang", [], {}, 60.0, seed=6)[0]


@pytest.mark.parametrize("engine", ["sglang", "vllm", "vllm-rust"])
def test_truth_is_the_sum_of_the_requests(bench: Callable, engine: str) -> None:
    done = bench(engine=engine, ranks=2, seed=4).run(240).finish()
    truth, results = done.truth(), done.engine.results(0, 10**6)
    assert len(results) > 100
    assert any(result["reason"] == "abort" for result in results)
    assert truth["all"] == truth["finished"]
    total = truth["all"]["total"]
    histogram = np.sum([result["histogram"] for result in results], axis=0)
    assert total["histogram"] == histogram.tolist()
    assert total["steps"] == sum(result["steps"] for result in results)
    assert total["accepted"] == sum(result["accepted"] for result in results)
    assert total["sent"] == sum(result["sent"] for result in results)
    assert total["emitted_untrimmed"] == total["steps"] + total["accepted"]
    assert total["emitted"] == total["emitted_untrimmed"] - sum(result["trimmed"] for result in results)
    assert total["accepted"] == sum(total["accepted_by_position"])
    assert total["proposed"] == 7 * total["steps"]
    assert all(early >= late for early, late in pairwise(total["accepted_by_position"]))
    for kind in ("by_category", "by_rank"):
        for name in ("steps", "emitted", "requests", "aborted"):
            assert sum(numbers[name] for numbers in truth["all"][kind].values()) == total[name]


def test_a_text_ends_exactly_where_it_should(bench: Callable) -> None:
    done = bench(quiet=True).ask(1, 2, 20, 400, 4000).finish()
    results = {result["sent"]: result for result in done.engine.results(0, 100) if result["category"] == "code"}
    assert sorted(results) == [1, 2, 20, 400, 4000]
    assert results[1]["steps"] == 0
    for sent, result in results.items():
        assert sent == 1 + result["steps"] + result["accepted"] - result["trimmed"]
        assert 0 <= result["trimmed"] <= 7
    assert any(result["trimmed"] for result in results.values())


def test_a_client_that_leaves_has_all_that_was_verified(bench: Callable) -> None:
    done = bench(quiet=True).ask(*[100] * 20, reason="abort").finish()
    results = [result for result in done.engine.results(0, 100) if result["reason"] == "abort"]
    assert len(results) == 20
    assert all(result["trimmed"] == 0 and 100 <= result["sent"] <= 107 for result in results)


def test_between_requests_the_standard_deviation_is_a_quarter_of_the_mean(bench: Callable) -> None:
    done = bench(seed=2).run(1200)
    lengths = [
        (result["steps"] + result["accepted"]) / result["steps"]
        for result in done.engine.results(0, 10**6)
        if result["steps"] >= 30 and result["category"] == "chat"
    ]
    assert len(lengths) > 50
    assert np.std(lengths) >= 0.25 * np.mean(lengths)


def test_a_dead_drafter_yields_exactly_one_token_a_step(bench: Callable) -> None:
    running = bench(quiet=True).ask(20_000, 20_000, 20_000, 20_000).run(30)
    before = running.truth()["all"]["total"]
    assert before["emitted_untrimmed"] / before["steps"] > 2.5
    running.engine.fault(DrafterDies())
    after = running.run(30).truth()["all"]["total"]
    assert after["steps"] > before["steps"] + 1000
    assert after["accepted"] == before["accepted"]


def test_a_slower_kernel_takes_time_and_leaves_acceptance_alone(bench: Callable) -> None:
    well, slow = bench(quiet=True, seed=1), bench(quiet=True, seed=1)
    slow.engine.fault(KernelFallback(factor=2.0))
    well.ask(3000).finish()
    slow.ask(3000).finish()
    one, other = (each.engine.results(0, 10)[-1] for each in (well, slow))
    assert one["histogram"] == other["histogram"]
    seconds = [result["finished_at"] - result["arrived_at"] for result in (one, other)]
    assert seconds[1] / seconds[0] == pytest.approx(2.0, rel=0.05)


def test_acceptance_decays_evenly_in_the_category_that_was_named(bench: Callable) -> None:
    running = bench(quiet=True).ask(200_000, category="code").ask(200_000, category="chat")
    running.engine.fault(Decay(seconds=100, floor=0.0, category="code"))

    def accepted_per_step(seconds: float) -> dict[str, float]:
        before = running.truth()["all"]["by_category"]
        after = running.run(seconds).truth()["all"]["by_category"]
        return {
            name: (after[name]["accepted"] - before.get(name, after[name])["accepted"])
            / max(after[name]["steps"] - before.get(name, after[name])["steps"], 1)
            for name in ("code", "chat")
        }

    running.run(1)
    first, middle, last = accepted_per_step(10), accepted_per_step(60), accepted_per_step(30)
    assert first["code"] > middle["code"] > last["code"] > 0
    assert last["chat"] == pytest.approx(first["chat"], rel=0.25)
    assert accepted_per_step(20)["code"] < 0.01


def test_no_more_requests_run_than_fit(bench: Callable) -> None:
    crowded = bench(quiet=True).ask(*[2000] * 60).run(5)
    rank = crowded.page()
    assert rank.total("sglang:num_running_reqs") == 48
    assert rank.total("sglang:num_queue_reqs") == 12
    assert crowded.finish().truth()["finished"]["by_category"]["code"]["requests"] == 60


def test_pause_and_idle_stop_the_traffic(bench: Callable) -> None:
    busy = bench(workload=Workload(rate=2.0))

    def requests() -> int:
        return busy.run(200).truth()["all"]["total"]["requests"]

    first = requests()
    busy.engine.pause()
    paused = requests()
    assert requests() == paused
    busy.engine.resume()
    resumed = requests()
    assert resumed > paused + first / 2
    busy.engine.fault(Idle())
    idle = requests()
    assert requests() == idle
    busy.engine.fault(NoFault())
    assert requests() > idle + first / 2


def test_faults_outlive_a_restart(bench: Callable) -> None:
    running = bench(quiet=True)
    running.engine.fault(DrafterDies())
    running.engine.fault(Restart(seconds=10))
    assert running.engine.faults == ("drafter-dies",)
    assert running.run(11).ask(500).finish().truth()["all"]["by_category"]["code"]["accepted"] == 0
