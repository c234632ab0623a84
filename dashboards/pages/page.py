"""What a page is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dash import Dash
from dash.development.base_component import Component

from dashboards.address import Address
from dashboards.views import Views


@dataclass(frozen=True, slots=True)
class Page:
    """A page at ``path``.

    layout     what is there at once, before anything was read: the final shape, with skeletons
    register   adds its callbacks; they are async, and read through ``Views`` only
    """

    path: str
    name: str
    layout: Callable[[Address], Component]
    register: Callable[[Dash, Views], None]
