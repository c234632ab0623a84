"""What stands where there is nothing to show: why, and one way on."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from dashboards.components.icons import icon


def empty(
    icon_name: str, title: str, words: str | Component = "", actions: Sequence[Component] = (), *, error: bool = False
) -> Component:
    """A box of an empty page, an empty filter or a failure."""
    return html.Div(
        [
            icon(icon_name),
            html.Div([html.H2(title), html.Div(words), html.Div(list(actions), className="empty-actions")]),
        ],
        className="empty empty-error" if error else "empty",
    )


def skeleton(*lines: str) -> Component:
    """Bars in the final shape; they show after 200 ms (assets/fleet.css), since most answers come earlier.

    ``lines`` are class names, one a bar.
    """
    return html.Div(
        [html.Span(className=f"bar {line}") for line in lines], className="skeleton", **{"aria-hidden": "true"}
    )
