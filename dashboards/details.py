"""The details of the target that the address names, on whichever page it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, no_update

from dashboards.components.target import SECTIONS, draw, unknown, values
from dashboards.editions import Editions
from dashboards.views import Views
from service.target import TargetPage

FURTHEST_EAST_MINUTES = 24 * 60 - 1


def register(app: Dash, views: Views) -> None:
    """Callbacks of the drawer."""
    editions: Editions[TargetPage, dict[str, Any]] = Editions(values)
    app.clientside_callback(
        ClientsideFunction("draftgauge", "opened"),
        Output("target-asked", "data"),
        Output("target-name", "children"),
        Input("url", "search"),
        Input("pulse", "data"),
    )

    @app.callback(
        *(Output(f"target-{section}", "children") for section in SECTIONS),
        Output("target-edition", "data"),
        Input("target-asked", "data"),
        State("target-edition", "data"),
        prevent_initial_call=True,
    )
    async def details(asked: Mapping[str, Any] | None, shown: str | None) -> list[Any]:
        name = None if asked is None else asked.get("name")
        if not isinstance(name, str):
            return [*([] for _ in SECTIONS), None]
        page = await views.target(name, _zone(asked))
        if page is None:
            return [*unknown(name).values(), None]
        edition, before = editions.of(page), editions.known(shown)
        same = before.made if before is not None and before.view.target == name else {}
        drawn = [
            no_update if section in same and same[section] == value else draw(section, value)
            for section, value in edition.made.items()
        ]
        return [*drawn, edition.id]


def _zone(asked: Mapping[str, Any] | None) -> tzinfo:
    """Of minutes east of UTC, as the reader's clock has it."""
    east = None if asked is None else asked.get("zone")
    if not isinstance(east, int) or abs(east) > FURTHEST_EAST_MINUTES:
        return UTC
    return timezone(timedelta(minutes=east))
