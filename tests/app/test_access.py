"""Who is answered what: the whole app, every route of it, with the pages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from app.access.roles import GRANTS, Undeclared, declared, requiring
from app.access.sessions import COOKIE
from app.demo.inbox import Inbox
from app.metrics import Metrics

TOKENS = {role: f"{role}-0123456789-abcdefghij" for role in GRANTS}
ACCESS = {"tokens": [{"name": f"{role}'s", "role": role, "token": token} for role, token in TOKENS.items()]}
OPEN = {"/healthz", "/readyz", "/login", "/logout"}
PUBLIC = "0.0.0.0"


def bearer(role: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[role]}"}


def requests_to(app: FastAPI) -> Iterator[tuple[BaseRoute, str, str]]:
    """(route, method, path) for every route and method there is."""
    for route in app.routes:
        if isinstance(route, Mount):
            yield route, "GET", f"{route.path}/x.css"
        elif isinstance(route, Route):
            path = re.sub(r"\{[^}]*\}", "x", route.path)
            for method in route.methods or {"GET"}:
                yield route, method, path


@pytest.fixture
def app(serve: Any) -> FastAPI:
    return serve(ACCESS, PUBLIC, Inbox())


def test_every_route_says_which_role_it_asks_for(app: FastAPI) -> None:
    undeclared = [declared(app, route) for route in app.routes if isinstance(declared(app, route), Undeclared)]
    assert not undeclared
    asked = {getattr(route, "path", ""): declared(app, route) for route in app.routes}
    assert {path for path, role in asked.items() if role is None} == OPEN
    assert {"/", "/trends", "/metrics", "/docs", "/openapi.json", "/api/acceptance", "/assets"} <= set(asked)
    assert {"/_dash-update-component", "/_dash-ws-callback", "/_dash-layout", "/demo/inbox"} <= set(asked)


async def test_no_route_answers_without_a_token(app: FastAPI, browse: Any) -> None:
    client: httpx.AsyncClient = browse(app, "10.0.0.9")
    for route, method, path in requests_to(app):
        answer = await client.request(method, path)
        if route.path in OPEN:  # type: ignore[attr-defined]
            assert answer.status_code < 400 or path == "/login", (method, path)
            continue
        assert answer.status_code == 401, (method, path, answer.status_code)
        assert answer.headers["www-authenticate"] == 'Bearer realm="Draftgauge"'
        if method != "HEAD":
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == 401


@pytest.mark.parametrize("role", GRANTS)
async def test_every_route_answers_the_roles_it_is_for(app: FastAPI, browse: Any, role: Any) -> None:
    client: httpx.AsyncClient = browse(app, "10.0.0.9")
    for route, method, path in requests_to(app):
        need = declared(app, route)
        answer = await client.request(method, path, headers=bearer(role))
        allowed = need is None or need in GRANTS[role]
        assert (answer.status_code == 403) is not allowed, (role, method, path, answer.status_code)
        if not allowed and method != "HEAD":
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
            assert f"yours is {role}" in answer.json()["detail"]


async def test_a_route_that_says_nothing_answers_nobody(app: FastAPI, browse: Any) -> None:
    app.add_route("/forgotten", lambda _: httpx.Response(200), include_in_schema=False)
    for role in GRANTS:
        answer = await browse(app).get("/forgotten", headers=bearer(role))
        assert (answer.status_code, answer.json()["detail"]) == (403, "a bug: no role is declared for /forgotten")


async def test_what_is_not_there_is_told_to_nobody_without_a_token(app: FastAPI, browse: Any) -> None:
    client = browse(app, "10.0.0.9")
    assert (await client.get("/nope")).status_code == 401
    assert (await client.get("/nope", headers=bearer("viewer"))).status_code == 404
    assert (await client.post("/api/targets")).status_code == 401
    assert (await client.post("/api/targets", headers=bearer("viewer"))).status_code == 405


@pytest.mark.parametrize(
    "header", ["Bearer wrong-wrong-wrong-wrong", "bearer ", "Bearer", f"Bearer {TOKENS['viewer']}x"]
)
async def test_a_wrong_token_is_told_so(app: FastAPI, browse: Any, metrics: Metrics, header: str) -> None:
    answer = await browse(app, "10.0.0.9").get("/api/targets", headers={"authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="Draftgauge", error="invalid_token"'
    assert b'draftgauge_access_refused_total{reason="token"} 1.0' in metrics.page("", ())[0]


async def test_nothing_of_a_token_is_shown_or_kept(
    app: FastAPI, browse: Any, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = browse(app, "10.0.0.9")
    answers = [
        await client.get("/api/targets", headers={"authorization": f"Bearer {TOKENS['viewer']}!"}),
        await client.post("/login", data={"token": f"{TOKENS['editor']}!"}),
        await client.post("/login", data={"token": TOKENS["editor"]}),
    ]
    written = capsys.readouterr()
    told = " ".join([written.out, written.err, caplog.text, *(f"{each.headers} {each.text}" for each in answers)])
    assert not any(token in told for token in TOKENS.values())
    gate = next(each for each in app.user_middleware if "callers" in each.kwargs)
    kept = repr(vars(gate.kwargs["callers"])["_holders"])
    assert not any(token in kept for token in TOKENS.values())


@pytest.mark.parametrize(
    ("access", "host", "address", "status"),
    [
        ({}, "127.0.0.1", "127.0.0.1", 200),
        ({}, "::1", "::1", 200),
        ({}, "localhost", "127.0.0.1", 200),
        ({}, PUBLIC, "10.0.0.9", 401),
        ({"allow_anonymous": True}, PUBLIC, "10.0.0.9", 200),
        (ACCESS, "127.0.0.1", "127.0.0.1", 401),
        ({**ACCESS, "allow_anonymous": True}, PUBLIC, "10.0.0.9", 200),
    ],
)
async def test_who_may_come_without_a_token(
    serve: Any, browse: Any, access: Mapping[str, Any], host: str, address: str, status: int
) -> None:
    assert (await browse(serve(access, host), address).get("/api/targets")).status_code == status


@pytest.mark.parametrize(
    ("access", "host", "status"),
    [({}, "127.0.0.1", 204), ({"allow_anonymous": True}, PUBLIC, 401), ({"allow_anonymous": True}, "127.0.0.1", 204)],
)
async def test_who_may_change_things_without_a_token(
    serve: Any, browse: Any, access: Mapping[str, Any], host: str, status: int
) -> None:
    app = serve(access, host)
    with requiring(app, "editor"):
        app.add_api_route("/change", lambda: None, methods=["POST"], status_code=204)
    answer = await browse(app).post("/change")
    # Whoever may read without a token is asked for one when it is about more.
    assert answer.status_code in ({status} if status == 204 else {401, 403})


async def test_the_last_word_of_a_proxy_that_is_trusted(serve: Any, browse: Any) -> None:
    app = serve({**ACCESS, "proxy_header": "X-User", "trusted_proxies": ["10.0.0.5"]}, PUBLIC)
    trusted, other = browse(app, "10.0.0.5"), browse(app, "10.0.0.6")
    assert (await trusted.get("/api/targets", headers={"x-user": "ana"})).status_code == 200
    assert (await trusted.get("/api/targets")).status_code == 401
    assert (await trusted.get("/api/targets", headers={"x-user": " "})).status_code == 401
    assert (await trusted.get("/api/targets", headers=[("x-user", "root"), ("x-user", "ana")])).status_code == 401
    assert (await other.get("/api/targets", headers={"x-user": "ana"})).status_code == 401
    spoofed = {"x-user": "ana", "x-forwarded-for": "10.0.0.5"}
    assert (await other.get("/api/targets", headers=spoofed)).status_code == 401
    assert (await browse(app, "::ffff:10.0.0.5").get("/api/targets", headers={"x-user": "ana"})).status_code == 200


async def test_a_body_without_end_is_refused_before_it_is_read_whole(serve: Any, browse: Any) -> None:
    app, sent = serve(ACCESS), 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 2**20
            yield b"x" * 2**20

    headers = {"content-type": "application/json"}
    answer = await browse(app).post("/_dash-update-component", content=body(), headers={**headers, **bearer("viewer")})
    # Dash takes the refusal for an error of its own; what counts is that it stops reading.
    assert answer.status_code in (413, 500)
    assert sent < 20 * 2**20
    whole = {**headers, **bearer("viewer"), "content-length": str(100 * 2**20)}
    assert (await browse(app).post("/_dash-update-component", content=b"x", headers=whole)).status_code == 413
    sent = 0
    assert (await browse(app).post("/_dash-update-component", content=body(), headers=headers)).status_code == 401
    assert sent <= 2**20, "nothing is read of who may not ask"


SAME = {"origin": "http://127.0.0.1:8400"}


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        (SAME, True),
        ({**SAME, "sec-fetch-site": "same-origin"}, True),
        ({"origin": "https://evil.example"}, False),
        ({"origin": "http://127.0.0.1:9999"}, False),
        ({"origin": "null"}, False),
        ({"origin": "https://gauge.example"}, True),
        ({**SAME, "sec-fetch-site": "cross-site"}, False),
        ({**SAME, "sec-fetch-site": "same-site"}, False),
    ],
)
@pytest.mark.parametrize("tokens", [False, True])
async def test_a_page_elsewhere_changes_nothing(
    serve: Any, browse: Any, headers: dict[str, str], allowed: bool, tokens: bool
) -> None:
    """With a cookie or without anything: on loopback there is nothing else that would stop it."""
    app = serve(ACCESS if tokens else {})
    with requiring(app, "editor"):
        app.add_api_route("/change", lambda: None, methods=["POST"], status_code=204)
    client = browse(app)
    if tokens:
        assert (await client.post("/login", data={"token": TOKENS["editor"]})).status_code == 303
    assert (await client.post("/change", headers=headers)).status_code == (204 if allowed else 403)
    assert (await client.post("/login", headers=headers)).status_code in ({401, 303} if allowed else {403})
    callback = await client.post("/_dash-update-component", headers=headers, json={})
    assert (callback.status_code == 403) is not allowed
    if tokens:
        with_token = await client.post("/change", headers={**headers, **bearer("editor")})
        assert with_token.status_code == 204, "a header is not sent by a browser on its own"


async def connect(app: FastAPI, headers: Mapping[str, str], path: str = "/_dash-ws-callback") -> str:
    """The type of the first message that a websocket gets."""
    sent: list[dict[str, Any]] = []
    coming = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])

    async def receive() -> dict[str, Any]:
        return next(coming)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1:8400", **headers}.items()],
        "client": ("10.0.0.9", 1),
        "subprotocols": [],
    }
    await app(scope, receive, send)
    return sent[0]["type"]


async def test_websockets_ask_for_the_same(app: FastAPI, browse: Any) -> None:
    assert any(isinstance(route, WebSocketRoute) for route in app.routes)
    client = browse(app)
    await client.post("/login", data={"token": TOKENS["viewer"]})
    cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    assert await connect(app, SAME) == "websocket.close"
    assert await connect(app, {**SAME, **cookie}) == "websocket.accept"
    assert await connect(app, {**SAME, **bearer("agent")}) == "websocket.close"
    assert await connect(app, {"origin": "https://evil.example", **cookie}) == "websocket.close"
    assert await connect(app, {**SAME, **cookie}, "/nope") == "websocket.close"
