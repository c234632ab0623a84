"""What a fleet page must be sent so that it shows a newer edition: of what stays, nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dash import html
from dash.development.base_component import Component

from alerts.verdicts import Severity
from dashboards.components.empty import empty
from dashboards.components.filters import choices, filters
from dashboards.components.incidents import incident_texts, incidents
from dashboards.components.kpis import kpi_texts, kpis
from dashboards.components.rows import Row, changed
from dashboards.components.table import columns
from dashboards.components.texts import Texts
from dashboards.components.verdict import status, status_texts, verdict
from dashboards.editions import Edition
from service.fleet import LIVE_SECONDS, FleetView

FleetEdition: TypeAlias = Edition[FleetView, dict[str, Row]]
"""With its rows as they travel, by target."""


@dataclass(slots=True)
class News:
    """Parts of the page that are drawn anew (names of ``PARTS``), and texts that change within the others."""

    parts: dict[str, Any] = field(default_factory=dict[str, Any])
    texts: Texts = field(default_factory=Texts)


def news(edition: FleetEdition, before: FleetEdition | None) -> News:
    """What a page that shows ``before`` is sent; all there is where it shows nothing."""
    new, old = edition.view, None if before is None else before.view
    told = News()
    for part, (draw, texts_of) in _DRAWN.items():
        # Drawing takes more time than everything else: only what has to be.
        texts = None if old is None else texts_of(old, new)
        if texts is None:
            told.parts[part] = draw(new)
        else:
            told.texts |= texts
    # Other columns hold other categories: rows of before say nothing about them.
    told.parts["rows"] = _rows(edition, None if "columns" in told.parts else before)
    return told


def _said(view: FleetView) -> tuple[str, str, Severity | None]:
    return view.verdict, view.alarm, view.alarm_severity


def _is_live(view: FleetView) -> bool:
    return view.told_at is not None and view.at - view.told_at <= LIVE_SECONDS


def _status(view: FleetView) -> list[Component]:
    """The first part says how live the view is; while it is, the browser says it better, every second."""
    if view.told_at is None or not _is_live(view):
        return [html.Span(part) for part in view.status]
    return status(view.told_at, view.status[1:])


def _status_texts(old: FleetView, new: FleetView) -> Texts | None:
    return status_texts(old.status[1:], new.status[1:]) if _is_live(old) and _is_live(new) else None


def _no_targets() -> Component:
    """The verdict says that there are none: this, what would change that."""
    lines = html.Pre('targets:\n  - name: my-server\n    url: "http://HOST:30000"')
    return empty("info", "Three lines of draftgauge.yaml are enough", lines)


def _rows(edition: FleetEdition, before: FleetEdition | None) -> dict[str, Any]:
    """For assets/fleet.js.

    since, edition   what they change (None where they are all there is) into what
    tick             seconds of a tick of the heartbeat
    firing           alerts that fire
    told             when something was told last, unix seconds
    rows, gone       target -> fields; targets that are no more
    """
    known = {} if before is None else before.made
    view = edition.view
    return {
        "since": None if before is None else before.id,
        "edition": edition.id,
        "tick": view.tick_seconds,
        "firing": view.firing,
        "told": None if view.told_at is None else round(view.told_at),
        "rows": changed(known, edition.made),
        "gone": [target for target in known if target not in edition.made],
    }


def _texts_if(same: Callable[[FleetView], object]) -> Callable[[FleetView, FleetView], Texts | None]:
    """None where ``same`` differs: nothing of such a part changes alone."""
    return lambda old, new: {} if same(old) == same(new) else None


_DRAWN: Mapping[str, tuple[Callable[[FleetView], Any], Callable[[FleetView, FleetView], Texts | None]]] = {
    "verdict": (lambda view: verdict(*_said(view)), _texts_if(_said)),
    "status": (_status, _status_texts),
    "incidents": (
        lambda view: incidents(view.incidents),
        lambda old, new: incident_texts(old.incidents, new.incidents),
    ),
    "kpis": (lambda view: kpis(view.kpis), lambda old, new: kpi_texts(old.kpis, new.kpis)),
    "filters": (lambda view: filters(choices(view)), _texts_if(choices)),
    "empty": (lambda view: [] if view.rows else _no_targets(), _texts_if(lambda view: bool(view.rows))),
    "columns": (columns, _texts_if(columns)),
}
"""Part -> how it is drawn, and which texts of it change (None: it has to be drawn anew)."""

PARTS = (*_DRAWN, "rows")
