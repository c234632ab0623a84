"""Puts the pages on the service's FastAPI object, fenced to their own paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import structlog
from dash import Dash, set_props
from dash.backends._fastapi import reset_current_request, set_current_request
from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response

from dashboards import details, live, routing
from dashboards.pages import PAGES
from dashboards.shell import shell
from dashboards.views import Views

log = structlog.get_logger(__name__)

INDEX = """<!DOCTYPE html>
<html lang="en">
  <head>
    {%metas%}
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>{%title%}</title>
    <link id="favicon" rel="icon" type="image/svg+xml" href="/assets/favicon.svg">
    <script src="/assets/theme.js"></script>
    {%css%}
  </head>
  <body>
    {%app_entry%}
    <footer>
      {%config%}
      {%scripts%}
      {%renderer%}
    </footer>
  </body>
</html>"""

POLICY = (
    "default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Components set styles inline; scripts are ours, or inline with a known hash."""


def install(server: FastAPI, views: Views, *, demo: bool = False) -> Dash:
    """Add the pages to ``server``: GET of each page's path, ``/_dash-*`` and ``/assets``; nothing else is caught."""
    app = Dash(
        __name__,
        server=cast("Any", server),
        title="Draftgauge",
        update_title=cast("Any", None),
        index_string=INDEX,
        assets_folder=str(Path(__file__).parent / "assets"),
        # It is in the head, before anything is painted.
        assets_ignore=r"theme\.js",
        suppress_callback_exceptions=True,
        websocket_callbacks=False,
        on_error=_failed,
        # A page on a second screen is looked at, and never clicked.
        websocket_inactivity_timeout=0,
    )
    # Whoever added a middleware before means it to come first: a guard lets nothing through to Dash.
    server.user_middleware.append(server.user_middleware.pop(0))
    # Dash would answer every unknown path with its page, those of the API too.
    cast("Any", app.backend)._setup_catchall = lambda: None  # noqa: SLF001
    app.layout = lambda: shell(PAGES, mark=views.pulse.mark, demo=demo)
    routing.register(app, PAGES, views)
    live.register(app, views)
    details.register(app, views)
    for page in PAGES:
        page.register(app, views)
    answer = _answer(app)
    for page in PAGES:
        server.router.routes.insert(0, _route(server, page.path, answer))
    # Dash gathers its scripts at the first request to a path of its own; the first page asked for comes before that.
    cast("Any", app)._setup_server()  # noqa: SLF001
    return app


def _failed(error: Exception) -> None:
    """A callback that failed changes nothing of the page but says so, and the log why."""
    incident = uuid4().hex[:12]
    log.error("a page could not be answered", incident=incident, exc_info=error)
    set_props("failed", {"data": incident})


def _route(server: FastAPI, path: str, answer: Callable[[Request], Any]) -> Any:
    server.add_route(path, answer, include_in_schema=False)
    return server.router.routes.pop()


def _answer(app: Dash) -> Callable[[Request], Any]:
    """The page for every path: the address decides what it shows."""
    policy: list[str] = []

    async def answer(request: Request) -> Response:
        token = set_current_request(request)
        try:
            html = app.index()
        finally:
            reset_current_request(token)
        if not policy:
            policy.append(POLICY.format(scripts=" ".join(app.csp_hashes())))
        return HTMLResponse(html, headers={"content-security-policy": policy[0], "cache-control": "no-store"})

    return answer
