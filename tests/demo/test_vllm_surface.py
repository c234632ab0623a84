"""The vLLM faces against what real servers showed, and their numbers against the truth."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from app.demo.faults import BadRank, DrafterDies, KernelFallback, Restart

SPEC = "vllm:spec_decode_num_"
PROCESS = re.compile("python_|process_")
MFU = "vllm:estimated_"  # only with --enable-mfu-metrics
REQUIRED_LABELS_DIFFER = {"vllm:cache_config_info"}  # another label set with every release


def skeleton(line: str) -> str:
    """A line with its numbers, device and source line replaced by their form."""
    line = re.sub(r"pid=\d+", "pid=N", line).replace("CPU KV", "GPU KV")
    line = re.sub(r":\d+\]", ":N]", line)
    line = re.sub(r"(acceptance rate: )(\d\.\d{3}, )+Avg", r"\1RATES, Avg", line)
    line = re.sub(r"\d+\.(\d+)", lambda found: f"F{len(found[1])}", line)
    return re.sub(r"\b\d+\b", "N", line)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("real/vllm/good/metrics-2-noise40.txt", {}),
        ("real/vllm/nospec/metrics-1-repeat40.txt", {"k": 0}),
        ("real/vllm/dp2/metrics-1-after40.txt", {"ranks": 2}),
        ("real/vllm/apis2/metrics-1-after40.txt", {"api_servers": 2}),
        ("vllm/metrics_v0.33.0_single_engine.txt", {}),
        ("vllm/metrics_v0.33.0_dp2_multiprocess.txt", {"ranks": 2, "api_servers": 2}),
    ],
)
def test_the_page_has_the_shape_of_the_real_one(
    bench: Callable, sample: Callable, taken_apart: Callable, name: str, settings: dict[str, Any]
) -> None:
    real, running = taken_apart(sample(name)), bench(engine="vllm", **settings).run(120)
    running.engine.answered("GET", "/v1/models", 200)
    ours = running.page()
    order = [family for family in real.order if not family.startswith(MFU)]
    if "multiprocess" not in name:  # the order of files there, which differs between starts
        assert [family for family in ours.order if family in real.help] == order
    assert set(order) <= set(ours.order)
    assert all(family.startswith("http_") for family in set(ours.order) - set(real.order))
    for family in order:
        assert ours.help[family] == real.help[family]
        assert ours.types[family] == real.types[family]
        if real.label_names[family] and family not in REQUIRED_LABELS_DIFFER:
            assert ours.label_names[family] == real.label_names[family], family
        if real.sample_names[family]:
            assert ours.sample_names[family] == real.sample_names[family], family
    engines = {own["engine"] for own, _ in real.values["vllm:num_preemptions_total"]}
    assert {own["engine"] for own, _ in ours.values["vllm:num_preemptions_total"]} == engines


def test_created_series_are_times_and_go_with_one_api_server_only(bench: Callable) -> None:
    page = bench(engine="vllm").run(60).page()
    ((labels, created),) = page.values[f"{SPEC}drafts_created"]
    assert page.types[f"{SPEC}drafts_created"] == "gauge"
    assert labels == {"engine": "0", "model_name": "moonshotai/Kimi-K3"}
    assert re.fullmatch(r"1\.7\d+e\+09", created)
    several = bench(engine="vllm", api_servers=2).run(60).page()
    assert not [family for family in several.order if family.endswith("_created") or PROCESS.match(family)]


def test_the_rust_page_has_the_shape_of_the_rendered_one(
    bench: Callable, sample: Callable, taken_apart: Callable
) -> None:
    theirs, ours = taken_apart(sample("vllm/metrics_v0.33.0_rust_openmetrics.txt")), bench(engine="vllm-rust").run(60)
    assert ours.engine.content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    page = ours.page()
    assert [family for family in page.order if family in theirs.help] == theirs.order
    for family in theirs.order:
        assert page.help[family] == theirs.help[family]
        assert page.types[family] == theirs.types[family]
        assert page.label_names[family] == theirs.label_names[family]
        assert page.sample_names[family] == theirs.sample_names[family]
    assert page.text.endswith("\n# EOF\n")
    assert re.fullmatch(r"\d+", page.values[f"{SPEC}drafts_total"][0][1])
    assert re.fullmatch(r"\d+\.\d+", page.values["vllm:kv_cache_usage_perc"][0][1])
    assert 'vllm:inter_token_latency_seconds_bucket{le="0.01",model_name="moonshotai/Kimi-K3",engine="0"} ' in page.text
    assert not [family for family in page.order if family.endswith("_created") or PROCESS.match(family)]


def test_positions_are_there_from_the_start_in_python_and_from_the_first_draft_in_rust(bench: Callable) -> None:
    positions = f"{SPEC}accepted_tokens_per_pos_total"
    python = bench(quiet=True, engine="vllm", k=5).page()
    assert [(own["position"], value) for own, value in python.values[positions]] == [(str(n), "0.0") for n in range(5)]
    rust = bench(quiet=True, engine="vllm-rust", k=5)
    assert positions not in rust.page().values
    assert len(rust.ask(200).finish().page().values[positions]) == 5
    off = bench(engine="vllm", k=0).run(60).page()
    assert not [family for family in off.order if "spec_decode" in family]
    rust_off = bench(engine="vllm-rust", k=0).run(60).page()
    assert rust_off.values[f"{SPEC}drafts_total"][0][1] == "0"


@pytest.mark.parametrize("engine", ["vllm", "vllm-rust"])
def test_counters_are_the_truth_at_any_time(bench: Callable, engine: str) -> None:
    running = bench(engine=engine, ranks=2)
    for seconds in (0.4, 7.3, 31.0, 120.0):
        page, truth = running.run(seconds).page(), running.truth()["all"]
        for rank in ("0", "1"):
            if rank not in truth["by_rank"]:
                continue
            numbers = truth["by_rank"][rank]
            assert page.total(f"{SPEC}drafts_total", engine=rank) == numbers["steps"]
            assert page.total(f"{SPEC}draft_tokens_total", engine=rank) == numbers["proposed"]
            assert page.total(f"{SPEC}accepted_tokens_total", engine=rank) == numbers["accepted"]
            by_position = [
                page.total(f"{SPEC}accepted_tokens_per_pos_total", engine=rank, position=str(position))
                for position in range(7)
            ]
            assert by_position == numbers["accepted_by_position"]
            assert page.total("vllm:generation_tokens_total", engine=rank) == numbers["sent"]
            assert page.total("vllm:time_to_first_token_seconds_count", engine=rank) == numbers["requests"]
            assert page.total("vllm:inter_token_latency_seconds_count", engine=rank) == numbers["steps"]


def test_responses_add_up_to_the_counters(bench: Callable) -> None:
    done = bench(engine="vllm", seed=8).run(90).finish()
    told = [result["result"]["metrics"]["speculative_decoding"] for result in done.engine.results(0, 10**6)]
    page = done.page()
    assert sum(one["num_spec_steps"] for one in told) == page.total(f"{SPEC}drafts_total")
    assert sum(one["num_accepted_draft_tokens"] for one in told) == page.total(f"{SPEC}accepted_tokens_total")
    assert sum(one["num_draft_tokens"] for one in told) == page.total(f"{SPEC}draft_tokens_total")
    assert page.total("vllm:request_success_total") == len(told)
    assert page.total("vllm:request_success_total", finished_reason="abort") > 0


def test_a_response_has_the_fields_of_the_real_one(bench: Callable, sample: Callable) -> None:
    real = json.loads(sample("demo/vllm-chat-response.json"))
    done = bench(quiet=True, engine="vllm").ask(1, 500).finish()
    first, second = (result["result"] for result in done.engine.results(0, 10))
    assert set(second) <= set(real)
    assert set(second["metrics"]) == set(real["metrics"])
    block = second["metrics"]["speculative_decoding"]
    assert set(block) == set(real["metrics"]["speculative_decoding"])
    assert block["mean_acceptance_length"] == 1 + block["num_accepted_draft_tokens"] / block["num_spec_steps"]
    assert sum(block["acceptance_histogram"]) == block["num_spec_steps"]
    assert second["usage"]["completion_tokens"] == 500
    none = first["metrics"]["speculative_decoding"]
    assert (none["mean_acceptance_length"], none["acceptance_histogram"]) == (1.0, [0] * 8)
    rust = bench(quiet=True, engine="vllm-rust").ask(500).finish()
    assert "metrics" not in rust.engine.results(0, 1)[0]["result"]


def test_lines_have_the_form_of_the_real_ones(bench: Callable, sample: Callable) -> None:
    real = {skeleton(line) for line in sample("demo/vllm-real.log").splitlines()}
    running = bench(engine="vllm", ranks=2).run(60)
    running.engine.answered("GET", "/metrics", 200)
    ours = {skeleton(line) for line in running.run(10).lines}
    for part in ("Engine N: ", "SpecDecoding metrics: ", '"GET /metrics'):
        assert {line for line in ours if part in line} == {line for line in real if part in line}, part


def test_lines_of_0_33_are_the_rendered_ones(bench: Callable, sample: Callable) -> None:
    theirs = sample("demo/vllm-python.log").splitlines()
    ours = bench(engine="vllm").run(30).lines

    def sources(lines: list[str]) -> set[tuple[str, ...]]:
        found = (re.match(r"\((\w+) pid=\d+\) (\w+) \d\d-\d\d \d\d:\d\d:\d\d \[([^\]]+)\]", line) for line in lines)
        return {each.groups() for each in found if each}

    faults = {("Worker_TP0", "WARNING", "speculator.py:150"), ("Worker_TP0", "WARNING", "compilation.py:1466")}
    assert sources(theirs) - sources(ours) == faults


def test_rust_lines_have_the_form_of_the_rendered_ones(bench: Callable, sample: Callable) -> None:
    theirs = [skeleton(line) for line in sample("demo/vllm-rust.log").splitlines()[:2]]
    lines = bench(engine="vllm-rust", ranks=2).run(30).lines
    ours = [skeleton(line) for line in lines if "RustFrontend" in line]
    assert set(ours) == set(theirs)
    assert len(ours) == 6, "one pair every ten seconds, whatever the number of engines"


def test_a_line_says_what_was_added_in_ten_seconds(bench: Callable) -> None:
    running = bench(engine="vllm", seed=2).run(20)
    before = running.truth()["all"]["total"]
    after = running.run(10).truth()["all"]["total"]
    line = [line for line in running.lines if "SpecDecoding" in line][-1]
    steps, accepted = after["steps"] - before["steps"], after["accepted"] - before["accepted"]
    assert f"Mean acceptance length: {1 + accepted / steps:.2f}," in line
    assert f"Accepted: {accepted} tokens, Drafted: {7 * steps} tokens" in line
    changes = zip(after["accepted_by_position"], before["accepted_by_position"], strict=True)
    rates = ", ".join(f"{(late - early) / steps:.3f}" for late, early in changes)
    assert f"Per-position acceptance rate: {rates}, Avg" in line


def test_idle_servers_and_several_api_servers_are_silent(bench: Callable) -> None:
    done = bench(engine="vllm").run(30).finish()
    said = len(done.lines)
    assert "Avg generation throughput: 0.0 tokens/s" in done.lines[-1]
    assert len(done.run(300).lines) == said
    several = bench(engine="vllm", ranks=2, api_servers=2).run(60).lines
    assert not [line for line in several if "throughput" in line]
    assert any("disabling stats logging" in line for line in several)


def test_documents(bench: Callable) -> None:
    engine = bench(engine="vllm").engine
    assert engine.document("/version") == {"version": "0.33.0"}
    assert engine.document("/v1/models")["data"][0]["id"] == "moonshotai/Kimi-K3"
    assert engine.document("/server_info") is None
    config = bench(engine="vllm", development=True).engine.document("/server_info")["vllm_config"]
    assert config["speculative_config"]["num_speculative_tokens"] == 7


def test_faults_show(bench: Callable) -> None:
    running = bench(quiet=True, engine="vllm", ranks=2).ask(*[20_000] * 8).run(10)
    running.engine.fault(BadRank(rank=1, scale=0.0))
    before = running.page()
    after = running.run(20).page()

    def length(rank: str) -> float:
        steps, accepted = (
            after.total(f"{SPEC}{name}_total", engine=rank) - before.total(f"{SPEC}{name}_total", engine=rank)
            for name in ("drafts", "accepted_tokens")
        )
        return 1 + accepted / steps

    assert length("1") == 1
    assert length("0") > 2

    def step_seconds() -> float:
        early = running.page()
        late = running.run(20).page()
        change = [
            late.total(f"vllm:inter_token_latency_seconds_{part}")
            - early.total(f"vllm:inter_token_latency_seconds_{part}")
            for part in ("sum", "count")
        ]
        return change[0] / change[1]

    usual = step_seconds()
    running.engine.fault(KernelFallback(factor=1.7))
    assert step_seconds() / usual == pytest.approx(1.7, rel=0.05)
    running.engine.fault(DrafterDies())
    running.run(21)
    assert "Mean acceptance length: 1.00, Accepted throughput: 0.00" in running.lines[-1]


def test_a_restart_begins_anew(bench: Callable) -> None:
    running = bench(engine="vllm").run(60)
    old = running.page()
    running.engine.fault(Restart(seconds=20))
    assert running.run(19).engine.state == "down"
    new = running.run(1).page()
    assert new.total(f"{SPEC}drafts_total") == 0
    assert new.total("process_start_time_seconds") > old.total("process_start_time_seconds")
    first, second = running.truth(0), running.truth(1)
    assert first["exposed"]["all"]["total"]["steps"] == old.total(f"{SPEC}drafts_total")
    assert second["all"]["total"]["steps"] == 0
    assert sum("Initializing a V1 LLM engine" in line for line in running.lines) == 2
