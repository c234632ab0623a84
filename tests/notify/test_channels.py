"""Both channels against a real HTTP server: what its answers mean, and that no secret comes back from it."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from alerts.notify.channel import Channel, Delivered, Refused, Result, RetryAfter, Surroundings
from alerts.notify.registry import channel_settings
from alerts.notify.webhook.signature import signed_headers
from store.state import Message

TOKEN = "xyzzyXYZZY0123456789"
KEY = "whsec_" + base64.b64encode(bytes(range(32))).decode()
SECRETS = {
    "slack": {},
    "webhook": {"bearer_token": "b3arer" + TOKEN, "headers": {"X-Key": "h3ader" + TOKEN}, "signing_secret": KEY},
}
KINDS = sorted(SECRETS)


@pytest.fixture
def channel(surroundings: Surroundings) -> Callable[..., Channel]:
    def build(kind: str, url: str, **more: Any) -> Channel:
        return channel_settings("pager", {"kind": kind, "url": url, **more}).open("pager", surroundings)

    return build


@pytest.mark.parametrize("kind", KINDS)
async def test_a_message_arrives(far: Any, channel: Any, message: Callable[..., Message], kind: str) -> None:
    result = await channel(kind, far.url + "/services/T0/B0/x?a=b").send(message())
    assert result == Delivered()
    [request] = far.requests
    assert request.path == "/services/T0/B0/x?a=b"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "draftgauge"
    assert ("blocks" in request.json) == (kind == "slack")
    assert ("groupKey" in request.json) == (kind == "webhook")


ANSWERS: list[tuple[tuple[int, str, dict[str, str]], Result]] = [
    ((200, "ok", {}), Delivered()),
    ((429, "rate_limited", {"retry-after": "7"}), RetryAfter(7.0, "answered 429: rate_limited")),
    ((429, "", {"retry-after": formatdate(1_796_000_090, usegmt=True)}), RetryAfter(90.0, "answered 429")),
    ((429, "", {"retry-after": formatdate(1_795_000_000, usegmt=True)}), RetryAfter(0.0, "answered 429")),
    ((429, "", {"retry-after": "soon"}), RetryAfter(None, "answered 429")),
    ((429, "", {}), RetryAfter(None, "answered 429")),
    ((503, "", {"retry-after": "30"}), RetryAfter(30.0, "answered 503")),
    ((500, "rollup_error", {}), RetryAfter(None, "answered 500: rollup_error")),
    ((408, "", {}), RetryAfter(None, "answered 408")),
    ((400, "invalid_payload", {}), Refused("answered 400: invalid_payload")),
    ((403, "action_prohibited", {}), Refused("answered 403: action_prohibited")),
    ((404, "no_service", {}), Refused("answered 404: no_service")),
    ((410, "channel_is_archived", {}), Refused("answered 410: channel_is_archived")),
    (
        (302, "", {"location": "/elsewhere"}),
        Refused("answered 302: redirects are not followed; configure the address it leads to"),
    ),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
async def test_what_an_answer_means(
    far: Any, channel: Any, message: Callable[..., Message], kind: str, answer: Any, expected: Result
) -> None:
    far.script = [answer]
    assert await channel(kind, far.url).send(message()) == expected
    assert len(far.requests) == 1


async def test_any_2xx_is_delivered_to_a_webhook(far: Any, channel: Any, message: Callable[..., Message]) -> None:
    far.script = [(202, "queued", {}), (204, "", {})]
    assert await channel("webhook", far.url).send(message()) == Delivered()
    assert await channel("webhook", far.url).send(message()) == Delivered()


async def test_a_page_of_a_proxy_is_not_slack(far: Any, channel: Any, message: Callable[..., Message]) -> None:
    far.script = [(200, "<html>Please sign in</html>", {})]
    assert isinstance(await channel("slack", far.url).send(message()), Refused)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_far_side_that_never_answers_is_tried_again(
    far: Any, channel: Any, message: Callable[..., Message], kind: str
) -> None:
    far.script = ["hang"]
    result = await channel(kind, far.url, timeout_seconds=0.05).send(message())
    assert result == RetryAfter(None, "no answer within 0.05 s")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_success_whose_body_stalls_is_a_success(
    far: Any, channel: Any, message: Callable[..., Message], kind: str
) -> None:
    far.script = ["stall"]
    assert await channel(kind, far.url, timeout_seconds=0.3).send(message()) == Delivered()


@pytest.mark.parametrize("kind", KINDS)
async def test_nobody_there_is_tried_again(channel: Any, message: Callable[..., Message], kind: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        result = await channel(kind, f"http://127.0.0.1:{port}/{TOKEN}").send(message())
    assert isinstance(result, RetryAfter)
    assert result.seconds is None
    assert result.reason.startswith("connection failed: ClientConnectorError: Cannot connect to host 127.0.0.1")
    assert TOKEN not in result.reason


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bytes_back", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 two-hundred OK\r\n\r\n"])
async def test_what_is_no_http_is_tried_again(
    channel: Any, message: Callable[..., Message], kind: str, bytes_back: bytes
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(bytes_back)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        result = await channel(kind, f"http://127.0.0.1:{port}/{TOKEN}").send(message())
    assert isinstance(result, RetryAfter)
    assert result.reason.startswith("connection failed: ")
    assert "http://" not in result.reason


async def test_a_webhook_is_signed_and_authorised(
    far: Any, channel: Any, message: Callable[..., Message], clock: Any
) -> None:
    await channel("webhook", far.url, **SECRETS["webhook"]).send(message("m7"))
    [request] = far.requests
    assert request.headers["authorization"] == f"Bearer b3arer{TOKEN}"
    assert request.headers["x-key"] == f"h3ader{TOKEN}"
    expected = signed_headers("m7", clock(), request.body, SecretStr(KEY))
    assert expected["webhook-signature"].startswith("v1,")
    assert request.headers.items() >= expected.items()


async def test_the_id_is_the_same_at_every_try_signed_or_not(
    far: Any, channel: Any, message: Callable[..., Message], clock: Any
) -> None:
    for more in ({}, {"signing_secret": KEY}, {"signing_secret": KEY}):
        await channel("webhook", far.url, **more).send(message("m7"))
        clock.advance(60)
    assert [request.headers["webhook-id"] for request in far.requests] == ["m7", "m7", "m7"]
    assert "webhook-signature" not in far.requests[0].headers
    assert far.requests[1].headers["webhook-signature"] != far.requests[2].headers["webhook-signature"]


@pytest.mark.parametrize("kind", KINDS)
async def test_secrets_never_come_back_in_reasons_or_logs(
    far: Any, channel: Any, message: Callable[..., Message], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The far side answers with everything it was sent, as error pages do."""
    caplog.set_level(logging.DEBUG)
    far.script = ["echo", (404, f"The requested URL /services/T0/{TOKEN} was not found", {})]
    url = f"{far.url}/services/T0/{TOKEN}?token=q{TOKEN}"
    with structlog.testing.capture_logs() as logged:
        noisy = channel(kind, url, **SECRETS[kind])
        results = [await noisy.send(message()), await noisy.send(message())]
    assert isinstance(results[0], RetryAfter)
    assert results[1] == Refused("answered 404: The requested URL *** was not found")
    seen = f"{results} {logged} {caplog.text} {noisy.address} {noisy!r}"
    for secret in (TOKEN, "b3arer", "h3ader", KEY):
        assert secret not in seen
    assert noisy.address == far.url
    assert f"POST {far.url}" in caplog.text, "httpx's own log line was looked at"


async def test_a_far_side_that_talks_without_end_is_cut_off(
    far: Any, channel: Any, message: Callable[..., Message]
) -> None:
    far.script = ["pour"]
    result = await channel("webhook", far.url, timeout_seconds=2).send(message())
    assert far.poured < 64 * 1024 * 1024
    assert isinstance(result, Refused)
    assert len(result.reason) < 250
    assert result.reason.endswith(" … [cut]")
