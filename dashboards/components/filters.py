"""The toolbar of the fleet table: how it is sorted, what of it is shown, and what its colours say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from dashboards.components.controls import menu
from dashboards.components.icons import icon
from dashboards.components.rows import STATES
from service.about import ENGINES
from service.fleet import FleetView

SORTS: tuple[tuple[str, str], ...] = (("", "Worst first"), ("model", "By model"), ("engine", "By engine"))
_HEATS = ("below 12 %", "12–25 %", "25–40 %", "40–60 %", "over 60 %, or dead")

Choices = Mapping[str, tuple[str, ...]]
"""Filter of the address -> the values there are."""


def choices(view: FleetView) -> Choices:
    """What the rows can be filtered by, beside their state: where there is one value only, there is no choice."""
    values = {
        "engine": {row.engine for row in view.rows},
        "group": {row.group for row in view.rows},
        "model": {row.model for row in view.rows},
    }
    known = {name: tuple(sorted(value for value in found if value)) for name, found in values.items()}
    return {name: found for name, found in known.items() if len(found) > 1}


def toolbar() -> Component:
    """The toolbar, before anything is known of the fleet."""
    return html.Div(
        [
            html.H2(["Targets ", html.Small("worst first")], className="list-title"),
            html.Div(
                [html.Button(words, **{"data-go": f"sort={sort}", "aria-pressed": "false"}) for sort, words in SORTS],
                className="segments",
                role="group",
                **{"aria-label": "Sort"},
            ),
            html.Div(id="fleet-filters", className="filters", children=filters({})),
            html.Div(className="spring"),
            _legend(),
        ],
        className="toolbar",
    )


def filters(found: Choices) -> list[Component]:
    """A chip a filter, with a menu of its values: each can be added and taken away."""
    states = [(state.words, _toggle("state", name)) for name, state in STATES.items()]
    return [
        html.Span([icon("list-filter"), "Filter"], className="filter-word"),
        _chip("state", states),
        *(
            _chip(name, [(ENGINES.get(value, value), _toggle(name, value)) for value in values])
            for name, values in found.items()
        ),
    ]


def _chip(name: str, items: Sequence[tuple[str, Mapping[str, str]]]) -> Component:
    anything = ("any", {"data-go": f"{name}="})
    return menu(
        [f"{name}: ", html.B(**{"data-filter": name})], [anything, None, *items], label="Filter by", look="chip"
    )


def _toggle(name: str, value: str) -> dict[str, str]:
    return {"data-toggle": urlencode({name: value})}


def _legend() -> Component:
    return html.Div(
        [
            html.Span("Below its expected value"),
            *(html.I(className=f"swatch heat{level}", title=words) for level, words in enumerate(_HEATS)),
            html.Span("0 · 12 · 25 · 40 · 60 %"),
            html.Span([html.I(className="swatch-none"), "no data"]),
            html.Span([html.I(className="swatch-evidence"), "evidence (log steps)"]),
        ],
        className="legend",
    )
