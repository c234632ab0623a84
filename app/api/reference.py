"""/docs: the API's reference as one page, made from its OpenAPI document. No script, no outside request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from app.api.plain import plain_page


def install(app: FastAPI) -> None:
    """Add /docs."""

    async def docs(_: Request) -> Response:
        document = app.openapi()
        return plain_page(f"{document['info']['title']}: API", body(document))

    app.add_route("/docs", docs, include_in_schema=False)


def body(document: Mapping[str, Any]) -> str:
    """HTML of an OpenAPI document: every path with its parameters and the fields of its answer."""
    operations = "".join(
        _operation(method, path, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return f'<p>{escape(document["info"]["description"])} As <a href="/openapi.json">OpenAPI</a>.</p>{operations}'


def _operation(method: str, path: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    can_be_followed = method == "get" and "{" not in path
    link = f'<a href="{escape(path)}">{escape(path)}</a>' if can_be_followed else escape(path)
    rows = [(item["name"], item.get("description", "")) for item in operation.get("parameters", ())]
    content = operation["responses"]["200"].get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    fields = list(_fields(schema, document, ""))
    return (
        f"<h2>{method.upper()} {link}</h2><p>{escape(operation['summary'])}.</p>"
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
