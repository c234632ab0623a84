"""What to do: lines of the runbook, the flag in the first of them ready to copy."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from dashboards.components.icons import icon


def remedy(text: str, verb: str, flag: str | None) -> Component:
    """The first thing to do: the flag with what to do about it, or the whole line where there is none."""
    if not text:
        return html.Div(html.Span("No known remedy."), className="remedy")
    if flag is None:
        return html.Div(html.Span(text), className="remedy")
    return html.Div(
        [
            html.Span([verb, " ", html.Code(flag)], title=text),
            html.Button(
                [icon("copy"), icon("check")],
                className="plain copy",
                title="Copy",
                **{"data-act": "copy", "data-copy": flag, "aria-label": f"Copy {flag}"},
            ),
        ],
        className="remedy",
    )


def remedies(lines: Sequence[str], verb: str, flag: str | None) -> Component:
    """Everything there is to do, first things first."""
    first = [remedy(lines[0], verb, flag)] if lines and flag else []
    return html.Div([*first, html.Ol([html.Li(line) for line in lines])] if lines else [remedy("", "", None)])
