"""Text from outside, as databases take it."""

from __future__ import annotations


def encodable(text: str) -> str:
    """``text`` with U+FFFD for every surrogate that is no pair, which UTF-8 cannot hold."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
