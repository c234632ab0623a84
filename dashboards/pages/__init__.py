"""The pages there are. A page is a module with a ``PAGE``; navigation and routes are made from this list."""

from __future__ import annotations

from dashboards.pages.fleet import PAGE as FLEET
from dashboards.pages.page import Page
from dashboards.pages.trends import PAGE as TRENDS

PAGES: tuple[Page, ...] = (FLEET, TRENDS)
