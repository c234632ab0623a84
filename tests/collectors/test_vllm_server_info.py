"""vLLM's /version and /server_info, the latter in both of its forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.facts import KNOWN, FactValue, Subject
from collectors.engines import engines
from collectors.reading import Reader, Reading, State, Text
from collectors.vllm.server_info import ServerInfoReader
from collectors.vllm.version import VersionReader

SUBJECT = Subject("t")


def feed(
    body: bytes | dict[str, Any], reader: Reader | None = None, state: State | None = None, subject: Subject = SUBJECT
) -> tuple[State, Reading]:
    document = body if isinstance(body, bytes) else json.dumps(body).encode()
    state, reading = (reader or ServerInfoReader()).feed(subject, state or {}, Text(document, 100.0))
    return json.loads(json.dumps(state)), reading


def facts(body: bytes | dict[str, Any], reader: Reader | None = None) -> dict[str, FactValue]:
    _, reading = feed(body, reader)
    assert not reading.rejected
    assert {fact.name for fact in reading.facts} <= set(KNOWN)
    return {fact.name: fact.value for fact in reading.facts}


COMMON = {
    "engine": "vllm",
    "model": "tiny",
    "tensor_parallel": 1,
    "data_parallel": 1,
    "context_parallel": 1,
    "cuda_graph_disabled": True,
}
ONLY_JSON = {"max_running_requests": 16, "chunked_prefill_size": 2048}
SPECULATIVE = {
    "ngram": {"speculative": True, "algorithm": "ngram", "k": 4},
    "good": {"speculative": True, "algorithm": "draft_model", "k": 4, "drafter": "/models/tiny-good"},
    "noisy1": {"speculative": True, "algorithm": "draft_model", "k": 4, "drafter": "/models/tiny-noisy1"},
    "noisy2": {"speculative": True, "algorithm": "draft_model", "k": 4, "drafter": "/models/tiny-noisy2"},
    "eagle": {"speculative": True, "algorithm": "eagle", "k": 3, "drafter": "/models/tiny-eagle"},
    "medusa": {"speculative": True, "algorithm": "medusa", "k": 3, "drafter": "/models/tiny-medusa"},
    "nospec": {"speculative": False},
}


@pytest.mark.parametrize(("folder", "expected"), SPECULATIVE.items())
def test_both_forms_of_every_recorded_server(
    folder: str, expected: dict[str, FactValue], fixture_bytes: Callable[[str], bytes]
) -> None:
    as_json, as_text = ("-json", "") if folder == "ngram" else ("", "-text")
    read = facts(fixture_bytes(f"real/vllm/{folder}/server_info{as_json}.json"))
    assert read == COMMON | ONLY_JSON | expected
    read = facts(fixture_bytes(f"real/vllm/{folder}/server_info{as_text}.json"))
    assert read == COMMON | expected


@pytest.mark.parametrize("folder", ["ngram", "good", "eagle", "medusa", "noisy1", "noisy2", "nospec"])
def test_version(folder: str, fixture_bytes: Callable[[str], bytes]) -> None:
    assert facts(fixture_bytes(f"real/vllm/{folder}/version.json"), VersionReader()) == {
        "engine": "vllm",
        "version": "0.32.0",
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            {"speculative_config": {"method": "dspark", "rejection_sample_method": "synthetic"}},
            ("synthetic_acceptance", True),
        ),
        (
            {"speculative_config": {"method": "dspark", "attention_backend": "FLASH_ATTN"}},
            ("draft_attention_backend", "FLASH_ATTN"),
        ),
        ({"attention_config": {"backend": "FLASHMLA"}}, ("decode_attention_backend", "FLASHMLA")),
        ({"compilation_config": {"cudagraph_mode": "NONE"}}, ("cuda_graph_disabled", True)),
        ({"compilation_config": {"cudagraph_mode": 0}}, ("cuda_graph_disabled", True)),
        ({"compilation_config": {"cudagraph_mode": "FULL_AND_PIECEWISE"}}, ("cuda_graph_disabled", False)),
        ({"model_config": {"enforce_eager": False}}, ("cuda_graph_disabled", False)),
        ({"parallel_config": {"decode_context_parallel_size": 8}}, ("context_parallel", 8)),
    ],
)
def test_single_statements(config: dict[str, Any], expected: tuple[str, FactValue]) -> None:
    name, value = expected
    assert facts({"vllm_config": config})[name] == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("enforce_eager=False, compilation_config={'cudagraph_mode': <CUDAGraphMode.NONE: 0>}", True),
        ("enforce_eager=False, compilation_config={'cudagraph_mode': <CUDAGraphMode.FULL: 2>}", False),
    ],
)
def test_graph_modes_as_text(text: str, expected: bool) -> None:
    assert facts({"vllm_config": text})["cuda_graph_disabled"] is expected


def test_a_server_that_comes_back_without_its_drafter_withdraws_what_it_said() -> None:
    drafting = {"method": "eagle", "model": "/draft", "num_speculative_tokens": 3}
    state, reading = feed({"vllm_config": {"speculative_config": drafting}})
    known = SUBJECT.knowing({fact.name: fact.value for fact in reading.facts})
    _, reading = feed({"vllm_config": {"speculative_config": None}}, state=state, subject=known)
    assert {fact.name: fact.value for fact in reading.facts} == {
        "speculative": False,
        "algorithm": None,
        "drafter": None,
        "k": None,
    }


def test_the_environment_is_not_looked_at() -> None:
    document = {"vllm_config": {}, "vllm_env": {"VLLM_API_KEY": "SECRET"}, "system_env": {"token": "SECRET"}}
    assert "SECRET" not in repr(feed(document))


@pytest.mark.parametrize(
    ("reader", "body", "reason"),
    [
        (ServerInfoReader(), b'{"vllm_config": ', "not JSON"),
        (ServerInfoReader(), b'{"detail": "Not Found"}', "no vllm_config"),
        (ServerInfoReader(), b'{"vllm_config": 7}', "no vllm_config"),
        (VersionReader(), b"0.32.0", "not JSON"),
        (VersionReader(), b'"0.32.0"', "not a JSON object"),
        (VersionReader(), b'{"version": null}', "no version"),
    ],
)
def test_a_broken_document_is_rejected(reader: Reader, body: bytes, reason: str) -> None:
    _, reading = feed(body, reader)
    (rejected,) = reading.rejected
    assert rejected.where == reader.surface
    assert reason in rejected.reason
    assert not reading.facts


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text_raises_nothing(text: str) -> None:
    feed({"vllm_config": text})
    feed({"vllm_config": f"speculative_config=SpeculativeConfig(method='{text}, num_spec_tokens={text}"})


def test_the_registry_finds_both_engines_and_their_documents() -> None:
    assert set(engines()) == {"sglang", "vllm"}
    assert set(engines()["vllm"].documents) == {"/version", "/server_info?config_format=json"}
    assert set(engines()["sglang"].documents) == {"/server_info"}
