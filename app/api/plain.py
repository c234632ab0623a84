"""Plain pages: HTML that needs no script and asks nothing of anybody else."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape

from starlette.responses import HTMLResponse, Response

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { font: 600 1rem ui-monospace, monospace; border-top: 1px solid #8884; margin-top: 2rem; padding-top: 1rem }
table { border-collapse: collapse; width: 100% }
td { border-top: 1px solid #8882; padding: .25rem .5rem; vertical-align: top }
td:first-child { white-space: nowrap }
code { font: .9em ui-monospace, monospace }
:root { color-scheme: light dark }
"""
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
)


def plain_page(title: str, body: str) -> Response:
    """A whole page around ``body``, which is HTML already."""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{body}</html>",
        headers={"content-security-policy": _POLICY},
    )
