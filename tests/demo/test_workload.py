"""The traffic has the lengths and the acceptance that are published."""

from __future__ import annotations

import numpy as np
import pytest

from app.demo.workload import MEAN_ACC_LEN, Workload, chance_of, draw_acc_len

PUBLISHED = {
    "code": (4.5, 5.5),
    "agentic": (3.9, 4.5),
    "rag": (3.0, 3.6),
    "chat": (2.7, 3.9),
    "math": (4.5, 5.4),
    "creative": (2.3, 2.8),
}


def test_outputs_are_lognormal_with_the_stated_median_and_tail(workload: Workload) -> None:
    rng = np.random.default_rng(7)
    outputs = np.array([workload.order(rng).output_tokens for _ in range(20_000)])
    assert np.median(outputs) == pytest.approx(600, rel=0.05)
    assert np.percentile(outputs, 99) == pytest.approx(16_000, rel=0.12)


@pytest.mark.parametrize("category", MEAN_ACC_LEN)
def test_acceptance_differs_between_requests(category: str) -> None:
    rng = np.random.default_rng(3)
    lengths = np.array([draw_acc_len(category, rng) for _ in range(4000)])
    assert lengths.std() >= 0.25 * lengths.mean()
    assert lengths.min() >= 1
    assert lengths.max() <= 8
    tokens_over_steps = 1 / np.mean(1 / lengths)
    low, high = PUBLISHED[category]
    assert low <= tokens_over_steps <= high


def test_the_chance_gives_the_mean_length_that_was_asked_for() -> None:
    for acc_len in (1.0, 2.6, 5.2, 8.0):
        chance = chance_of(acc_len)
        assert 1 + sum(chance**position for position in range(1, 8)) == pytest.approx(acc_len, abs=0.01)


def test_bursts_bring_several_long_prompts_at_once() -> None:
    rng = np.random.default_rng(1)
    arrivals = [Workload(burst_share=0.2).arrival(rng) for _ in range(2000)]
    bursts = [orders for _, orders in arrivals if len(orders) > 1]
    assert len(bursts) == pytest.approx(400, rel=0.2)
    in_bursts = np.median([order.prompt_tokens for orders in bursts for order in orders])
    alone = np.median([orders[0].prompt_tokens for _, orders in arrivals if len(orders) == 1])
    assert in_bursts > 4 * alone
    assert np.mean([wait for wait, _ in arrivals]) == pytest.approx(1 / 0.6, rel=0.1)


def test_some_clients_leave_and_some_texts_reach_the_limit() -> None:
    rng = np.random.default_rng(5)
    orders = [Workload(abort_share=0.1, max_output_tokens=2000).order(rng) for _ in range(3000)]
    by_reason = {
        reason: [order for order in orders if order.reason == reason] for reason in ("stop", "length", "abort")
    }
    assert len(by_reason["abort"]) == pytest.approx(300, rel=0.2)
    assert {order.output_tokens for order in by_reason["length"]} == {2000}
    assert max(order.output_tokens for order in by_reason["stop"]) <= 2000
