"""Incidents: what wants somebody, its figures, and the first thing to do."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from dashboards.components.icons import SEVERITY_ICONS, icon
from dashboards.components.times import age, clock
from service.copy import counted
from service.fleet import Incident

MOST_SHOWN = 4
FIRST_SHOWN = 2
"""Where there are more than ``MOST_SHOWN``, only these: the table must not be pushed off the screen."""


def incidents(found: Sequence[Incident]) -> list[Component]:
    """A card an incident, in the order given."""
    if not found:
        return []
    shown = len(found) if len(found) <= MOST_SHOWN else FIRST_SHOWN
    cards = [_card(incident, number, late=number > shown) for number, incident in enumerate(found, 1)]
    more = html.Button(
        f"{counted(len(found) - shown, 'more incident', 'more incidents')}", className="more", **{"data-act": "more"}
    )
    return [
        html.Div(
            [*cards, *([more] if shown < len(found) else [])],
            className="incidents one" if len(found) == 1 else "incidents",
        )
    ]


def remedy(text: str, flag: str | None) -> Component:
    """The first thing to do, with the part of it that is to be typed ready to copy."""
    if not text:
        return html.Div(html.Span("No known remedy."), className="remedy")
    before, found, after = text.partition(flag) if flag else (text, "", "")
    if not found:
        return html.Div(html.Span(text), className="remedy")
    return html.Div(
        [
            html.Span([before, html.Code(found), after]),
            html.Button(
                [icon("copy"), icon("check")],
                className="plain copy",
                title="Copy",
                **{"data-act": "copy", "data-copy": found, "aria-label": f"Copy {found}"},
            ),
        ],
        className="remedy",
    )


def _card(incident: Incident, number: int, *, late: bool) -> Component:
    opened = {"data-go": urlencode({"open": incident.target})}
    return html.Article(
        [
            html.Div(
                [
                    icon(SEVERITY_ICONS[incident.severity]),
                    html.Strong(incident.severity.capitalize()),
                    html.Span(["firing ", age(incident.since), ", since ", clock(incident.since)], className="since"),
                    html.Span(", ".join(incident.told), className="told"),
                ],
                className="incident-head",
            ),
            html.H2(incident.title),
            html.Dl([_figure(label, value) for label, value in incident.figures]),
            remedy(incident.remedy, incident.flag),
            html.Div(
                [
                    html.Button("Open target", className="link", **opened, **{"data-incident": str(number)}),
                    html.Button("Trends", className="link", **_trends(incident)),
                    *([html.Kbd(str(number), **{"aria-hidden": "true"})] if number <= FIRST_SHOWN else []),
                ],
                className="incident-actions",
            ),
        ],
        className=f"incident incident-{incident.severity}{' late' if late else ''}",
        title=incident.cause,
    )


def _trends(incident: Incident) -> dict[str, str]:
    return {"data-to": "/trends", "data-go": urlencode({"target": incident.target, "open": ""})}


def _figure(label: str, value: str) -> Component:
    return html.Div([html.Dt(label), html.Dd(value)])
