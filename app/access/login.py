"""/login and /logout: pages on which people bring their token. No script, no outside request."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from math import ceil
from urllib.parse import parse_qs, quote

import structlog
from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from app.access.callers import Caller, Callers, Refused
from app.access.roles import ANYBODY, requiring

log = structlog.get_logger(__name__)

MOST_FORM_BYTES = 8192

_STYLE = """
:root { color-scheme: light dark; --line: #8886 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 22rem; margin: 18vh auto 0; padding: 0 1rem }
h1 { font-size: 1.15rem }
label { display: block; margin-bottom: .35rem }
input, button { font: inherit; box-sizing: border-box; width: 100%; padding: .5rem .65rem; border-radius: 6px;
  border: 1px solid var(--line) }
input { font-family: ui-monospace, monospace }
button { margin-top: .75rem; cursor: pointer }
[role=alert] { border-left: 3px solid #c0392b; padding-left: .65rem }
"""
_HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
}


def install(app: FastAPI, callers: Callers) -> None:
    """Add the pages."""

    async def form(request: Request) -> Response:
        after = _local(request.query_params.get("next", ""))
        caller = callers.of(request.scope)
        if isinstance(caller, Caller) and caller.may("viewer"):
            return RedirectResponse(after, 303)
        return _form(after) if callers.has_login else _page("Log in", "<p>No token is configured here.</p>", 404)

    async def enter(request: Request) -> Response:
        fields = await _fields(request)
        after = _local(fields.get("next", ""))
        address = callers.address(request.scope)
        holder = callers.holder(fields.get("token", "").strip(), address)
        if isinstance(holder, Refused):
            return _refused(after, holder.wait_seconds)
        if holder.role == "agent":
            return _form(after, "This token is an agent's: it posts records, and opens no page.", 403)
        session = callers.sessions.open(holder.name)
        log.info("logged in", name=holder.name, role=holder.role, address=address)
        cookie = callers.sessions.cookie(session, secure=callers.secure(request.scope))
        return RedirectResponse(after, 303, {"set-cookie": cookie})

    async def ask(_: Request) -> Response:
        return _page("Log out", '<form method="post" action="/logout"><button autofocus>Log out</button></form>')

    async def leave(request: Request) -> Response:
        caller: Caller = request.state.caller
        if caller.session is None:
            return RedirectResponse("/login", 303)
        log.info("logged out", name=caller.name)
        cookie = callers.sessions.end(caller.session, secure=callers.secure(request.scope))
        return RedirectResponse("/login", 303, {"set-cookie": cookie})

    with requiring(app, ANYBODY):
        for path, read, act in (("/login", form, enter), ("/logout", ask, leave)):
            app.add_route(path, read, methods=["GET"], include_in_schema=False)
            app.add_route(path, act, methods=["POST"], include_in_schema=False)


def way_in(scope: Scope) -> Response:
    """What a page is that nobody is logged in for: it leads to /login by itself, and back.

    A redirect would not do. After a link in a message the browser leaves out our cookie (SameSite=Strict) all along the
    redirects, and whoever is logged in would be asked again; where this page leads, the cookie comes along.
    """
    query = scope["query_string"].decode("ascii", "replace")
    target = escape(f"/login?next={quote(scope['path'] + (f'?{query}' if query else ''))}")
    text = f'<p><a href="{target}">Log in</a></p>'
    refresh = f'<meta http-equiv="refresh" content="0;url={target}">'
    response = _page("Draftgauge", text, 401, head=refresh)
    response.headers["www-authenticate"] = 'Bearer realm="Draftgauge"'
    return response


def _refused(after: str, wait_seconds: float) -> Response:
    if not wait_seconds:
        return _form(after, "This token is not known here.", 401)
    seconds = ceil(wait_seconds)
    response = _form(after, f"Too many wrong tokens. Wait {seconds} seconds.", 429)
    response.headers["retry-after"] = str(seconds)
    return response


def _form(after: str, alert: str = "", status: int = 200) -> Response:
    told = f'<p role="alert">{escape(alert)}</p>' if alert else ""
    return _page(
        "Log in",
        f'{told}<form method="post" action="/login"><input type="hidden" name="next" value="{escape(after)}">'
        '<label for="token">Token</label><input id="token" name="token" type="password" required autofocus '
        'autocomplete="current-password" spellcheck="false"><button>Log in</button></form>',
        status,
    )


def _page(title: str, body: str, status: int = 200, head: str = "") -> Response:
    html = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}: Draftgauge</title>{head}'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'
        f"<main><h1>{title}</h1>{body}</main></html>"
    )
    return HTMLResponse(html, status, _HEADERS)


def _local(path: str) -> str:
    """A place of ours: never one that a link to /login could lead to elsewhere."""
    safe = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return path if safe and not path.startswith(("/login", "/logout")) else "/"


async def _fields(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_FORM_BYTES:
            return {}
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
