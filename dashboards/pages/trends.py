"""The trends page."""

from __future__ import annotations

from dash import Dash, html
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.pages.page import Page
from dashboards.views import Views


def layout(_: Address) -> Component:
    return html.Main(id="trends")


def register(app: Dash, views: Views) -> None:
    pass


PAGE = Page("/trends", "Trends", layout, register)
