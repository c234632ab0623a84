from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI, WebSocket
from starlette.responses import HTMLResponse

from app.access.roles import requiring
from app.api.guard import LONGEST_QUERY_BYTES, SECURITY_HEADERS, host_name


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8400",
        "[::1]:8400",
        "[::1]",
        "10.20.30.40:8400",
        "localhost",
        "LOCALHOST:8400",
        "localhost.",
        "dg.localhost:8400",
        "draftgauge.example",
        "Draftgauge.Example:443",
        "",
    ],
)
async def test_names_that_are_answered(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/healthz", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8400", "127.0.0.1.evil.example", "localhost.evil.example", "notlocalhost", "[evil]"],
)
async def test_a_name_that_was_pointed_here_is_not_answered(client: httpx.AsyncClient, host: str) -> None:
    for path in ("/healthz", "/api/targets", "/nope", "/docs"):
        answer = await client.get(path, headers={"host": host})
        assert answer.status_code == 421
        assert answer.headers["content-type"] == "application/problem+json"
        assert "listen.allowed_hosts" in answer.json()["detail"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_name_of_a_host() -> None:
    assert host_name("[2001:db8::1]:80") == "2001:db8::1"
    assert host_name("a.example:80") == "a.example"


@pytest.mark.parametrize("path", ["/healthz", "/api/acceptance", "/api/nope", "/api/acceptance?x=1", "/metrics"])
async def test_every_answer_is_guarded(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert {name: headers[name] for name in SECURITY_HEADERS} == dict(SECURITY_HEADERS)


async def test_a_page_may_state_its_own_policy(app: FastAPI, client: httpx.AsyncClient) -> None:
    with requiring(app, "viewer"):
        app.add_route("/page", lambda _: HTMLResponse("", headers={"content-security-policy": "default-src 'self'"}))
    headers = (await client.get("/page")).headers
    assert headers["content-security-policy"] == "default-src 'self'"
    assert headers["x-frame-options"] == "DENY"


async def test_head_is_get_without_the_body(client: httpx.AsyncClient) -> None:
    got, head = await client.get("/api/targets"), await client.head("/api/targets")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


async def test_a_query_without_end_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/api/acceptance?target={'x' * LONGEST_QUERY_BYTES}")
    assert answer.status_code == 414
    assert str(LONGEST_QUERY_BYTES) in answer.json()["detail"]


@pytest.mark.parametrize(("host", "first"), [("evil.example", "websocket.close"), ("127.0.0.1", "websocket.accept")])
async def test_websockets_are_guarded_too(app: FastAPI, host: str, first: str) -> None:
    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    with requiring(app, "viewer"):
        app.add_api_websocket_route("/ws", talk)

    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": "/ws",
        "raw_path": b"/ws",
        "query_string": b"",
        "headers": [(b"host", host.encode())],
        "subprotocols": [],
    }
    await app(scope, receive, send)
    assert sent[0]["type"] == first
