"""vLLM's log: SpecDecoding lines of all generations back to integers, told by engine, and nothing that quotes one."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.counts import total
from acceptance.facts import FactValue, Subject
from acceptance.window import Window
from collectors.reading import Reading, State, Text
from collectors.vllm.logs import LogReader

FIXTURES = Path(__file__).parents[1] / "fixtures"
MUTATIONS = int(os.environ.get("DRAFTGAUGE_MUTATIONS", "1000"))
READ_AT = datetime(2026, 12, 1, 8, 0, 0, tzinfo=UTC).timestamp()
Read = Callable[[str], bytes]

LAST_PAGES = {
    "good": "metrics-2-noise40.txt",
    "noisy1": "metrics-2-noise40.txt",
    "noisy2": "metrics-2-noise40.txt",
    "eagle": "metrics-2-noise40.txt",
    "medusa": "metrics-2-noise40.txt",
    "dp2": "metrics-2-idle.txt",
}
SAMPLES = (
    "vllm/logs_old_versions.txt",
    "vllm/logs_v0.33.0_json.txt",
    "vllm/logs_v0.33.0_python_frontend.txt",
    "vllm/logs_v0.33.0_rust_frontend.txt",
    "vllm/public/specdecoding_log_lines.txt",
    "vllm/public/fallback_log_lines.txt",
)
REAL = tuple(
    f"real/vllm/{path}"
    for path in (*(f"{name}/server.log" for name in (*LAST_PAGES, "ngram", "apis2", "nospec")), "episode/server-A.log")
)
CASES: dict[str, dict[str, list[list[float | None]]]] = {
    name: case for name, case in json.loads((FIXTURES / "cases/log_samples.json").read_text()).items() if "-vl-" in name
}


def feed(body: bytes | str, state: State | None = None, offset: int = 0, **facts: FactValue) -> tuple[State, Reading]:
    raw = body.encode() if isinstance(body, str) else body
    return LogReader().feed(Subject("v", facts=facts), state or {}, Text(raw, READ_AT, offset))


def read(body: bytes | str, **facts: FactValue) -> Reading:
    return feed(body, **facts)[1]


def told(reading: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in reading.facts}


def at(second: int, minute: int = 50) -> float:
    return datetime(2026, 12, 1, 6, minute, second, tzinfo=UTC).timestamp()


def printed(accepted: list[int], steps: int, drafted: int, *, interval: float = 10.0) -> str:
    """The message that vLLM prints: format strings of vllm/v1/spec_decode/metrics.py of 0.33."""
    positions = ", ".join(f"{count / steps:.3f}" for count in accepted)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + sum(accepted) / steps:.2f}, "
        f"Accepted throughput: {sum(accepted) / interval:.2f} tokens/s, "
        f"Drafted throughput: {drafted / interval:.2f} tokens/s, Accepted: {sum(accepted)} tokens, "
        f"Drafted: {drafted} tokens, Per-position acceptance rate: {positions}, "
        f"Avg Draft acceptance rate: {sum(accepted) / drafted * 100:.1f}%"
    )


def line(message: str, second: int = 12, pid: int = 1, process: str = "APIServer") -> str:
    return f"({process} pid={pid}) INFO 12-01 06:50:{second:02d} [metrics.py:120] {message}\n"


def engine(name: str = "Engine 000", *, generated: float = 311.2, running: int = 12) -> str:
    return (
        f"{name}: Avg prompt throughput: 812.4 tokens/s, Avg generation throughput: {generated} tokens/s, "
        f"Running: {running} reqs, Waiting: 3 reqs, GPU KV cache usage: 8.4%, Prefix cache hit rate: 41.7%"
    )


OLD = (
    "SpecDecoding metrics: Draft acceptance rate: {}%, Mean acceptance length: {}, Accepted: {} tokens, "
    "Drafted: {} tokens, Per-position acceptance rate: {}"
)
SPEC = printed([120, 90, 60], 150, 450)


# Files of real servers and of all versions


@pytest.mark.parametrize("name", LAST_PAGES)
def test_log_lines_add_up_to_the_counters_of_the_same_server(fixture_bytes: Read, name: str) -> None:
    """To the integer, though lines print only roundings of steps and positions (these to one a line)."""
    page = fixture_bytes(f"real/vllm/{name}/{LAST_PAGES[name]}").decode()
    windows = read(fixture_bytes(f"real/vllm/{name}/server.log")).windows
    assert all(window.exact for window in windows)
    for rank in {window.series.rank for window in windows}:
        counts = total(window.counts for window in windows if window.series.rank == rank)
        told = [
            float(
                re.findall(rf'^vllm:spec_decode_num_{family}_total{{engine="{rank}".*}} (\S+)', page, re.MULTILINE)[0]
            )
            for family in ("drafts", "draft_tokens", "accepted_tokens")
        ]
        assert [counts.steps, counts.proposed, counts.accepted] == told
        positions = [*map(float, re.findall(rf'_per_pos_total{{engine="{rank}".*position="\d"}} (\S+)', page))]
        rounded = sum(w.counts.steps is not None and w.counts.steps > 1000 for w in windows)
        assert counts.by_position == tuple(pytest.approx(count, abs=rounded) for count in positions)


def test_lines_of_variable_drafts_are_exact_only_where_one_number_fits(fixture_bytes: Read) -> None:
    page = fixture_bytes("real/vllm/ngram/metrics-5-after-205req.txt").decode()
    windows = read(fixture_bytes("real/vllm/ngram/server.log")).windows
    drafts = float(re.findall(r"num_drafts_total\{.*\} (\S+)", page)[0])
    assert [window.exact for window in windows] == [True] * 5 + [False] * 2
    assert total(window.counts for window in windows).steps == pytest.approx(drafts, rel=0.005)


@pytest.mark.parametrize("name", [*SAMPLES, *REAL])
def test_every_line_is_a_window_in_order(fixture_bytes: Read, name: str) -> None:
    lines = [text for text in fixture_bytes(name).decode().splitlines() if "SpecDecoding metrics: " in text]
    lines = [text for text in lines if not text.startswith("#")]
    windows = read(fixture_bytes(name)).windows
    assert len(windows) == len(lines)
    for text, window in zip(lines, windows, strict=True):
        accepted, drafted = (int(re.findall(rf"{what}: (\d+) tokens", text)[0]) for what in ("Accepted", "Drafted"))
        length = re.findall(r"Mean acceptance length: (\d\.\d\d)", text)
        assert window.counts.proposed == drafted
        assert window.reported_rate == pytest.approx(float(re.findall(r"(\d+\.\d)%", text)[-1]) / 100)
        assert window.reported_length == (float(length[0]) if length else None)
        if length:
            without_bonus = "metrics.py:82]" in text
            assert window.counts.accepted == accepted
            assert window.counts.acc_len == pytest.approx(float(length[0]) + without_bonus, abs=0.0051)


@pytest.mark.parametrize("name", CASES)
def test_operators_logs_give_what_they_show(name: str) -> None:
    case = CASES[name]
    windows = read((FIXTURES / "cases" / name / "input.log").read_bytes(), k=case["k"]).windows
    assert [[w.counts.acc_len, w.reported_rate] for w in windows] == [
        [pytest.approx(length, abs=0.006), rate if rate is None else pytest.approx(rate, abs=0.0006)]
        for length, rate in case["samples"]
    ]


def test_facts_of_a_real_start(fixture_bytes: Read) -> None:
    assert told(read(fixture_bytes("real/vllm/good/server.log"))) == {
        "engine": "vllm",
        "version": "0.32.0",
        "model": "tiny",
        "speculative": True,
        "algorithm": "draft_model",
        "drafter": "/models/tiny-good",
        "k": 4,
        "cuda_graph_disabled": True,
        "max_running_requests": 16,
        "tensor_parallel": 1,
        "data_parallel": 1,
        "context_parallel": 1,
    }
    assert told(read(fixture_bytes("real/vllm/nospec/server.log")))["speculative"] is False
    assert told(read(fixture_bytes("real/vllm/dp2/server.log")))["data_parallel"] == 2


def test_facts_and_fallbacks_of_a_kimi_start(fixture_bytes: Read) -> None:
    reading = read(fixture_bytes("vllm/logs_v0.33.0_python_frontend.txt"))
    facts = told(reading)
    assert facts["decode_attention_backend"] == "FLASHINFER_MLA"
    assert facts["draft_attention_backend"] == "FLASH_ATTN"
    assert (facts["algorithm"], facts["k"], facts["context_parallel"]) == ("dspark", 7, 8)
    assert {"draft-eager-no-fullcg", "cg-downgrade-spec", "minp-logitbias"} <= {hit.signature for hit in reading.hits}
    assert all(hit.incarnation == "1" for hit in reading.hits)


def test_public_fallback_lines(fixture_bytes: Read) -> None:
    assert [hit.signature for hit in read(fixture_bytes("vllm/public/fallback_log_lines.txt")).hits] == [
        "attn-selected",
        "cg-downgrade-spec",
        "cg-skip",
        "draft-noncausal-flashinfer",
        "cg-downgrade-spec",
        "draft-fused-multistep",
    ]


# Roundings


@given(
    k=st.integers(1, 15),
    steps=st.integers(1, 40_000),
    shares=st.lists(st.floats(0, 1), min_size=15, max_size=15),
)
def test_fixed_drafts_come_back_to_the_integer(k: int, steps: int, shares: list[float]) -> None:
    accepted: list[int] = []
    for share in shares[:k]:
        accepted.append(int(share * (accepted[-1] if accepted else steps)))
    (window,) = read(line(printed(accepted, steps, k * steps))).windows
    assert (window.counts.steps, window.exact) == (steps, True)
    assert window.counts.accepted == sum(accepted)
    assert window.counts.slots == k * steps
    positions = window.counts.by_position
    assert positions is not None
    assert sum(positions) == sum(accepted)
    assert all(abs(found - truth) <= 1 + steps / 1000 for found, truth in zip(positions, accepted, strict=True))


@given(
    k=st.integers(1, 8),
    drafts=st.lists(st.integers(1, 8), min_size=1, max_size=200),
    luck=st.floats(0, 1),
    repeats=st.integers(1, 30),
    seed=st.integers(0, 10_000),
)
def test_exact_means_exact_for_drafts_of_any_length(
    k: int, drafts: list[int], luck: float, repeats: int, seed: int
) -> None:
    """Whatever fits is within the roundings of the truth, and what is called exact is the truth."""
    chance = random.Random(seed)
    accepted, drafted, steps = [0] * k, 0, 0
    for length in drafts * repeats:
        steps += 1
        drafted += min(length, k)
        for position in range(min(length, k)):
            if chance.random() > luck:
                break
            accepted[position] += 1
    (window,) = read(line(printed(accepted, steps, drafted)), algorithm="ngram").windows
    assert window.counts.accepted == pytest.approx(sum(accepted))
    assert window.counts.acc_len == pytest.approx(1 + sum(accepted) / steps, abs=0.011)
    if window.exact:
        assert window.counts.steps == steps


@pytest.mark.parametrize(
    ("message", "length", "steps"),
    [
        # 0.8.4 prints neither length nor positions, 0.8.5 a length without the bonus token
        ("SpecDecoding metrics: Draft acceptance rate: 62.3%, Accepted: 282 tokens, Drafted: 453 tokens", None, None),
        (
            OLD.format(62.3, "1.87", 282, 453, "0.821, 0.609, 0.437"),
            2.8675,
            151,
        ),
        # the sum of the positions tells which of the two it is
        (
            OLD.format(80.0, "1.60", 160, 200, "0.900, 0.700"),
            2.6,
            100,
        ),
        (
            OLD.format(30.0, "1.60", 60, 200, "0.400, 0.200"),
            1.6,
            100,
        ),
        (SPEC.replace("2.80, ", "2.80, Current speculative depth: 3, "), 2.8, 150),
        (SPEC + " [repeated 3x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0, ok)", 2.8, 150),
    ],
)
def test_generations_and_forks(message: str, length: float | None, steps: int | None) -> None:
    (window,) = read(line(message)).windows
    assert window.counts.steps == steps
    assert window.counts.acc_len == (None if length is None else pytest.approx(length, abs=1e-3))


def test_a_line_without_positions_takes_k_from_the_start() -> None:
    message = "SpecDecoding metrics: Draft acceptance rate: 62.3%, Accepted: 282 tokens, Drafted: 453 tokens"
    (window,) = read(line(message), k=3).windows
    assert (window.counts.steps, window.counts.acc_len) == (151, pytest.approx(2.8675, abs=1e-3))


def test_nothing_accepted_and_nothing_drafted() -> None:
    dead, empty = read(
        line(printed([0, 0, 0], 99, 297))
        + line(printed([0, 0, 0], 7, 1).replace("Drafted: 1 ", "Drafted: 0 ").replace("0.0%", "nan%"))
    ).windows
    assert (dead.counts.acc_len, dead.counts.steps, dead.busy) == (1.0, 99, True)
    assert (empty.counts.acc_len, empty.counts.steps, empty.busy, empty.reported_rate) == (None, None, False, None)


TORN = {
    "cut short": SPEC[: SPEC.index(", Drafted:")],
    "a position cut short": SPEC[: SPEC.index("0.600") + 8],
    "text between": SPEC.replace("tokens/s, Drafted", "tokens/s, what, Drafted"),
    "more accepted than drafted": SPEC.replace("Drafted: 450", "Drafted: 45"),
    "figures that contradict": SPEC.replace("Drafted: 450", "Drafted: 4500"),
    "a number of another form": SPEC.replace("Accepted: 270", "Accepted: 2e2"),
    "an endless number": SPEC.replace("Accepted: 270", "Accepted: " + "9" * 5000),
    "V0, whose figures are totals": "Speculative metrics: Draft acceptance rate: 0.607, System efficiency: 0.510, x",
}


@pytest.mark.parametrize("message", TORN.values(), ids=TORN.keys())
def test_torn_lines_are_counted_and_give_nothing(message: str) -> None:
    reading = read(line(message))
    assert reading.windows == ()
    assert [rejected.count for rejected in reading.rejected] == [1]


@pytest.mark.parametrize(
    "quote",
    [
        'grep "{}" d3.log\n',
        "【问题现象】服务正常启动，但 {}\n",
        "(APIServer pid=1) INFO 12-01 06:50:12 [logger.py:43] Received request cmpl-1: prompt: '{}', params: x\n",
        "(APIServer pid=1) INFO 12-01 06:50:12 [logger.py:43] Received request {}\n",
        'INFO:     127.0.0.1:1 - "POST /v1/completions?{} HTTP/1.1" 200 OK\n',
    ],
)
def test_what_quotes_a_line_is_not_one(quote: str) -> None:
    said = (
        SPEC,
        engine(),
        "non-default args: {'tensor_parallel_size': 8}",
        "NVFP4 linear falling back to the slow and unoptimized emulation backend",
    )
    for message in said:
        reading = read(quote.format(message))
        assert (reading.windows, reading.facts, reading.hits, reading.health) == ((), (), (), ())


# Time


def test_the_interval_follows_from_the_throughput() -> None:
    first, second = read(
        line(printed([0] * 5, 99, 495, interval=402.4), 43) + line(printed([9, 3, 3], 30, 90, interval=5.0), 50)
    ).windows
    assert (first.end, first.end - first.start) == (at(43), pytest.approx(402.4, rel=0.01))
    assert second.end - second.start == pytest.approx(5.0)


def test_an_interval_does_not_begin_before_the_line_before_it() -> None:
    _, second = read(line(SPEC, 10) + line(SPEC, 13)).windows
    assert second.end - second.start == pytest.approx(4.0)


def test_a_year_is_found_and_json_times_are_read() -> None:
    (december,) = read(line(SPEC).replace("12-01", "12-31")).windows
    assert datetime.fromtimestamp(december.end, UTC).year == 2025
    record = {"asctime": "2026-12-01 06:50:12,432", "process": 1, "message": SPEC}
    (window,) = read(json.dumps(record) + "\n").windows
    assert window.end == pytest.approx(at(12) + 0.432)


def test_lines_of_a_log_without_times_follow_each_other() -> None:
    first, second = read((FIXTURES / "cases/051-vl-depth-field/input.log").read_bytes()).windows
    assert (first.end, second.end - second.start) == (READ_AT, pytest.approx(10.0, rel=0.01))
    assert second.end - first.end == pytest.approx(10.0, rel=0.01)


# Engines and processes


def test_the_engine_is_that_of_the_line_before_of_the_same_process() -> None:
    log = (
        line(engine("Engine 002"), pid=1)
        + line(engine("Engine 004"), pid=2)
        + line(SPEC, pid=1)
        + line(SPEC, pid=2)
        + line(engine("Engine 003"), pid=1)
        + line(SPEC, pid=1)
        + line(engine("4 Engines Aggregated"), pid=1)
        + line(SPEC, pid=1)
        + line(SPEC, pid=9)
        + line(SPEC, pid=8, process="EngineCore_DP5")
    )
    assert [window.series.rank for window in read(log).windows] == ["2", "4", "3", None, "0", "5"]
    assert [window.series.rank for window in read(line(SPEC), data_parallel=2).windows] == [None]


def test_the_rust_frontend_speaks_of_all_engines(fixture_bytes: Read) -> None:
    body = fixture_bytes("vllm/logs_v0.33.0_rust_frontend.txt")
    assert [window.series.rank for window in read(body).windows] == [None]
    assert [window.series.rank for window in read(body, data_parallel=1).windows] == ["0"]
    (health,) = read(body).health
    assert (health.running, health.queued) == (12, 3)


def test_health_sums_engines() -> None:
    log = line(engine("Engine 000", running=2)) + line(SPEC) + line(engine("Engine 001", running=5))
    (health,) = read(log).health
    assert (health.running, health.queued, health.speculating) == (7, 6, True)
    assert health.decode_tokens == pytest.approx(2 * 3112)
    assert health.at == at(12)


@pytest.mark.parametrize(
    ("log", "speculating"),
    [
        (line(engine()) + line(engine(), 22), False),
        (line(engine()), None),  # its line may yet come
        (line(engine(generated=0.0)) + line(engine(), 22), None),
        (line(engine()) + line(SPEC) + line(engine(), 22), True),
    ],
)
def test_health_tells_speculation_that_is_not_there(log: str, speculating: bool | None) -> None:
    (health,) = read(log).health
    assert health.speculating is speculating


def test_a_start_begins_an_incarnation() -> None:
    arguments = (
        "non-default args: {'model': 'm', 'api_key': 'sk-secret', 'speculative_config': {'model': 'd', "
        "'num_speculative_tokens': 2, 'rejection_sample_method': 'synthetic'}}"
    )
    config = (
        "Initializing a V1 LLM engine (v0.33.0) with config: model='m', speculative_config=SpeculativeConfig("
        "method='eagle3', model='d', num_spec_tokens=2), data_parallel_size=1, enforce_eager=False, x={...}"
    )
    quiet = "Model Runner V2 requires Triton; using the V1 model runner instead."
    state, first = feed(line(arguments) + line(config) + line(quiet) + line(SPEC))
    assert told(first) == {
        "engine": "vllm",
        "model": "m",
        "drafter": "d",
        "k": 2,
        "speculative": True,
        "synthetic_acceptance": True,
        "version": "0.33.0",
        "algorithm": "eagle3",
        "data_parallel": 1,
        "cuda_graph_disabled": False,
    }
    assert "sk-secret" not in repr((state, first))
    state, second = feed(line(config.replace("v0.33.0", "v0.34.0")) + line(quiet), state)
    assert {hit.incarnation for hit in second.hits} == {"2"}
    assert (told(second)["version"], told(second)["synthetic_acceptance"]) == ("0.34.0", None)


@pytest.mark.parametrize(("draft", "is_short"), [(8192, True), (131072, False), (262144, False)])
def test_a_drafter_with_a_shorter_context_is_a_finding(draft: int, is_short: bool) -> None:
    reading = read(f"[model.py:1684] Using max model len 131072\n[model.py:1684] Using max model len {draft}\n")
    assert [dict(hit.captures) for hit in reading.hits if hit.signature == "draft-maxlen-short"] == [
        {"target": "131072", "drafter": str(draft)}
    ] * is_short


def test_the_third_selected_backend_makes_the_drafters_unknown() -> None:
    selected = "Using {} attention backend out of potential backends: ['A', 'B', 'C']."
    first, second, third = (line(selected.format(name), process="Worker_TP0") for name in "ABC")
    assert told(read(first + first))["decode_attention_backend"] == "A"
    assert "draft_attention_backend" not in told(read(first + second))
    assert told(read(first + second, drafter="d"))["draft_attention_backend"] == "B"
    assert told(read(first + second + third, drafter="d"))["draft_attention_backend"] is None


def test_no_stats_with_several_api_servers_is_said(fixture_bytes: Read) -> None:
    reading = read(fixture_bytes("real/vllm/apis2/server.log"))
    assert reading.windows == ()
    assert "stats-off" in {hit.signature for hit in reading.hits}


# However it is cut, and whatever is in it


@settings(max_examples=25)
@given(name=st.sampled_from([*SAMPLES, *REAL]), cuts=st.lists(st.integers(0, 60_000), max_size=12))
def test_chunks_make_no_difference(fixture_bytes: Read, name: str, cuts: list[int]) -> None:
    body = fixture_bytes(name)
    whole_state, whole = feed(body)
    state: State = {}
    windows: list[Window] = []
    facts: dict[str, object] = {}
    ends = sorted({body.rfind(b"\n", 0, cut % (len(body) + 1)) + 1 for cut in cuts} | {0, len(body)})
    for start, end in pairwise(ends):
        state, reading = feed(body[start:end], json.loads(json.dumps(state)), start)
        windows += reading.windows
        facts |= told(reading)
    assert tuple(windows) == whole.windows
    assert facts == told(whole)
    assert json.loads(json.dumps(state)) == json.loads(json.dumps(whole_state))
    assert len({window.id for window in windows}) == len(windows)


def test_mutated_lines_never_raise_and_invent_no_tokens(fixture_bytes: Read) -> None:
    source = [text for name in SAMPLES for text in fixture_bytes(name).splitlines(keepends=True)]
    source += [text for text in fixture_bytes("real/vllm/good/server.log").splitlines(keepends=True) if b"INFO" in text]
    chance = random.Random(20261201)
    for _ in range(MUTATIONS):
        text = bytearray(chance.choice(source))
        for _ in range(chance.randint(1, 4)):
            where = chance.randrange(len(text) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                text[where : where + 1] = bytes([chance.randrange(256)])
            elif kind == 1:
                del text[where : where + chance.randint(1, 40)]
            elif kind == 2:
                text[where:where] = text[: chance.randint(1, 40)]
            else:
                text[where:where] = chance.choice(source)[: chance.randint(1, 60)]
        for window in read(bytes(text)).windows:
            assert f"Drafted: {window.counts.proposed} tokens".encode() in bytes(text)
            assert window.counts.acc_len is None or window.counts.acc_len >= 1
