"""Texts that change while everything around them stays: a tick sends these, not the markup around them."""

from __future__ import annotations

from typing import TypeAlias

Texts: TypeAlias = dict[str, str]
"""Id of a component -> its text."""
