"""Address to page and back: the URL holds everything a page shows."""

from __future__ import annotations

from collections.abc import Sequence

from dash import ALL, Dash, Input, Output, State, html
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.pages.page import Page
from dashboards.views import Views


def register(app: Dash, pages: Sequence[Page], views: Views) -> None:
    """Callbacks of the shell."""
    by_path = {page.path: page for page in pages}

    @app.callback(Output("page", "children"), Input("url", "pathname"), State("url", "search"))
    async def show(path: str | None, search: str | None) -> Component:
        page = by_path.get(path or "/")
        return _not_found() if page is None else page.layout(Address.parse(search))

    @app.callback(
        Output({"nav": ALL}, "className"),
        Output({"nav": ALL}, "href"),
        Input("url", "pathname"),
        Input("url", "search"),
        State({"nav": ALL}, "id"),
    )
    async def mark(path: str | None, search: str | None, ids: list[dict[str, str]]) -> tuple[list[str], list[str]]:
        kept = Address.parse(search).search()
        current = path or "/"
        classes = ["nav nav-current" if item["nav"] == current else "nav" for item in ids]
        return classes, [item["nav"] + kept for item in ids]

    del views


def _not_found() -> Component:
    return html.Main([html.H1("No page here."), html.A("Fleet", href="/")], className="empty")
