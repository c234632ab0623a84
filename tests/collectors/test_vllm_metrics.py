"""vLLM's pages, values held against the files' own numbers as prometheus_client reads them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from acceptance.counts import Spread, total
from acceptance.facts import Subject
from acceptance.window import Window
from collectors.deltas import SINCE_START
from collectors.reading import Reading, State, Text
from collectors.sglang.metrics import MetricsReader as SglangReader
from collectors.vllm.metrics import MetricsReader

FIXTURES = Path(__file__).parents[1] / "fixtures"
SUBJECT = Subject("t")
BEGIN = 1_800_000_000.0
SPEC = "vllm:spec_decode_num_"
FOLDERS = ["ngram", "draft", "good", "noisy1", "noisy2", "eagle", "medusa", "dp2", "apis2"]


def pages_of(folder: str) -> list[str]:
    found = sorted((FIXTURES / "real" / "vllm" / folder).glob("metrics-*.txt.gz"))
    return [str(path.relative_to(FIXTURES)).removesuffix(".gz") for path in found]


def numbers(page: bytes) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """(sample name, engine) -> position (or "") -> value, by prometheus_client."""
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            place = sample.name, sample.labels.get("engine", "")
            found[place][sample.labels.get("position", "")] = float(sample.value)
    return found


def feed(pages: list[bytes], state: State | None = None, subject: Subject = SUBJECT) -> tuple[State, list[Reading]]:
    """Looks 15 s apart; states pass through JSON, facts become known."""
    reader, readings, state = MetricsReader(), list[Reading](), {} if state is None else state
    for at, page in enumerate(pages):
        state, reading = reader.feed(
            subject, json.loads(json.dumps(state, allow_nan=False)), Text(page, BEGIN + 15 * at)
        )
        subject = subject.knowing({fact.name: fact.value for fact in reading.facts})
        readings.append(reading)
    return state, readings


def facts(readings: list[Reading]) -> dict[str, object]:
    return {fact.name: fact.value for reading in readings for fact in reading.facts}


def windows(readings: list[Reading]) -> list[Window]:
    return [window for reading in readings for window in reading.windows]


@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_pages_in_order_add_up_to_the_files_own_differences(
    folder: str, fixture_bytes: Callable[[str], bytes]
) -> None:
    pages = [fixture_bytes(name) for name in pages_of(folder)]
    before, after = numbers(pages[0]), numbers(pages[-1])
    engines = sorted(engine for name, engine in after if name == f"{SPEC}drafts_total")

    _, readings = feed(pages)

    told = windows(readings)
    assert not readings[0].windows
    assert not [item for reading in readings for item in reading.rejected]
    assert {window.series.rank for window in told} == set(engines)
    for engine in engines:
        changed = {
            name: {place: value - before[name, engine].get(place, 0.0) for place, value in after[name, engine].items()}
            for name in (
                f"{SPEC}drafts_total",
                f"{SPEC}draft_tokens_total",
                f"{SPEC}accepted_tokens_total",
                f"{SPEC}accepted_tokens_per_pos_total",
                "vllm:time_to_first_token_seconds_count",
                "vllm:inter_token_latency_seconds_count",
                "vllm:inter_token_latency_seconds_sum",
            )
        }
        steps, accepted = changed[f"{SPEC}drafts_total"][""], changed[f"{SPEC}accepted_tokens_total"][""]
        counts = total(window.counts for window in told if window.series.rank == engine)
        positions = changed[f"{SPEC}accepted_tokens_per_pos_total"]
        assert counts.steps == steps
        assert counts.emitted == steps + accepted
        assert counts.proposed == changed[f"{SPEC}draft_tokens_total"][""]
        assert counts.by_position == tuple(positions[str(place)] for place in range(len(positions)))
        assert counts.slots == len(positions) * steps
        assert counts.requests == changed["vllm:time_to_first_token_seconds_count"][""]
        assert counts.passes == changed["vllm:inter_token_latency_seconds_count"][""]
        assert counts.pass_seconds == pytest.approx(changed["vllm:inter_token_latency_seconds_sum"][""])
        assert counts.trim_bound == 0.0
        assert counts.eager_passes is None
    assert all(window.exact and window.source == "counter" for window in told)
    assert facts(readings) == {"engine": "vllm", "model": "tiny", "k": len(positions), "speculative": True}


def test_known_totals_of_the_recorded_servers(fixture_bytes: Callable[[str], bytes]) -> None:
    """From the recording's own notes: 205 requests over n-gram drafts, and a good drafter over an unrelated one."""
    _, readings = feed([fixture_bytes(name) for name in pages_of("ngram")])
    counts = total(window.counts for window in windows(readings))
    assert (counts.steps, counts.accepted, counts.proposed, counts.requests) == (1815.0, 2967.0, 6754.0, 205.0)
    assert counts.by_position == (1069.0, 785.0, 655.0, 458.0)
    _, readings = feed([fixture_bytes(name) for name in pages_of("draft")])
    assert total(window.counts for window in windows(readings)).acc_len == 1.0


def test_a_window_spans_two_looks_and_is_one_cluster(fixture_bytes: Callable[[str], bytes]) -> None:
    names = pages_of("good")
    _, readings = feed([fixture_bytes(name) for name in names])
    first, second = windows(readings)
    assert (first.start, first.end, second.start, second.end) == (BEGIN, BEGIN + 15, BEGIN + 15, BEGIN + 30)
    assert first.counts.spread == Spread.of(first.counts.emitted or 0.0, first.counts.steps or 0.0)
    assert first.busy
    assert (first.series.engine, first.series.model, first.series.rank) == ("vllm", "tiny", "0")
    assert first.series.category is None
    assert first.id != second.id
    assert windows(feed([fixture_bytes(name) for name in names])[1]) == [first, second]


def test_health_tells_load_and_generated_tokens(fixture_bytes: Callable[[str], bytes]) -> None:
    names = pages_of("ngram")
    pages = [numbers(fixture_bytes(name)) for name in names]
    _, readings = feed([fixture_bytes(name) for name in names])
    looks = [reading.health[0] for reading in readings]
    assert [look.running for look in looks] == [page["vllm:num_requests_running", "0"][""] for page in pages]
    assert [look.queued for look in looks] == [page["vllm:num_requests_waiting", "0"][""] for page in pages]
    assert looks[0].decode_tokens is None
    generated = [page["vllm:generation_tokens_total", "0"][""] for page in pages]
    assert [look.decode_tokens for look in looks[1:]] == [b - a for a, b in pairwise(generated)]
    assert {look.speculating for look in looks} == {True}


def test_without_speculation_there_are_no_windows_and_it_is_said(fixture_bytes: Callable[[str], bytes]) -> None:
    _, readings = feed([fixture_bytes(name) for name in pages_of("nospec")])
    assert not windows(readings)
    assert {reading.health[0].speculating for reading in readings} == {False}
    assert facts(readings)["speculative"] is False
    assert (readings[1].health[0].decode_tokens or 0.0) > 1000


def test_speculation_that_was_asked_for_elsewhere_stays_asked_for(fixture_bytes: Callable[[str], bytes]) -> None:
    asked = Subject("t", facts={"speculative": True})
    _, readings = feed([fixture_bytes(name) for name in pages_of("nospec")], subject=asked)
    assert "speculative" not in facts(readings)
    assert readings[0].health[0].speculating is False


def test_what_is_known_is_not_told_again(fixture_bytes: Callable[[str], bytes]) -> None:
    _, readings = feed([fixture_bytes(name) for name in pages_of("good")])
    assert readings[0].facts
    assert not readings[1].facts
    assert not readings[2].facts


def test_the_episode_adds_up_over_the_restart(fixture_bytes: Callable[[str], bytes]) -> None:
    """A good drafter is killed and comes back as a worse one: last - first of server A, and all of server B."""
    scrapes = [json.loads(line) for line in fixture_bytes("real/vllm/episode/scrapes-1s.jsonl").splitlines()]
    up = [(scrape["t"], "\n".join([*scrape["lines"], ""]).encode()) for scrape in scrapes if scrape["up"]]
    lives: dict[float, list[Mapping[tuple[str, str], Mapping[str, float]]]] = defaultdict(list)
    for _, page in up:
        told = numbers(page)
        lives[told["process_start_time_seconds", ""][""]].append(told)
    started_a, started_b = sorted(lives)
    state: State = {}
    found: list[Window] = []
    for at, page in up:
        state, reading = MetricsReader().feed(SUBJECT, state, Text(page, at))
        assert not reading.rejected
        found += reading.windows

    def change(name: str, place: str = "") -> tuple[float, float]:
        value = {started: [page[name, "0"][place] for page in pages] for started, pages in lives.items()}
        return value[started_a][-1] - value[started_a][0], value[started_b][-1]

    split = started_b
    life_a = total(window.counts for window in found if window.end < split)
    life_b = total(window.counts for window in found if window.end >= split)
    assert (life_a.steps, life_b.steps) == change(f"{SPEC}drafts_total")
    assert (life_a.accepted, life_b.accepted) == change(f"{SPEC}accepted_tokens_total")
    assert (life_a.proposed, life_b.proposed) == change(f"{SPEC}draft_tokens_total")
    for place in range(4):
        expected = change(f"{SPEC}accepted_tokens_per_pos_total", str(place))
        assert life_a.by_position is not None
        assert life_b.by_position is not None
        assert (life_a.by_position[place], life_b.by_position[place]) == expected
    repeat_a = total(window.counts for window in found if window.end <= 1796109674)
    repeat_b = total(window.counts for window in found if window.end >= split)
    assert repeat_a.acc_len == pytest.approx(3.9, abs=0.1)
    assert repeat_b.acc_len == pytest.approx(1.15, abs=0.1)
    assert len({window.id for window in found}) == len(found)
    restarted = next(window for window in found if window.end >= split)
    assert restarted.start >= split


@pytest.mark.parametrize(
    "version", ["0.8.5", "0.9.2", "0.10.2", "0.12.0", "0.16.0", "0.20.2", "0.27.1", "0.29.0", "0.33.0"]
)
def test_a_single_page_of_each_release_since_its_process_began(
    version: str, fixture_bytes: Callable[[str], bytes]
) -> None:
    page = fixture_bytes(f"vllm/metrics_v{version}_single_engine.txt")
    _, (reading,) = feed([page], SINCE_START)
    (window,) = reading.windows
    assert (window.counts.steps, window.counts.proposed, window.counts.accepted) == (780.0, 5460.0, 1510.0)
    assert window.counts.by_position == (600.0, 400.0, 250.0, 130.0, 70.0, 30.0, 30.0)
    assert window.counts.acc_len == pytest.approx(1 + 1510 / 780)
    assert window.start == numbers(page)["process_start_time_seconds", ""][""]
    assert facts([reading])["k"] == 7


@pytest.mark.parametrize("page", ["dp2_single_api_server", "dp2_multiprocess"])
def test_engines_of_a_data_parallel_page_are_told_apart(page: str, fixture_bytes: Callable[[str], bytes]) -> None:
    _, (reading,) = feed([fixture_bytes(f"vllm/metrics_v0.33.0_{page}.txt")], SINCE_START)
    assert {window.series.rank: window.counts.steps for window in reading.windows} == {"0": 780.0, "1": 1560.0}
    assert {window.counts.slots for window in reading.windows} == {7 * 780.0, 7 * 1560.0}


def test_the_rust_frontend_s_openmetrics_page(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes("vllm/metrics_v0.33.0_rust_openmetrics.txt")
    _, (reading,) = feed([page], SINCE_START)
    (window,) = reading.windows
    assert (window.counts.steps, window.counts.emitted) == (780.0, 2290.0)
    assert (window.counts.requests, window.counts.passes) == (None, None)
    assert reading.health[0].speculating is True


def test_zeros_of_the_rust_frontend_do_not_tell_whether_it_speculates() -> None:
    labels = '{model_name="m",engine="0"}'
    page = f"vllm:num_requests_running{labels} 1\n" + "".join(
        f"{SPEC}{name}_total{labels} 0\n" for name in ("drafts", "draft_tokens", "accepted_tokens")
    )
    _, readings = feed(
        [page.encode(), page.replace("drafts_total" + labels + " 0", f"drafts_total{labels} 4").encode()]
    )
    assert [reading.health[0].speculating for reading in readings] == [None, True]
    assert "k" not in facts(readings)
    (window,) = windows(readings)
    assert (window.counts.steps, window.counts.slots, window.counts.by_position) == (4.0, None, None)


def test_v0_pages_give_no_windows_and_the_reason(fixture_bytes: Callable[[str], bytes]) -> None:
    case = "cases/066-vl-sum-of-sums"
    _, readings = feed([fixture_bytes(f"{case}/metrics_t0.txt"), fixture_bytes(f"{case}/metrics_t1.txt")])
    assert not windows(readings)
    assert all("cumulative totals" in reading.rejected[0].reason for reading in readings)
    assert readings[1].rejected[0].reason.startswith("data-quality")
    assert readings[1].health[0].decode_tokens == 31_000.0
    _, (reading,) = feed([fixture_bytes("vllm/metrics_v0.6.6_V0_spec_families.txt")], SINCE_START)
    assert not reading.windows
    assert reading.rejected[0].reason.startswith("data-quality")


def test_created_series_are_not_counts(fixture_bytes: Callable[[str], bytes]) -> None:
    _, (reading,) = feed([fixture_bytes("cases/063-vl-created-series/metrics.txt")], SINCE_START)
    (window,) = reading.windows
    assert (window.counts.steps, window.counts.accepted, window.counts.slots) == (6491797.0, 5214511.0, 6491797.0)
    assert window.counts.acc_len == pytest.approx(1.803, abs=5e-4)
    assert window.counts.accept_rate == pytest.approx(0.803, abs=5e-4)


def test_labels_with_blanks_and_samples_with_timestamps(fixture_bytes: Callable[[str], bytes]) -> None:
    _, (reading,) = feed([fixture_bytes("cases/067-vl-label-spaces-timestamps/metrics.txt")], SINCE_START)
    (window,) = reading.windows
    assert window.series.model == "Qwen 3.6 27B ParoQuant"
    assert (window.counts.steps, window.counts.proposed, window.counts.accepted) == (42668.0, 128004.0, 66000.0)
    assert window.counts.acc_len == pytest.approx(2.547, abs=5e-4)


def test_replicas_of_ray_share_engine_0_and_are_told_apart(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes("cases/077-vl-ray-prefix-and-names/metrics.txt")
    _, (reading,) = feed([page], SINCE_START, Subject("t", facts={"k": 3}))
    assert {window.series.rank: round(window.counts.acc_len or 0.0, 3) for window in reading.windows} == {
        "r0/0": 1.075,
        "r1/0": 2.7,
    }
    assert {window.series.rank: window.counts.slots for window in reading.windows} == {
        "r0/0": 3 * 60100.0,
        "r1/0": 3 * 59800.0,
    }


def test_one_replica_of_ray_may_restart_alone(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes("cases/077-vl-ray-prefix-and-names/metrics.txt").decode()
    later = (
        page.replace("60100.0", "10.0").replace("180300.0", "30.0").replace("4510.0", "2.0").replace("59800", "59804")
    )
    _, readings = feed([page.encode(), later.encode()])
    assert {window.series.rank: window.counts.steps for window in windows(readings)} == {"r0/0": 10.0, "r1/0": 4.0}


def test_positions_of_both_engines_keep_the_identity(fixture_bytes: Callable[[str], bytes]) -> None:
    _, (reading,) = feed([fixture_bytes("cases/079-vl-perpos-dp2/metrics.txt")], SINCE_START)
    assert {window.series.rank: window.counts.acc_len for window in reading.windows} == {"0": 3.2, "1": 3.3}
    counts = total(window.counts for window in reading.windows)
    rates = counts.position_rates or ()
    assert [round(rate, 3) for rate in rates] == [0.853, 0.657, 0.451, 0.29]
    assert 1 + sum(rates) == pytest.approx(counts.acc_len)
    assert not reading.rejected


def vllm_page(drafts: int, proposed: int, accepted: int, positions: tuple[int, ...], started: float = 1.0) -> bytes:
    labels = 'engine="0",model_name="m"'
    lines = [
        f"process_start_time_seconds {started}",
        f"{SPEC}drafts_total{{{labels}}} {drafts}",
        f"{SPEC}draft_tokens_total{{{labels}}} {proposed}",
        f"{SPEC}accepted_tokens_total{{{labels}}} {accepted}",
        *(
            f'{SPEC}accepted_tokens_per_pos_total{{{labels},position="{place}"}} {count}'
            for place, count in enumerate(positions)
        ),
    ]
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(
    ("page", "doubts"),
    [
        (vllm_page(10, 20, 12, (8, 4)), []),
        (vllm_page(10, 20, 12, (8, 3)), ["11 tokens accepted by position, 12 in all"]),
        (vllm_page(10, 11, 12, (8, 4)), ["12 tokens accepted of 11 proposed"]),
        (vllm_page(10, 40, 21, (11, 10)), ["31 tokens from 10 steps: more than k + 1 = 3 a step"]),
    ],
)
def test_a_page_that_contradicts_itself_is_told_as_it_is_with_the_doubt(page: bytes, doubts: list[str]) -> None:
    _, (reading,) = feed([page], SINCE_START)
    (window,) = reading.windows
    assert [(item.where, item.reason) for item in reading.rejected] == [
        ("engine 0", f"data-quality: {doubt}") for doubt in doubts
    ]
    assert window.counts.accepted in (12.0, 21.0)


def test_a_counter_that_is_no_number_leaves_the_window_out() -> None:
    pages = [
        vllm_page(10, 20, 12, (8, 4)),
        vllm_page(20, 40, 24, (16, 8)).replace(
            b'tokens_total{engine="0",model_name="m"} 24', b'tokens_total{engine="0",model_name="m"} NaN'
        ),
        vllm_page(30, 60, 36, (24, 12)),
        vllm_page(40, 80, 48, (32, 16)),
    ]
    assert b"NaN" in pages[1]
    _, readings = feed(pages)
    assert [len(reading.windows) for reading in readings] == [0, 0, 0, 1]


def test_a_pid_names_nobody() -> None:
    """Several processes may count for one engine, each under its own pid: they are one rank."""
    first, second = (
        vllm_page(*numbers_, started=1.0).decode() for numbers_ in ((10, 20, 12, (8, 4)), (5, 10, 3, (2, 1)))
    )
    both = first.replace('engine="0"', 'engine="0",pid="17"') + second.replace('engine="0"', 'engine="0",pid="4"')
    page = both.replace("process_start_time_seconds 1.0\n", "")
    _, (reading,) = feed([page.encode()], SINCE_START)
    (window,) = reading.windows
    assert (window.series.rank, window.counts.steps, window.counts.by_position) == ("0", 15.0, (10.0, 5.0))


def test_nothing_moves_nothing_told(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes(pages_of("ngram")[-1])
    _, readings = feed([page, page, page])
    assert not windows(readings)
    assert readings[2].health[0].decode_tokens == 0.0


def test_a_page_of_something_else_is_rejected_and_keeps_the_state() -> None:
    state, _ = feed([vllm_page(1, 2, 1, (1, 0))])
    after, (reading,) = feed([b"go_gc_duration_seconds 1\n"], state)
    assert after == state
    assert reading.rejected
    assert not reading.health


STEP = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))


@given(st.lists(st.lists(STEP, min_size=1, max_size=6), min_size=1, max_size=3), st.data())
@settings(max_examples=100, deadline=None)
def test_windows_add_up_however_a_life_is_split_into_looks(
    lives: list[list[tuple[int, int, int]]], data: st.DataObject
) -> None:
    pages: list[bytes] = []
    drafts_expected = accepted_expected = 0
    for number, steps in enumerate(lives):
        drafts = first = second = 0
        chosen: list[tuple[int, int, int]] = []
        for more, accepted_first, accepted_second in steps:
            drafts, first, second = drafts + more, first + accepted_first, second + accepted_second
            if data.draw(st.booleans()):
                chosen += [(drafts, first, second)] * data.draw(st.integers(1, 2))
        chosen = chosen or [(drafts, first, second)]
        pages += [vllm_page(d, 2 * d, a + b, (a, b), started=1.0 + number) for d, a, b in chosen]
        begin = chosen[0] if number == 0 else (0, 0, 0)
        drafts_expected += chosen[-1][0] - begin[0]
        accepted_expected += sum(chosen[-1][1:]) - sum(begin[1:])
    _, readings = feed(pages)
    found = windows(readings)
    assert sum(window.counts.steps or 0.0 for window in found) == drafts_expected
    assert sum(window.counts.accepted or 0.0 for window in found) == accepted_expected
    assert len({window.id for window in found}) == len(found)


@given(st.binary(max_size=200), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_no_input_raises(noise: bytes, at: int) -> None:
    page = vllm_page(10, 20, 12, (8, 4))
    feed([page, page[:at] + noise + page[at:], noise, page])


def test_the_page_of_another_engine_at_the_same_address_counts_nothing_anew(
    fixture_bytes: Callable[[str], bytes],
) -> None:
    vllm = fixture_bytes("real/vllm/good/metrics-1-repeat40.txt")
    sglang = fixture_bytes("sglang/metrics_v0.5.23.tp8.txt")
    for reader, other, then in (
        (MetricsReader(), SglangReader(), (sglang, vllm)),
        (SglangReader(), MetricsReader(), (vllm, sglang)),
    ):
        state, _ = other.feed(SUBJECT, {}, Text(then[0], BEGIN))
        _, reading = reader.feed(SUBJECT, json.loads(json.dumps(state)), Text(then[1], BEGIN + 15))
        assert reading.windows == ()
