"""The pages on the service's FastAPI object, and what only a demo has."""

from __future__ import annotations

from fastapi import FastAPI

from app.access.roles import requiring
from app.demo import inbox
from dashboards import ui
from dashboards.views import Views


def add_pages(app: FastAPI, views: Views, *, demo: inbox.Inbox | None = None) -> None:
    """Add the UI; in a demo also the stand-in for Slack."""
    with requiring(app, "viewer"):
        if demo is not None:
            inbox.install(app, demo)
        ui.install(app, views, demo=demo is not None)
