"""Address to page and back: the URL holds everything a page shows."""

from __future__ import annotations

from collections.abc import Sequence

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.components.empty import empty
from dashboards.pages.page import Page
from dashboards.views import Views


def register(app: Dash, pages: Sequence[Page], views: Views) -> None:
    """Callbacks of the shell; those that need no server are in assets/shell.js and assets/live.js."""
    by_path = {page.path: page for page in pages}

    @app.callback(Output("page", "children"), Input("url", "pathname"), State("url", "search"))
    async def show(path: str | None, search: str | None) -> Component:
        page = by_path.get(path or "/")
        return not_found() if page is None else page.layout(Address.parse(search))

    # The fleet page knows it from its own rows.
    @app.callback(
        Output("firing", "data"), Input("elsewhere", "data"), State("url", "search"), prevent_initial_call=True
    )
    async def count(_: object, search: str | None) -> int:
        view = await views.fleet(Address.parse(search).span_seconds(views.clock()))
        return view.firing

    def in_browser(function: str, *dependencies: Input | Output | State, **options: bool) -> None:
        app.clientside_callback(ClientsideFunction("draftgauge", function), *dependencies, **options)

    in_browser("theme", Output("provider", "forceColorScheme"), Output("scheme", "data"), Input("url", "search"))
    in_browser(
        "navigation",
        Output({"nav": ALL, "in": ALL}, "className"),
        Output({"nav": ALL, "in": ALL}, "href"),
        Input("url", "pathname"),
        Input("url", "search"),
        State({"nav": ALL, "in": ALL}, "id"),
    )
    in_browser("find", Output("find", "value"), Input("url", "search"))
    in_browser("found", Input("find", "value"), prevent_initial_call=True)
    in_browser("elsewhere", Output("elsewhere", "data"), Input("pulse", "data"), Input("url", "pathname"))
    in_browser("firing", Output("announce", "children"), Input("firing", "data"))
    in_browser("heard", Output("pulse", "data"), Input("alive", "data"))
    in_browser("failed", Input("failed", "data"), prevent_initial_call=True)
    in_browser("tried", Input("poll", "n_intervals"))


def not_found() -> Component:
    return html.Div(empty("info", "No page here", actions=[html.A("Fleet", href="/", className="button")]))
