from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi import FastAPI

from app.access.callers import Callers
from app.api import pool
from app.api.application import create_app
from app.api.readiness import Readiness
from app.metrics import Metrics
from service.reads import Reads

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path", ["/api", "/api/nope", "/api/acceptance/", "/api/acceptance/nope", "/nope", "/metrics/x"]
)
async def test_an_unknown_path_is_a_problem_under_any_method(client: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": f"there is no {path}",
    }


@pytest.mark.parametrize("method", METHODS[1:])
async def test_a_wrong_method_is_a_problem(client: httpx.AsyncClient, method: str) -> None:
    for path in ("/api/acceptance", "/api/targets", "/api/targets/a", "/readyz", "/metrics", "/docs"):
        answer = await client.request(method, path)
        assert answer.status_code == 405
        assert "GET" in answer.headers["allow"]
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == f"{method} is not a method of {path}"


async def test_a_bug_is_a_problem_without_a_traceback(
    client: httpx.AsyncClient, reads: Reads, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(reads, "acceptance", broken)
    answer = await client.get("/api/acceptance")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.json()["incident"] in capsys.readouterr().out
    assert (await client.get("/api/targets")).status_code == 200


async def test_reads_do_not_block_the_loop_and_are_limited(
    reads: Reads, metrics: Metrics, readiness: Readiness, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MOST_WAITING", 2)
    release, under_way = threading.Event(), threading.Semaphore(0)

    def slow(*_: object) -> list[object]:
        under_way.release()
        release.wait(30)
        return []

    monkeypatch.setattr(reads, "alerts", slow)
    with ThreadPoolExecutor(1) as executor:
        app = create_app(reads, metrics=metrics, readiness=readiness, executor=executor, callers=callers)
        async with _client(app) as client:
            waiting = [asyncio.create_task(client.get("/api/alerts")) for _ in range(2)]
            await asyncio.to_thread(under_way.acquire)
            assert (await client.get("/healthz")).status_code == 200
            refused = await client.get("/api/targets")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["detail"] == "2 reads are waiting already"
            assert b"draftgauge_reads_refused_total 1.0" in metrics.page("", ())[0]
            release.set()
            assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200, 200]
            assert (await client.get("/api/targets")).status_code == 200


async def test_own_metrics_are_served_when_history_is_not(
    client: httpx.AsyncClient, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError("disk gone")

    monkeypatch.setattr(reads, "latest", broken)
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert "draftgauge_loop_lag_seconds_count" in answer.text
    assert "draftgauge_acceptance_length{" not in answer.text
    assert "draftgauge_acceptance_missing_total 1.0" in answer.text


def _client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
