"""Controls that change the address: what they say is done by assets/shell.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dash import html
from dash.development.base_component import Component

Item = tuple[str, Mapping[str, str]]
"""Words, and the ``data-`` attributes that say what they do."""


def menu(
    shown: Sequence[Component | str],
    items: Sequence[Item | None],
    *,
    label: str,
    look: Literal["drop", "plain", "chip"] = "drop",
) -> Component:
    """A button that opens a list of buttons; None draws a line. ``label`` tells those who do not see it what it is."""
    return html.Details(
        [
            html.Summary([html.Span(f"{label}: ", className="visually-hidden"), *shown], className=look, title=label),
            html.Div([_drawn(item) for item in items], className="menu"),
        ],
        className="menu-box",
    )


def _drawn(item: Item | None) -> Component:
    if item is None:
        return html.Hr()
    words, does = item
    return html.Button(words, **dict(does))
