"""The page for benchmarks: every counter moves, and what belongs together stays together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.demo.static import StaticPage


@pytest.fixture(params=["sglang", "vllm", "vllm-rust"])
def static(request: pytest.FixtureRequest, bench: Callable) -> StaticPage:
    running = bench(engine=request.param, lines=2000)
    pages = [running.run(60).engine.metrics() for _ in range(2)]
    return StaticPage(*pages)


def test_the_page_continues_the_later_one(static: StaticPage, taken_apart: Callable) -> None:
    pages = [taken_apart(static.after(seconds)) for seconds in (0, 1, 2, 500)]
    assert pages[0].text.count("\n") >= 1900
    assert len({tuple(page.order) for page in pages}) == 1
    moved = 0
    for name, series in pages[0].values.items():
        family = next(one for one, names in pages[0].sample_names.items() if name in names)
        for position, (labels, _) in enumerate(series):
            values = [float(page.values[name][position][1]) for page in pages]
            assert all(page.values[name][position][0] == labels for page in pages)
            if pages[0].types[family] in ("counter", "histogram"):
                assert values == sorted(values), name
                assert values[2] - values[1] == pytest.approx(values[1] - values[0], abs=1e-6)
                moved += values[3] > values[0]
    assert moved > 100


def test_sums_over_positions_hold(static: StaticPage, taken_apart: Callable) -> None:
    page = taken_apart(static.after(123))
    by_position = page.total("vllm:spec_decode_num_accepted_tokens_per_pos_total")
    assert by_position == page.total("vllm:spec_decode_num_accepted_tokens_total")
