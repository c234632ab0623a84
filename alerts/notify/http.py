"""One POST to the far side, and what its answer means."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp
import httpx

from alerts.notify.channel import Delivered, Refused, Result, RetryAfter
from alerts.notify.notice import one_line
from alerts.notify.settings import Redactor, origin

ANSWER_LIMIT_BYTES = 8192
REASON_LIMIT = 200
RETRIED = frozenset({408, 425, 429})
"""Client errors that ask for another try; so does every 5xx."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the far side said. ``text`` is the start of its body, fit to be shown."""

    status: int
    headers: httpx.Headers
    text: str


async def post(
    client: httpx.AsyncClient,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout_seconds: float,
    redact: Redactor,
) -> Answer | RetryAfter:
    """POST JSON within ``timeout_seconds`` in all. No answer is ``RetryAfter``: the far side may yet be reached."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    request = client.build_request(
        "POST",
        url,
        content=body,
        headers={"content-type": "application/json", "user-agent": "draftgauge", **headers},
        timeout=None,  # httpx limits each read; a far side that sends a byte at a time would never run into it
    )
    try:
        async with asyncio.timeout_at(deadline):
            response = await client.send(request, stream=True, follow_redirects=False)
    except TimeoutError:
        return RetryAfter(None, f"no answer within {timeout_seconds:g} s")
    except (httpx.HTTPError, aiohttp.ClientError) as problem:
        return RetryAfter(None, one_line(redact(_unreached(problem)), REASON_LIMIT))
    try:
        text = await _start_of_body(response, deadline)
    finally:
        await response.aclose()
    return Answer(response.status_code, response.headers, one_line(redact(text), REASON_LIMIT))


def verdict(answer: Answer, now: float) -> Result:
    """What an answer means to a sender, by its status; ``now`` dates a ``Retry-After`` given as a time."""
    status = answer.status
    if 200 <= status < 300:
        return Delivered()
    if 300 <= status < 400:
        return Refused(f"answered {status}: redirects are not followed; configure the address it leads to")
    reason = f"answered {status}: {answer.text}" if answer.text else f"answered {status}"
    if status in RETRIED or status >= 500:
        return RetryAfter(retry_after_seconds(answer.headers, now), reason)
    return Refused(reason)


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds of a ``Retry-After`` header, which holds seconds or an HTTP date (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None


async def _start_of_body(response: httpx.Response, deadline: float) -> str:
    """As much as arrives. The status alone decides, so a body that stalls must not turn success into a retry."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) >= ANSWER_LIMIT_BYTES:
                    break
    except (TimeoutError, httpx.HTTPError, aiohttp.ClientError):
        pass
    return bytes(body[:ANSWER_LIMIT_BYTES]).decode("utf-8", "replace")


def _unreached(problem: Exception) -> str:
    """Why there was no answer, in the words of the error beneath: httpx's names mislead, aiohttp's quote the URL."""
    cause = problem.__cause__ or problem
    return f"connection failed: {type(cause).__name__}: {cause}"


class _OriginsOnly(logging.Filter):
    """httpx logs the URL of every request; of a Slack webhook that is the secret."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(origin(str(each)) if isinstance(each, httpx.URL) else each for each in record.args)
        return True


logging.getLogger("httpx").addFilter(_OriginsOnly())
