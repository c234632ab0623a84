"""The pages are printed as the client libraries print them: compared with Python's own, and read by its parser."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Summary,
    disable_created_metrics,
    enable_created_metrics,
    generate_latest,
)
from prometheus_client import Histogram as TheirHistogram
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.utils import floatToGoString

from app.demo.exposition import Family, Histogram, PrometheusText, number, one_two_five


@given(st.floats() | st.integers(0, 10**9).map(float) | st.floats(0, 1e9))
def test_a_number_is_printed_as_by_prometheus_client(value: float) -> None:
    assert number(value) == floatToGoString(value)


@given(
    st.dictionaries(st.text(max_size=8), st.integers(0, 10**7), min_size=1, max_size=4),
    st.lists(st.integers(0, 800).map(lambda eighths: eighths / 8), max_size=20),
)
def test_a_page_is_the_one_of_prometheus_client(counts: dict[str, int], observed: list[float]) -> None:
    registry, bounds = CollectorRegistry(), (0.5, 1.0, 2_000_000.0)
    counter = Counter("x:events_total", "Events.", ["who", "a"], registry=registry)
    theirs = TheirHistogram("x:seconds", "Seconds.", ["a", "z"], buckets=bounds, registry=registry)
    summary = Summary("x:bytes", "Bytes.", ["a"], registry=registry)
    Gauge("x:level", "Level.", registry=registry).set(0.25)
    ours, sized = Histogram(bounds), Histogram()
    for who, count in counts.items():
        counter.labels(who, "1").inc(count)
    for value in observed:
        theirs.labels("1", "2").observe(value)
        summary.labels("1").observe(value)
        ours.observe(value)
        sized.observe(value)
    theirs.labels("1", "2")
    summary.labels("1")
    families = (
        Family("x:events_total", "counter", "Events."),
        Family("x:seconds", "histogram", "Seconds.", bounds),
        Family("x:bytes", "summary", "Bytes."),
        Family("x:level", "gauge", "Level."),
    )
    samples = {
        "x:events_total": [((("a", "1"), ("who", who)), count) for who, count in counts.items()],
        "x:seconds": [((("a", "1"), ("z", "2")), ours)],
        "x:bytes": [((("a", "1"),), sized)],
        "x:level": [((), 0.25)],
    }

    def without_times(page: bytes) -> list[str]:
        lines = page.decode().split("\n")
        return [line.rpartition(" ")[0] if "_created" in line and line[0] != "#" else line for line in lines]

    # The service's own metrics turn these series off for its whole process.
    enable_created_metrics()
    try:
        expected = without_times(generate_latest(registry))
    finally:
        disable_created_metrics()
    assert without_times(PrometheusText(created=1.5e9).render(families, samples)) == expected


@pytest.mark.parametrize(
    ("settings", "parse"),
    [
        ({"engine": "sglang"}, parse_text),
        ({"engine": "sglang", "ranks": 2, "lines": 3000}, parse_text),
        ({"engine": "vllm", "ranks": 2}, parse_text),
        ({"engine": "vllm", "api_servers": 2, "lines": 2000}, parse_text),
        ({"engine": "vllm-rust", "ranks": 2}, parse_openmetrics),
    ],
)
def test_every_page_is_read_by_the_official_parser(bench: Callable, settings: dict, parse: Callable) -> None:
    page = bench(**settings).run(60).engine.metrics().decode()
    families = list(parse(page))
    samples = [sample for family in families for sample in family.samples]
    assert len(samples) == sum(not line.startswith("#") for line in page.splitlines())
    assert len({(one.name, tuple(sorted(one.labels.items()))) for one in samples}) == len(samples)
    for family in families:
        buckets = [one.value for one in family.samples if one.name.endswith("_bucket")]
        assert all(value >= 0 and not math.isnan(value) for value in buckets)


def test_token_buckets_end_with_the_models_length() -> None:
    assert one_two_five(262_144)[-1] == 200_000
    assert one_two_five(1024) == (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
