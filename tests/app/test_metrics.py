from __future__ import annotations

import asyncio
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from acceptance.series import DIMENSIONS
from app import metrics as metrics_module
from app.metrics import LABELS, Metrics, watch_loop
from service.reads import AcceptanceRow

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def samples(metrics: Metrics, rows: list[AcceptanceRow] | None = None) -> dict[str, float]:
    """Sample with labels -> value, of our own families."""
    page = metrics.page("", rows or [])[0].decode()
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("draftgauge_") and not sample.name.endswith("_bucket")
    }


def row(steps: float | None, emitted: float | None, **key: str | None) -> AcceptanceRow:
    named: dict[str, str | None] = {"target": "a", "rank": None, "category": None, **key}
    return AcceptanceRow(
        {name: named[name] for name in DIMENSIONS if name in named}, 0.0, 1.0, steps=steps, emitted=emitted
    )


def test_every_part_is_counted() -> None:
    metrics = Metrics()
    metrics.scraped("a", "ok", 0.05, late=False)
    metrics.scraped("a", "error", 0.2, late=True)
    metrics.scraped("b", "ok", 0.1, late=False)
    metrics.waiting(17)
    metrics.committed(windows=120, reads=9, seconds=0.008)
    metrics.committed(windows=5, reads=1, seconds=0.002)
    metrics.rejected("a", 3)
    metrics.evaluated(0.25, ok=True)
    metrics.evaluated(0.75, ok=False)
    metrics.attempt("pager", "retry", 0.5)
    metrics.attempt("pager", "delivered", 0.25)
    metrics.lagged(0.004)
    metrics.read_refused()
    metrics.acceptance_missing()
    told = samples(metrics)
    told.pop(f"draftgauge_build_info version={version('draftgauge')}")
    assert {name: value for name, value in told.items() if value} == pytest.approx(
        {
            "draftgauge_scrapes_total outcome=ok": 2,
            "draftgauge_scrapes_total outcome=error": 1,
            "draftgauge_scrapes_late_total": 1,
            "draftgauge_scrape_seconds_count": 3,
            "draftgauge_scrape_seconds_sum": 0.35,
            "draftgauge_target_up target=b": 1,
            "draftgauge_rejected_input_total target=a": 3,
            "draftgauge_writer_waiting": 17,
            "draftgauge_writer_batches_total": 2,
            "draftgauge_writer_readings_total": 10,
            "draftgauge_writer_windows_total": 125,
            "draftgauge_writer_commit_seconds_count": 2,
            "draftgauge_writer_commit_seconds_sum": 0.01,
            "draftgauge_evaluations_total outcome=ok": 1,
            "draftgauge_evaluations_total outcome=failed": 1,
            "draftgauge_evaluation_seconds_count": 2,
            "draftgauge_evaluation_seconds_sum": 1.0,
            "draftgauge_deliveries_total channel=pager outcome=retry": 1,
            "draftgauge_deliveries_total channel=pager outcome=delivered": 1,
            "draftgauge_delivery_seconds_count": 2,
            "draftgauge_delivery_seconds_sum": 0.75,
            "draftgauge_loop_lag_seconds_count": 1,
            "draftgauge_loop_lag_seconds_sum": 0.004,
            "draftgauge_reads_refused_total": 1,
            "draftgauge_acceptance_missing_total": 1,
        }
    )
    assert told["draftgauge_target_up target=a"] == 0


def test_a_target_that_is_gone_has_no_series() -> None:
    metrics = Metrics()
    metrics.scraped("gone", "ok", 0.1, late=False)
    metrics.rejected("gone", 1)
    metrics.forget("gone")
    metrics.forget("never seen")
    assert not any("gone" in name for name in samples(metrics))


def test_acceptance_is_divided_last() -> None:
    told = samples(Metrics(), [row(100, 300, rank="0"), row(50, 100, rank="1"), row(10, 40, category="code")])
    labels = " category={} engine= group= model= target=a"
    assert told["draftgauge_acceptance_length" + labels.format("")] == pytest.approx(400 / 150)
    assert told["draftgauge_acceptance_steps" + labels.format("")] == 150
    assert told["draftgauge_acceptance_length" + labels.format("code")] == 4.0


def test_without_data_there_is_no_series() -> None:
    told = samples(Metrics(), [row(None, None), row(0, 0, target="b"), row(5, None, target="c")])
    assert not any(name.startswith("draftgauge_acceptance_length") for name in told)
    assert not any(name.startswith("draftgauge_acceptance_steps") for name in told)


def test_unlabelled_requests_are_told_from_those_of_unknown_category() -> None:
    told = samples(Metrics(), [row(10, 20, category=""), row(10, 30, category=None, target="b")])
    assert told["draftgauge_acceptance_length category=unlabelled engine= group= model= target=a"] == 2.0
    assert told["draftgauge_acceptance_length category= engine= group= model= target=b"] == 3.0


def test_categories_cannot_be_multiplied_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "MOST_CATEGORIES", 2)
    rows = [row(steps, 2 * steps, category=f"c{steps}") for steps in (1, 2, 30, 40)] + [row(5, 5, target="b")]
    told = samples(Metrics(), rows)
    steps = {name.split()[1]: value for name, value in told.items() if "acceptance_steps" in name and "=a" in name}
    assert steps == {"category=c40": 40, "category=c30": 30, "category=other": 3}


@pytest.mark.parametrize("accept", ["", "text/plain; version=0.0.4", "application/openmetrics-text; version=1.0.0"])
def test_both_formats_can_be_parsed(accept: str) -> None:
    hostile = 'a"b\\c\nd'
    body, content_type = Metrics().page(accept, [row(10, 20, target=hostile)])
    parse = open_metrics if "openmetrics" in content_type else text_string_to_metric_families
    assert ("openmetrics" in content_type) == ("openmetrics" in accept)
    (family,) = [family for family in parse(body.decode()) if family.name == "draftgauge_acceptance_length"]
    assert family.samples[0].labels["target"] == hostile
    assert set(family.samples[0].labels) == set(LABELS)


async def test_the_lag_of_the_loop_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module, "LOOP_LOOK_SECONDS", 0.01)
    told: list[float] = []
    enough = asyncio.Event()

    class Told(Metrics):
        def lagged(self, seconds: float) -> None:
            told.append(seconds)
            if seconds > 0.04:
                enough.set()

    watching = asyncio.create_task(watch_loop(Told()))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.06
    while loop.time() < until:  # what blocks the loop
        pass
    await asyncio.wait_for(enough.wait(), 10)
    watching.cancel()
    assert all(seconds >= 0 for seconds in told)


def test_every_metric_is_documented_and_exists() -> None:
    documented = dict(re.findall(r"^\| `(draftgauge_\w+)` \| (\w+) \|", DOCS.read_text(), re.MULTILINE))
    page = Metrics().page("", [row(1, 1)])[0].decode()
    existing = dict(re.findall(r"^# TYPE (draftgauge_\w+) (\w+)$", page, re.MULTILINE))
    assert documented == existing
