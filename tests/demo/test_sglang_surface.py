"""The SGLang face against what a real 0.5.23 showed, and its numbers against the truth."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from app.demo.faults import BadRank, DrafterDies, KernelFallback, Restart

REAL = "real/sglang/eagle/metrics-5-after-serial80.txt"
NOT_IN_REAL = {
    "sglang:inter_token_latency_seconds",  # only for streamed requests, and the real ones were not
    "sglang:num_aborted_requests_total",  # only once a client left
}
ONLY_IN_REAL = {
    "sglang:process_cpu_seconds_total",
    "sglang:per_stage_req_latency_seconds",
    "sglang:startup_time_seconds",
    "sglang:startup_cuda_graph_time_seconds",
}


def skeleton(line: str) -> str:
    """A line with its numbers replaced by their form."""
    line = line.replace("cpu graph", "cuda graph").replace("cuda graph: False", "cuda graph: B")
    line = line.replace("cuda graph: True", "cuda graph: B")
    line = re.sub(r"\d+\.(\d+)", lambda found: f"F{len(found[1])}", line)
    return re.sub(r"(?<![A-Za-z])\d+(?!\w)|(?<=\[)\d+|(?<=-)\d+", "N", line)


def test_the_page_has_the_shape_of_the_real_one(bench: Callable, sample: Callable, taken_apart: Callable) -> None:
    real, ours = taken_apart(sample(REAL)), bench(tp=1, label="").run(300).page()
    assert set(ours.order) - set(real.order) <= NOT_IN_REAL
    assert [family for family in ours.order if family in real.help] == real.order
    for family in real.order:
        assert ours.help[family] == real.help[family]
        assert ours.types[family] == real.types[family]
        assert ours.label_names[family] == real.label_names[family], family
        assert ours.sample_names[family] == real.sample_names[family], family
    for name in ("sglang:spec_accept_length", "sglang:num_requests_total", "sglang:realtime_tokens_total"):
        assert re.fullmatch(r"\d+\.\d+", ours.values[name][0][1])
    assert ours.values["sglang:fwd_occupancy"][0][1] == "NaN"
    assert ours.values["sglang:max_total_num_tokens"][0][1] == "1.523712e+06"


@pytest.mark.parametrize(
    ("name", "settings", "extra_label"),
    [
        ("sglang/metrics_v0.5.23.tp8_custom_labels.txt", {}, "cluster"),
        ("sglang/metrics_v0.5.23.tp8.txt", {"label": ""}, None),
        ("sglang/metrics_v0.5.23.dp8_attention.txt", {"label": "", "ranks": 8}, None),
    ],
)
def test_ranks_and_labels_are_those_of_the_rendered_samples(
    bench: Callable, sample: Callable, taken_apart: Callable, name: str, settings: dict, extra_label: str | None
) -> None:
    theirs, ours = taken_apart(sample(name)), bench(**settings).run(300).page()
    assert set(ours.order) - set(theirs.order) <= NOT_IN_REAL | ONLY_IN_REAL
    for family in theirs.order:
        expected = {tuple(label for label in names if label != extra_label) for names in theirs.label_names[family]}
        assert ours.label_names[family] == expected, family
        for label in ("tp_rank", "dp_rank", "mode", "is_streaming"):
            values = {own.get(label) for own, _ in theirs.values[family]}
            if family != "sglang:cuda_graph_passes_total" or label != "mode":
                assert {own.get(label) for own, _ in ours.values[family]} == values, (family, label)


def test_the_page_without_speculation_has_zero_gauges_and_no_verify_calls(
    bench: Callable, sample: Callable, taken_apart: Callable
) -> None:
    real = taken_apart(sample("real/sglang/nospec/metrics-4-after-noise60.txt"))
    without = bench(k=0, tp=1, label="").run(120)
    ours = without.page()
    assert set(ours.order) - set(real.order) <= NOT_IN_REAL
    assert set(real.order) <= set(ours.order)
    assert "sglang:spec_verify_calls_total" not in ours.values
    assert ours.values["sglang:spec_accept_length"][0][1] == "0.0" == real.values["sglang:spec_accept_length"][0][1]
    assert ours.total("sglang:spec_num_draft_tokens") == 0
    assert not any("accept len" in line for line in without.lines)


def test_before_its_first_request_a_category_has_no_series(bench: Callable) -> None:
    page = bench(quiet=True, warm_up=False).page()
    assert "sglang:generation_tokens_total" not in page.values
    assert page.values["sglang:spec_accept_length"][0][1] == "0.0"
    warmed = bench(quiet=True).page()
    assert warmed.values["sglang:num_requests_total"] == [
        (
            {"category": "", "engine_type": "unified", "is_streaming": "false", "model_name": "moonshotai/Kimi-K3"},
            "1.0",
        )
    ]


@pytest.mark.parametrize("outputs", [(2,), (20,), (400,), (4000,), (2, 20, 400, 4000)])
def test_counters_are_the_truth_once_all_is_finished(bench: Callable, outputs: tuple[int, ...]) -> None:
    done = bench(quiet=True)
    for category in ("code", "chat", "creative"):
        done.ask(*outputs * 5, category=category).ask(50, category=category, reason="abort")
    page, truth = done.finish().page(), done.truth()["finished"]["by_category"]
    for category in ("code", "chat", "creative"):
        steps = page.total("sglang:spec_verify_calls_total", category=category)
        requests = page.total("sglang:num_requests_total", category=category)
        emitted = page.total("sglang:generation_tokens_total", category=category) - requests
        numbers = truth[category]
        assert (steps, emitted, requests) == (numbers["steps"], numbers["emitted"], numbers["requests"])
        assert 0 <= numbers["emitted_untrimmed"] - emitted <= 7 * requests
    assert page.total("sglang:num_aborted_requests_total") == 3
    assert (
        page.total("sglang:realtime_tokens_total", mode="decode") == done.truth()["all"]["total"]["emitted_untrimmed"]
    )


def test_counters_stand_still_while_requests_run(bench: Callable) -> None:
    running = bench(quiet=True).ask(20_000, 20_000, 20_000, 20_000).run(20)
    first, later = running.page(), running.run(20).page()
    for name in ("sglang:spec_verify_calls_total", "sglang:generation_tokens_total", "sglang:num_requests_total"):
        assert first.values[name] == later.values[name]
    assert later.total("sglang:realtime_tokens_total") > first.total("sglang:realtime_tokens_total")
    assert later.total("sglang:num_running_reqs") == 4


def test_gauges_are_the_last_forty_passes_and_freeze_when_idle(bench: Callable) -> None:
    running = bench(quiet=True, tp=1).ask(3000, 3000).run(10)
    page, last = running.page(), [line for line in running.lines if "Decode batch" in line][-1]
    accept_length = page.total("sglang:spec_accept_length")
    assert f"accept len: {accept_length:.2f}, accept rate: {(accept_length - 1) / 7:.2f}" in last
    assert page.total("sglang:spec_num_draft_tokens") == 8
    idle = running.finish().page()
    final = [line for line in running.lines if "Decode batch" in line][-1]
    assert f"accept len: {idle.total('sglang:spec_accept_length'):.2f}" in final
    assert idle.total("sglang:num_running_reqs") == 0
    assert idle.total("sglang:gen_throughput") == 0
    assert running.run(600).page().total("sglang:spec_accept_length") == idle.total("sglang:spec_accept_length")


def test_decode_lines_add_up_to_the_steps(bench: Callable) -> None:
    running = bench(quiet=True).ask(*[20_000] * 4).run(60)
    lines = [line for line in running.lines if "Decode batch" in line]
    assert {re.search(r"#running-req: (\d+)", line)[1] for line in lines[1:]} == {"4"}
    estimated = sum(4 * 40 for _ in lines)
    tokens = sum(160 * float(re.search(r"accept len: ([\d.]+)", line)[1]) for line in lines)
    truth = running.truth()["all"]["total"]
    assert estimated == pytest.approx(truth["steps"], rel=0.03)
    assert tokens == pytest.approx(truth["emitted_untrimmed"], rel=0.03)


def test_lines_have_the_form_of_the_real_ones(bench: Callable, sample: Callable) -> None:
    real = {skeleton(line) for line in sample("demo/sglang-real.log").splitlines()}
    wrote = bench(tp=1, hybrid=False, k=4).run(60)
    without = bench(tp=1, hybrid=False, k=0).run(20)
    for path, status in (("/metrics", 200), ("/version", 404), ("/v1/models", 200)):
        wrote.engine.answered("GET", path, status)
    wrote.run(1)
    seen = {skeleton(line) for line in wrote.lines + without.lines}
    for part in ("Decode batch", "Prefill batch", '"GET /metrics', "Started server", "fired up", "Uvicorn running"):
        ours = {line for line in seen if part in line}
        assert ours, part
        assert ours <= {line for line in real if part in line}, part
    assert any("404 Not Found" in line for line in wrote.lines)


def test_lines_of_kimi_k3_have_the_form_of_the_rendered_ones(bench: Callable, sample: Callable) -> None:
    theirs = {skeleton(line) for line in sample("demo/sglang-k3.log").splitlines() if "Warning" not in line}
    ours = {skeleton(line) for line in bench().run(60).lines}
    assert theirs - ours == set()


def test_ranks_are_named_in_the_lines(bench: Callable) -> None:
    lines = bench(ranks=2).run(60).lines
    prefixes = {re.search(r"\d\d:\d\d( .*?)?\] Decode batch", line)[1] for line in lines if "Decode batch" in line}
    assert prefixes == {" DP0 TP0", " DP1 TP1"}


def test_server_info_has_the_keys_of_the_real_one(bench: Callable, sample: Callable) -> None:
    real = json.loads(sample("real/sglang/eagle/server_info.json"))
    running = bench(ranks=2, port=31_000).run(30)
    ours = running.engine.document("/server_info")
    assert set(real) - set(ours) == {"hicache_object_layout"}
    assert len(ours["internal_states"]) == 2
    in_states = set(real["internal_states"][0]) - set(ours["internal_states"][0])
    assert in_states == {"decode_cuda_graph_memory_gb"}
    assert ours["version"] == "0.5.23"
    assert ours["speculative_num_draft_tokens"] == 8
    assert ours["decode_log_interval"] == 40
    assert 1 <= ours["internal_states"][0]["avg_spec_accept_length"] <= 8
    assert "--speculative-algorithm DSPARK" in ours["launch_command"]
    assert f"server_args={{'model_path': '{ours['model_path']}'" in "\n".join(running.lines)
    for path in ("/version", "/nothing"):
        assert running.engine.document(path) is None


def test_results_have_the_fields_of_the_real_ones(bench: Callable, sample: Callable) -> None:
    real = json.loads(sample("demo/sglang-generate-response.json"))["meta_info"]
    done = bench(quiet=True).ask(1, 24, 900).finish()
    for result in done.engine.results(0, 10):
        told = result["result"]
        missing = set(real) - set(told)
        if result["steps"]:
            assert missing == {"storage_prefetch_wait", "storage_staging_wait"}
            histogram = told["spec_correct_drafts_histogram"]
            assert sum(histogram) == told["spec_verify_ct"]
            assert sum(length * steps for length, steps in enumerate(histogram)) == told["spec_num_correct_drafts"]
            assert told["spec_num_proposed_drafts"] == 7 * told["spec_verify_ct"]
            assert told["spec_accept_length"] == told["completion_tokens"] / told["spec_verify_ct"]
        else:
            assert "spec_verify_ct" not in told


def test_requests_are_logged_as_json_when_asked_for(bench: Callable, sample: Callable) -> None:
    theirs = json.loads(sample("demo/sglang-request.log").splitlines()[1].partition("] ")[2])
    done = bench(quiet=True, log_requests=True).ask(300, category="chat").finish()
    logged = [json.loads(line.partition("] ")[2]) for line in done.lines if "request.finished" in line]
    assert set(logged[-1]) == set(theirs)
    assert logged[-1]["obj"]["custom_labels"] == {"category": "chat"}
    assert logged[-1]["out"]["meta_info"]["completion_tokens"] == 300
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", logged[-1]["timestamp"])


def test_a_dead_drafter_shows_in_lines_and_gauge_not_in_counters(bench: Callable) -> None:
    running = bench(quiet=True).ask(*[20_000] * 4).run(20)
    running.engine.fault(DrafterDies())
    before = running.page()
    running.run(30)
    page, last = running.page(), [line for line in running.lines if "Decode batch" in line][-1]
    assert "accept len: 1.00, accept rate: 0.00" in last
    assert page.total("sglang:spec_accept_length") == 1
    assert page.values["sglang:spec_verify_calls_total"] == before.values["sglang:spec_verify_calls_total"]


def test_a_kernel_outside_the_graph_is_told(bench: Callable) -> None:
    running = bench(quiet=True).ask(*[20_000] * 4).run(5)
    assert running.page().total("sglang:cuda_graph_passes_total", mode="decode_none") == 0
    running.engine.fault(KernelFallback(factor=1.5, eager=True))
    running.run(20)
    assert "cuda graph: False" in [line for line in running.lines if "Decode batch" in line][-1]
    by_rank = [
        running.page().total("sglang:cuda_graph_passes_total", mode="decode_none", tp_rank=str(rank))
        for rank in range(8)
    ]
    assert by_rank[0] > 100
    assert set(by_rank) == {by_rank[0]}


def test_one_bad_rank_shows_in_its_own_series(bench: Callable) -> None:
    running = bench(quiet=True, ranks=4).ask(*[20_000] * 16)
    running.engine.fault(BadRank(rank=2, scale=0.2))
    page = running.run(20).page()
    lengths = [page.total("sglang:spec_accept_length", dp_rank=str(rank)) for rank in range(4)]
    assert lengths[2] < 1.5
    assert min(length for rank, length in enumerate(lengths) if rank != 2) > 2


def test_a_drafter_on_another_backend_is_told_by_the_log_only(bench: Callable) -> None:
    running = bench(quiet=True, seed=1).ask(3000).finish()
    running.engine.fault(Restart(seconds=5, draft_attention_backend="flashinfer"))
    running.run(10).ask(3000).finish()
    text = "\n".join(running.lines)
    assert "for now, but got 'trtllm_mla'. Falling back to 'flashinfer'." in text
    assert "Initialized DSpark draft runner. attention_backend=flashinfer" in text
    assert running.engine.document("/server_info")["speculative_draft_attention_backend"] == "trtllm_mha"
