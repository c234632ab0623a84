"""What stands around every page: header, address, theme and the pulse that keeps it live."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from dashboards.address import DEFAULTS, REFRESH_SECONDS, THEMES
from dashboards.components.controls import menu
from dashboards.components.icons import icon
from dashboards.components.target import drawer
from dashboards.live import ALIVE_SECONDS, VERSION
from dashboards.pages.page import Page

RANGES: tuple[tuple[str, str], ...] = (
    ("now-5m", "Last 5 minutes"),
    ("now-15m", "Last 15 minutes"),
    ("now-30m", "Last 30 minutes"),
    ("now-1h", "Last 1 hour"),
    ("now-3h", "Last 3 hours"),
    ("now-4h", "Last 4 hours"),
    ("now-6h", "Last 6 hours"),
    ("now-12h", "Last 12 hours"),
    ("now-1d", "Last 24 hours"),
    ("now-2d", "Last 2 days"),
    ("now-7d", "Last 7 days"),
    ("now-30d", "Last 30 days"),
)
KEYS: tuple[tuple[str, str], ...] = (
    ("/", "search targets"),
    ("j k", "next and previous target"),
    ("Enter", "open the target, on a category its trends"),
    ("1 2", "open the target of an incident"),
    ("g f, g t", "go to Fleet, Trends"),
    ("t ← t →", "shift the time range"),
    ("t z", "zoom out"),
    ("p", "pause, go on"),
    ("d r", "refresh now"),
    ("Esc", "close"),
    ("?", "this list"),
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


def shell(pages: Sequence[Page], *, mark: str, demo: bool) -> Component:
    """The frame; ``routing`` puts the page of the address into it, which reads what is newest at ``mark`` or later.

    What assets/shell.js and assets/live.js fill in has no children here: ``data-go`` changes the address by a query
    string, ``data-toggle`` adds or takes a filter, ``data-act`` does something else.
    """
    return dmc.MantineProvider(
        id="provider",
        theme=THEME,
        defaultColorScheme="auto",
        children=[
            dcc.Location(id="url", refresh=False),
            dcc.Store(id="scheme", data="light"),
            dcc.Store(id="pulse", data=mark),
            dcc.Store(id="alive"),
            dcc.Store(id="lease"),
            dcc.Store(id="elsewhere"),
            dcc.Store(id="firing"),
            dcc.Store(id="failed"),
            dcc.Store(id="target-asked"),
            dcc.Store(id="target-edition"),
            dcc.Interval(id="poll", interval=ALIVE_SECONDS * 1000, disabled=True),
            html.Div(
                id="defaults",
                hidden=True,
                **{f"data-{name}": value for name, value in {**DEFAULTS, "mark": mark, "version": VERSION}.items()},
            ),
            html.A("Skip to content", href="#page", className="skip"),
            html.Header(_header(pages, demo=demo), className="header"),
            _lost(),
            _failed(),
            html.Main(id="page", className="page", tabIndex=-1),
            html.Div(id="announce", className="visually-hidden", **{"aria-live": "polite"}),
            drawer(),
            _keys(),
        ],
    )


def _header(pages: Sequence[Page], *, demo: bool) -> list[Component]:
    return [
        dcc.Link(
            [html.Span(className="mark", **{"aria-hidden": "true"}), html.Span("Draftgauge", className="brand-name")],
            href="/",
            id={"nav": "/", "in": "brand"},
            className="brand",
            title="Draftgauge",
        ),
        *([_demo()] if demo else []),
        html.Nav(_links(pages, "header"), className="wide-only", **{"aria-label": "Pages"}),
        html.Div(className="spring"),
        _search(),
        html.Div([_range(), _zoom_out()], className="control-group"),
        html.Div([_refresh(), _pause()], className="control-group wide-only"),
        _theme(),
        html.Button("?", className="plain wide-only", title="Keys", **{"data-act": "keys", "aria-label": "Keys"}),
        _collapsed(pages),
    ]


def _demo() -> Component:
    title = "Emulated engines, no real servers. Their messages are in the inbox."
    return html.A("Demo", href="/demo/inbox", className="demo-badge", title=title)


def _links(pages: Sequence[Page], place: str) -> list[Component]:
    return [
        dcc.Link(
            [page.name, *([_badge()] if page.path == "/" else [])],
            href=page.path,
            id={"nav": page.path, "in": place},
            className="nav",
        )
        for page in pages
    ]


def _badge() -> Component:
    return html.Span(className="firing-count", title="Alerts that fire")


def _search() -> Component:
    return html.Label(
        [
            icon("search"),
            html.Span("Search targets", className="visually-hidden"),
            dcc.Input(id="find", type="text", placeholder="Search targets", autoComplete="off", maxLength=200),
            html.Kbd("/", **{"aria-hidden": "true"}),
        ],
        className="control search wide-only",
    )


def _range() -> Component:
    return menu(
        [icon("clock"), html.Span(className="range-words"), icon("chevron-down")],
        [(label, {"data-go": f"from={start}&to="}) for start, label in RANGES],
        label="Time range",
    )


def _zoom_out() -> Component:
    return html.Button(
        icon("zoom-out"),
        className="plain wide-only",
        title="Zoom out",
        **{"data-act": "zoom-out", "aria-label": "Zoom out"},
    )


def _refresh() -> Component:
    return menu(
        [icon("refresh-cw"), html.Span(className="refresh-words"), icon("chevron-down")],
        [(f"{seconds} s" if seconds else "Paused", {"data-go": f"refresh={seconds}s"}) for seconds in REFRESH_SECONDS],
        label="Refresh",
    )


def _pause() -> Component:
    return html.Button(
        [icon("pause"), icon("play")],
        className="plain pause",
        title="Pause, go on",
        **{"data-act": "pause", "aria-label": "Pause", "aria-pressed": "false"},
    )


def _theme() -> Component:
    names = {"system": "As the system has it", "light": "Light", "dark": "Dark"}
    return html.Div(
        menu(
            [icon("sun-moon"), icon("sun"), icon("moon")],
            [(names[theme], {"data-go": f"theme={theme}"}) for theme in THEMES],
            label="Theme",
            look="plain",
        ),
        className="theme wide-only",
    )


def _collapsed(pages: Sequence[Page]) -> Component:
    """All that has no room in a narrow header."""
    return html.Div(
        [
            menu(
                [icon("menu")],
                [
                    *((page.name, {"data-to": page.path}) for page in pages),
                    None,
                    *(
                        (f"Refresh every {s} s" if s else "Pause", {"data-go": f"refresh={s}s"})
                        for s in REFRESH_SECONDS
                    ),
                    None,
                    *((f"Theme: {theme}", {"data-go": f"theme={theme}"}) for theme in THEMES),
                ],
                label="Menu",
                look="plain",
            ),
            _badge(),
        ],
        className="narrow-only collapsed",
    )


def _lost() -> Component:
    return html.Section(
        [
            icon("unplug"),
            html.Strong(["Connection lost ", html.Span(id="lost-ago"), " ago."]),
            html.Span(["Showing what was known at ", html.Span(id="lost-known"), html.Span(id="lost-next")]),
            html.Button("Try now", className="plain", **{"data-act": "try"}),
        ],
        id="lost",
        className="notice-bar lost",
        **{"aria-label": "Connection"},
    )


def _failed() -> Component:
    return html.Section(
        [
            icon("octagon-alert"),
            html.Strong("The service could not answer."),
            html.Span(["Its log says why: incident ", html.Span(id="failed-incident"), "."]),
            html.Button("Try again", className="plain", **{"data-act": "refresh"}),
        ],
        className="notice-bar failed",
        **{"aria-label": "Failure"},
    )


def _keys() -> Component:
    return dmc.Modal(
        id="keys",
        title="Keys",
        size=420,
        closeButtonProps={"aria-label": "Close"},
        children=html.Table(
            html.Tbody([html.Tr([html.Th(html.Kbd(key), scope="row"), html.Td(what)]) for key, what in KEYS]),
            className="keys",
        ),
    )
