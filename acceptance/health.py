"""Health: how a surface of a target answered, and how busy the target said it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """One look at one surface (``metrics``, ``log:PATH``, ``server_info``).

    up            it answered and was read
    error         why not, for people
    running, queued   requests, where the surface tells
    speculating   speculation families or fields present; None where the surface cannot tell
    decode_tokens tokens generated since the look before, where the surface tells
    seconds       how long the answer took
    """

    target: str
    surface: str
    at: float
    up: bool
    error: str | None = None
    running: float | None = None
    queued: float | None = None
    speculating: bool | None = None
    decode_tokens: float | None = None
    seconds: float | None = None
