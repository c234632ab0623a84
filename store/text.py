"""Text from outside, as databases take it."""

from __future__ import annotations


def encodable(text: str) -> str:
    """``text`` with surrogates that are no pair, which UTF-8 cannot hold, as U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def storable(text: str, limit: int) -> str:
    """``encodable`` text of at most ``limit`` characters without NUL, which PostgreSQL refuses."""
    return encodable(text[:limit]).replace("\0", "\ufffd")
