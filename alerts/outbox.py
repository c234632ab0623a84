"""The outbox: brings messages that were committed with their alerts to the channels they are for.

At least once: an attempt is written down after it was made, so a process that dies between the two makes it again,
under the same message id. Every channel is served by itself, one message at a time; what ails one delays no other.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from alerts.notify.channel import Channel, Delivered, Refused, Result, RetryAfter
from store.failpoints import failpoint
from store.state import Attempt, Delivery, DeliveryStatus, Message, StateStore

log = structlog.get_logger(__name__)

BATCH = 100


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try again.

    first_seconds, most_seconds   the wait doubles from the one to the other
    most_asked_seconds            longest wait that a Retry-After is granted
    give_up_seconds               age after which a message that just failed is not tried again
    """

    first_seconds: float = 1.0
    most_seconds: float = 300.0
    most_asked_seconds: float = 900.0
    give_up_seconds: float = 86400.0

    def wait(self, failures: int, asked: float | None, jitter: float) -> float:
        """Seconds to wait after so many failures in a row (1, 2, ...); ``jitter`` in [0, 1) spreads them."""
        if asked is not None:
            return min(max(asked, self.first_seconds), self.most_asked_seconds)
        doubled = min(self.first_seconds * 2.0 ** min(failures, 32), self.most_seconds)
        return doubled * (0.5 + jitter / 2)


class DeliveryObserver(Protocol):
    """Told about every attempt: our own metrics."""

    def attempt(self, channel: str, outcome: str, seconds: float) -> None:
        """``outcome``: delivered, retry, refused, or expired (failed, and too old to be tried again)."""
        ...


@dataclass(frozen=True, slots=True)
class _Fate:
    """What came of an attempt, and what follows."""

    attempt: Attempt
    status: DeliveryStatus
    next_at: float | None


@dataclass(frozen=True, slots=True)
class _Pause:
    """A channel that failed so many times in a row rests until a time (unix seconds)."""

    failures: int
    until: float


class Outbox:
    """Delivers until cancelled. ``clock`` gives unix seconds; ``jitter`` numbers in [0, 1)."""

    def __init__(
        self,
        store: StateStore,
        channels: Mapping[str, Channel],
        clock: Callable[[], float],
        observer: DeliveryObserver,
        *,
        policy: RetryPolicy | None = None,
        jitter: Callable[[], float] = random.random,
        poll_seconds: float = 1.0,
    ) -> None:
        self._store = store
        self._channels = channels
        self._clock = clock
        self._observer = observer
        self._policy = policy or RetryPolicy()
        self._jitter = jitter
        self._poll_seconds = poll_seconds
        self._sending: dict[str, asyncio.Task[int]] = {}
        self._pauses: dict[str, _Pause] = {}
        self._unwritten: dict[tuple[str, str], _Fate] = {}
        self._claiming = asyncio.Lock()
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Messages were committed: look now rather than at the next poll. Called on the loop."""
        self._wake.set()

    def reconfigure(self, channels: Mapping[str, Channel]) -> None:
        """From the next message on, deliver to these. What waits for a channel that is gone will be refused."""
        self._channels = channels
        self._pauses.clear()

    async def run(self) -> None:
        """Deliver whatever becomes due, until cancelled. ``drain`` first: what is under way is sent again later."""
        try:
            while True:
                self._wake.clear()
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_seconds):
                        await self._wake.wait()
        finally:
            await self._cancel()

    async def deliver_due(self, now: float) -> int:
        """Try once what is due at ``now`` and return how many attempts were made.

        Channels that are being served already, or that rest after a failure, are left out.
        """
        return sum(await asyncio.gather(*await self._start(now)))

    async def drain(self, seconds: float) -> None:
        """For shutdown: deliver what is due, for at most so many seconds. The rest waits for the next start."""
        try:
            async with asyncio.timeout(seconds):
                while await self._look() or self._sending:
                    if self._sending:
                        await asyncio.wait(self._sending.values(), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            log.warning("messages were left for the next start", channels=sorted(self._sending))
            await self._cancel()

    async def _look(self) -> list[asyncio.Task[int]]:
        try:
            return await self._start(self._clock())
        except Exception:
            log.exception("the outbox could not be read")
            return []

    async def _start(self, now: float) -> list[asyncio.Task[int]]:
        """Set every idle channel to work for which something is due."""
        started: list[asyncio.Task[int]] = []
        async with self._claiming:
            while True:
                resting = {name for name, pause in self._pauses.items() if now < pause.until}
                due = await asyncio.to_thread(self._store.due, now, BATCH, self._sending.keys() | resting)
                queues: dict[str, list[Delivery]] = defaultdict(list)
                for delivery in due:
                    queues[delivery.message.channel].append(delivery)
                for channel, queue in queues.items():
                    task = asyncio.create_task(self._serve(channel, queue), name=f"deliver to {channel}")
                    task.add_done_callback(partial(self._served, channel))
                    self._sending[channel] = task
                    started.append(task)
                if len(due) < BATCH:
                    return started

    async def _serve(self, channel: str, queue: Sequence[Delivery]) -> int:
        """Send one message after another, up to the first that fails: what ails it most likely ails the channel."""
        attempts = 0
        try:
            for delivery in queue:
                attempts += 1
                fate = await self._settle(delivery)
                if fate.attempt.outcome == "retry":
                    break
        except Exception:
            log.exception("an attempt could not be written down", channel=channel)
            self._rest(channel, None)
        return attempts

    def _served(self, channel: str, _task: asyncio.Task[int]) -> None:
        del self._sending[channel]
        self.wake()

    async def _settle(self, delivery: Delivery) -> _Fate:
        """Attempt a delivery and write it down. What could not be written down is not sent again, only written."""
        message = delivery.message
        key = (message.id, message.channel)
        fate = self._unwritten.get(key)
        if fate is None:
            failpoint("delivery.before_send")
            fate = await self._attempt(delivery)
            failpoint("delivery.after_send")
            self._unwritten[key] = fate
        await asyncio.to_thread(
            self._store.attempted, message.id, message.channel, fate.attempt, fate.status, fate.next_at
        )
        failpoint("delivery.after_commit")
        del self._unwritten[key]
        return fate

    async def _attempt(self, delivery: Delivery) -> _Fate:
        message = delivery.message
        loop = asyncio.get_running_loop()
        started = loop.time()
        result = await self._send(message)
        at, seconds = self._clock(), loop.time() - started
        match result:
            case Delivered():
                fate = _Fate(Attempt(at, "delivered", "", seconds), "delivered", None)
                self._pauses.pop(message.channel, None)
            case Refused(reason):
                fate = _Fate(Attempt(at, "refused", reason, seconds), "refused", None)
                self._pauses.pop(message.channel, None)
            case RetryAfter(asked, reason):
                fate = self._later(delivery, at, seconds, asked, reason)
                self._rest(message.channel, asked)
        outcome = "expired" if fate.status == "expired" else fate.attempt.outcome
        self._observer.attempt(message.channel, outcome, seconds)
        if fate.status != "delivered":
            log.warning(
                "message not delivered",
                channel=message.channel,
                message=message.id,
                status=fate.status,
                reason=fate.attempt.detail,
                next_at=fate.next_at,
            )
        return fate

    async def _send(self, message: Message) -> Result:
        channel = self._channels.get(message.channel)
        if channel is None:
            return Refused(f"channel {message.channel} is not configured")
        [result] = await asyncio.gather(channel.send(message), return_exceptions=True)
        if isinstance(result, BaseException):
            # A fault of the channel's code. Where it is suffices: what a traceback quotes may be secret.
            place = traceback.extract_tb(result.__traceback__)[-1]
            fault = f"{type(result).__name__} in {place.name}, line {place.lineno}"
            log.error("a channel raised", channel=message.channel, file=place.filename, fault=fault)
            return RetryAfter(None, f"the channel's own code failed: {fault}")
        return result

    def _later(self, delivery: Delivery, at: float, seconds: float, asked: float | None, reason: str) -> _Fate:
        """Try again, after a wait that grows with the message's own failures, unless it would be too old by then."""
        wait = self._policy.wait(len(delivery.attempts) + 1, asked, self._jitter())
        if at + wait - delivery.message.created_at > self._policy.give_up_seconds:
            detail = f"{reason}; given up after {len(delivery.attempts) + 1} attempts"
            return _Fate(Attempt(at, "retry", detail, seconds), "expired", None)
        return _Fate(Attempt(at, "retry", reason, seconds), "waiting", at + wait)

    def _rest(self, channel: str, asked: float | None) -> None:
        """Leave a failing channel alone for a while: it is probed by one message at a time, not by all that wait."""
        last = self._pauses.get(channel)
        failures = 1 if last is None else last.failures + 1
        self._pauses[channel] = _Pause(failures, self._clock() + self._policy.wait(failures, asked, self._jitter()))

    async def _cancel(self) -> None:
        tasks = list(self._sending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
