"""Channels: the places messages are told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import httpx

from store.state import Message


@dataclass(frozen=True, slots=True)
class Delivered:
    """The far side took the message."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Not now. ``seconds`` is what the far side asked for, None where it did not say."""

    seconds: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Not ever: another try would end the same way."""

    reason: str


Result = Delivered | RetryAfter | Refused


class Channel(Protocol):
    """``address`` and the reasons of results are shown to people and logged: no secret is ever in them."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    async def send(self, message: Message) -> Result:
        """Tell ``message``, within a time of the channel's own. Never raises for what the far side does."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a channel needs of the process it runs in.

    client        shared; its owner closes it. Requests follow no redirects and set their own time limit
    clock         unix seconds
    external_url  where people reach this service, "" unless configured
    """

    client: httpx.AsyncClient
    clock: Callable[[], float]
    external_url: str = ""


class ChannelSettings(Protocol):
    """The configuration of a channel of one kind, validated. Its ``repr`` shows no secret."""

    def open(self, name: str, surroundings: Surroundings) -> Channel:
        """The channel; nothing is sent yet."""
        ...
