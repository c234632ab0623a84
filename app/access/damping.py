"""Guessing tokens is slow: whoever sends wrong ones waits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network

import structlog

log = structlog.get_logger(__name__)

FREE_FAILURES = 5
LONGEST_WAIT_SECONDS = 60.0
FORGIVEN_SECONDS = 900.0
MOST_ADDRESSES = 10_000
MOST_NAMES = 100


@dataclass(slots=True)
class _Record:
    failures: int = 0
    failed_at: float = 0.0
    waits_until: float = 0.0
    welcome: set[str] = field(default_factory=set[str])


class Damper:
    """Counts wrong tokens by address (IPv6: by /64, which one host has to itself).

    While an address waits, right tokens are refused like wrong ones, or waiting would cost a guesser nothing. The
    exception are those that came in from there before: a scraper behind the same address translation goes on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def judge(self, address: str, name: str | None) -> float:
        """Seconds to wait for who brought the token of ``name`` (None: a wrong one); 0 takes it, if it is right."""
        now, key = self._clock(), _place(address)
        if name is None:
            return self._failed(key, now)
        record = self._records.get(key)
        if record is not None and name not in record.welcome and record.waits_until > now:
            return record.waits_until - now
        record = self._record(key)
        if len(record.welcome) < MOST_NAMES:
            record.welcome.add(name)
        return 0.0

    def _failed(self, key: str, now: float) -> float:
        record = self._record(key)
        if record.waits_until > now:
            return record.waits_until - now
        if now - record.failed_at > FORGIVEN_SECONDS:
            record.failures = 0
        record.failures, record.failed_at = record.failures + 1, now
        beyond = record.failures - FREE_FAILURES
        if beyond >= 0:
            record.waits_until = now + min(LONGEST_WAIT_SECONDS, 2.0 ** min(beyond, 10))
        if record.failures in (1, FREE_FAILURES) or beyond > 0:
            log.warning("a token was wrong", address=key, wrong=record.failures)
        return 0.0

    def _record(self, key: str) -> _Record:
        record = self._records.setdefault(key, _Record())
        self._records.move_to_end(key)
        if len(self._records) > MOST_ADDRESSES:
            self._records.popitem(last=False)
        return record


def _place(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)
