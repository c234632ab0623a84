"""Posted records: each counted once, told when it is on disk, and the good ones whatever the bad ones are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from acceptance.categories import Rule
from app import writer as writing
from app.access.callers import Callers
from app.access.settings import Access
from app.api import requests
from app.api.readiness import Readiness
from app.api.schemas import RecordsAnswer
from app.metrics import Metrics
from app.records import admission
from app.writer import Writer
from store.history import Batch
from store.memory import MemoryHistory

NOW = 1_796_094_000.0
PATH = requests.PATH
TOKENS = {name: f"{name}-0123456789-abcdefghij" for name in ("agent", "viewer", "editor")}
BEARER = {name: {"authorization": f"Bearer {token}"} for name, token in TOKENS.items()}


@pytest.fixture
def callers() -> Callers:
    tokens = [{"name": name, "role": name, "token": token} for name, token in TOKENS.items()]
    return Callers(Access.model_validate({"tokens": tokens}), "127.0.0.1", lambda: NOW)


@pytest.fixture
def rules() -> tuple[Rule, ...]:
    return (Rule("tools", tools=True), Rule("sql", prompt="SELECT"))


@pytest.fixture
async def running(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr(writing, "GATHER_SECONDS", 0.005)
    task = asyncio.create_task(writer.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(params=["memory", "duckdb"])
def history_kind(request: pytest.FixtureRequest) -> str:
    return request.param


def vllm(name: str, steps: int = 10, accepted: int = 30, **more: Any) -> dict[str, Any]:
    spec = {"num_spec_steps": steps, "num_accepted_draft_tokens": accepted, "num_draft_tokens": 7 * steps}
    return {"id": name, "target": "a", "at": NOW - 10, "metrics": {"speculative_decoding": spec}, **more}


def ndjson(*records: Any) -> bytes:
    return b"\n".join(each if isinstance(each, bytes) else json.dumps(each).encode() for each in records)


async def post(client: httpx.AsyncClient, *records: Any, status: int = 200) -> dict[str, Any]:
    answer = await client.post(PATH, content=ndjson(*records), headers=BEARER["agent"])
    assert answer.status_code == status, answer.text
    if status in (200, 207):
        TypeAdapter(RecordsAnswer).validate_json(answer.content)
    return answer.json()


async def rows(client: httpx.AsyncClient, **parameters: Any) -> list[dict[str, Any]]:
    given = {"from": "now-1h", "source": "request", **parameters}
    answer = await client.get("/api/acceptance", params=given, headers=BEARER["viewer"])
    assert answer.status_code == 200, answer.text
    return answer.json()["rows"]


async def test_acceptance_by_category_in_integers(client: httpx.AsyncClient, running: None) -> None:
    answer = await post(
        client,
        vllm("1", 10, 30, category="chat"),
        vllm("2", 30, 60, category="chat"),
        vllm("3", 20, 80, request={"tools": [{"type": "function"}]}),
        vllm("4", 5, 0, request={"prompt": "SELECT 1"}, usage={"prompt_tokens": 9000}),
        {"target": "a", "at": NOW - 9, "meta_info": {"id": "5", "spec_verify_ct": 7, "spec_num_correct_drafts": 14}},
    )
    assert answer == {"accepted": 5, "duplicates": 0, "rejected": []}
    told = {
        row["category"]: (row["steps"], row["emitted"], row["requests"], row["acc_len"])
        for row in await rows(client, by="category")
    }
    assert told == {
        # (10 + 30 + 30 + 60) / (10 + 30), one cluster a request
        "chat": (40, 130, 2, 3.25),
        "tools": (20, 100, 1, 5.0),
        "sql": (5, 5, 1, 1.0),
        "other": (7, 21, 1, 3.0),
    }
    assert [(row["context"], row["steps"]) for row in await rows(client, by="context", category="sql")] == [
        ("8-32k", 5)
    ]
    (all_of_it,) = await rows(client)
    assert (all_of_it["steps"], all_of_it["emitted"], all_of_it["requests"]) == (72, 256, 5)
    assert all_of_it["source"] == "request"


async def test_bad_records_are_refused_with_line_and_reason_and_the_rest_stays(
    client: httpx.AsyncClient, running: None, metrics: Metrics
) -> None:
    answer = await post(
        client,
        vllm("1"),
        b"{torn",
        vllm("2", target="unheard-of"),
        vllm("3", at=NOW + 3600),
        vllm("4", at=NOW - 90_000),
        vllm("5"),
        status=207,
    )
    assert answer == {
        "accepted": 2,
        "duplicates": 0,
        "rejected": [
            {"line": 2, "reason": "not a JSON object"},
            {"line": 3, "reason": "no target of this name is listed (records.any_target takes others too)"},
            {"line": 4, "reason": "ended more than 300 seconds from now"},
            {"line": 5, "reason": "ended more than a day ago"},
        ],
    }
    assert [row["steps"] for row in await rows(client)] == [20]
    sample = metrics.registry.get_sample_value
    assert sample("draftgauge_records_total", {"outcome": "accepted"}) == 2
    assert sample("draftgauge_records_total", {"outcome": "rejected"}) == 4


async def test_a_record_counts_once_however_often_and_whenever_it_comes(
    client: httpx.AsyncClient, running: None
) -> None:
    assert (await post(client, vllm("1"), vllm("1"), vllm("2")))["duplicates"] == 1
    # Another category, time and figures: it is still the same request.
    again = await post(client, vllm("1", category="chat", at=NOW - 20), vllm("2", 11, 11), vllm("3"))
    assert (again["accepted"], again["duplicates"]) == (1, 2)
    # Without a time of its own it ended when it came; yesterday's time is another day's table.
    assert await post(client, vllm("3", at=NOW - 50_000)) == {"accepted": 0, "duplicates": 1, "rejected": []}
    assert await post(client, vllm("1", at=NOW - 100_000)) == {"accepted": 0, "duplicates": 1, "rejected": []}
    assert (await rows(client))[0]["steps"] == 30
    assert (await post(client, vllm("1", target="b")))["accepted"] == 1


async def test_the_same_at_once_is_accepted_once(client: httpx.AsyncClient, running: None) -> None:
    told = await asyncio.gather(*(post(client, vllm("1"), vllm(f"own-{number}")) for number in range(8)))
    assert sum(each["accepted"] for each in told) == 9
    assert sum(each["duplicates"] for each in told) == 7
    assert (await rows(client))[0]["requests"] == 9


async def test_the_answer_waits_for_the_commit(client: httpx.AsyncClient, writer: Writer) -> None:
    answer = asyncio.create_task(post(client, vllm("1")))
    waiting = asyncio.create_task(post(client, vllm("1")))
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert not answer.done()
    assert not waiting.done()
    assert await rows(client) == []
    await writer.drain()
    assert (await answer)["accepted"] == 1
    assert (await waiting)["duplicates"] == 1


async def test_no_room_is_told_and_later_nothing_is_lost(
    client: httpx.AsyncClient, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "QUEUE_LIMIT", 0)
    answer = await client.post(PATH, content=ndjson(vllm("1")), headers=BEARER["agent"])
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    monkeypatch.setattr(writing, "QUEUE_LIMIT", 10)
    again = asyncio.create_task(post(client, vllm("1")))
    while not again.done():
        await writer.drain()
        await asyncio.sleep(0)
    assert (await again)["accepted"] == 1


@pytest.mark.parametrize("history_kind", ["memory"])
async def test_what_cannot_be_stored_is_not_acknowledged(
    client: httpx.AsyncClient, running: None, history: MemoryHistory, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def append(batch: Batch) -> int:
        raise ValueError("no")

    monkeypatch.setattr(history, "append", append)
    assert "cannot be stored" in (await post(client, vllm("1"), status=500))["detail"]


@pytest.mark.parametrize("history_kind", ["memory"])
@pytest.mark.parametrize(("caller", "status"), [(None, 401), ("viewer", 403), ("editor", 403), ("agent", 200)])
async def test_agents_post_and_nobody_else(
    client: httpx.AsyncClient, running: None, caller: str | None, status: int
) -> None:
    answer = await client.post(PATH, content=ndjson(vllm("1")), headers=BEARER.get(caller or "", {}))
    assert answer.status_code == status


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536 + 1):
        yield b" " * 65_536


async def streamed(size: int) -> AsyncIterator[bytes]:
    for chunk in chunks(size):
        yield chunk


@pytest.mark.parametrize("history_kind", ["memory"])
@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (lambda: b" " * (requests.MOST_BYTES + 1), {}, 413),
        (lambda: streamed(requests.MOST_BYTES), {}, 413),
        (lambda: b"1\n" * 10_001, {}, 413),
        (lambda: b"[1,", {}, 400),
        (lambda: b"", {"content-encoding": "gzip"}, 415),
    ],
    ids=["length", "stream", "records", "array", "compressed"],
)
async def test_bodies_that_are_not_taken(
    client: httpx.AsyncClient, content: Callable[[], Any], headers: dict[str, str], status: int
) -> None:
    answer = await client.post(PATH, content=content(), headers={**BEARER["agent"], **headers})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("history_kind", ["memory"])
async def test_a_service_that_stops_takes_nothing(client: httpx.AsyncClient, readiness: Readiness) -> None:
    readiness.stopping = True
    await post(client, vllm("1"), status=503)


@pytest.mark.parametrize("history_kind", ["memory"])
async def test_categories_that_others_name_are_limited(
    client: httpx.AsyncClient, running: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST_CATEGORIES", 2)
    await post(client, *(vllm(str(number), 1, 1, category=f"c{number}") for number in range(5)))
    await post(client, vllm("x", 1, 1, category="tools"), vllm("y", 1, 1, category="c0"))
    told = {row["category"]: row["steps"] for row in await rows(client, by="category")}
    assert told == {"c0": 2, "c1": 1, "other": 3, "tools": 1}


@pytest.mark.parametrize("history_kind", ["memory"])
async def test_no_prompt_is_kept_or_shown(
    client: httpx.AsyncClient, running: None, history: MemoryHistory, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await post(
        client, vllm("1", request={"prompt": "SELECT my-secret"}), {"request": {"prompt": "my-secret"}}, status=207
    )
    assert "my-secret" not in json.dumps(answer) + caplog.text + repr(vars(history))
