"""Per-request results of all versions: counts from the histogram, categories from the labels, prompts nowhere."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.counts import Counts
from acceptance.facts import FactValue, Subject
from acceptance.window import Window
from collectors.reading import Reader, Reading, Text
from collectors.sglang.requests import RequestReader as SglangReader
from collectors.vllm.requests import RequestReader as VllmReader

FIXTURES = Path(__file__).parents[1] / "fixtures"
MUTATIONS = int(os.environ.get("DRAFTGAUGE_MUTATIONS", "1000"))
READ_AT = 1_800_000_000.0
Read = Callable[[str], bytes]


def read(reader: Reader, body: bytes | str | object, offset: int = 0, **facts: FactValue) -> Reading:
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    return reader.feed(Subject("t", category_label="category", facts=facts), {}, Text(raw, READ_AT, offset))[1]


def sglang(body: bytes | str | object, **facts: FactValue) -> Reading:
    return read(SglangReader(), body, **facts)


def vllm(body: bytes | str | object, **facts: FactValue) -> Reading:
    return read(VllmReader(), body, **facts)


def only(reading: Reading) -> Window:
    assert reading.rejected == ()
    (window,) = reading.windows
    return window


KIMI = {"steps": 172, "accepted": 718, "proposed": 1204, "positions": (163, 149, 131, 109, 83, 55, 28)}


@pytest.mark.parametrize(
    ("reader", "name", "expected", "category"),
    [
        (SglangReader(), "sglang/request_log_v0.5.23.json.log", KIMI, "code"),
        (SglangReader(), "sglang/request_metrics_file_v0.5.23.log", KIMI, "code"),
        (SglangReader(), "sglang/chat_completion_sglext_v0.5.23.json", KIMI, None),
        (
            SglangReader(),
            "real/sglang/ngram/generate-response.json",
            {"steps": 11, "accepted": 13, "proposed": 44, "positions": (7, 4, 2)},
            None,
        ),
        (
            SglangReader(),
            "real/sglang/eagle/generate-response.json",
            {"steps": 23, "accepted": 0, "proposed": 115, "positions": ()},
            None,
        ),
        (
            VllmReader(),
            "vllm/response_per_request_v0.33.0.json",
            {"steps": 88, "accepted": 180, "proposed": 616, "positions": (68, 46, 30, 17, 10, 6, 3)},
            None,
        ),
        (
            VllmReader(),
            "vllm/response_stream_last_chunk_v0.33.0.txt",
            {"steps": 88, "accepted": 180, "proposed": 616, "positions": (68, 46, 30, 17, 10, 6, 3)},
            None,
        ),
        (
            VllmReader(),
            "real/vllm/noisy1/one-chat-response.json",
            {"steps": 8, "accepted": 18, "proposed": 32, "positions": (6, 4, 4, 4)},
            None,
        ),
        (
            VllmReader(),
            "real/vllm/noisy2/one-chat-response.json",
            {"steps": 23, "accepted": 0, "proposed": 92, "positions": (0, 0, 0, 0)},
            None,
        ),
        (
            VllmReader(),
            "cases/074-vl-per-request-json/response.json",
            {"steps": 43, "accepted": 10, "proposed": 129, "positions": (4, 3, 3)},
            None,
        ),
    ],
)
def test_results_of_all_shapes(
    fixture_bytes: Read, reader: Reader, name: str, expected: dict[str, object], category: str | None
) -> None:
    window = only(read(reader, fixture_bytes(name)))
    counts = window.counts
    assert {
        "steps": counts.steps,
        "accepted": counts.accepted,
        "proposed": counts.proposed,
        "positions": counts.by_position,
    } == expected
    assert (counts.requests, counts.trim_bound) == (1, 0.0)
    assert counts.spread is not None
    assert counts.spread.clusters == 1
    assert (window.source, window.exact, window.series.category) == ("request", True, category)
    assert window.reported_length is None


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        (SglangReader(), "real/sglang/eagle/chat-response.json"),
        (VllmReader(), "real/vllm/good/one-chat-response.json"),
    ],
)
def test_results_without_acceptance_give_nothing(fixture_bytes: Read, reader: Reader, name: str) -> None:
    assert read(reader, fixture_bytes(name)) == Reading()


def test_times_of_a_request() -> None:
    spec = {"spec_verify_ct": 5, "spec_num_correct_drafts": 3}
    times = {"request_received_ts": 1796108863.5, "request_finished_ts": 1796108864.5}
    window = only(sglang({"meta_info": {**spec, **times}}))
    assert (window.start, window.end) == (1796108863.5, 1796108864.5)
    window = only(sglang({"meta_info": {**spec, "response_sent_to_client_ts": 1796108864.5, "e2e_latency": 4.0}}))
    assert (window.start, window.end) == (1796108860.5, 1796108864.5)
    window = only(sglang({"meta_info": {**spec, "request_finished_ts": 7.0, "e2e_latency": -1}}))
    assert (window.start, window.end) == (READ_AT, READ_AT)


# Names of all versions


@pytest.mark.parametrize(
    "fields",
    [
        {"spec_accept_token_num": 6, "spec_draft_token_num": 12},  # 0.5.6
        {"spec_accept_token_num": 6, "spec_draft_token_num": 12, "spec_accept_histogram": [1, 1, 1, 1]},  # 0.5.9
        {"spec_accepted_drafts": 6, "spec_proposed_drafts": 12, "spec_accept_histogram": [1, 1, 1, 1]},  # 0.5.11
        {
            "spec_num_correct_drafts": 6,
            "spec_num_proposed_drafts": 12,
            "spec_correct_drafts_histogram": [1, 1, 1, 1],
            "spec_accepted_drafts": 6,
            "spec_proposed_drafts": 12,
        },  # 0.5.12
        {"spec_num_correct_drafts": 6, "spec_num_proposed_drafts": 12, "spec_cap_lens_histogram": []},  # 0.5.23
    ],
)
def test_names_of_sglang_versions(fields: dict[str, object]) -> None:
    """``spec_accept_length`` counts the token of the prefill; it would say 2.75 here."""
    document = {"meta_info": {"spec_verify_ct": 4, "completion_tokens": 11, "spec_accept_length": 2.75, **fields}}
    window = only(sglang(document, k=3))
    assert (window.counts.acc_len, window.counts.proposed, window.counts.slots, window.exact) == (2.5, 12, 12, True)


def test_before_0_5_6_only_the_tokens_tell() -> None:
    """They are cut at the end of the text: low by at most k, and said so."""
    window = only(sglang({"meta_info": {"spec_verify_ct": 4, "completion_tokens": 11}}, k=3))
    assert (window.counts.emitted, window.exact, window.counts.bias_bound) == (10, False, 0.75)


def test_batches_choices_and_ranks() -> None:
    def meta(steps: int, **more: object) -> dict[str, object]:
        return {"meta_info": {"spec_verify_ct": steps, "spec_num_correct_drafts": steps, **more}}

    batch = sglang([meta(1, dp_rank=3), meta(2), {"text": "no meta"}, 7])
    assert [(window.counts.steps, window.series.rank) for window in batch.windows] == [(1, "3"), (2, None)]
    chat = sglang({"id": "x", "created": 1796108864, "choices": [meta(3), {"index": 1}, meta(4)]})
    assert [window.counts.steps for window in chat.windows] == [3, 4]
    details = [{"spec_verify_ct": n, "spec_num_correct_drafts": 0} for n in (5, 6)]
    several = sglang({"choices": [], "sglext": {"spec_tokens_details": details}})
    assert [window.counts.steps for window in several.windows] == [5, 6]
    assert len({window.id for window in (*batch.windows, *chat.windows, *several.windows)}) == 6


@pytest.mark.parametrize(
    ("labels", "category"),
    [
        ({"category": "code"}, "code"),
        ({"category": "x" * 500}, "x" * 64),
        ({"tenant": "a"}, ""),
        ({}, ""),
        (None, ""),
        ("category", ""),
    ],
)
def test_categories_from_labels(labels: object, category: str) -> None:
    out = {"meta_info": {"spec_verify_ct": 4, "spec_num_correct_drafts": 6}}
    finished = {"event": "request.finished", "rid": "1", "obj": {"custom_labels": labels}, "out": out}
    exported = {**out["meta_info"], "request_parameters": json.dumps({"custom_labels": labels})}
    for document in (finished, exported):
        assert only(sglang(document)).series.category == category
    assert only(sglang({**out})).series.category is None


def test_posted_records_name_their_category() -> None:
    spec = {"num_spec_steps": 4, "num_accepted_draft_tokens": 6}
    assert only(vllm({"metrics": {"speculative_decoding": spec}, "category": "code"})).series.category == "code"


# What cannot be


@pytest.mark.parametrize(
    "spec",
    [
        {"num_spec_steps": 4, "num_accepted_draft_tokens": 6, "acceptance_histogram": [1, 1, 1]},
        {"num_spec_steps": 3, "num_accepted_draft_tokens": 6, "acceptance_histogram": [1, 1, 1]},
        {"num_spec_steps": 4, "num_accepted_draft_tokens": 16, "num_draft_tokens": 12},
        {"num_spec_steps": -4},
        {"num_spec_steps": 4.5},
        {"num_spec_steps": True},
        {"num_spec_steps": 10**12},
        {"num_spec_steps": 1, "acceptance_histogram": [0, -1, 2]},
        {"num_spec_steps": 1, "acceptance_histogram": [0] * 5000 + [1]},
    ],
)
def test_contradictions_are_refused_and_leave_the_others(spec: dict[str, object]) -> None:
    good = json.dumps({"metrics": {"speculative_decoding": {"num_spec_steps": 4, "num_accepted_draft_tokens": 6}}})
    bad = json.dumps({"metrics": {"speculative_decoding": spec}})
    reading = vllm(f"{good}\n{bad}\n{{broken\n\n{good}\n")
    assert [window.counts.steps for window in reading.windows] == [4, 4]
    assert [rejected.where for rejected in reading.rejected] == [
        f"byte {len(good) + 1}",
        f"byte {len(good) + len(bad) + 2}",
    ]


def test_a_replay_repeats_ids_and_two_files_share_them() -> None:
    line = json.dumps({"meta_info": {"id": "r1", "spec_verify_ct": 4, "spec_num_correct_drafts": 6}})
    nameless = json.dumps({"meta_info": {"spec_verify_ct": 4, "spec_num_correct_drafts": 6}})
    first = read(SglangReader(), f"{line}\n{nameless}\n{nameless}\n")
    again = read(SglangReader(), f"{line}\n{nameless}\n{nameless}\n")
    elsewhere = read(SglangReader(), f"{line}\n", offset=999)
    assert [w.id for w in first.windows] == [w.id for w in again.windows]
    assert len({w.id for w in first.windows}) == 3
    assert elsewhere.windows[0].id == first.windows[0].id


def test_prompts_and_outputs_are_not_kept(fixture_bytes: Read) -> None:
    document = {
        "text": "SECRET OUTPUT",
        "meta_info": {"spec_verify_ct": 4, "spec_num_correct_drafts": 6},
        "obj": {"text": "SECRET PROMPT", "api_key": "SECRET"},
    }
    assert "SECRET" not in repr(sglang(document))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=9).filter(any))
def test_positions_of_a_histogram(histogram: list[int]) -> None:
    steps, accepted = sum(histogram), sum(at * number for at, number in enumerate(histogram))
    spec = {"num_spec_steps": steps, "num_accepted_draft_tokens": accepted, "acceptance_histogram": histogram}
    counts = only(vllm({"metrics": {"speculative_decoding": spec}})).counts
    assert counts.accepted == accepted == sum(counts.by_position or ())
    assert counts.by_position == tuple(sorted(counts.by_position or (), reverse=True))
    assert isinstance(counts, Counts)


def test_mutated_documents_never_raise(fixture_bytes: Read) -> None:
    names = ("sglang/request_log_v0.5.23.json.log", "sglang/request_metrics_file_v0.5.23.log")
    sources = [(SglangReader(), fixture_bytes(name)) for name in names]
    sources.append((VllmReader(), fixture_bytes("vllm/response_stream_last_chunk_v0.33.0.txt")))
    chance = random.Random(20261201)
    for _ in range(MUTATIONS):
        reader, source = chance.choice(sources)
        body = bytearray(source)
        for _ in range(chance.randint(1, 6)):
            where = chance.randrange(len(body))
            if chance.random() < 0.5:
                body[where] = chance.choice(b'0123456789"{}[],:-.nulltrue')
            else:
                del body[where : where + chance.randint(1, 20)]
        for window in read(reader, bytes(body)).windows:
            assert window.counts.acc_len is None or window.counts.acc_len >= 1
