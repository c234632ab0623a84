from __future__ import annotations

import pytest

from acceptance.baselines import categories, expected, plain_category, published

RADIX, BLOCK5, CURVE = "RadixArk/Kimi-K3-DSpark", "Inferact/Kimi-K3-DSpark-Block5", "Inferact/Kimi-K3-DSpark"
PREVIEW = "Inferact/Kimi-K3.1-Pro-DSpark-preview"


@pytest.mark.parametrize(
    ("drafter", "k", "category", "acc_len"),
    [
        (RADIX, 7, "code", 5.5),
        (RADIX, 7, "math", 5.4),
        (RADIX, 7, "long context", 4.3),
        (RADIX, 7, "chat", 3.9),
        (RADIX, 7, "reasoning", 3.0),
        (RADIX, 7, "creative", 2.6),
        (RADIX, 7, "agentic", 4.7),
        (BLOCK5, 5, "code", 4.187),
        (BLOCK5, 5, "math", 4.581),
        (BLOCK5, 5, "long context", 3.052),
        (BLOCK5, 5, "chat", 2.659),
        (PREVIEW, 7, "math", 4.597),
        # Two settings were published: the smaller value counts.
        (CURVE, 7, "code", 3.78),
        (CURVE, 1, "code", 1.84),
        (CURVE, 8, "code", 3.88),
        (CURVE, 2, "math", 2.73),
    ],
)
def test_what_was_published(drafter: str, k: int, category: str, acc_len: float) -> None:
    assert expected(drafter, k, category) == acc_len


@pytest.mark.parametrize(
    ("drafter", "k", "category"),
    [
        (RADIX, 5, "code"),  # another k
        (BLOCK5, 7, "code"),
        (BLOCK5, 5, "creative"),  # not measured
        (CURVE, 7, "chat"),
        ("Kimi-K3-DSpark", 7, "code"),  # whose?
        ("RedHatAI/Kimi-K3-speculator.dspark", 8, "code"),
        (RADIX, 7, "rag"),
        (RADIX, 7, "other"),
        (RADIX, 7, ""),
        (RADIX, 7, None),
        (RADIX, None, "code"),
        (None, 7, "code"),
        ("", 7, "code"),
    ],
)
def test_nothing_is_expected_where_nothing_was_published(
    drafter: str | None, k: int | None, category: str | None
) -> None:
    assert expected(drafter, k, category) is None


@pytest.mark.parametrize(
    ("spelling", "plain", "acc_len"),
    [
        ("creative-writing", "creative", 2.6),
        ("Creative Writing", "creative", 2.6),
        ("coding", "code", 5.5),
        ("long_context", "long context", 4.3),
        ("long-context", "long context", 4.3),
        ("aime", "reasoning", 3.0),
        ("SWE-bench", "agentic", 4.7),
        # A category that somebody named after a benchmark is that benchmark.
        ("mbpp", "code", 5.2),
        ("gsm8k", "math", 5.4),
        ("mt_bench", "chat", 3.9),
    ],
)
def test_spellings(spelling: str, plain: str, acc_len: float) -> None:
    assert plain_category(spelling) == plain
    assert expected(RADIX, 7, spelling) == acc_len


def test_a_category_of_ones_own_keeps_its_name() -> None:
    assert plain_category("billing-bot") == "billing-bot"


@pytest.mark.parametrize(
    "drafter",
    [
        "radixark/kimi-k3-dspark",
        "/models/RadixArk/Kimi-K3-DSpark/",
        "/root/.cache/huggingface/hub/models--RadixArk--Kimi-K3-DSpark/snapshots/3f2a",
    ],
)
def test_a_drafter_may_be_a_path(drafter: str) -> None:
    assert expected(drafter, 7, "code") == 5.5


def test_every_value_is_possible_and_says_where_it_stands() -> None:
    told = [
        found
        for drafter, ks in ((RADIX, [7]), (BLOCK5, [5]), (PREVIEW, [7]), (CURVE, range(1, 9)))
        for k in ks
        for category in categories()
        if (found := published(drafter, k, category)) is not None
    ]
    assert len(told) == 7 + 6 + 2 + 9
    for item in told:
        assert 1 < item.acc_len < item.k + 1
        assert item.source
        assert item.setting
        assert item.benchmark


def test_more_draft_tokens_never_yield_less() -> None:
    curve = [expected(CURVE, k, "code") for k in range(1, 9)]
    assert curve == sorted(curve, key=lambda value: value or 0.0)
