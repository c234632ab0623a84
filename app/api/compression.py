"""Answers in fewer bytes: files of the pages are compressed once and kept, answers are compressed as they go."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST_BYTES = 1000
ON_LOOP_BYTES = 16_384
"""More than this is compressed in a thread: it takes longer than a millisecond."""
KEPT_LEVEL, PASSING_LEVEL = 9, 4
MOST_KEPT, MOST_KEPT_BYTES = 400, 64_000_000

LIBRARIES, OWN = "/_dash-component-suites/", "/assets/"
FOR_EVER = "private, max-age=31536000, immutable"
ASK_AGAIN = "private, no-cache"

_FINGERPRINT = re.compile(r"\.v[\w-]+m[0-9a-fA-F]+(?=\.)")
_TEXT = re.compile(r"text/|application/([\w.-]+\+)?(json|javascript|xml|openmetrics-text)|image/svg\+xml")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is kept: ``packed`` tells whether ``content`` is gzip."""

    content: bytes
    packed: bool
    media_type: str
    tag: str


class Compressed:
    """ASGI middleware, inside the gate: what is kept is given to nobody who might not ask for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._assets: OrderedDict[str, asyncio.Future[Asset | None]] = OrderedDict()
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["method"] == "GET" and scope["path"].startswith((LIBRARIES, OWN)) and "range" not in headers:
            asset = await self._asset(scope, receive)
            if asset is not None:
                await _give(asset, scope, headers, send)
                return
        await self._app(scope, receive, _packing(send, takes_gzip=_takes_gzip(headers)))

    async def _asset(self, scope: Scope, receive: Receive) -> Asset | None:
        """The file, read and compressed by whoever asks first; None where there is none."""
        # Any fingerprint leads to the same file: kept by its name alone, made-up ones take no room.
        name = _FINGERPRINT.sub("", scope["path"])
        kept = self._assets.get(name)
        if kept is None:
            kept = self._assets[name] = asyncio.ensure_future(self._read(scope, receive))
            kept.add_done_callback(partial(self._settle, name))
        self._assets.move_to_end(name)
        # Whoever asked first may go away before the others have it.
        return await asyncio.shield(kept)

    def _settle(self, name: str, read: asyncio.Future[Asset | None]) -> None:
        """Keep what was read as long as there is room; forget what could not be read."""
        if self._assets.get(name) is not read:
            return
        if _result(read) is None:
            del self._assets[name]
        self._bytes += _size(read)
        while len(self._assets) > MOST_KEPT or self._bytes > MOST_KEPT_BYTES:
            self._bytes -= _size(self._assets.popitem(last=False)[1])

    async def _read(self, scope: Scope, receive: Receive) -> Asset | None:
        status, media_type, body = 0, "", bytearray()

        async def keep(message: Message) -> None:
            nonlocal status, media_type
            if message["type"] == "http.response.start":
                status = message["status"]
                media_type = Headers(raw=message["headers"]).get("content-type", "application/octet-stream")
            else:
                body.extend(message.get("body", b""))

        plain = [(name, value) for name, value in scope["headers"] if not name.startswith(b"if-")]
        await self._app({**scope, "headers": plain}, receive, keep)
        return await asyncio.to_thread(_packed, bytes(body), media_type) if status == 200 else None


def _result(read: asyncio.Future[Asset | None]) -> Asset | None:
    done = read.done() and not read.cancelled() and read.exception() is None
    return read.result() if done else None


def _size(read: asyncio.Future[Asset | None]) -> int:
    asset = _result(read)
    return 0 if asset is None else len(asset.content)


async def _give(asset: Asset, scope: Scope, headers: Headers, send: Send) -> None:
    packed = asset.packed and _takes_gzip(headers)
    tag = f'"{asset.tag}-gzip"' if packed else f'"{asset.tag}"'
    lasting = _FINGERPRINT.search(scope["path"]) or scope["query_string"].startswith(b"m=")
    answer = MutableHeaders({"etag": tag, "cache-control": FOR_EVER if lasting else ASK_AGAIN})
    if asset.packed:
        answer["vary"] = "Accept-Encoding"
    if tag in [each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")]:
        await _send(304, answer, b"", send)
        return
    answer["content-type"] = asset.media_type
    if packed:
        answer["content-encoding"] = "gzip"
    unpack = asset.packed and not packed
    await _send(200, answer, await asyncio.to_thread(gzip.decompress, asset.content) if unpack else asset.content, send)


async def _send(status: int, headers: MutableHeaders, body: bytes, send: Send) -> None:
    if status == 200:
        headers["content-length"] = str(len(body))
    await send({"type": "http.response.start", "status": status, "headers": headers.raw})
    await send({"type": "http.response.body", "body": body})


def _packing(send: Send, *, takes_gzip: bool) -> Send:
    """Compresses an answer that comes in one piece; what is streamed, or no text, goes on as it is."""
    start: Message | None = None

    async def packing(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
            return
        if start is not None:
            head, start = start, None
            headers = MutableHeaders(raw=head["headers"])
            body = message.get("body", b"")
            text = _TEXT.match(headers.get("content-type", "")) and "content-encoding" not in headers
            if text:
                headers.add_vary_header("Accept-Encoding")
            if text and takes_gzip and len(body) >= SMALLEST_BYTES and not message.get("more_body"):
                body = await _compressed(body)
                headers["content-encoding"], headers["content-length"] = "gzip", str(len(body))
                message = {**message, "body": body}
            await send({**head, "headers": headers.raw})
        await send(message)

    return packing


async def _compressed(body: bytes) -> bytes:
    if len(body) <= ON_LOOP_BYTES:
        return gzip.compress(body, PASSING_LEVEL, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, PASSING_LEVEL, mtime=0)


def _packed(body: bytes, media_type: str) -> Asset:
    tag = blake2b(body, digest_size=12).hexdigest()
    small = (
        gzip.compress(body, KEPT_LEVEL, mtime=0) if _TEXT.match(media_type) and len(body) >= SMALLEST_BYTES else body
    )
    return Asset(small if len(small) < len(body) else body, len(small) < len(body), media_type, tag)


def _takes_gzip(headers: Headers) -> bool:
    for offered in headers.get("accept-encoding", "").split(","):
        name, _, weight = offered.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
