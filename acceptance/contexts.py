"""Context: buckets of the prompt length, by which long prompts are told from short ones."""

from __future__ import annotations

from bisect import bisect_right

EDGES = (8 * 1024, 32 * 1024, 128 * 1024)
"""Prompt tokens at which the next bucket begins."""
CONTEXTS = ("<8k", "8-32k", "32-128k", ">128k")
"""Names of the buckets, shortest prompts first."""


def context_of(prompt_tokens: float) -> str:
    """The bucket of a prompt of that many tokens."""
    return CONTEXTS[bisect_right(EDGES, prompt_tokens)]
