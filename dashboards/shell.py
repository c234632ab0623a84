"""What stands around every page: header, address, theme and the pulse that keeps it live."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from dashboards.address import DEFAULT_REFRESH, REFRESH_SECONDS
from dashboards.components.icons import icon
from dashboards.pages.page import Page

RANGES: tuple[tuple[str, str], ...] = (
    ("now-5m", "Last 5 minutes"),
    ("now-15m", "Last 15 minutes"),
    ("now-30m", "Last 30 minutes"),
    ("now-1h", "Last hour"),
    ("now-3h", "Last 3 hours"),
    ("now-4h", "Last 4 hours"),
    ("now-6h", "Last 6 hours"),
    ("now-12h", "Last 12 hours"),
    ("now-1d", "Last 24 hours"),
    ("now-2d", "Last 2 days"),
    ("now-7d", "Last 7 days"),
    ("now-30d", "Last 30 days"),
)
_DARKS = (
    "#ECEEF2", "#AFB7C3", "#8A93A1", "#5A6473", "#3A424E", "#232831", "#191D24", "#12151A", "#0C0E12", "#08090C",
)  # fmt: skip
THEME = {
    "fontFamily": "var(--font)",
    "fontFamilyMonospace": "var(--mono)",
    "primaryColor": "dark",
    "colors": {"dark": list(_DARKS)},
    "defaultRadius": 6,
}


def shell(pages: Sequence[Page], *, demo: bool) -> Component:
    """The frame; ``routing`` puts the page of the address into it."""
    return dmc.MantineProvider(
        id="provider",
        theme=THEME,
        defaultColorScheme="auto",
        children=[
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="scheme", data="light"),
            dcc.Store(id="pulse", data=0),
            dcc.Store(id="alive", data=None),
            dcc.Interval(id="poll", interval=DEFAULT_REFRESH * 1000, disabled=False),
            html.A("Skip to content", href="#page", className="skip"),
            html.Header(_header(pages, demo), className="header"),
            html.Div(id="lost", className="lost", role="status", hidden=True),
            html.Div(id="page", className="page"),
            html.Div(id="announce", className="visually-hidden", **{"aria-live": "polite"}),
        ],
    )


def _header(pages: Sequence[Page], demo: bool) -> list[Component]:
    return [
        dcc.Link([html.Span(className="mark", **{"aria-hidden": "true"}), "Draftgauge"], href="/", className="brand"),
        html.Span("Demo", className="demo-badge", title="Emulated engines, not real servers") if demo else html.Span(),
        html.Nav(
            [dcc.Link(page.name, href=page.path, id={"nav": page.path}, className="nav") for page in pages],
            **{"aria-label": "Pages"},
        ),
        html.Div(className="spring"),
        html.Label(
            [
                icon("clock"),
                html.Span("Time range", className="visually-hidden"),
                dcc.Dropdown(
                    id="range",
                    options=[{"label": label, "value": value} for value, label in RANGES],
                    clearable=False,
                    searchable=False,
                    className="range",
                ),
            ],
            className="control",
        ),
        html.Label(
            [
                icon("refresh-cw"),
                html.Span("Refresh", className="visually-hidden"),
                dcc.Dropdown(
                    id="refresh",
                    options=[
                        {"label": f"{seconds} s" if seconds else "Paused", "value": seconds}
                        for seconds in REFRESH_SECONDS
                    ],
                    clearable=False,
                    searchable=False,
                    className="refresh",
                ),
            ],
            className="control",
        ),
        html.Button(icon("sun-moon"), id="theme", className="control", title="Theme", **{"aria-label": "Theme"}),
    ]
