"""What an operator asked for, from the command line or the environment he attached."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.facts import KNOWN
from collectors.launch import facts_of

CASES = Path(__file__).parents[1] / "fixtures" / "cases"


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (
            "006-sg-custom-log-k1-ok",
            {
                "engine": "sglang",
                "speculative": True,
                "algorithm": "NEXTN",
                "k": 1,
                "num_draft_tokens": 2,
                "role": "decode",
            },
        ),
        (
            "021b-sg-compose-prefix-spec-missing",
            {
                "engine": "sglang",
                "speculative": True,
                "algorithm": "NEXTN",
                "k": 3,
                "num_draft_tokens": 4,
                "role": "unified",
                "model": "/models/target",
            },
        ),
        (
            "030-sg-config-silent-changes",
            # 8 draft tokens were asked for: a chain of 3 steps verifies 4
            {
                "engine": "sglang",
                "speculative": True,
                "algorithm": "EAGLE",
                "k": 3,
                "num_draft_tokens": 4,
                "mixed_chunk": True,
            },
        ),
        (
            "084-vl-synthetic-in-recipe",
            {
                "engine": "vllm",
                "model": "/models/target",
                "speculative": True,
                "algorithm": "eagle3",
                "drafter": "/models/eagle3-mla",
                "k": 4,
                "synthetic_acceptance": True,
            },
        ),
    ],
)
def test_operators_command_lines(case: str, expected: dict[str, object]) -> None:
    assert facts_of((CASES / case / "launch_args.txt").read_text()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "sglang serve --model-path moonshotai/Kimi-K3 --tp-size=8 --dcp-size 8 --api-key sk-secret "
                "--speculative-algorithm DSPARK --speculative-draft-model-path RadixArk/Kimi-K3-DSpark "
                "--speculative-dspark-block-size 7 --decode-log-interval 10"
            ),
            {
                "engine": "sglang",
                "model": "moonshotai/Kimi-K3",
                "role": "unified",
                "speculative": True,
                "algorithm": "DSPARK",
                "drafter": "RadixArk/Kimi-K3-DSpark",
                "k": 7,
                "tensor_parallel": 8,
                "context_parallel": 8,
                "decode_log_interval": 10,
            },
        ),
        (
            (
                "SGLANG_SIMULATE_ACC_LEN=3.2 SGLANG_RAGGED_VERIFY_MODE=compact python3 -m sglang.launch_server "
                "--model m --speculative-algorithm DSPARK --disable-cuda-graph --host 0.0.0.0"
            ),
            {
                "engine": "sglang",
                "model": "m",
                "role": "unified",
                "speculative": True,
                "algorithm": "DSPARK",
                "verify_mode": "compact",
                "cuda_graph_disabled": True,
                "synthetic_acceptance": True,
            },
        ),
        (
            (
                "python -m sglang.launch_server --model m --speculative-algorithm EAGLE --speculative-num-steps 3 \\\n"
                "  --speculative-eagle-topk 4 --speculative-num-draft-tokens 16"
            ),
            {
                "engine": "sglang",
                "model": "m",
                "role": "unified",
                "speculative": True,
                "algorithm": "EAGLE",
                "k": 3,
                "num_draft_tokens": 16,
            },
        ),
        (
            (
                "docker run --gpus all -e VLLM_USE_V2_MODEL_RUNNER=1 -e HF_TOKEN=hf_secret vllm/vllm-openai --model=m "
                "--enforce-eager -tp 4 --spec-method ngram --spec-tokens 5 --max-num-seqs 64"
            ),
            {
                "engine": "vllm",
                "model": "m",
                "speculative": True,
                "algorithm": "ngram",
                "k": 5,
                "cuda_graph_disabled": True,
                "tensor_parallel": 4,
                "max_running_requests": 64,
            },
        ),
        (
            'vllm serve m --enforce-eager --kv-transfer-config \'{"kv_role":"kv_producer"}\' --served-model-name n',
            {"engine": "vllm", "model": "n", "speculative": False, "cuda_graph_disabled": True, "role": "prefill"},
        ),
        ("vllm serve m --config server.yaml", {"engine": "vllm", "model": "m"}),
        (
            "vllm serve m --speculative-config '{\"method\": broken'",
            {"engine": "vllm", "model": "m", "speculative": True},
        ),
        ("SGLANG_SIMULATE_ACC_LEN=0\nSGLANG_RAGGED_VERIFY_MODE=static", {"engine": "sglang"}),
        ("export VLLM_USE_V1=1", {"engine": "vllm"}),
        ("--enable-metrics --host ::", {}),
        (
            "it's unbalanced --speculative-algorithm EAGLE",
            {"engine": "sglang", "speculative": True, "algorithm": "EAGLE"},
        ),
        ("", {}),
    ],
)
def test_command_lines_and_environments(text: str, expected: dict[str, object]) -> None:
    facts = facts_of(text)
    assert facts == expected
    assert "secret" not in repr(facts)


@given(st.text(max_size=300))
def test_any_text_gives_known_facts(text: str) -> None:
    assert set(facts_of("sglang serve " + text)) <= set(KNOWN)
    assert set(facts_of(text)) <= set(KNOWN)
