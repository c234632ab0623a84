from __future__ import annotations

import asyncio

import pytest

from dashboards import pulse as pulses
from dashboards.live import Lease, Leases
from dashboards.pulse import Pulse


async def test_a_beat_wakes_whoever_waits_beyond_an_older_mark() -> None:
    pulse = Pulse()
    before = pulse.mark
    waiting = asyncio.create_task(pulse.beyond(before, 10.0))
    await asyncio.sleep(0)
    pulse.beat()
    await asyncio.wait_for(waiting, 1.0)
    assert pulse.mark != before
    await asyncio.wait_for(pulse.beyond(before, 10.0), 1.0)


async def test_without_news_waiting_ends_after_its_time() -> None:
    pulse = Pulse()
    mark = pulse.mark
    await asyncio.wait_for(pulse.beyond(mark, 0.01), 1.0)
    assert pulse.mark == mark


async def test_beats_in_quick_succession_are_one_and_the_last_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulses, "GATHERED_SECONDS", 0.05)
    pulse = Pulse()
    pulse.beat()
    first = pulse.mark
    for _ in range(20):
        pulse.beat()
    assert pulse.mark == first
    await asyncio.wait_for(pulse.beyond(first, 10.0), 1.0)
    second = pulse.mark
    await asyncio.sleep(0.1)
    assert pulse.mark == second != first


def test_marks_of_two_processes_differ() -> None:
    assert Pulse().mark != Pulse().mark


def test_the_newest_lease_of_a_page_holds() -> None:
    leases = Leases()
    old, new = Lease("page", 1, 5.0), Lease("page", 2, 15.0)
    leases.take(old)
    leases.take(new)
    assert not leases.holds(old)
    leases.give_back(old)
    assert leases.holds(new)
    leases.give_back(new)
    assert len(leases) == 0


@pytest.mark.parametrize(
    "asked",
    [
        None,
        "x",
        [],
        {},
        {"page": 1, "lease": 1, "every": 5},
        {"page": "a", "lease": "1", "every": 5},
        {"page": "a", "lease": 1},
    ],
)
def test_a_lease_that_cannot_be_understood_is_none(asked: object) -> None:
    assert Lease.parse(asked) is None


def test_a_lease_is_what_a_page_asks_for() -> None:
    assert Lease.parse({"page": "a" * 99, "lease": 3, "every": 5}) == Lease("a" * 40, 3, 5.0)
