"""How many bytes go over the wire, what is kept where, and that it is the same content."""

from __future__ import annotations

import asyncio
import gzip
import re
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.access.roles import requiring
from app.api.compression import MOST_KEPT, ON_LOOP_BYTES, SMALLEST_BYTES, Compressed

PLAIN = {"accept-encoding": "identity"}
GZIP = {"accept-encoding": "br, gzip"}
PAGE = {"accept": "text/html"}
COLD_BYTES = 2_700_000


@pytest.fixture
def app(serve: Any) -> FastAPI:
    return serve()


@pytest.fixture
def client(app: FastAPI, browse: Any) -> httpx.AsyncClient:
    return browse(app)


async def files(client: httpx.AsyncClient) -> list[str]:
    """What the page names."""
    page = await client.get("/", headers=PAGE)
    return re.findall(r'(?:src|href)="(/(?:_dash-component-suites|assets)/[^"]+)"', page.text)


async def on_the_wire(client: httpx.AsyncClient, path: str) -> tuple[httpx.Response, bytes]:
    """The answer and its bytes as they come."""
    async with client.stream("GET", path, headers=GZIP) as answer:
        return answer, b"".join([part async for part in answer.aiter_raw()])


async def test_what_a_page_loads_is_compressed_and_the_same(client: httpx.AsyncClient) -> None:
    paths = await files(client)
    assert len(paths) > 10
    whole = wire = 0
    for path in paths:
        plain = await client.get(path, headers=PLAIN)
        answer, raw = await on_the_wire(client, path)
        assert plain.status_code == answer.status_code == 200, path
        packed = answer.headers.get("content-encoding") == "gzip"
        assert (gzip.decompress(raw) if packed else raw) == plain.content, path
        assert packed or len(plain.content) < SMALLEST_BYTES or "svg" not in path, path
        assert answer.headers["content-length"] == str(len(raw))
        assert "content-encoding" not in plain.headers
        whole, wire = whole + len(plain.content), wire + len(raw)
    assert wire < COLD_BYTES, (whole, wire)
    assert wire < whole / 3


async def test_fingerprinted_files_are_kept_by_the_browser_and_others_asked_for(client: httpx.AsyncClient) -> None:
    lasting = [path for path in await files(client) if re.search(r"\.v[\w-]+m\d+\.|\?m=", path)]
    assert len(lasting) > 10
    for path in lasting:
        answer = await client.get(path, headers=GZIP)
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable", path
    answer = await client.get("/assets/fonts/inter.woff2", headers=GZIP)
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "content-encoding" not in answer.headers, "a font is compressed already"


@pytest.mark.parametrize("encoding", [PLAIN, GZIP])
async def test_what_is_unchanged_is_not_sent_again(client: httpx.AsyncClient, encoding: dict[str, str]) -> None:
    first = await client.get("/assets/tokens.css", headers=encoding)
    again = await client.get("/assets/tokens.css", headers={**encoding, "if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["vary"] == "Accept-Encoding"
    other = await client.get("/assets/tokens.css", headers={**encoding, "if-none-match": '"something-else"'})
    assert other.status_code == 200


async def test_each_encoding_has_a_tag_of_its_own(client: httpx.AsyncClient) -> None:
    tags = {(await client.get("/assets/tokens.css", headers=each)).headers["etag"] for each in (PLAIN, GZIP)}
    assert len(tags) == 2


async def test_a_file_is_read_and_compressed_once(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def compress(*arguments: Any, **options: Any) -> bytes:
        calls.append(1)
        return real(*arguments, **options)

    real = gzip.compress
    monkeypatch.setattr(gzip, "compress", compress)
    path = next(path for path in await files(client) if "dash_mantine" in path)
    calls.clear()
    answers = await asyncio.gather(*(client.get(path, headers=GZIP) for _ in range(8)))
    assert len({answer.content for answer in answers}) == 1
    assert len(calls) == 1


async def test_made_up_fingerprints_and_names_take_no_room() -> None:
    served: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        served.append(scope["path"])
        await Response(
            "x" * 2000 if "missing" not in scope["path"] else "", 404 if "missing" in scope["path"] else 200
        )(scope, receive, send)

    compressed = Compressed(inner)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(compressed), base_url="http://x") as client:
        for number in range(50):
            assert (await client.get(f"/_dash-component-suites/a/b.v1m{number}.js")).text == "x" * 2000
            assert (await client.get(f"/assets/missing-{number}.js")).status_code == 404
        assert len(compressed._assets) == 1
        for number in range(2 * MOST_KEPT):
            await client.get(f"/assets/{number}.js")
        assert len(compressed._assets) == MOST_KEPT
        assert compressed._bytes == sum(len(kept.result().content) for kept in compressed._assets.values())  # type: ignore[union-attr]


async def test_nothing_kept_is_given_to_who_may_not_ask(serve: Any, browse: Any) -> None:
    token = "viewer-0123456789-abcdefghij"
    app = serve({"tokens": [{"name": "a", "role": "viewer", "token": token}]})
    assert (
        await browse(app).get("/assets/tokens.css", headers={"authorization": f"Bearer {token}"})
    ).status_code == 200
    assert (await browse(app).get("/assets/tokens.css")).status_code == 401


@pytest.mark.parametrize("path", ["/assets/nope.css", "/assets/../ui.py", "/_dash-component-suites/dash/nope.js"])
async def test_a_file_that_is_not_there(client: httpx.AsyncClient, path: str) -> None:
    for _ in range(2):
        assert (await client.get(path)).status_code in (404, 500)


@pytest.mark.parametrize("size", [0, SMALLEST_BYTES - 20, SMALLEST_BYTES, ON_LOOP_BYTES * 4])
@pytest.mark.parametrize("encoding", [PLAIN, GZIP, {"accept-encoding": "gzip;q=0"}, {"accept-encoding": "*"}])
async def test_answers_are_compressed_where_it_pays(
    app: FastAPI, client: httpx.AsyncClient, size: int, encoding: dict[str, str]
) -> None:
    with requiring(app, "viewer"):
        app.add_route("/made", lambda _: JSONResponse({"text": "x" * size}), include_in_schema=False)
    answer = await client.get("/made", headers=encoding)
    assert answer.json() == {"text": "x" * size}
    expected = size >= SMALLEST_BYTES and encoding["accept-encoding"] in ("br, gzip", "*")
    assert (answer.headers.get("content-encoding") == "gzip") is expected
    assert answer.headers["vary"] == "Accept-Encoding"


async def test_large_answers_are_compressed_off_the_loop(
    app: FastAPI, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b'{"n": [' + b",".join(b"%d" % (number * 7919 % 1_000_003) for number in range(100_000)) + b"]}"
    with requiring(app, "viewer"):
        app.add_route("/large", lambda _: Response(text, media_type="application/json"), include_in_schema=False)
    threads: list[str] = []

    def compress(*arguments: Any, **options: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return real(*arguments, **options)

    real = gzip.compress
    monkeypatch.setattr(gzip, "compress", compress)
    answer, raw = await on_the_wire(client, "/large")
    assert gzip.decompress(raw) == text
    assert answer.headers["content-encoding"] == "gzip"
    assert len(threads) == 1
    assert threads[0] != threading.main_thread().name


async def test_streams_and_what_is_packed_already_go_on_as_they_are(app: FastAPI, client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1000

    packed = gzip.compress(b"y" * 5000)
    with requiring(app, "viewer"):
        app.add_route("/stream", lambda _: StreamingResponse(pieces(), media_type="text/plain"))
        app.add_route(
            "/packed", lambda _: Response(packed, headers={"content-encoding": "gzip"}, media_type="text/plain")
        )
        app.add_route("/picture", lambda _: Response(b"z" * 5000, media_type="image/png"))
    assert (await client.get("/stream", headers=GZIP)).content == b"x" * 3000
    assert (await client.get("/packed", headers=GZIP)).content == b"y" * 5000
    picture = await client.get("/picture", headers=GZIP)
    assert "content-encoding" not in picture.headers
    assert picture.content == b"z" * 5000
