"""A process killed around a delivery: nothing is lost, and what is repeated carries the same id."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.state import StateStore

DELIVER = """
import asyncio, sys, time
import httpx
from httpx_aiohttp import AiohttpTransport
from alerts.notify.channel import Surroundings
from alerts.notify.registry import channel_settings
from alerts.outbox import Outbox
from store.sql import SqlState

class Nobody:
    def attempt(self, channel, outcome, seconds): pass

async def main(database, url):
    store = SqlState(database)
    async with httpx.AsyncClient(transport=AiohttpTransport()) as client:
        surroundings = Surroundings(client, time.time)
        pager = channel_settings("pager", {"kind": "webhook", "url": url}).open("pager", surroundings)
        await Outbox(store, {"pager": pager}, time.time, Nobody()).deliver_due(time.time())
    store.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("failpoint", "sent_before", "sent_in_all"),
    [
        ("delivery.before_send", [], ["m1", "m2"]),
        ("delivery.after_send", ["m1"], ["m1", "m1", "m2"]),
        ("delivery.after_commit", ["m1"], ["m1", "m2"]),
    ],
)
async def test_killed_around_a_delivery(
    far: Any,
    state: StateStore,
    tmp_path: Path,
    commit: Callable[..., None],
    message: Any,
    failpoint: str,
    sent_before: list[str],
    sent_in_all: list[str],
) -> None:
    at = 1_700_000_000.0
    commit(message("m1", alert="a1", created_at=at), message("m2", alert="a2", created_at=at + 1))

    async def deliver(**environment: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", DELIVER, f"sqlite:///{tmp_path}/state.db", far.url, env={**os.environ, **environment}
        )
        return await asyncio.wait_for(process.wait(), 60)

    def sent() -> list[str]:
        return [request.headers["webhook-id"] for request in far.requests]

    assert await deliver(DRAFTGAUGE_FAILPOINT=failpoint) == -signal.SIGKILL
    assert sent() == sent_before
    assert await deliver() == 0
    assert sent() == sent_in_all
    assert [each.status for each in state.deliveries(10)] == ["delivered", "delivered"]
