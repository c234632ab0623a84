"""A stand-in for Slack: takes what a channel of kind ``slack`` posts, and shows it at /demo/inbox."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_hex
from typing import Any, cast

import orjson
from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response

from app.demo.blocks import html_of

PATH = "/demo/inbox"
MOST_MESSAGES = 100
MOST_BYTES = 100_000

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #7a828e }
body { font: 15px/1.46 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem }
header { border: 1px dashed var(--line); border-radius: 8px; padding: .6rem .9rem }
h1 { font-size: 1.1rem; margin: 0 }
h2 { font-size: 1.05rem; margin: .2rem 0 }
header p, .empty { margin: .2rem 0 0; color: var(--quiet) }
article { display: grid; grid-template-columns: 36px minmax(0, 1fr); gap: .2rem .7rem; padding: 1rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
.avatar { width: 36px; height: 36px; border-radius: 8px; background: #2f6fde; color: #fff; display: grid;
  place-items: center; font-weight: 700; font-size: .8rem }
.app { border: 1px solid var(--line); border-radius: 3px; padding: 0 .25rem; font-size: .65rem; color: var(--quiet) }
time.sent, .context { color: var(--quiet); font-size: .8rem }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .6rem 1.2rem }
.section, .fields, .actions { margin: .6rem 0 }
.button { display: inline-block; border: 1px solid var(--line); border-radius: 4px; padding: .25rem .7rem;
  margin-right: .5rem; color: inherit; text-decoration: none; font-weight: 600 }
code { font: .9em ui-monospace, monospace; border: 1px solid var(--line); border-radius: 3px; padding: 0 .2rem }
"""
_HEADERS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
}


@dataclass(slots=True)
class Inbox:
    """Messages, newest first. ``url`` is the incoming webhook while ``receiving``."""

    url: str = ""
    messages: deque[tuple[datetime, dict[str, Any]]] = field(
        default_factory=lambda: deque[tuple[datetime, dict[str, Any]]](maxlen=MOST_MESSAGES)
    )

    def take(self, body: bytes) -> bool:
        """Keep a message; False for what is none."""
        try:
            payload: object = orjson.loads(body)
        except orjson.JSONDecodeError:
            return False
        if not isinstance(payload, dict):
            return False
        self.messages.appendleft((datetime.now(UTC), cast("dict[str, Any]", payload)))
        return True


@contextmanager
def receiving(inbox: Inbox) -> Generator[Inbox, None, None]:
    """Take messages on a port of this machine for the time of a ``with`` block. Who knows the URL can post."""
    path = f"/services/DEMO/{token_hex(16)}"

    class Receiver(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            length = self.headers.get("content-length", "")
            if self.path != path or not length.isdigit() or int(length) > MOST_BYTES:
                self.send_error(404)
                return
            taken = inbox.take(self.rfile.read(int(length)))
            answer = b"ok" if taken else b"invalid_payload"
            self.send_response(200 if taken else 400)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """What is delivered is in the log already."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="inbox", daemon=True)
        thread.start()
        inbox.url = f"http://127.0.0.1:{server.server_port}{path}"
        try:
            yield inbox
        finally:
            server.shutdown()
            thread.join()


def install(app: FastAPI, inbox: Inbox) -> None:
    """Add the page."""

    async def page(_: Request) -> Response:
        return HTMLResponse(_page(inbox), headers=_HEADERS)

    app.add_route(PATH, page, include_in_schema=False)


def _page(inbox: Inbox) -> str:
    messages = "".join(_message(at, payload) for at, payload in list(inbox.messages))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Demo inbox: Draftgauge</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="5">'
        f"<style>{_STYLE}</style><header><h1>#spec-decoding-alerts (demo)</h1>"
        "<p>This page stands in for Slack. The messages are about emulated engines, and were sent to nobody. "
        '<a href="/">Back to Draftgauge</a></p></header>'
        f"<main>{messages or '<p class=empty>No message yet.</p>'}</main></html>"
    )


def _message(at: datetime, payload: dict[str, Any]) -> str:
    return (
        '<article><div class="avatar" aria-hidden="true">DG</div><div><strong>Draftgauge</strong> '
        f'<span class="app">APP</span> <time class="sent" datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%H:%M:%S} UTC</time>'
        f"{html_of(payload) or escape(str(payload.get('text', '')))}</div></article>"
    )
