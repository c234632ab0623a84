"""SGLang's log: every decode line of every version as it is printed, and nothing that is not one."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.counts import Counts, total
from acceptance.facts import FactValue, Subject
from acceptance.window import Window
from collectors.reading import Reading, State, Text
from collectors.sglang.logs import LogReader

FIXTURES = Path(__file__).parents[1] / "fixtures"
MUTATIONS = int(os.environ.get("DRAFTGAUGE_MUTATIONS", "1000"))
READ_AT = datetime(2026, 12, 1, 8, 0, 0, tzinfo=UTC).timestamp()
Read = Callable[[str], bytes]

REAL = ("real/sglang/eagle/server.log", "real/sglang/ngram/server.log", "real/sglang/nospec/server.log")
SAMPLES = (
    "sglang/serverlog_v0.4.10.eagle3.log",
    "sglang/serverlog_v0.5.5.eagle3.log",
    "sglang/serverlog_v0.5.10.dp_attention_eagle.log",
    "sglang/serverlog_v0.5.18.k3_dspark_tp8_dcp8.log",
    "sglang/serverlog_v0.5.23.k3_dspark_compact.log",
    "sglang/public/decode_log_lines.txt",
)
CASES: dict[str, dict[str, list[list[float | None]]]] = {
    name: case for name, case in json.loads((FIXTURES / "cases/log_samples.json").read_text()).items() if "-sg-" in name
}


def feed(body: bytes | str, state: State | None = None, offset: int = 0, **facts: FactValue) -> tuple[State, Reading]:
    raw = body.encode() if isinstance(body, str) else body
    return LogReader().feed(Subject("s", facts=facts), state or {}, Text(raw, READ_AT, offset))


def read(body: bytes | str, **facts: FactValue) -> Reading:
    return feed(body, **facts)[1]


def told(reading: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in reading.facts}


def decode(
    second: int = 0,
    *,
    running: int = 1,
    length: float | None = 2.0,
    speed: float = 80.0,
    rank: str = "",
    graph: str = "cuda graph: True",
    tokens: int = 500,
    more: str = "",
) -> str:
    accept = "" if length is None else f"accept len: {length:.2f}, accept rate: 0.33, "
    return (
        f"[2026-12-01 07:07:{second:02d}{rank}] Decode batch, #running-req: {running}, #token: {tokens}, "
        f"token usage: 0.03, {accept}{more}{graph}, gen throughput (token/s): {speed:.2f}, #queue-req: 3\n"
    )


PREFILL = "[2026-12-01 07:07:{:02d}] Prefill batch, #new-seq: 2, #running-req: 5, #queue-req: 7, cuda graph: False\n"
ZOMBIE = "[2026-12-01 06:59:59{}] Received output for rid='{}' but the state was deleted in TokenizerManager.\n"


# Files of real servers and of all versions


@pytest.mark.parametrize("name", [*SAMPLES, *REAL])
def test_every_decode_line_is_a_window_in_order(fixture_bytes: Read, name: str) -> None:
    body = fixture_bytes(name)
    lines = [
        line for line in body.decode().splitlines() if re.match(r"\[.*?\] Decode batch[.,] .*(throughput|rate)", line)
    ]
    windows = read(body).windows
    assert len(windows) == len(lines) > 0
    for line, window in zip(lines, windows, strict=True):
        length = re.search(r"(?<!block )accept len: (\d+\.\d\d)", line)
        running = re.search(r"#running-req: (\d+)", line)
        assert window.reported_length == (float(length[1]) if length else None)
        assert window.source == "log"
        assert not window.exact
        if length and running and int(running[1]):
            assert window.counts.acc_len == pytest.approx(float(length[1]))
        else:
            assert window.counts.acc_len is None
        rank = re.search(r"\bDP(\d+)", line)
        assert window.series.rank == (rank[1] if rank else "0")
        graph = re.search(r"(?:cuda|cpu) graph: (\w+)", line)
        assert window.counts.eager_share == (None if graph is None else float(graph[1] == "False"))


@pytest.mark.parametrize("name", CASES)
def test_operators_logs_give_what_they_show(name: str) -> None:
    body = (FIXTURES / "cases" / name / "input.log").read_bytes()
    case = CASES[name]
    shown = [window for window in read(body, k=case["k"]).windows if window.reported_length is not None]
    assert [[w.counts.acc_len, w.reported_rate] for w in shown] == [
        [pytest.approx(length, abs=0.006), rate if rate is None else pytest.approx(rate)]
        for length, rate in case["samples"]
    ]


@pytest.mark.parametrize("algorithm", ["eagle", "ngram"])
def test_steps_agree_with_the_counters_of_the_same_server(fixture_bytes: Read, algorithm: str) -> None:
    """The log knows running requests times passes, the counter the verify calls of finished requests."""
    page = fixture_bytes(f"real/sglang/{algorithm}/metrics-6-idle.txt").decode()
    (calls,) = map(float, re.findall(r"^sglang:spec_verify_calls_total\{.*\} (\S+)", page, re.MULTILINE))
    counts = total(window.counts for window in read(fixture_bytes(f"real/sglang/{algorithm}/server.log")).windows)
    assert counts.steps == pytest.approx(calls, rel=0.01)


def test_passes_agree_with_the_counter(fixture_bytes: Read) -> None:
    page = fixture_bytes("real/sglang/nospec/metrics-6-idle.txt").decode()
    (passes,) = map(float, re.findall(r'cuda_graph_passes_total\{.*mode="decode_none".*\} (\S+)', page))
    counts = total(window.counts for window in read(fixture_bytes("real/sglang/nospec/server.log")).windows)
    assert counts.passes == counts.eager_passes == pytest.approx(passes, rel=0.01)
    assert counts.steps is None


def test_facts_of_a_real_start(fixture_bytes: Read) -> None:
    assert told(read(fixture_bytes("real/sglang/eagle/server.log"))) == {
        "engine": "sglang",
        "model": "tiny",
        "role": "unified",
        "speculative": True,
        "algorithm": "EAGLE",
        "drafter": "/models/tiny-eagle",
        "k": 3,
        "num_draft_tokens": 6,
        "verify_mode": "prefill",
        "decode_attention_backend": "intel_amx",
        "cuda_graph_disabled": True,
        "decode_log_interval": 10,
        "max_running_requests": 16,
        "tensor_parallel": 1,
        "data_parallel": 1,
        "context_parallel": 1,
        "chunked_prefill_size": 4096,
    }


def test_facts_of_a_dspark_start(fixture_bytes: Read) -> None:
    reading = read(fixture_bytes("sglang/serverlog_v0.5.18.k3_dspark_tp8_dcp8.log"))
    assert told(reading) == {
        "engine": "sglang",
        "k": 7,
        "draft_attention_backend": "trtllm_mha",
        "decode_attention_backend": "cutedsl_mla",
        "max_running_requests": 48,
        "chunked_prefill_size": 16384,
    }
    last = reading.windows[-1].counts
    assert (last.steps, last.slots, last.proposed) == (480, 3360, 3360)
    compact = told(read(fixture_bytes("sglang/serverlog_v0.5.23.k3_dspark_compact.log")))
    assert compact == {"engine": "sglang", "verify_mode": "compact"}


# One line


def test_a_decode_line_in_counts() -> None:
    line = decode(running=6, length=2.5, speed=300.0)
    (window,) = read(line, k=3, num_draft_tokens=6, decode_log_interval=10, model="m", drafter="d").windows
    assert window.counts == Counts(
        steps=60,
        emitted=150.0,
        proposed=300,
        slots=180,
        trim_bound=0.0,
        passes=10,
        eager_passes=0,
        spread=window.counts.spread,
    )
    assert window.counts.spread is not None
    assert window.counts.spread.emitted_squared == 150.0**2
    assert (window.end - window.start, window.busy) == (pytest.approx(0.5), True)
    assert (window.reported_length, window.reported_rate) == (2.5, 0.33)
    assert (window.series.engine, window.series.model, window.series.drafter) == ("sglang", "m", "d")


def test_without_facts_the_interval_is_forty_and_k_unknown() -> None:
    (window,) = read(decode(running=2)).windows
    assert (window.counts.steps, window.counts.proposed, window.counts.slots) == (80, None, None)


@pytest.mark.parametrize("word", ["cuda", "npu", "cpu", "musa"])
def test_eager_passes_whatever_the_graph_is_called(word: str) -> None:
    (eager,) = read(decode(graph=f"{word} graph: False")).windows
    (graphed,) = read(decode(graph=f"{word} graph: True")).windows
    assert (eager.counts.eager_share, graphed.counts.eager_share) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("line", "busy"),
    [
        (decode(running=1, speed=0.39), False),  # mostly idle time
        (decode(running=1, length=1.0, speed=0.02, tokens=0), False),  # a health probe
        (decode(running=0, speed=80.0), False),
        (decode(length=0.0), True),
        (decode(length=None, speed=0.14), True),  # no acceptance to judge, but requests were decoded
        (decode(length=None, speed=0.14, tokens=0), False),
    ],
)
def test_busy(line: str, busy: bool) -> None:
    (window,) = read(line).windows
    assert window.busy is busy


def test_a_line_without_running_requests_gives_no_steps() -> None:
    for line in (decode(running=0), decode(length=0.0)):
        (window,) = read(line).windows
        assert (window.counts.steps, window.counts.acc_len) == (None, None)


@pytest.mark.parametrize(
    ("line", "length"),
    [
        (decode(more="cap len: 2.94, block accept len: 2.81, est uncap acc len: 2.71 [2.66, 2.76], "), 2.0),
        (decode(more="pre-allocated usage: 0.00, #prealloc-req: 0, #transfer-req: 0, #retracted-req: 0, "), 2.0),
        (decode(more="future field: soon, "), 2.0),
        (decode().replace("Decode batch, ", "Decode batch [1234], "), 2.0),
        (decode().replace("Decode batch, ", "Decode batch. ").replace("\n", ", \n"), 2.0),
        (decode().replace("\n", ", fwd occupancy: 97.10%, fwd+idle occupancy: 99.00%\n"), 2.0),
    ],
)
def test_fields_of_other_versions_and_forks(line: str, length: float) -> None:
    (window,) = read(line).windows
    assert window.counts.acc_len == length


TORN = {
    "the middle is missing": decode().replace(": 0.03, accept len: 2.00, ", ": 0.03cept len: 2.00, "),
    "the length is cut off": decode()[: decode().index(", accept len")] + "\n",
    "the length is cut short": decode()[: decode().index("2.00,") + 2] + "\n",
    "the length lost its name": decode().replace("accept len: ", "accelen: "),
    "two lines in one": decode().replace("accept len: 2.00", "accept len: 2.0[2026-12-01 07:07:29] Prefill batch"),
    "a length that cannot be": decode().replace("accept len: 2.00", "accept len: 0.75"),
    "a number of another form": decode().replace("80.00", "8e1"),
    "text between": decode().replace(", #queue-req: 3", ", #queue-req"),
    "an endless number": decode().replace("accept len: 2.00", f"accept len: {'9' * 5000}.00"),
}


@pytest.mark.parametrize("line", TORN.values(), ids=TORN.keys())
def test_torn_lines_are_counted_and_give_nothing(line: str) -> None:
    reading = read(line)
    assert reading.windows == ()
    assert [rejected.count for rejected in reading.rejected] == [1]
    assert reading.rejected[0].where == "byte 0"


def test_rejections_are_counted_by_reason() -> None:
    reading = read(decode() + TORN["text between"] * 3)
    assert [(r.where, r.count) for r in reading.rejected] == [(f"byte {len(decode())}", 3)]


@pytest.mark.parametrize(
    "quote",
    [
        "[2026-12-01 07:07:29] Receive: obj=GenerateReqInput(text='{}')",
        "[2026-12-01 07:07:29] Finish: obj=GenerateReqInput(rid='1'), out={{'text': '{}'}}",
        '[2026-12-01 07:07:29] {{"event": "request.received", "rid": "1", "obj": {{"text": "{}"}}}}',
        '{{"text": "{}"}}',
        "why does it print: {}",
    ],
)
def test_what_users_wrote_is_not_evidence(quote: str) -> None:
    for said in (
        decode().strip(),
        "server_args={'tp_size': 8, 'x': 1}",
        "Pipeline parallelism is incompatible with overlap schedule.",
    ):
        reading = read(quote.format(said) + "\n")
        assert (reading.windows, reading.facts, reading.hits, reading.health) == ((), (), (), ())


WRAPPERS: dict[str, Callable[[str], str]] = {
    "docker json": lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-12-01T07:07:29.1Z"}),
    "cri": lambda line: f"2026-12-01T07:07:29.123456789Z stdout F {line}",
    "compose": lambda line: f"sglang-1  | {line}",
    "colours": lambda line: line.replace("batch", "\x1b[1mba\x1b[0mtch").replace(
        "accept len: ", "accept len: \x1b[32m"
    ),
    "crlf": lambda line: line + "\r",
    "ray": lambda line: f"\x1b[36m(Engine pid=12, ip=192.0.2.7)\x1b[0m {line}",
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS.keys())
def test_wrappers_change_no_figure(fixture_bytes: Read, wrap: Callable[[str], str]) -> None:
    plain = fixture_bytes("sglang/serverlog_v0.5.18.k3_dspark_tp8_dcp8.log").decode()
    wrapped = "".join(wrap(line) + "\n" for line in plain.splitlines())
    before, after = read(plain), read(wrapped)
    assert [w.counts.acc_len for w in after.windows] == [w.counts.acc_len for w in before.windows]
    assert told(after) == told(before)
    assert [hit.signature for hit in after.hits] == [hit.signature for hit in before.hits]


# Time


def test_a_window_spans_its_passes() -> None:
    first, second, third = read(decode(10, speed=0.8) + decode(11) + decode(50)).windows
    assert first.end - first.start == pytest.approx(100.0)  # 80 tokens at 0.8 a second
    assert second.end - second.start == pytest.approx(1.0)
    assert third.end - third.start == pytest.approx(1.0)  # lines between are missing


def test_a_window_does_not_begin_before_the_line_before_it() -> None:
    _, slow = read(decode(10) + decode(12, running=8, speed=10.0)).windows
    assert slow.end - slow.start == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (decode(10) + decode(11), 1.0),
        (decode(10) + decode(12), 1.0),
        (decode(10) + decode(13), None),  # more time went by than the passes took
        (decode(10) + PREFILL.format(10) + decode(11), None),
        (decode(10, running=2) + decode(11), None),  # another batch
        (decode(10) + decode(11, speed=0.2), None),
        (decode(10) + decode(11, more="#transfer-req: 0, "), None),  # its idle time shows nowhere
        (decode(10) + decode(11, rank=" DP1"), None),
        (decode(10, length=None) + decode(11, length=None, speed=40.0), 1.0),
    ],
)
def test_pass_time_only_where_nothing_else_took_time(lines: str, seconds: float | None) -> None:
    counts = read(lines).windows[-1].counts
    assert counts.pass_seconds == (None if seconds is None else pytest.approx(seconds))
    assert counts.step_time_seconds == (None if seconds is None else pytest.approx(seconds / 40))


def test_step_time_of_a_real_server(fixture_bytes: Read) -> None:
    """Passes took their throughput's time: 284 lines of ten passes, prefills between many."""
    windows = read(fixture_bytes("real/sglang/eagle/server.log")).windows
    timed = [window.counts for window in windows if window.counts.pass_seconds is not None]
    assert len(timed) > len(windows) / 2
    assert all(0.001 < (counts.step_time_seconds or 0) < 0.1 for counts in timed)


def test_custom_formatters_and_ranks() -> None:
    body = (FIXTURES / "cases/006-sg-custom-log-k1-ok/input.log").read_bytes()
    windows = read(body).windows
    assert [window.series.rank for window in windows] == ["3", "5", "2", "4"]
    assert {window.end for window in windows} == {datetime(2025, 10, 20, 3, 2, 22, tzinfo=UTC).timestamp()}


def test_a_pipeline_is_counted_once() -> None:
    windows = read("".join(decode(rank=f" PP{stage} TP0") for stage in range(4))).windows
    assert [window.counts.steps for window in windows] == [40]


def test_milliseconds_and_lines_without_a_time() -> None:
    with_ms = decode(5).replace("07:07:05", "07:07:05.250")
    bare = decode(5).split("] ", 1)[1]
    windows = read(bare + with_ms + bare).windows
    assert [window.end for window in windows] == [READ_AT, windows[1].end, windows[1].end]
    assert windows[1].end % 60 == pytest.approx(5.25)


# Load


def test_health_sums_the_ranks_that_lately_spoke() -> None:
    lines = decode(1, rank=" DP7", running=9) + decode(50, rank=" DP0", running=2) + decode(59, rank=" DP1", running=3)
    later = lines.replace(" 07:07:01", " 07:05:01")
    (health,) = read(later).health
    assert (health.running, health.queued, health.speculating, health.up) == (5, 6, True, True)
    assert health.decode_tokens == pytest.approx((9 + 2 + 3) * 40 * 2.0)
    assert health.at == datetime(2026, 12, 1, 7, 7, 59, tzinfo=UTC).timestamp()


def test_health_of_prefills_and_of_servers_without_speculation() -> None:
    (prefills,) = read(PREFILL.format(1)).health
    assert (prefills.running, prefills.queued, prefills.speculating) == (5, 7, None)
    (plain,) = read(decode(length=None)).health
    assert plain.speculating is False
    assert read("[2026-12-01 07:07:29] INFO:     Application startup complete.\n").health == ()


# Processes

START = (
    "[2026-12-01 07:00:00] Max running requests is reset to 48 for speculative decoding. You can override\n"
    "[2026-12-01 07:00:01] server_args=ServerArgs(model_path='m', api_key='sk-secret', admin_api_key=\"sk-secret\", "
    "speculative_algorithm='EAGLE', speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4, "
    "chat_template='{% if x, speculative_num_steps=9 %}', speculative_draft_model_path='d', tp_size=8)\n"
)


def test_a_start_begins_an_incarnation_with_the_messages_before_its_arguments() -> None:
    state, first = feed(START + decode(1) + ZOMBIE.format("", "abc"))
    state, second = feed(START.replace("07:00", "08:00") + decode(2), state)
    assert {hit.incarnation for hit in first.hits if hit.signature == "SG-ZOMBIE"} == {"1"}
    assert {hit.incarnation for hit in second.hits} == {"1", "2"}
    assert {hit.signature for hit in second.hits if hit.incarnation == "2"} == {"SG-SPEC-MAXREQ48"}
    assert state["incarnation"] == 2


def test_facts_end_with_their_process() -> None:
    state, first = feed(START + "[2026-12-01 07:00:02] Overriding draft attention backend to flashinfer.\n" + decode(1))
    assert told(first)["draft_attention_backend"] == "flashinfer"
    assert told(first)["max_running_requests"] == 48
    _, second = feed("[2026-12-01 08:00:01] server_args={'model_path': 'm', 'speculative_algorithm': None}\n", state)
    assert told(second)["speculative"] is False
    assert told(second)["draft_attention_backend"] is None
    assert told(second)["k"] is None


def test_facts_of_the_log_count_from_the_next_line_on() -> None:
    (window,) = read(START + decode(running=2), k=99).windows
    assert (window.counts.slots, window.counts.proposed) == (240, 240)


def test_secrets_are_not_kept() -> None:
    state, reading = feed(START)
    assert "sk-secret" not in repr((state, reading))


def test_a_captured_graph_is_a_fact() -> None:
    line = "[2026-12-01 07:00:02 TP0] Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=8\n"
    assert told(read(line)) == {"cuda_graph_disabled": False}


def test_hits_count_repeats_and_carry_no_control_characters() -> None:
    (hit,) = read(ZOMBIE.format(" DP2 TP2", "a\x07b") * 5).hits
    assert (hit.signature, hit.count, hit.rank) == ("SG-ZOMBIE", 5, "2")
    assert "\x07" not in hit.excerpt
    assert hit.excerpt.startswith("Received output")


def test_finished_requests_in_the_log_are_request_windows(fixture_bytes: Read) -> None:
    (window,) = read(fixture_bytes("sglang/request_log_v0.5.23.json.log")).windows
    assert (window.source, window.series.category, window.counts.steps) == ("request", "code", 172)


# However it is cut, and whatever is in it


def pieces(body: bytes, cuts: list[int]) -> Iterator[tuple[int, bytes]]:
    """The body, cut at ends of lines."""
    ends = sorted({body.rfind(b"\n", 0, cut % (len(body) + 1)) + 1 for cut in cuts} | {0, len(body)})
    for start, end in pairwise(ends):
        yield start, body[start:end]


@settings(max_examples=25)
@given(
    name=st.sampled_from([*SAMPLES, *REAL]),
    cuts=st.lists(st.integers(0, 200_000), max_size=12),
)
def test_chunks_make_no_difference(fixture_bytes: Read, name: str, cuts: list[int]) -> None:
    body = fixture_bytes(name)
    whole_state, whole = feed(body)
    state: State = {}
    windows: list[Window] = []
    facts: dict[str, object] = {}
    for offset, piece in pieces(body, cuts):
        state, reading = feed(piece, json.loads(json.dumps(state)), offset)
        windows += reading.windows
        facts |= told(reading)
    assert tuple(windows) == whole.windows
    assert facts == told(whole)
    assert json.loads(json.dumps(state)) == json.loads(json.dumps(whole_state))
    assert len({window.id for window in windows}) == len(windows)


def test_mutated_lines_never_raise_and_invent_no_length(fixture_bytes: Read) -> None:
    source = [line for name in SAMPLES for line in fixture_bytes(name).splitlines(keepends=True)]
    source += fixture_bytes(REAL[0]).splitlines(keepends=True)[:200]
    chance = random.Random(20261201)
    for _ in range(MUTATIONS):
        line = bytearray(chance.choice(source))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(line) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                line[at : at + 1] = bytes([chance.randrange(256)])
            elif kind == 1:
                del line[at : at + chance.randint(1, 40)]
            elif kind == 2:
                line[at:at] = line[: chance.randint(1, 40)]
            else:
                line[at:at] = chance.choice(source)[: chance.randint(1, 60)]
        _, reading = feed(bytes(line))
        for window in reading.windows:
            if window.reported_length is not None:
                assert f"accept len: {window.reported_length:.2f}".encode() in bytes(line)
            assert window.counts.acc_len is None or window.counts.acc_len >= 1
