"""The pages on the service's FastAPI object, and what only a demo has."""

from __future__ import annotations

import asyncio
from functools import partial

from fastapi import FastAPI

from app.access.roles import requiring
from app.assembly import Assembly
from app.demo import inbox
from app.judging import surroundings
from dashboards import ui
from dashboards.views import Views
from service.fleet import FleetReads
from service.target import TargetReads
from service.trends import TrendsReads


def views_of(parts: Assembly) -> Views:
    """What the pages read, in the threads that read for the API."""
    rulebook = surroundings(parts.config).rulebook
    sources = parts.history, parts.state, parts.catalog, lambda: rulebook
    in_thread = partial(asyncio.get_running_loop().run_in_executor, parts.readers)
    return Views(FleetReads(*sources), TrendsReads(*sources), TargetReads(*sources), in_thread, parts.clock)


def add_pages(app: FastAPI, views: Views, *, demo: inbox.Inbox | None = None) -> None:
    """Add the UI; in a demo also the stand-in for Slack."""
    with requiring(app, "viewer"):
        if demo is not None:
            inbox.install(app, demo)
        ui.install(app, views, demo=demo is not None)
