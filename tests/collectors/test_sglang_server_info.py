"""SGLang's /server_info of every recorded version: what it states becomes facts, and nothing secret does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.facts import KNOWN, FactValue, Subject
from collectors.reading import Reading, State, Text
from collectors.sglang.server_info import ServerInfoReader

SUBJECT = Subject("t")


def feed(body: bytes | dict[str, Any], state: State | None = None, subject: Subject = SUBJECT) -> tuple[State, Reading]:
    document = body if isinstance(body, bytes) else json.dumps(body).encode()
    state, reading = ServerInfoReader().feed(subject, state or {}, Text(document, 100.0))
    return json.loads(json.dumps(state)), reading


def facts(body: bytes | dict[str, Any]) -> dict[str, FactValue]:
    _, reading = feed(body)
    assert not reading.rejected
    assert not reading.windows
    assert all((fact.target, fact.source, fact.at) == ("t", "server_info", 100.0) for fact in reading.facts)
    assert {fact.name for fact in reading.facts} <= set(KNOWN)
    return {fact.name: fact.value for fact in reading.facts}


EAGLE3 = {
    "engine": "sglang",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "role": "unified",
    "speculative": True,
    "algorithm": "EAGLE3",
    "drafter": "jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B",
    "k": 3,
    "num_draft_tokens": 4,
    "decode_attention_backend": "fa3",
    "cuda_graph_disabled": False,
    "decode_log_interval": 40,
    "max_running_requests": 48,
    "tensor_parallel": 1,
    "data_parallel": 1,
    "chunked_prefill_size": 8192,
    "lifetime_acc_len": 2.4071,
}
DSPARK = {
    "engine": "sglang",
    "model": "moonshotai/Kimi-K3",
    "role": "unified",
    "speculative": True,
    "algorithm": "DSPARK",
    "drafter": "RadixArk/Kimi-K3-DSpark",
    "k": 7,
    "num_draft_tokens": 8,
    "draft_attention_backend": "trtllm_mha",
    "decode_attention_backend": "cutedsl_mla",
    "cuda_graph_disabled": False,
    "decode_log_interval": 40,
    "max_running_requests": 48,
    "tensor_parallel": 8,
    "data_parallel": 1,
    "context_parallel": 8,
    "chunked_prefill_size": 16384,
    "lifetime_acc_len": 3.6512,
}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("sglang/server_info_v0.4.10.eagle3.json", EAGLE3 | {"version": "0.4.10"}),
        ("sglang/server_info_v0.5.5.eagle3.json", EAGLE3 | {"version": "0.5.5", "verify_mode": "prefill"}),
        ("sglang/server_info_v0.5.10.eagle3.json", EAGLE3 | {"version": "0.5.10", "verify_mode": "prefill"}),
        ("sglang/server_info_v0.5.18.k3_dspark.json", DSPARK | {"version": "0.5.18"}),
        ("sglang/server_info_v0.5.23.k3_dspark.json", DSPARK | {"version": "0.5.23"}),
    ],
)
def test_every_sampled_version(
    file: str, expected: dict[str, FactValue], fixture_bytes: Callable[[str], bytes]
) -> None:
    assert facts(fixture_bytes(file)) == expected


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("ngram", {"algorithm": "NGRAM", "k": 4, "num_draft_tokens": 5, "speculative": True}),
        ("eagle", {"algorithm": "EAGLE", "k": 3, "num_draft_tokens": 6, "drafter": "/models/tiny-eagle"}),
        ("nospec", {"speculative": False}),
    ],
)
def test_recorded_servers(folder: str, expected: dict[str, FactValue], fixture_bytes: Callable[[str], bytes]) -> None:
    told = facts(fixture_bytes(f"real/sglang/{folder}/server_info.json"))
    common = {"version": "0.5.23", "model": "tiny", "cuda_graph_disabled": True, "decode_log_interval": 10}
    assert (common | expected).items() <= told.items()
    assert "lifetime_acc_len" not in told
    assert "draft_attention_backend" not in told
    assert "startup_time" not in told, "how long starting took is no time of day"
    if folder == "nospec":
        assert not {"algorithm", "drafter", "k", "num_draft_tokens"} & set(told)


def test_the_lifetime_mean_appears_with_the_first_report(fixture_bytes: Callable[[str], bytes]) -> None:
    body = fixture_bytes("real/sglang/ngram/server_info-after.json")
    expected = json.loads(body)["internal_states"][0]["avg_spec_accept_length"]
    assert facts(body)["lifetime_acc_len"] == expected
    assert expected == pytest.approx(2.78, abs=0.01)


def test_ranks_without_a_mean_are_no_data(fixture_bytes: Callable[[str], bytes]) -> None:
    told = facts(fixture_bytes("cases/027-sg-server-info-nulls/server_info.json"))
    assert told["lifetime_acc_len"] == "rank 2: 2.90, rank 3: 3.67, rank 5: 4.64, rank 7: 3.12"
    assert (told["speculative"], told["k"], told["data_parallel"], told["version"]) == (True, 5, 8, "0.5.17")
    nulls = {"speculative_algorithm": "EAGLE", "internal_states": [{"avg_spec_accept_length": None}, {}]}
    assert "lifetime_acc_len" not in facts(nulls)


def test_0_4_6_states_its_mean_outside_the_ranks() -> None:
    assert facts({"speculative_algorithm": "EAGLE", "avg_spec_accept_length": 2.5})["lifetime_acc_len"] == 2.5


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"startup_time": 1_790_000_000.5}, {"startup_time": 1_790_000_000.5}),
        ({"startup_time": 12.5}, {}),
        ({"disaggregation_mode": "prefill"}, {"role": "prefill"}),
        ({"disaggregation_mode": "decode"}, {"role": "decode"}),
        ({"model_path": "/m", "served_model_name": None}, {"model": "/m"}),
        ({"disable_cuda_graph": True}, {"cuda_graph_disabled": True}),
        (
            {
                "speculative_algorithm": "DSPARK",
                "speculative_num_draft_tokens": 8,
                "internal_states": [{"env_vars": {"SGLANG_RAGGED_VERIFY_MODE": "compact"}}],
            },
            {"verify_mode": "compact", "synthetic_acceptance": False, "k": 7},
        ),
        ({"internal_states": [{"env_vars": {"SGLANG_SIMULATE_ACC_LEN": "3.5"}}]}, {"synthetic_acceptance": True}),
        ({"internal_states": [{"env_vars": {"SGLANG_SIMULATE_ACC_LEN": "-1"}}]}, {"synthetic_acceptance": False}),
        ({"launch_command": "env SGLANG_SIMULATE_ACC_LEN=5.5 sglang serve"}, {"synthetic_acceptance": True}),
        ({"launch_command": "sglang serve --speculative-algorithm EAGLE"}, {}),
    ],
)
def test_single_statements(document: dict[str, Any], expected: dict[str, FactValue]) -> None:
    told = facts(document)
    assert expected.items() <= told.items()
    assert set(told) <= set(expected) | {"engine", "speculative", "algorithm", "num_draft_tokens"}


def test_no_secret_becomes_a_fact() -> None:
    secrets = {
        "api_key": "SECRET-1",
        "admin_api_key": "SECRET-2",
        "launch_command": "sglang serve --api-key SECRET-3 --model-path /m",
        "hf_token": "SECRET-4",
        "internal_states": [{"api_key": "SECRET-5", "env_vars": {"HF_TOKEN": "SECRET-6"}}],
        "model_path": "/m",
    }
    state, reading = feed(secrets)
    assert "SECRET" not in repr(reading)
    assert "SECRET" not in json.dumps(state)


def test_only_news_is_told_so_that_the_log_may_know_better() -> None:
    document = {"speculative_algorithm": "DSPARK", "speculative_draft_attention_backend": "trtllm_mha"}
    state, reading = feed(document)
    told = SUBJECT.knowing({fact.name: fact.value for fact in reading.facts})
    from_log = told.knowing({"draft_attention_backend": "flashinfer"})
    state, reading = feed(document, state, from_log)
    assert not reading.facts
    _, reading = feed(document | {"speculative_draft_attention_backend": "fa3"}, state, from_log)
    assert [(fact.name, fact.value) for fact in reading.facts] == [("draft_attention_backend", "fa3")]


def test_facts_that_were_lost_are_told_again() -> None:
    state, first = feed({"version": "0.5.23"})
    _, again = feed({"version": "0.5.23"}, state)
    assert first.facts == again.facts


def test_a_server_that_comes_back_without_its_drafter_withdraws_what_it_said() -> None:
    with_drafter = {
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": "/draft",
        "speculative_num_draft_tokens": 4,
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
    }
    state, reading = feed(with_drafter)
    known = SUBJECT.knowing({fact.name: fact.value for fact in reading.facts})
    _, reading = feed(dict.fromkeys(with_drafter), state, known)
    assert {fact.name: fact.value for fact in reading.facts} == {
        "speculative": False,
        "algorithm": None,
        "drafter": None,
        "k": None,
        "num_draft_tokens": None,
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not JSON"),
        (b'{"version": "0.5.2', "not JSON"),
        (b"<html>502 Bad Gateway</html>", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_broken_document_is_rejected_and_keeps_the_state(body: bytes, reason: str) -> None:
    state, reading = feed(body, {"stated": {"version": "0.5.23"}})
    assert state == {"stated": {"version": "0.5.23"}}
    (rejected,) = reading.rejected
    assert rejected.where == "server_info"
    assert reason in rejected.reason
    assert not reading.facts


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        *("version", "model_path", "served_model_name", "speculative_algorithm", "speculative_draft_model_path"),
        *("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens", "internal_states"),
        *("startup_time", "launch_command", "env_vars", "avg_spec_accept_length", "disaggregation_mode"),
        *("cuda_graph_config", "disable_cuda_graph", "decode_log_interval"),
    ]
)


@given(st.dictionaries(FIELDS, st.one_of(VALUES, st.lists(st.dictionaries(FIELDS, VALUES, max_size=3), max_size=2))))
@settings(max_examples=100, deadline=None)
def test_fields_of_any_type_raise_nothing(document: dict[str, Any]) -> None:
    _, reading = feed(json.dumps(document).encode())
    assert all(isinstance(fact.value, str | int | float | bool | None) for fact in reading.facts)
