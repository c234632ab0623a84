"""A line comes out the same whatever carried it, and the lines of a chunk are found whatever stands around them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.scan import LineFinder
from collectors.unwrap import Line, unwrap

SGLANG = "[2026-12-01 07:07:29 TP0] Decode batch, #running-req: 6, accept len: 2.72"
VLLM = "INFO 12-01 06:52:34 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 3.19"
STAMP = datetime(2026, 12, 1, 7, 7, 29, 500_000, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", [SGLANG, VLLM])
@pytest.mark.parametrize(
    ("wrapped", "at"),
    [
        ("{}", None),
        ("{}\r", None),
        ("qwen35-4b-sglang  | {}", None),
        ("sglang-1 | {}", None),
        ("2026-12-01T07:07:29.500000000Z stdout F {}", STAMP),
        ("2026-12-01T08:07:29.5+01:00 stderr P {}", STAMP),
        ("2026-12-01T07:07:29.500000000Z {}", STAMP),
        ("2026-12-01T07:07:29+0000 gpu17 sglang[4984]: {}", STAMP - 0.5),
        ("Dec 01 07:07:29 gpu17 sglang[4984]: {}", None),
        ("Dec  1 07:07:29.123456 gpu17 vllm.service[1]: {}", None),
        ("[pod/decode-0/server] {}", None),
        ("\x1b[36m{}\x1b[0m", None),
        ("Capturing batches:  50%|#####     | 1/2\r{}", None),
        ("vllm-1  | 2026-12-01T07:07:29.500Z stdout F {}\r", STAMP),
    ],
)
def test_wrappers_come_off(text: str, wrapped: str, at: float | None) -> None:
    line = unwrap(wrapped.format(text).encode())
    assert line.text == text
    assert line.at == (None if at is None else pytest.approx(at))


@pytest.mark.parametrize(
    ("record", "at"),
    [
        ({"log": SGLANG + "\n", "stream": "stdout", "time": "2026-12-01T07:07:29.500000000Z"}, STAMP),
        ({"MESSAGE": SGLANG, "__REALTIME_TIMESTAMP": str(int(STAMP * 1e6)), "_PID": "4984"}, STAMP),
        ({"message": SGLANG, "ts": STAMP, "level": "info"}, STAMP),
        ({"msg": SGLANG, "ts": 17}, None),
    ],
)
def test_json_records_give_their_message(record: dict[str, object], at: float | None) -> None:
    line = unwrap(json.dumps(record).encode())
    assert (line.text, line.at) == (SGLANG, None if at is None else pytest.approx(at, abs=1e-3))


def test_a_json_logger_names_process_and_time() -> None:
    record = {
        "asctime": "2026-12-01 07:07:29,500",
        "processName": "APIServer",
        "process": 4121,
        "message": "Engine 000:",
    }
    assert unwrap(json.dumps(record).encode()) == Line("Engine 000:", "APIServer", "4121", pytest.approx(STAMP))


@pytest.mark.parametrize(
    ("raw", "process", "pid"),
    [
        (f"(APIServer pid=6485) {VLLM}", "APIServer", "6485"),
        (f"(ServeReplica:llm:deployment pid=1187, ip=192.0.2.7) {VLLM}", "ServeReplica:llm:deployment", "1187"),
        (
            f"\x1b[36m(RayWorkerWrapper pid=12, ip=192.0.2.7)\x1b[0m (EngineCore_DP1 pid=99) {VLLM}",
            "EngineCore_DP1",
            "99",
        ),
        (f"vllm-1  | (APIServer pid=6485) {VLLM}", "APIServer", "6485"),
    ],
)
def test_process_prefixes_name_the_innermost_process(raw: str, process: str, pid: str) -> None:
    assert unwrap(raw.encode()) == Line(VLLM, process, pid)


def test_colours_within_values_and_broken_utf8() -> None:
    assert (
        unwrap(b"\x1b[1;32mDecode\x1b[0m batch, accept len: \x1b[1m2\x1b[0m.72").text
        == "Decode batch, accept len: 2.72"
    )
    assert unwrap(b"caf\xe9 \xff").text == "caf� �"


@pytest.mark.parametrize(
    "text",
    [
        '{"timestamp": "2026-11-25T09:10:23", "event": "request.finished", "out": {"text": "x | [2026] Decode batch"}}',
        "[2026-12-01 07:07:29] Receive: obj=GenerateReqInput(text='2026-12-01T07:07:29Z stdout F x')",
        "{'a': 1} | not a wrapper",
    ],
)
def test_what_the_engine_wrote_is_left_alone(text: str) -> None:
    assert unwrap(text.encode()).text == text


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(raw: bytes) -> None:
    unwrap(raw)


LITERALS = ("Decode batch", "batch, #running", "Prefill batch")
WORDS = st.sampled_from(
    [b"Decode batch", b", #running", b"Prefill batch", b"\x1b[1m", b"\n", b"\n", b"x", b"\xff", b"Deco"]
)


@given(st.lists(WORDS, max_size=40).map(b"".join))
def test_every_line_with_a_literal_is_found_where_it_stands(body: bytes) -> None:
    found = list(LineFinder(LITERALS).find(body))
    expected = []
    start = 0
    for line in body.split(b"\n"):
        plain = line.replace(b"\x1b[1m", b"")
        if any(literal.encode() in plain for literal in LITERALS):
            expected.append((start, plain))
        start += len(line) + 1
    assert [(at, line.replace(b"\x1b[1m", b"")) for at, line, _ in found] == expected
    for _, line, literals in found:
        assert set(literals) == {index for index, literal in enumerate(LITERALS) if literal.encode() in line}
