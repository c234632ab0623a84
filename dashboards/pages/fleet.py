"""The fleet page: who needs somebody, why, and what it costs; every target below, worst first."""

from __future__ import annotations

import json
from typing import Any, cast

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.components.empty import empty, skeleton
from dashboards.components.filters import choices, filters, toolbar
from dashboards.components.incidents import incidents
from dashboards.components.kpis import kpis
from dashboards.components.rows import STATES, changed
from dashboards.components.table import columns, table
from dashboards.components.verdict import status, verdict
from dashboards.editions import Edition, Editions
from dashboards.pages.page import Page
from dashboards.views import Views


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
            html.Div(hidden=True, id="fleet-states", **{"data-states": _STATES}),
        ],
        id="fleet",
    )


_STATES = json.dumps([[name, state.icon, state.words] for name, state in STATES.items()])
"""For assets/fleet.js, worst first."""


def _nothing_matches() -> Component:
    return empty(
        "list-filter",
        "No target matches",
        html.Span(id="fleet-hidden"),
        [html.Button("Clear filters", className="button", **{"data-act": "clear"})],
    )


def _no_targets() -> Component:
    return empty("info", "No targets yet", "Add one to draftgauge.yaml, or let discovery find them.")


def register(app: Dash, views: Views) -> None:
    editions = Editions()
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
        [Output(f"fleet-{name}", "children") for name in PARTS],
        Output("fleet-table", "columnDefs"),
        Output("fleet-news", "data"),
        Input("pulse", "data"),
        Input("fleet-span", "data"),
        State("fleet-edition", "data"),
    )
    async def tick(_: object, search: str | None, learned: str | None) -> list[Any]:
        view = await views.fleet(Address.parse(search).span_seconds(views.clock()))
        return news(editions.of(view), editions.known(learned))


PARTS = ("verdict", "status", "incidents", "kpis", "filters", "empty")


def news(edition: Edition, before: Edition | None) -> list[Any]:
    """What a page that shows ``before`` must be sent: children of ``PARTS``, columns, rows; ``no_update`` for the same.

    Rows are {"since": the edition they change, None where they are all there is, "rows": target -> fields, "gone":
    targets, "edition", "tick": seconds of a tick}.
    """
    view, old = edition.view, None if before is None else before.view

    def unless_same(new: object, known: object, drawn: Any) -> Any:
        return no_update if old is not None and new == known else drawn

    found, found_before = choices(view), old and choices(old)
    shown, shown_before = columns(view), old and columns(old)
    return [
        unless_same((view.verdict, view.alarm), old and (old.verdict, old.alarm), verdict(view.verdict, view.alarm)),
        status(view.at, view.status),
        unless_same(view.incidents, old and old.incidents, incidents(view.incidents)),
        unless_same(view.kpis, old and old.kpis, kpis(view.kpis)),
        unless_same(found, found_before, filters(found)),
        unless_same(bool(view.rows), old and bool(old.rows), [] if view.rows else _no_targets()),
        unless_same(shown, shown_before, shown),
        _rows(edition, before if shown == shown_before else None),
    ]


def _rows(edition: Edition, before: Edition | None) -> dict[str, Any]:
    known = {} if before is None else before.rows
    return {
        "since": None if before is None else before.id,
        "edition": edition.id,
        "tick": edition.view.tick_seconds,
        "rows": changed(known, edition.rows),
        "gone": [target for target in known if target not in edition.rows],
    }


PAGE = Page("/", "Fleet", cast("Any", layout), register)
