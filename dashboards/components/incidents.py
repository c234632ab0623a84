"""Incidents: what wants somebody, its figures, and the first thing to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

from dash import html
from dash.development.base_component import Component

from dashboards.components.icons import SEVERITY_ICONS, icon
from dashboards.components.remedies import remedy
from dashboards.components.texts import Texts
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


def incident_texts(before: Sequence[Incident], after: Sequence[Incident]) -> Texts | None:
    """What changed, None where cards have to be drawn anew."""
    if [_drawn(incident) for incident in before] != [_drawn(incident) for incident in after]:
        return None
    return {
        name: text
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1)
        for (name, text), (_, was) in zip(_figures(new, number), _figures(old, number), strict=True)
        if text != was
    }


def _drawn(incident: Incident) -> Incident:
    """All but what moves."""
    labels = tuple((label, "") for label, _ in incident.figures)
    return replace(incident, figures=labels, why="", lost_tokens_per_second=None)


def _figures(incident: Incident, number: int) -> list[tuple[str, str]]:
    """Ids and texts: of "96.9 ms ×2.3" and "4.31 normal" what it is, and what that means."""
    texts: list[tuple[str, str]] = []
    for place, (_, value) in enumerate(incident.figures):
        figure, _, meaning = value.rpartition(" ")
        if not (meaning == "normal" or meaning.startswith("×")):
            figure, meaning = value, ""
        texts += [(f"incident-{number}-{place}", figure), (f"incident-{number}-{place}-means", meaning)]
    return texts


def _card(incident: Incident, number: int, *, late: bool) -> Component:
    phase = "recovering, firing" if incident.recovering else "firing"
    opened = {"data-go": urlencode({"open": incident.target})}
    return html.Article(
        [
            html.Div(
                [
                    icon(SEVERITY_ICONS[incident.severity]),
                    html.Strong(incident.severity.capitalize()),
                    html.Span([phase, " ", age(incident.since), ", since ", clock(incident.since)], className="since"),
                    html.Span(", ".join(incident.told), className="told"),
                ],
                className="incident-head",
            ),
            html.H2(incident.title),
            html.Dl(_measured(incident, number)),
            remedy(incident.remedy, incident.flag_verb, incident.flag),
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


def _measured(incident: Incident, number: int) -> list[Component]:
    figures = _figures(incident, number)
    return [
        html.Div([html.Dt(label), html.Dd([html.Span(figure, id=name), " ", html.Small(meaning, id=means)])])
        for (label, _), (name, figure), (means, meaning) in zip(
            incident.figures, figures[::2], figures[1::2], strict=True
        )
    ]
