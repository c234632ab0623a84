"""The pulse of the pages."""

from __future__ import annotations

from dash import Dash

from dashboards.views import Views


def register(app: Dash, views: Views) -> None:
    """Nothing yet."""
    del app, views
