"""Every signature matches its own message, no other's, and nothing that is not at the start of a message."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import re2

from acceptance.facts import KNOWN
from acceptance.series import Engine
from collectors.signatures import FINDINGS, LONGEST_CAPTURE, Match, Matcher, Signature, signatures

FIXTURES = Path(__file__).parents[1] / "fixtures" / "signatures"
ENGINES: tuple[Engine, ...] = ("sglang", "vllm")


def examples(engine: str) -> dict[str, str]:
    """Signature -> the message as the engine's source has it, placeholders filled."""
    rows = (FIXTURES / f"{engine}.tsv").read_text("utf-8").splitlines()
    return dict(row.split("\t", 1) for row in rows)


def asked(matcher: Matcher, message: str) -> Match | None:
    return matcher.match(message, [at for at, literal in enumerate(matcher.literals) if literal in message])


def each(engine: Engine) -> list[Signature]:
    return list(signatures(engine).signatures.values())


@pytest.mark.parametrize("engine", ENGINES)
def test_every_message_is_its_own_signature_and_no_other(engine: Engine) -> None:
    matcher = signatures(engine)
    messages = examples(engine)
    for name, message in messages.items():
        found = asked(matcher, message)
        assert found is not None, name
        assert found.signature.id == name
        others = [s.id for s in each(engine) if s.pattern and re.match(s.pattern, message)]
        assert others == [name]
    derived = {signature.id for signature in each(engine) if not signature.pattern}
    assert set(messages) | derived == set(matcher.signatures)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_message_that_a_user_quotes_is_no_signature(engine: Engine) -> None:
    matcher = signatures(engine)
    for message in examples(engine).values():
        for quoted in (
            f"Receive: obj=GenerateReqInput(text='{message}')",
            f"Received request cmpl-1: prompt: '{message}', params: None.",
            f'{{"event": "request.received", "obj": {{"text": "{message}"}}}}',
        ):
            assert asked(matcher, quoted) is None


@pytest.mark.parametrize("engine", ENGINES)
def test_entries_are_sound(engine: Engine) -> None:
    for signature in each(engine):
        assert signature.finding is None or signature.finding in FINDINGS, signature.id
        assert signature.cost
        assert signature.versions
        assert set(signature.facts.values()) <= set(KNOWN), signature.id
        if not signature.pattern:
            continue
        assert set(signature.facts) <= set(re.compile(signature.pattern).groupindex), signature.id
        # No look-around or back-reference: linear in the line, however hostile.
        re2.compile(signature.pattern)
        # The literal has to be found within the JSON of a container runtime, where these are escaped.
        assert not set(signature.literal) & set('"\\<>&\t'), signature.id
        assert signature.literal.isascii()


def test_findings_are_all_reachable() -> None:
    reachable = {signature.finding for engine in ENGINES for signature in each(engine)} - {None}
    assert reachable == FINDINGS - {"synthetic-acceptance"}


@pytest.mark.parametrize(
    ("engine", "message", "captures", "facts"),
    [
        (
            "sglang",
            (
                "DSPARK draft worker only supports attention_backend in ['flashinfer', 'fa3'] for now, "
                "but got 'trtllm_mla'. Falling back to 'flashinfer'."
            ),
            {"algo": "DSPARK", "got": "trtllm_mla", "to": "flashinfer"},
            {"draft_attention_backend": "flashinfer"},
        ),
        (
            "sglang",
            (
                "Initialized DSpark draft runner. attention_backend=trtllm_mha, model=DSparkDraftModel, gamma=7, "
                "verify_num_draft_tokens=8, query_token_num=7"
            ),
            {"backend": "trtllm_mha", "gamma": "7"},
            {"draft_attention_backend": "trtllm_mha", "k": 7},
        ),
        (
            "sglang",
            "Max running requests is reset to 48 for speculative decoding. You can override this",
            {"limit": "48"},
            {"max_running_requests": 48},
        ),
        (
            "vllm",
            (
                "CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode for attention backend "
                "FlashInferBackend (support: AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); "
                "setting cudagraph_mode=NONE"
            ),
            {"mode": "FULL_AND_PIECEWISE", "backend": "FlashInferBackend", "to": "NONE"},
            {},
        ),
    ],
)
def test_captures_and_facts(engine: Engine, message: str, captures: dict[str, str], facts: dict[str, object]) -> None:
    found = asked(signatures(engine), message)
    assert found is not None
    assert captures.items() <= found.captures.items()
    assert found.facts == facts


def test_captures_are_cut_to_size() -> None:
    found = asked(signatures("sglang"), "FlashInfer KDA kernel not available: " + "x" * 10_000)
    assert found is not None
    assert len(found.captures["error"]) == LONGEST_CAPTURE


@pytest.mark.parametrize(
    "message",
    [
        "Using Triton/FLA GDN prefill kernel",
        "Using MarlinLinearKernel for GPTQMarlinLinearMethod",
        "Using backend AttentionBackendEnum.FLASH_ATTN for vit attention",
        "Using max model len 262144",
        "Overriding draft model max model len from 262144 to 131072",
        "Received output for rid='HEALTH_CHECK_1796108849.1' but the state was deleted in TokenizerManager.",
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_harmless_messages_mean_no_finding(engine: Engine, message: str) -> None:
    found = asked(signatures(engine), message)
    assert found is None or found.signature.finding is None


def test_rendered_lines_of_sglang_match_in_their_order(fixture_bytes: Callable[[str], bytes]) -> None:
    lines = fixture_bytes("sglang/fallback_lines_rendered.log").decode().splitlines()
    found = [asked(signatures("sglang"), line.split("] ", 1)[1]) for line in lines]
    assert [match.signature.id for match in found if match] == list(examples("sglang"))[: len(lines)]
