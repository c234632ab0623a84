"""The guard before every route: whose requests are answered, and how every answer goes out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import Problem

log = structlog.get_logger(__name__)

LONGEST_QUERY_BYTES = 16_384

SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cache-control": "no-store",
    }
)
"""Of every answer that does not say otherwise: a page that needs scripts states its own policy."""


class Guard:
    """ASGI middleware, the outermost of ours.

    A request is answered only under a name that cannot have been pointed here by somebody else's DNS (DNS rebinding: a
    page of evil.example whose name suddenly means 127.0.0.1 would read this service through its visitor's browser):
    an IP address, localhost, or one of ``names``. Bugs answer 500 with an id that the log holds too. HEAD is GET
    without the body.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket" and not self._known(scope):
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            if message["type"] == "http.response.body" and scope["method"] == "HEAD":
                message = {**message, "body": b""}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal.response()(scope, receive, guarded)
            return
        try:
            await self._app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, guarded)
        except Exception:
            incident = uuid4().hex[:12]
            log.exception("a request failed", path=scope["path"], incident=incident)
            if started:
                raise
            problem = Problem(500, f"a bug; the service's log has it as incident {incident}", incident=incident)
            await problem.response()(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Problem | None:
        if not self._known(scope):
            return Problem(421, "not under this host name: add it to listen.allowed_hosts, or use the IP address")
        if len(scope["query_string"]) > LONGEST_QUERY_BYTES:
            return Problem(414, f"the query is longer than {LONGEST_QUERY_BYTES} bytes")
        return None

    def _known(self, scope: Scope) -> bool:
        name = host_name(Headers(scope=scope).get("host", ""))
        # No browser leaves it out; probes that speak HTTP/1.0 do.
        return name in ("", "localhost") or name.endswith(".localhost") or name in self._names or _is_address(name)


def host_name(host: str) -> str:
    """The name in a Host header, without its port and in lower case: ``[::1]:80`` is ``::1``."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
