"""/docs: the API's reference as one page, made from its OpenAPI document. No script, no outside request."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any

from fastapi import FastAPI, Request
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


def install(app: FastAPI) -> None:
    """Add /docs."""

    async def docs(_: Request) -> Response:
        return HTMLResponse(page(app.openapi()), headers={"content-security-policy": _POLICY})

    app.add_route("/docs", docs, include_in_schema=False)


def page(document: Mapping[str, Any]) -> str:
    """HTML of an OpenAPI document: every path with its parameters and the fields of its answer."""
    title = escape(document["info"]["title"])
    operations = "".join(
        _operation(path, operation, document)
        for path, methods in document["paths"].items()
        for operation in methods.values()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}: API</title><style>{_STYLE}</style>'
        f"<h1>{title}: API</h1><p>{escape(document['info']['description'])} "
        f'As <a href="/openapi.json">OpenAPI</a>.</p>{operations}</html>'
    )


def _operation(path: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    link = f'<a href="{escape(path)}">{escape(path)}</a>' if "{" not in path else escape(path)
    rows = [(item["name"], item.get("description", "")) for item in operation.get("parameters", ())]
    content = operation["responses"]["200"].get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    fields = list(_fields(schema, document, ""))
    return (
        f"<h2>GET {link}</h2><p>{escape(operation['summary'])}.</p>"
        + (f"<h3>Parameters</h3>{_table(rows)}" if rows else "")
        + (f"<h3>Answer</h3>{_table(fields)}" if fields else "")
    )


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td><code>{escape(name)}</code><td>{escape(text)}</tr>" for name, text in rows)
    return f"<table>{cells}</table>"


def _fields(schema: Mapping[str, Any], document: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Every field of an answer with its path; models do not contain themselves."""
    resolved = _resolved(schema, document)
    for name, field in resolved.get("properties", {}).items():
        target = _resolved(field, document)
        many = target.get("type") == "array"
        path = f"{prefix}{name}{'[]' if many else ''}"
        yield path, field.get("description") or target.get("description", "")
        yield from _fields(target.get("items", {}) if many else target, document, f"{path}.")


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return schema if reference is None else document["components"]["schemas"][reference.rpartition("/")[2]]
