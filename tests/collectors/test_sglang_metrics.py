"""SGLang's pages, values held against the files' own numbers as prometheus_client reads them."""

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
from acceptance.facts import FactValue, Subject
from acceptance.window import Window
from collectors.deltas import SINCE_START
from collectors.reading import Reading, State, Text
from collectors.sglang.metrics import MOST_CATEGORIES, MetricsReader

FIXTURES = Path(__file__).parents[1] / "fixtures"
BEGIN = 1_800_000_000.0
NGRAM: Mapping[str, FactValue] = {"algorithm": "NGRAM", "k": 4, "decode_log_interval": 10}
EAGLE: Mapping[str, FactValue] = {"algorithm": "EAGLE", "k": 3, "num_draft_tokens": 6, "decode_log_interval": 10}


def pages_of(folder: str) -> list[str]:
    found = sorted((FIXTURES / "real" / "sglang" / folder).glob("metrics-*.txt.gz"))
    return [str(path.relative_to(FIXTURES)).removesuffix(".gz") for path in found]


def sums(page: bytes, **where: str) -> Mapping[str, float]:
    """Sample name without prefix -> sum over the samples with these labels, by prometheus_client."""
    found: dict[str, float] = defaultdict(float)
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            if all(sample.labels.get(name) == value for name, value in where.items()):
                found[sample.name.removeprefix("sglang:")] += float(sample.value)
    return found


def feed(
    pages: list[bytes], state: State | None = None, subject: Subject | None = None, every: float = 15.0
) -> tuple[State, list[Reading]]:
    """Looks 15 s apart; states pass through JSON, facts become known."""
    reader, readings = MetricsReader(), list[Reading]()
    state, subject = {} if state is None else state, subject or Subject("t")
    for number, page in enumerate(pages):
        text = Text(page, BEGIN + every * number)
        state, reading = reader.feed(subject, json.loads(json.dumps(state, allow_nan=False)), text)
        subject = subject.knowing({fact.name: fact.value for fact in reading.facts})
        readings.append(reading)
    return state, readings


def facts(readings: list[Reading]) -> dict[str, object]:
    return {fact.name: fact.value for reading in readings for fact in reading.facts}


def windows(readings: list[Reading], source: str) -> list[Window]:
    return [window for reading in readings for window in reading.windows if window.source == source]


@pytest.mark.parametrize(("folder", "known"), [("ngram", NGRAM), ("eagle", EAGLE)])
def test_recorded_pages_in_order_add_up_to_the_files_own_differences(
    folder: str, known: Mapping[str, FactValue], fixture_bytes: Callable[[str], bytes]
) -> None:
    pages = [fixture_bytes(name) for name in pages_of(folder)]
    first, last = sums(pages[0]), sums(pages[-1])
    changed = {name: last[name] - first[name] for name in last}

    _, readings = feed(pages, subject=Subject("t", facts=known))

    counts = total(window.counts for window in windows(readings, "counter"))
    requests = changed["num_requests_total"]
    assert not readings[0].windows
    assert not [item for reading in readings for item in reading.rejected]
    assert counts.steps == changed["spec_verify_calls_total"]
    assert counts.emitted == changed["generation_tokens_total"] - requests
    assert counts.requests == requests
    assert counts.proposed == (last["spec_num_draft_tokens"] - 1) * changed["spec_verify_calls_total"]
    assert counts.slots == (known["k"] or 0) * changed["spec_verify_calls_total"]
    assert counts.trim_bound == (known["k"] or 0) * requests
    assert (counts.passes, counts.by_position) == (None, None)
    for window in windows(readings, "counter"):
        assert window.exact
        assert (window.series.rank, window.series.category, window.series.role) == (None, None, "unified")


def test_known_lengths_of_the_recorded_servers(fixture_bytes: Callable[[str], bytes]) -> None:
    """A drafter of which nothing is accepted reads exactly 1, since the prefill token is not counted as verified."""
    _, readings = feed([fixture_bytes(name) for name in pages_of("eagle")], subject=Subject("t", facts=EAGLE))
    assert total(window.counts for window in windows(readings, "counter")).acc_len == 1.0
    assert {window.counts.acc_len for window in windows(readings, "gauge")} == {1.0}
    _, readings = feed([fixture_bytes(pages_of("ngram")[3])], SINCE_START, Subject("t", facts=NGRAM))
    assert total(window.counts for window in windows(readings, "counter")).acc_len == pytest.approx(3.634, abs=5e-4)


@pytest.mark.parametrize(("folder", "known"), [("ngram", NGRAM), ("eagle", EAGLE)])
def test_gauge_windows_hold_the_decoded_tokens_while_any_are_decoded(
    folder: str, known: Mapping[str, FactValue], fixture_bytes: Callable[[str], bytes]
) -> None:
    pages = [fixture_bytes(name) for name in pages_of(folder)]
    _, readings = feed(pages, subject=Subject("t", facts=known))
    for (before, after), reading in zip(pairwise(pages), readings[1:], strict=True):
        decoded = (
            sums(after, mode="decode")["realtime_tokens_total"] - sums(before, mode="decode")["realtime_tokens_total"]
        )
        passes = sums(after, mode="decode_none")["cuda_graph_passes_total"]
        passes -= sums(before, mode="decode_none")["cuda_graph_passes_total"]
        length = sums(after)["spec_accept_length"]
        found = windows([reading], "gauge")
        if not decoded or (length == sums(before)["spec_accept_length"] and passes < known["decode_log_interval"]):
            assert not found
            continue
        (window,) = found
        assert window.counts.emitted == decoded
        assert window.counts.steps == pytest.approx(decoded / length)
        assert (window.reported_length, window.reported_rate) == (length, sums(after)["spec_accept_rate"])
        assert (window.counts.passes, window.counts.eager_passes) == (passes, passes)
        assert window.counts.spread == Spread.of(window.counts.emitted or 0.0, window.counts.steps or 0.0)
        assert window.counts.trim_bound == 0.0
        assert not window.exact
        assert (window.series.rank, window.series.role, window.series.model) == ("0", "unified", "tiny")
    assert len(windows(readings, "gauge")) >= 4


def test_health_of_recorded_pages(fixture_bytes: Callable[[str], bytes]) -> None:
    pages = [fixture_bytes(name) for name in pages_of("ngram")]
    _, readings = feed(pages)
    looks = [reading.health[0] for reading in readings]
    decoded = [sums(page, mode="decode")["realtime_tokens_total"] for page in pages]
    assert looks[0].decode_tokens is None
    assert [look.decode_tokens for look in looks[1:]] == [b - a for a, b in pairwise(decoded)]
    assert [look.running for look in looks] == [sums(page)["num_running_reqs"] for page in pages]
    assert [look.queued for look in looks] == [sums(page)["num_queue_reqs"] for page in pages]
    assert looks[0].speculating in (None, True)
    assert {look.speculating for look in looks[1:]} == {True}
    assert facts(readings) == {"engine": "sglang", "model": "tiny", "role": "unified", "k": 4, "speculative": True}


def test_without_speculation_zeros_are_told_from_a_start(fixture_bytes: Callable[[str], bytes]) -> None:
    """The gauges are 0.0 in both cases; that finished requests verified nothing is what tells."""
    _, readings = feed([fixture_bytes(name) for name in pages_of("nospec")])
    assert not [window for reading in readings for window in reading.windows]
    looks = [reading.health[0].speculating for reading in readings]
    assert looks[0] is not True
    assert set(looks[1:]) == {False}
    assert facts(readings)["speculative"] is False
    _, readings = feed([fixture_bytes(pages_of("ngram")[0])])
    assert readings[0].health[0].speculating is not False


def test_the_episode_adds_up_and_an_idle_gauge_tells_nothing(fixture_bytes: Callable[[str], bytes]) -> None:
    scrapes = [json.loads(line) for line in fixture_bytes("real/sglang/episode/scrapes-1s.jsonl").splitlines()]
    up = [(scrape["t"], "\n".join([*scrape["lines"], ""]).encode()) for scrape in scrapes if scrape["up"]]
    state: State = {}
    subject = Subject("t", facts=NGRAM)
    found: list[Window] = []
    for at, page in up:
        state, reading = MetricsReader().feed(subject, state, Text(page, at))
        assert not reading.rejected
        found += reading.windows
    first, last = sums(up[0][1]), sums(up[-1][1])
    counted = total(window.counts for window in found if window.source == "counter")
    assert counted.steps == last["spec_verify_calls_total"] - first["spec_verify_calls_total"]
    assert counted.requests == last["num_requests_total"] - first["num_requests_total"]
    assert counted.emitted == last["generation_tokens_total"] - first["generation_tokens_total"] - (
        counted.requests or 0
    )
    gauged = total(window.counts for window in found if window.source == "gauge")
    decoded = [sums(page, mode="decode")["realtime_tokens_total"] for _, page in (up[0], up[-1])]
    assert 0.8 < (gauged.emitted or 0.0) / (decoded[1] - decoded[0]) <= 1.0
    assert gauged.acc_len == pytest.approx(counted.acc_len, rel=0.05)
    idle_since = 1796109967
    assert up[-1][0] > idle_since + 5
    assert max(window.end for window in found) < idle_since
    assert last["spec_accept_length"] > 1.0, "frozen, and yet no window"
    assert len({window.id for window in found}) == len(found)


# label order as SGLang prints it: alphabetical
def tokenizer_page(*rows: tuple[str, str, int, int], verify: dict[str, int], extra: str = "") -> bytes:
    """rows: category, is_streaming, generation tokens, requests."""
    lines = [
        'sglang:spec_num_draft_tokens{model_name="m",tp_rank="0"} 8.0',
        'sglang:spec_num_steps{model_name="m",tp_rank="0"} 1.0',
    ]
    for category, streaming, tokens, requests in rows:
        labels = f'category="{category}",engine_type="unified",is_streaming="{streaming}",model_name="m"{extra}'
        lines.append(f"sglang:generation_tokens_total{{{labels}}} {tokens}.0")
        lines.append(f"sglang:num_requests_total{{{labels}}} {requests}.0")
    for category, calls in verify.items():
        labels = f'category="{category}",engine_type="unified",model_name="m"{extra}'
        lines.append(f"sglang:spec_verify_calls_total{{{labels}}} {calls}.0")
    return "\n".join([*lines, ""]).encode()


def test_streaming_is_summed_away_before_requests_are_subtracted() -> None:
    """400 + 280 tokens, 25 + 15 requests, 160 verify calls: (680 - 40) / 160 = 4.000."""
    before = tokenizer_page(("json", "true", 1000, 50), ("json", "false", 500, 20), verify={"json": 300})
    after = tokenizer_page(("json", "true", 1400, 75), ("json", "false", 780, 35), verify={"json": 460})
    _, readings = feed([before, after])
    (window,) = windows(readings, "counter")
    assert (window.counts.steps, window.counts.emitted, window.counts.requests) == (160.0, 640.0, 40.0)
    assert window.counts.acc_len == 4.0
    assert (window.series.category, window.series.rank, window.series.role) == ("json", None, "unified")
    assert (window.counts.proposed, window.counts.slots, window.counts.trim_bound) == (7 * 160.0, 7 * 160.0, 7 * 40.0)
    assert (window.start, window.end) == (BEGIN, BEGIN + 15)


def test_an_empty_category_is_unlabelled_and_an_absent_one_unknown(fixture_bytes: Callable[[str], bytes]) -> None:
    page = tokenizer_page(("", "true", 100, 1), ("code", "true", 90, 2), verify={"": 30, "code": 20})
    _, (reading,) = feed([page], SINCE_START)
    assert {window.series.category: window.counts.steps for window in reading.windows} == {"": 30.0, "code": 20.0}
    _, (reading,) = feed([fixture_bytes("sglang/metrics_v0.5.23.tp8.txt")], SINCE_START)
    assert [window.series.category for window in reading.windows if window.source == "counter"] == [None]


def test_the_category_label_may_have_another_name() -> None:
    page = tokenizer_page(("code", "true", 90, 2), verify={"code": 20}).replace(b"category=", b"workload=")
    _, (reading,) = feed([page], SINCE_START, Subject("t", category_label="workload"))
    assert [window.series.category for window in reading.windows] == ["code"]
    _, (reading,) = feed([page], SINCE_START)
    assert [window.series.category for window in reading.windows] == [None]


def test_another_category_label_counts_nothing_anew() -> None:
    page = tokenizer_page(("code", "true", 90, 2), verify={"code": 20}, extra=',tier="gold"')
    later = tokenizer_page(("code", "true", 120, 3), verify={"code": 30}, extra=',tier="gold"')
    state, _ = feed([page])
    state, (reading,) = feed([page], state, Subject("t", category_label="tier"))
    assert windows([reading], "counter") == []
    _, (_, reading) = feed([page, later], state, Subject("t", category_label="tier"))
    assert [(window.series.category, window.counts.steps) for window in reading.windows] == [("gold", 10.0)]


@pytest.mark.parametrize("damage", [b"abc", b"-5", b"NaN"])
def test_a_part_that_cannot_be_read_makes_no_restart_of_the_others(damage: bytes) -> None:
    """Streaming and not: of 1,500 tokens 500 are left, which is less than before, and nothing has restarted."""
    pages = [
        tokenizer_page(("a", "true", 1000 + 10 * n, 50), ("a", "false", 500, 20), verify={"a": 300 + 3 * n})
        for n in range(5)
    ]
    pages[1] = pages[1].replace(b" 1010.0", b" " + damage)
    _, readings = feed(pages)
    told = windows(readings, "counter")
    assert sum(window.counts.steps or 0.0 for window in told) <= 12.0
    assert told[-1].counts.emitted == 10.0


@pytest.mark.parametrize("value", ["1e30", "1e300", "+Inf"])
def test_no_gauge_beyond_reason_makes_a_k(value: str) -> None:
    page = tokenizer_page(("a", "true", 100, 2), verify={"a": 30}).replace(b"} 8.0", f"}} {value}".encode(), 1)
    _, (reading,) = feed([page], SINCE_START)
    (window,) = windows([reading], "counter")
    assert (window.counts.slots, window.counts.proposed) == (None, None)


def test_recorded_custom_labels(fixture_bytes: Callable[[str], bytes]) -> None:
    _, (reading,) = feed([fixture_bytes("sglang/metrics_v0.5.23.tp8_custom_labels.txt")], SINCE_START)
    told = {
        window.series.category: (window.counts.steps, window.counts.emitted, window.counts.requests)
        for window in reading.windows
        if window.source == "counter"
    }
    assert told == {
        "code": (172.0, 904.0, 1.0),
        "chat": (671.0, 2209.0, 1.0),
        "math": (119.0, 639.0, 1.0),
        "longctx": (352.0, 511.0, 1.0),
    }
    assert not reading.rejected


def test_a_group_that_verified_nothing_yet_has_no_steps_and_is_not_busy() -> None:
    page = tokenizer_page(("code", "true", 90, 2), ("ping", "true", 5, 5), verify={"code": 20})
    _, (reading,) = feed([page], SINCE_START)
    assert {window.series.category: (window.counts.steps, window.busy) for window in reading.windows} == {
        "code": (20.0, True),
        "ping": (0.0, False),
    }


def test_more_categories_than_a_fleet_needs_are_added_up_as_other() -> None:
    many = [f"c{number}" for number in range(MOST_CATEGORIES + 50)]
    page = tokenizer_page(*((name, "true", 50 + n, 1) for n, name in enumerate(many)), verify=dict.fromkeys(many, 10))
    _, (reading,) = feed([page], SINCE_START)
    assert len(reading.windows) == MOST_CATEGORIES
    assert total(window.counts for window in reading.windows).steps == 10.0 * len(many)
    assert [window.counts.requests for window in reading.windows if window.series.category == "other"] == [51.0]


def test_each_data_parallel_rank_has_its_gauge(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes("sglang/metrics_v0.5.23.dp8_attention.txt")
    later = page.replace(b" 51234.0", b" 52234.0").replace(b" 400.0", b" 440.0")
    _, readings = feed([page, later])
    found = windows(readings, "gauge")
    assert {window.series.rank: window.reported_length for window in found} == {
        str(rank): 3.5 + 0.05 * rank for rank in range(8)
    } | {"6": 3.8, "7": 3.85}
    assert {window.counts.emitted for window in found} == {1000.0}
    assert {(window.counts.passes, window.counts.eager_passes) for window in found} == {(40.0, 0.0)}
    assert {window.counts.pass_seconds for window in found} == {15.0}
    assert readings[1].health[0].running == 16.0


def test_tensor_ranks_that_repeat_a_gauge_count_once() -> None:
    def page(decoded: int) -> bytes:
        lines: list[str] = []
        for tp in (3, 0, 1):
            labels = f'engine_type="unified",model_name="m",pid="{tp}7",pp_rank="0",tp_rank="{tp}"'
            lines += [
                f"sglang:spec_accept_length{{{labels}}} {2.0 + tp}",
                f"sglang:spec_num_draft_tokens{{{labels}}} 4.0",
                f"sglang:spec_num_steps{{{labels}}} 3.0",
                f"sglang:num_running_reqs{{{labels}}} 5.0",
                f'sglang:realtime_tokens_total{{mode="decode",{labels}}} {decoded + tp}.0',
                f'sglang:cuda_graph_passes_total{{mode="decode_cuda_graph",{labels}}} {decoded // 10}.0',
                f'sglang:cuda_graph_passes_total{{mode="decode_none",{labels}}} {decoded // 100}.0',
            ]
        return "\n".join([*lines, ""]).encode()

    _, readings = feed([page(1000), page(1400)])
    (window,) = windows(readings, "gauge")
    assert (window.counts.emitted, window.counts.steps) == (400.0, 200.0)
    assert (window.counts.slots, window.counts.proposed) == (600.0, 600.0)
    assert (window.counts.passes, window.counts.eager_passes) == (44.0, 4.0)
    assert readings[1].health[0].running == 5.0


def scheduler_page(
    length: float,
    running: int,
    *,
    decoded: int | None = None,
    passes: int = 0,
    prefills: int = 0,
    role: str = "unified",
) -> bytes:
    labels = f'engine_type="{role}",model_name="m",tp_rank="0"'
    lines = [f"sglang:spec_accept_length{{{labels}}} {length}", f"sglang:num_running_reqs{{{labels}}} {running}.0"]
    if decoded is not None:
        lines.append(f'sglang:realtime_tokens_total{{mode="decode",{labels}}} {decoded}.0')
    if passes:
        lines.append(f'sglang:cuda_graph_passes_total{{mode="decode_cuda_graph",{labels}}} {passes}.0')
        lines.append(f'sglang:cuda_graph_passes_total{{mode="prefill_none",{labels}}} {prefills}.0')
    return "\n".join([*lines, ""]).encode()


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        (scheduler_page(2.0, 3, decoded=10, passes=5), scheduler_page(2.0, 3, decoded=20, passes=49), 15.0),
        (scheduler_page(2.0, 3, decoded=10, passes=5), scheduler_page(2.0, 3, decoded=20, passes=49, prefills=1), None),
        (scheduler_page(2.0, 0, decoded=10, passes=5), scheduler_page(2.0, 3, decoded=20, passes=49), None),
        (scheduler_page(2.0, 3, decoded=10, passes=5), scheduler_page(2.0, 0, decoded=20, passes=49), None),
        (scheduler_page(2.0, 3, decoded=30, passes=50), scheduler_page(2.0, 3, decoded=20, passes=9), None),
    ],
    ids=["steady", "a prefill ran", "idle before", "idle after", "restarted"],
)
def test_time_is_told_only_where_decode_passes_filled_it(before: bytes, after: bytes, seconds: float | None) -> None:
    _, readings = feed([before, after])
    (window,) = windows(readings, "gauge")
    assert window.counts.pass_seconds == seconds
    assert window.counts.passes in (44.0, 9.0)


def test_a_gauge_that_was_not_set_since_tells_nothing_of_a_few_new_tokens() -> None:
    """An idle server that answers health probes: what it showed last must not repeat for hours."""
    probes = [scheduler_page(1.0, 0, decoded=1000 + n, passes=400 + n) for n in range(130)]
    _, readings = feed(probes)
    assert [number for number, reading in enumerate(readings) if reading.windows] == [40, 80, 120]
    moved = scheduler_page(1.5, 0, decoded=1201, passes=601)
    assert len(windows(feed([*probes[:5], moved])[1], "gauge")) == 1


def test_without_counted_passes_they_are_estimated_from_tokens() -> None:
    _, readings = feed([scheduler_page(2.0, 4, decoded=1000 + 200 * n) for n in range(5)])
    assert [len(reading.windows) for reading in readings] == [0, 0, 1, 0, 1], "25 passes of 4 requests a look"


def test_old_pages_without_realtime_tokens_estimate_from_running_requests() -> None:
    pages = [scheduler_page(2.5, 3), scheduler_page(2.5, 3), scheduler_page(2.5, 0)]
    _, readings = feed(pages)
    (window,) = windows(readings, "gauge")
    assert (window.counts.steps, window.counts.emitted) == (120.0, 300.0)
    _, readings = feed(pages, subject=Subject("t", facts={"decode_log_interval": 10}))
    assert windows(readings, "gauge")[0].counts.steps == 30.0


def test_a_gauge_of_zero_is_no_length() -> None:
    _, readings = feed([scheduler_page(0.0, 3, decoded=10), scheduler_page(0.0, 3, decoded=500)])
    assert not windows(readings, "gauge")


def test_a_prefill_server_verifies_nothing() -> None:
    pages = [scheduler_page(1.0, 3, decoded=n, role="prefill") for n in (10, 400)]
    _, readings = feed(pages)
    assert not windows(readings, "gauge")
    assert facts(readings)["role"] == "prefill"
    _, readings = feed([page.replace(b"prefill", b"decode") for page in pages])
    assert [window.series.role for window in windows(readings, "gauge")] == ["decode"]


@pytest.mark.parametrize("version", ["0.4.10", "0.5.5", "0.5.10", "0.5.16", "0.5.18", "0.5.20", "0.5.23"])
def test_pages_of_each_release(version: str, fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes(f"sglang/metrics_v{version}.tp8.txt")
    told = sums(page)
    decoded = sums(page, mode="decode", tp_rank="0")["realtime_tokens_total"]
    later = page.replace(f" {decoded!r}".encode(), f" {decoded + 372.15!r}".encode()) if decoded else page
    later = later.replace(b" 400.0", b" 440.0")
    _, readings = feed([page, later])
    (window,) = windows(readings, "gauge")
    assert window.reported_length == told["spec_accept_length"] == 3.7215
    assert window.reported_rate == told.get("spec_accept_rate")
    assert window.counts.steps == (pytest.approx(100.0) if decoded else 12 * 40.0)
    k = 7 if "spec_num_draft_tokens" in told else None
    assert window.counts.slots == (None if k is None else pytest.approx(700.0))
    assert facts(readings).get("k") == k
    _, (reading,) = feed([page], SINCE_START)
    counted = windows([reading], "counter")
    if "spec_verify_calls_total" not in told:
        assert not counted
        return
    (window,) = counted
    assert (window.counts.steps, window.counts.emitted, window.counts.requests) == (1314.0, 4263.0, 4.0)


def test_a_trimming_drafter_is_known_by_its_cap(fixture_bytes: Callable[[str], bytes]) -> None:
    _, readings = feed([fixture_bytes("sglang/metrics_v0.5.23.tp8_dspark_compact.txt")])
    assert facts(readings)["verify_mode"] == "compact"
    _, readings = feed([fixture_bytes("sglang/metrics_v0.5.23.tp8.txt")])
    assert "verify_mode" not in facts(readings)


@pytest.mark.parametrize(
    ("tokens", "steps", "known", "k"),
    [
        (4, 3, {}, 3),  # chain
        (6, 3, {}, 3),  # tree
        (5, 0, {}, 4),  # n-gram
        (8, 1, {}, 7),  # DSpark
        (5, 1, {"algorithm": "EAGLE", "k": 1}, 1),  # a tree of one step, as /server_info states it
        (8, 1, {"k": 3}, 7),  # a k of which nobody knows the algorithm may be our own, from before a restart
        (0, 0, {"k": 3}, 3),
        (0, 0, {}, None),
    ],
)
def test_k_of_chains_trees_and_blocks(tokens: int, steps: int, known: Mapping[str, FactValue], k: int | None) -> None:
    page = tokenizer_page(("a", "true", 100, 2), verify={"a": 30}).replace(b"} 8.0", f"}} {tokens}.0".encode(), 1)
    page = page.replace(b"} 1.0", f"}} {steps}.0".encode(), 1)
    _, (reading,) = feed([page], SINCE_START, Subject("t", facts=known))
    (window,) = windows([reading], "counter")
    assert window.counts.slots == (None if k is None else 30.0 * k)
    assert window.counts.trim_bound == (None if k is None else 2.0 * k)
    assert window.counts.proposed == ((tokens - 1) * 30.0 if tokens else None)


def test_a_stale_idle_gauge_is_no_evidence(fixture_bytes: Callable[[str], bytes]) -> None:
    case = "cases/023-sg-gauge-stale-idle"
    _, readings = feed([fixture_bytes(f"{case}/metrics_t{n}.txt") for n in (0, 1)], every=900.0)
    assert not [window for reading in readings for window in reading.windows]
    assert readings[1].health[0].running == 0.0


def test_a_low_gauge_under_load_agrees_with_the_counters(fixture_bytes: Callable[[str], bytes]) -> None:
    """The page lacks num_requests_total, so that its counters are no longer exact, and that is said."""
    case = "cases/023b-sg-gauge-low-and-busy"
    _, readings = feed([fixture_bytes(f"{case}/metrics_t{n}.txt") for n in (0, 1)], every=180.0)
    (counted,), (gauged,) = windows(readings, "counter"), windows(readings, "gauge")
    assert (counted.counts.steps, counted.counts.emitted, counted.counts.requests) == (6840.0, 6840.0, None)
    assert not counted.exact
    assert (gauged.counts.steps, gauged.counts.acc_len) == (120.0, 1.0)
    assert "num_requests_total" in readings[1].rejected[0].reason


def test_a_restart_without_a_start_time_is_seen_by_falling_counters() -> None:
    pages = [
        tokenizer_page(("a", "true", 1000, 50), verify={"a": 300}),
        tokenizer_page(("a", "true", 130, 5), verify={"a": 50}),
        tokenizer_page(("a", "true", 230, 10), verify={"a": 80}),
    ]
    state, readings = feed(pages)
    found = windows(readings, "counter")
    assert [(window.counts.steps, window.counts.emitted) for window in found] == [(50.0, 125.0), (30.0, 95.0)]
    assert found[0].start == BEGIN
    assert state["incarnation"] == "1"


def started_in(seconds: float) -> bytes:
    return f'sglang:startup_time_seconds{{model_name="m",phase="scheduler_e2e"}} {seconds}\n'.encode()


def test_another_process_with_higher_counters_is_not_subtracted() -> None:
    before = tokenizer_page(("a", "true", 990, 50), verify={"a": 300}) + started_in(3.6859664789999442)
    after = tokenizer_page(("a", "true", 1000, 50), verify={"a": 500}) + started_in(4.673828879999974)
    _, readings = feed([before, after])
    assert not windows(readings, "counter")
    assert "another process" in readings[1].rejected[0].reason


def test_every_recorded_process_is_one_incarnation(fixture_bytes: Callable[[str], bytes]) -> None:
    incarnations = {
        folder: {feed([fixture_bytes(name)])[0]["incarnation"] for name in pages_of(folder)}
        for folder in ("ngram", "eagle", "nospec")
    }
    assert incarnations == {
        "ngram": {"4.673828879999974"},
        "eagle": {"3.6859664789999442"},
        "nospec": {"2.2193566759999612"},
    }


def test_workers_behind_the_gateway_are_told_apart() -> None:
    def page(first: int, second: int) -> bytes:
        workers = {"grpc://10.0.0.1:8001": first, "grpc://10.0.0.2:8001": second}
        rows: list[str] = []
        for address, calls in workers.items():
            labels = f'engine_type="unified",model_name="m",worker_addr="{address}"'
            rows += [
                f"sglang_spec_verify_calls_total{{{labels}}} {calls}",
                f"sglang_generation_tokens_total{{{labels}}} {3 * calls}",
                f"sglang_num_requests_total{{{labels}}} {calls // 10}",
                f'sglang_spec_accept_length{{{labels},tp_rank="0"}} 3.0',
                f'sglang_realtime_tokens_total{{{labels},mode="decode",tp_rank="0"}} {3 * calls}',
            ]
        return "\n".join([*rows, ""]).encode()

    _, readings = feed([page(100, 900), page(150, 30)])
    counted = {window.series.rank: window.counts.steps for window in windows(readings, "counter")}
    gauged = {window.series.rank: window.counts.steps for window in windows(readings, "gauge")}
    assert counted == {"grpc://10.0.0.1:8001": 50.0, "grpc://10.0.0.2:8001": 30.0}
    assert gauged == {"grpc://10.0.0.1:8001/0": 50.0, "grpc://10.0.0.2:8001/0": 30.0}


@pytest.mark.parametrize(
    ("tokens", "requests", "calls", "doubts"),
    [(130, 10, 30, 0), (1000, 10, 30, 1), (20, 2, 30, 1), (29, 1, 29, 0), (251, 10, 30, 0)],
    ids=["sound", "more than k + 1 a step", "fewer than one a step", "an abort", "a retraction"],
)
def test_what_cannot_be_is_told_with_a_doubt(tokens: int, requests: int, calls: int, doubts: int) -> None:
    _, (reading,) = feed([tokenizer_page(("a", "true", tokens, requests), verify={"a": calls})], SINCE_START)
    (window,) = reading.windows
    assert window.counts.emitted == tokens - requests
    assert len(reading.rejected) == doubts
    assert all(item.reason.startswith("data-quality: ") for item in reading.rejected)


def test_the_same_page_again_tells_nothing(fixture_bytes: Callable[[str], bytes]) -> None:
    page = fixture_bytes("sglang/metrics_v0.5.23.tp8_custom_labels.txt")
    _, readings = feed([page, page, page])
    assert not [window for reading in readings for window in reading.windows]


ROW = st.tuples(st.integers(0, 300), st.integers(0, 9), st.integers(0, 60))


@given(st.lists(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=5), min_size=1, max_size=3), st.data())
@settings(max_examples=80, deadline=None)
def test_windows_add_up_however_a_life_is_split_into_looks(
    lives: list[list[tuple[tuple[int, int, int], tuple[int, int, int]]]], data: st.DataObject
) -> None:
    pages: list[bytes] = []
    expected = {"a": [0, 0], "b": [0, 0]}
    last = {"a": [0, 0, 0], "b": [0, 0, 0]}
    for number, life in enumerate(lives):
        values = {"a": [0, 0, 0], "b": [0, 0, 0]}
        looks: list[dict[str, list[int]]] = []
        for rows in life:
            values = {
                name: [x + y for x, y in zip(values[name], row, strict=True)]
                for name, row in zip("ab", rows, strict=True)
            }
            looks += [values] * data.draw(st.integers(0, 2))
        looks = looks or [values]
        if number and not any(
            now < then for name in "ab" for now, then in zip(looks[0][name], last[name], strict=True)
        ):
            break  # nothing tells this restart from more of the same life
        for look in looks:
            rows_ = [(name, "true", look[name][0], look[name][1]) for name in "ab"]
            pages.append(tokenizer_page(*rows_, verify={name: look[name][2] for name in "ab"}))
        for name in "ab":
            first = looks[0][name] if number == 0 else [0, 0, 0]
            tokens, requests, calls = (now - then for now, then in zip(looks[-1][name], first, strict=True))
            expected[name][0] += calls
            expected[name][1] += tokens - requests
        last = looks[-1]
    _, readings = feed(pages)
    found = windows(readings, "counter")
    for name in "ab":
        mine = [window.counts for window in found if window.series.category == name]
        assert [sum(c.steps or 0.0 for c in mine), sum(c.emitted or 0.0 for c in mine)] == expected[name]
    assert len({window.id for window in found}) == len(found)


@given(st.binary(max_size=200), st.integers(0, 900))
@settings(max_examples=150, deadline=None)
def test_no_input_raises(noise: bytes, at: int) -> None:
    page = tokenizer_page(("a", "true", 100, 5), verify={"a": 30}) + scheduler_page(2.0, 3, decoded=10, passes=5)
    feed([page, page[:at] + noise + page[at:], noise, page])
