"""A process killed around the commit of posted records: what was not answered is sent again and counts once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.query import AcceptanceQuery
from store.duckdb import DuckHistory

TAKE = """
import asyncio, json, sys, time
from acceptance.categories import Categories
from app.metrics import Metrics
from app.records.admission import Admission
from app.records.intake import Intake
from app.writer import Writer
from service.catalog import Catalog
from store.duckdb import DuckHistory
from store.sql import SqlState

async def main(folder, body):
    history, catalog = DuckHistory(f"{folder}/history.duckdb"), Catalog()
    state = SqlState(f"sqlite:///{folder}/state.db")
    writer = Writer(history, state, catalog, Metrics())
    admission = Admission(catalog, Categories(), any_target=True)
    intake = Intake(history, writer, admission, Metrics(), time.time, asyncio.to_thread)
    running = asyncio.create_task(writer.run())
    taken = await intake.take(body.encode())
    print(json.dumps([taken.accepted, taken.duplicates, len(taken.rejected)]))
    running.cancel()
    writer.close()
    history.close()
    state.close()

asyncio.run(main(*sys.argv[1:]))
"""
SPEC = {"num_spec_steps": 10, "num_accepted_draft_tokens": 30}
RECORDS = [{"id": str(each), "target": "t", "metrics": {"speculative_decoding": SPEC}} for each in range(50)]
"""Without times of their own: they end when they come, another time at every try."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("failpoint", "accepted"), [("history.before_commit", 50), ("history.after_commit", 0)], ids=["before", "after"]
)
def test_killed_around_the_commit(tmp_path: Path, failpoint: str, accepted: int) -> None:
    body = "\n".join(map(json.dumps, RECORDS))

    def take(**environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", TAKE, str(tmp_path), body]
        return subprocess.run(
            command, stdout=subprocess.PIPE, text=True, timeout=120, env={**os.environ, **environment}, check=False
        )

    killed = take(DRAFTGAUGE_FAILPOINT=failpoint)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "")
    assert json.loads(take().stdout) == [accepted, 50 - accepted, 0]
    assert json.loads(take().stdout) == [0, 50, 0]
    history = DuckHistory(tmp_path / "history.duckdb")
    (total,) = history.query(AcceptanceQuery(0.0, 4e9))
    history.close()
    assert (total.counts.steps, total.counts.emitted, total.counts.requests) == (500, 2000, 50)
