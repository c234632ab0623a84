"""The gate: every request is held against what its route asks for before anything of it is read."""

from __future__ import annotations

import math
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access import login
from app.access.callers import Caller, Callers, Refused
from app.access.roles import ANYBODY, Need, Undeclared, need
from app.api.problems import Problem

log = structlog.get_logger(__name__)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CHALLENGE = 'Bearer realm="Draftgauge"'


class AccessObserver(Protocol):
    """Told about requests that were turned away: our own metrics."""

    def access_refused(self, reason: str) -> None: ...


class Gate:
    """ASGI middleware. ``own_hosts`` are host names under which people reach us, where a proxy changes the Host header.

    Whoever passes is ``scope["state"]["caller"]`` (``request.state.caller``).
    """

    def __init__(
        self, app: ASGIApp, callers: Callers, observer: AccessObserver, own_hosts: frozenset[str] = frozenset()
    ) -> None:
        self._app = app
        self._callers = callers
        self._observer = observer
        self._own_hosts = own_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        application: FastAPI = scope["app"]
        asked = need(application, scope)
        if asked is ANYBODY and _only_reads(scope):
            await self._app(scope, receive, send)
            return
        caller = self._callers.of(scope)
        refusal = self._refusal(scope, asked, caller)
        if refusal is not None:
            await _answer(refusal, scope, receive, send)
            return
        assert isinstance(caller, Caller)
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, self._renewing(scope, caller, send))

    def _refusal(self, scope: Scope, asked: Need, caller: Caller | Refused) -> Response | None:
        if isinstance(caller, Refused):
            if caller.wait_seconds:
                self._observer.access_refused("waiting")
                return too_many(caller.wait_seconds).response()
            self._observer.access_refused("token")
            return self._unauthorized("this token is not known here", error="invalid_token")
        if isinstance(asked, Undeclared):
            log.error("nobody may be answered here: no role was declared", path=asked.path)
            return Problem(403, f"a bug: no role is declared for {asked.path}").response()
        # A token in a header is never sent by a browser on its own. Everything else is, also for a page elsewhere.
        if not _only_reads(scope) and caller.way != "token" and not self._from_own_page(scope):
            self._observer.access_refused("origin")
            return Problem(
                403, "only pages of this service may ask for this, or programs that bring a token"
            ).response()
        if asked is ANYBODY or caller.may(asked):
            return None
        if caller.role is None:
            self._observer.access_refused("anonymous")
            if self._callers.has_login and _is_for_reading(scope):
                return login.way_in(scope)
            return self._unauthorized("bring a token: Authorization: Bearer TOKEN")
        self._observer.access_refused("role")
        headers = {"www-authenticate": f'{CHALLENGE}, error="insufficient_scope"'}
        return Problem(403, f"this asks for the role {asked}, and yours is {caller.role}", headers=headers).response()

    def _unauthorized(self, detail: str, error: str | None = None) -> Response:
        challenge = f'{CHALLENGE}, error="{error}"' if error else CHALLENGE
        return Problem(401, detail, headers={"www-authenticate": challenge}).response()

    def _from_own_page(self, scope: Scope) -> bool:
        """Whether a page of ours asks, or a program, which sends neither header."""
        headers = Headers(scope=scope)
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and scope["type"] == "http":
            return site in ("same-origin", "none")
        if origin is None:
            return True
        place = urlsplit(origin)
        return place.netloc == headers.get("host") or (place.hostname or "") in self._own_hosts

    def _renewing(self, scope: Scope, caller: Caller, send: Send) -> Send:
        """A session that is used goes on."""
        sessions = self._callers.sessions
        session = None if caller.session is None else sessions.renewed(caller.session)
        if session is None or scope["type"] != "http":
            return send
        cookie = sessions.cookie(session, secure=self._callers.secure(scope))

        async def renewing(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "set-cookie" not in headers:
                    headers.append("set-cookie", cookie)
            await send(message)

        return renewing


def too_many(wait_seconds: float) -> Problem:
    """Too many tokens were wrong."""
    seconds = math.ceil(wait_seconds)
    return Problem(
        429, f"too many wrong tokens: wait {seconds} s", headers={"retry-after": str(seconds)}, wait_seconds=seconds
    )


def _only_reads(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] in SAFE_METHODS


def _is_for_reading(scope: Scope) -> bool:
    """Whether a person wants to see a page: programs and scripts get a problem document."""
    if not _only_reads(scope):
        return False
    headers = Headers(scope=scope)
    return "text/html" in headers.get("accept", "") and headers.get("sec-fetch-dest", "document") == "document"


async def _answer(refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await refusal(scope, receive, send)
