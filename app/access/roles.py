"""Roles, and the role that each route asks for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

Role = Literal["viewer", "editor", "agent"]

GRANTS: Mapping[Role, frozenset[Role]] = MappingProxyType(
    {
        "viewer": frozenset({"viewer"}),
        "editor": frozenset({"viewer", "editor"}),
        # An agent's token lies on every GPU host: whoever takes it from one must not read or change anything.
        "agent": frozenset({"agent"}),
    }
)
"""Role -> the roles it may act in: viewers read, editors change as well, agents post records and nothing else."""

ANYBODY = None
"""What a route asks for that is answered to everybody: probes, and the way in."""


@dataclass(frozen=True, slots=True)
class Undeclared:
    """The route asks for nothing that anybody could have: whoever added it forgot ``require``."""

    path: str


Need = Role | None | Undeclared


def require(app: FastAPI, role: Role | None, routes: Iterable[BaseRoute]) -> None:
    """Answer ``routes`` of ``app`` to callers with ``role`` only; ``ANYBODY`` to everybody."""
    needs: dict[Any, Role | None] = _needs(app)
    needs.update((_key(route), role) for route in routes)


@contextmanager
def requiring(app: FastAPI, role: Role | None) -> Generator[None]:
    """Every route that is added to ``app`` in the block asks for ``role``."""
    before = {id(route) for route in app.routes}
    yield
    require(app, role, [route for route in app.routes if id(route) not in before])


def declared(app: FastAPI, route: BaseRoute) -> Need:
    """What a route asks for."""
    return _needs(app).get(_key(route), Undeclared(str(getattr(route, "path", route))))


def need(app: FastAPI, scope: Scope) -> Need:
    """What the route asks for that answers ``scope``. A path that is not there asks for what most paths do."""
    partial: BaseRoute | None = None
    for route in app.routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return declared(app, route)
        if match is Match.PARTIAL and partial is None:
            partial = route
    return "viewer" if partial is None else declared(app, partial)


def _needs(app: FastAPI) -> dict[Any, Role | None]:
    needs: dict[Any, Role | None] | None = getattr(app.state, "needs", None)
    if needs is None:
        needs = app.state.needs = {}
    return needs


def _key(route: BaseRoute) -> tuple[type, str, frozenset[str]]:
    return type(route), str(getattr(route, "path", "")), frozenset(getattr(route, "methods", None) or ())
