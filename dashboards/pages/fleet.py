"""The fleet page: who needs somebody, why, and what it costs; every target below, worst first."""

from __future__ import annotations

import json
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update, set_props
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.components.empty import empty, skeleton
from dashboards.components.filters import toolbar
from dashboards.components.rows import STATES, rows
from dashboards.components.table import table
from dashboards.editions import Editions
from dashboards.news import PARTS, news
from dashboards.pages.page import Page
from dashboards.views import Views
from service.about import ENGINES


def layout(_: Address) -> Component:
    return html.Div(
        [
            # What the browser has learned (not merely been sent): the next tick is told against it.
            dcc.Store(id="fleet-edition"),
            dcc.Store(id="fleet-news"),
            dcc.Store(id="fleet-span"),
            html.H1(skeleton("title"), id="fleet-verdict", className="verdict"),
            html.Div(skeleton("line"), id="fleet-status", className="status"),
            html.Div(id="fleet-incidents"),
            html.Section(
                [skeleton("label", "figure", "note")] * 5,
                id="fleet-kpis",
                className="kpis",
                **{"aria-label": "Figures"},
            ),
            html.Section(
                [
                    toolbar(),
                    table(),
                    html.Div(skeleton(*["row"] * 8), id="fleet-loading"),
                    html.Div(_nothing_matches(), id="fleet-unmatched", hidden=True),
                ],
                id="fleet-targets",
                **{"aria-label": "Targets"},
            ),
            html.Div(id="fleet-empty"),
            html.Div(
                hidden=True, id="fleet-names", **{"data-icons": json.dumps(_ICONS), "data-names": json.dumps(_NAMES)}
            ),
        ],
        id="fleet",
    )


_ICONS = {name: state.icon for name, state in STATES.items()}
_NAMES = {"state": {name: state.words for name, state in STATES.items()}, "engine": dict(ENGINES)}
"""Filter -> value -> what people call it."""


def _nothing_matches() -> Component:
    return empty(
        "list-filter",
        "No target matches",
        html.Span(id="fleet-hidden"),
        [html.Button("Clear filters", className="button", **{"data-act": "clear"})],
    )


def register(app: Dash, views: Views) -> None:
    editions = Editions(rows)
    in_browser = app.clientside_callback
    in_browser(ClientsideFunction("draftgauge", "span"), Output("fleet-span", "data"), Input("url", "search"))
    in_browser(
        ClientsideFunction("draftgauge", "fleet"),
        Output("fleet-unmatched", "hidden"),
        Output("fleet-hidden", "children"),
        Output("fleet-loading", "hidden"),
        Output("fleet-edition", "data"),
        Input("fleet-news", "data"),
        Input("url", "search"),
    )

    @app.callback(
        *(OUTPUTS.get(part, Output(f"fleet-{part}", "children")) for part in PARTS),
        Input("pulse", "data"),
        Input("fleet-span", "data"),
        State("fleet-edition", "data"),
    )
    async def tick(_: object, search: str | None, learned: str | None) -> list[Any]:
        view = await views.fleet(Address.parse(search).span_seconds(views.clock()))
        told = news(editions.of(view), editions.known(learned))
        for name, text in told.texts.items():
            set_props(name, {"children": text})
        return [told.parts.get(part, no_update) for part in PARTS]


OUTPUTS = {"columns": Output("fleet-table", "columnDefs"), "rows": Output("fleet-news", "data")}

PAGE = Page("/", "Fleet", layout, register)
