"""The outbox with real channels, a real state database and real HTTP servers; time is the fake clock's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from alerts.notify.channel import Delivered, Result, Surroundings
from alerts.notify.registry import channel_settings
from alerts.outbox import BATCH, Outbox, RetryPolicy
from store.state import Delivery, Message, StateStore

Commit = Callable[..., None]
NewMessage = Callable[..., Message]


class Observed(list[tuple[str, str]]):
    def attempt(self, channel: str, outcome: str, seconds: float) -> None:
        assert 0 <= seconds < 60
        self.append((channel, outcome))


@pytest.fixture
def observed() -> Observed:
    return Observed()


@pytest.fixture
async def outbox(
    state: StateStore, surroundings: Surroundings, clock: Any, observed: Observed
) -> AsyncIterator[Callable[..., Outbox]]:
    """Open an outbox on webhooks: channel name -> URL or channel. No jitter: waits are the shortest there are."""
    opened: list[Outbox] = []

    def build(urls: dict[str, Any], store: Any = state, **more: Any) -> Outbox:
        channels = {name: webhook(name, url) if isinstance(url, str) else url for name, url in urls.items()}
        opened.append(Outbox(store, channels, clock, observed, jitter=lambda: 0.0, **more))
        return opened[-1]

    def webhook(name: str, url: str) -> Any:
        return channel_settings(name, {"kind": "webhook", "url": url}).open(name, surroundings)

    yield build
    for each in opened:
        await each.drain(0)


def ids(far: Any) -> list[str]:
    return [request.headers["webhook-id"] for request in far.requests]


def delivery(state: StateStore, message_id: str = "m1") -> Delivery:
    return next(each for each in state.deliveries(1000) if each.message.id == message_id)


async def test_a_message_is_delivered_once_and_written_down(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, observed: Observed
) -> None:
    commit(message())
    box = outbox({"pager": far.url})
    assert await box.deliver_due(clock()) == 1
    assert await box.deliver_due(clock.advance(3600)) == 0
    assert ids(far) == ["m1"]
    fate = delivery(state)
    assert (fate.status, fate.next_at) == ("delivered", None)
    [attempt] = fate.attempts
    assert (attempt.outcome, attempt.at, attempt.detail) == ("delivered", clock() - 3600, "")
    assert observed == [("pager", "delivered")]


async def test_failures_are_tried_again_after_growing_waits(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, observed: Observed
) -> None:
    far.script = [(500, "", {})] * 3
    commit(message())
    box = outbox({"pager": far.url})
    for wait in (1, 2, 4):
        assert await box.deliver_due(clock()) == 1
        assert delivery(state).next_at == clock() + wait
        assert await box.deliver_due(clock() + wait - 0.01) == 0
        clock.advance(wait)
    assert await box.deliver_due(clock()) == 1
    assert ids(far) == ["m1"] * 4
    assert [each.outcome for each in delivery(state).attempts] == ["retry", "retry", "retry", "delivered"]
    assert [outcome for _, outcome in observed] == ["retry", "retry", "retry", "delivered"]


@pytest.mark.parametrize(("asked", "granted"), [("30", 30), ("0", 1), ("999999", 900)])
async def test_retry_after_is_granted_within_bounds(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, asked: str, granted: int
) -> None:
    """And for the whole channel: whoever says 429 means all that we send."""
    far.script = [(429, "slow down", {"retry-after": asked})]
    commit(message("m1", alert="a1"), message("m2", alert="a2"))
    box = outbox({"pager": far.url})
    assert await box.deliver_due(clock()) == 1
    assert delivery(state).next_at == clock() + granted
    assert delivery(state).attempts[0].detail == "answered 429: slow down"
    assert await box.deliver_due(clock.advance(granted - 0.5)) == 0
    assert await box.deliver_due(clock.advance(0.5)) == 2
    assert sorted(ids(far)) == ["m1", "m1", "m2"]


async def test_a_refused_message_is_not_tried_again(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, observed: Observed
) -> None:
    far.script = [(404, "no_service", {})]
    commit(message())
    box = outbox({"pager": far.url})
    assert await box.deliver_due(clock()) == 1
    assert await box.deliver_due(clock.advance(1e6)) == 0
    fate = delivery(state)
    assert (fate.status, fate.next_at) == ("refused", None)
    assert fate.attempts[0].detail == "answered 404: no_service"
    assert observed == [("pager", "refused")]


async def test_a_message_for_a_channel_that_is_gone_is_refused(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    commit(message())
    box = outbox({"pager": far.url})
    box.reconfigure({})
    assert await box.deliver_due(clock()) == 1
    fate = delivery(state)
    assert (fate.status, fate.attempts[0].detail) == ("refused", "channel pager is not configured")
    assert ids(far) == []


async def test_a_message_that_keeps_failing_is_given_up_after_its_age(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, observed: Observed
) -> None:
    far.script = [(500, "", {})] * 1000
    commit(message())
    box = outbox({"pager": far.url}, policy=RetryPolicy(give_up_seconds=3600))
    while (next_at := delivery(state).next_at) is not None:
        await box.deliver_due(clock.advance(next_at - clock()))
    fate = delivery(state)
    assert (fate.status, fate.next_at) == ("expired", None)
    assert 3600 - 150 <= fate.attempts[-1].at - fate.message.created_at <= 3600
    assert fate.attempts[-1].detail == f"answered 500; given up after {len(fate.attempts)} attempts"
    assert 20 < len(fate.attempts) < 40
    assert observed[-1] == ("pager", "expired")


async def test_a_message_is_tried_at_least_once_however_late(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    """The process was down for a week: the page still goes out."""
    commit(message())
    assert await outbox({"pager": far.url}).deliver_due(clock.advance(7 * 86400)) == 1
    assert delivery(state).status == "delivered"


async def test_resolved_never_overtakes_firing(
    outbox: Any, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    far.script = [(500, "", {}), (500, "", {})]
    commit(message("firing"))
    box = outbox({"pager": far.url})
    await box.deliver_due(clock())
    commit(message("resolved", kind="resolved", created_at=clock.advance(0.5)))
    for _ in range(20):
        await box.deliver_due(clock.advance(0.5))
    assert ids(far) == ["firing", "firing", "firing", "resolved"]
    assert [request.json["status"] for request in far.requests] == ["firing"] * 3 + ["resolved"]


async def test_order_is_kept_by_a_new_process(
    outbox: Any, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    far.script = [(500, "", {})]
    commit(message("firing"))
    await outbox({"pager": far.url}).deliver_due(clock())
    commit(message("resolved", kind="resolved", created_at=clock.advance(0.5)))
    again = outbox({"pager": far.url})
    assert await again.deliver_due(clock()) == 0
    while await again.deliver_due(clock.advance(0.5)) or len(far.requests) < 3:
        pass
    assert ids(far) == ["firing", "firing", "resolved"]


async def test_a_message_that_a_channel_chokes_on_does_not_block_the_others(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    far.chokes_on = {"poison"}
    commit(message("poison", alert="a0", body={"title": "poison"}))
    commit(*(message(f"m{number}", alert=f"a{number}", created_at=clock.advance(0.001)) for number in range(1, 4)))
    box = outbox({"pager": far.url})
    for _ in range(6):
        await box.deliver_due(clock.advance(1))
    assert [delivery(state, each).status for each in ("m1", "m2", "m3")] == ["delivered"] * 3
    assert delivery(state, "poison").status == "waiting"


async def test_a_channel_that_is_down_is_probed_by_one_message_at_a_time(
    outbox: Any, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    far.script = [(503, "", {})] * 1000
    commit(*(message(f"m{number}", alert=f"a{number}") for number in range(50)))
    box = outbox({"pager": far.url})
    for _ in range(180):
        await box.deliver_due(clock.advance(10))
    assert 10 < len(far.requests) < 25
    assert len(set(ids(far))) > 10, "not always the same message"
    far.script.clear()
    for _ in range(60):
        await box.deliver_due(clock.advance(10))
    assert set(ids(far)) == {f"m{number}" for number in range(50)}


async def test_a_hanging_channel_delays_no_other(
    outbox: Any, commit: Commit, message: NewMessage, far_sides: Any, clock: Any
) -> None:
    slow, fast = await far_sides(), await far_sides()
    slow.script = ["hang"] * 1000
    commit(*(message(f"s{number}", "slow", alert=f"a{number}") for number in range(2 * BATCH)))
    commit(*(message(f"f{number}", "fast", alert=f"a{number}", created_at=clock.advance(1)) for number in range(3)))
    box = outbox({"slow": slow.url, "fast": fast.url}, poll_seconds=60)
    running = asyncio.create_task(box.run())
    assert {(await fast.next()).headers["webhook-id"] for _ in range(3)} == {"f0", "f1", "f2"}
    await slow.next()
    commit(message("f3", "fast", alert="a3", created_at=clock.advance(1)))
    box.wake()
    assert (await fast.next()).headers["webhook-id"] == "f3"
    assert len(slow.requests) == 1, "one message at a time"
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_the_loop_looks_by_itself_and_survives_a_database_that_fails(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any
) -> None:
    store = Failing(state, due=2)
    running = asyncio.create_task(outbox({"pager": far.url}, store=store, poll_seconds=0.01).run())
    commit(message("m1", alert="a1"))
    assert (await far.next()).headers["webhook-id"] == "m1"
    commit(message("m2", alert="a2"))
    assert (await far.next()).headers["webhook-id"] == "m2"
    assert store.failures == {"due": 0}
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


class Broken:
    """A channel with a fault of its own."""

    name = "broken"
    address = "nowhere"

    async def send(self, message: Message) -> Result:
        token = "xyzzy-secret"
        raise KeyError(token)


async def test_a_channel_that_raises_is_a_failure_that_shows_no_secret(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    commit(message("b", "broken", alert="a1"), message("p", "pager", alert="a1"))
    with structlog.testing.capture_logs() as logged:
        assert await outbox({"broken": Broken(), "pager": far.url}).deliver_due(clock()) == 2
    fate = delivery(state, "b")
    assert fate.status == "waiting"
    assert fate.attempts[0].detail.startswith("the channel's own code failed: KeyError in send, line ")
    assert delivery(state, "p").status == "delivered"
    assert any(entry["event"] == "a channel raised" for entry in logged)
    assert "xyzzy-secret" not in str(logged)


class Failing:
    """A state store of which some methods fail a number of times: the disk is full for a while."""

    def __init__(self, store: StateStore, **failures: int) -> None:
        self._store = store
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        if self.failures.get(name, 0):
            self.failures[name] -= 1
            raise OSError("disk full")
        return getattr(self._store, name)


async def test_what_could_not_be_written_down_is_not_sent_again(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, observed: Observed
) -> None:
    commit(message())
    box = outbox({"pager": far.url}, store=Failing(state, attempted=3))
    for _ in range(60):
        await box.deliver_due(clock.advance(1))
    assert ids(far) == ["m1"]
    assert delivery(state).status == "delivered"
    assert len(delivery(state).attempts) == 1
    assert observed == [("pager", "delivered")]


async def test_a_database_that_stays_full_is_not_hammered(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    commit(message())
    store = Failing(state, attempted=1000)
    box = outbox({"pager": far.url}, store=store)
    for _ in range(120):
        await box.deliver_due(clock.advance(5))
    assert ids(far) == ["m1"]
    assert 5 < 1000 - store.failures["attempted"] < 15


async def test_drain_delivers_what_is_due_and_leaves_what_hangs(
    outbox: Any, state: StateStore, commit: Commit, message: NewMessage, far_sides: Any, clock: Any
) -> None:
    slow, fast = await far_sides(), await far_sides()
    slow.script = ["hang"]
    commit(message("s", "slow"), message("f", "fast"))
    commit(message("r", "fast", kind="resolved", created_at=clock.advance(1)))
    await outbox({"slow": slow.url, "fast": fast.url}).drain(1.0)
    assert ids(fast) == ["f", "r"]
    assert delivery(state, "r").status == "delivered"
    assert (delivery(state, "s").status, list(delivery(state, "s").attempts)) == ("waiting", [])


async def test_drain_ends_as_soon_as_all_is_told(
    outbox: Any, commit: Commit, message: NewMessage, far: Any, clock: Any
) -> None:
    commit(message())
    async with asyncio.timeout(30):
        await outbox({"pager": far.url}).drain(3600)
    assert ids(far) == ["m1"]


async def test_attempts_show_no_secrets(
    state: StateStore, commit: Commit, message: NewMessage, far: Any, clock: Any, surroundings: Any, observed: Observed
) -> None:
    far.script = ["echo"]
    token = "xyzzyXYZZY0123456789"
    settings = {"kind": "slack", "url": f"{far.url}/services/T0/B0/{token}"}
    channel = channel_settings("pager", settings).open("pager", surroundings)
    commit(message())
    with structlog.testing.capture_logs() as logged:
        await Outbox(state, {"pager": channel}, clock, observed).deliver_due(clock())
    assert delivery(state).attempts[0].detail.startswith("answered 500: POST ")
    assert any(entry["event"] == "message not delivered" for entry in logged)
    assert token not in f"{state.deliveries(10)} {logged}"


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_a_second_and_five_minutes(failures: int, jitter: float) -> None:
    assert 1 <= RetryPolicy().wait(failures, None, jitter) <= 300


def test_waits_differ_between_messages() -> None:
    policy = RetryPolicy()
    assert policy.wait(3, None, 0.0) == 4
    assert policy.wait(3, None, 0.5) == 6
    assert replace(policy, most_seconds=5).wait(3, None, 0.5) == 3.75
    assert Delivered() == Delivered()
