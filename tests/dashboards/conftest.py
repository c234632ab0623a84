from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.fleet import FleetRow, FleetView, Incident

SERVED = Path(__file__).parent / "served.py"


@pytest.fixture(scope="session")
def made() -> dict[str, Any]:
    """What ``served.py`` makes by hand."""
    return runpy.run_path(str(SERVED))


@pytest.fixture
def fleet_view(made: dict[str, Any]) -> Callable[..., FleetView]:
    return made["fleet_view"]


@pytest.fixture
def fleet_row(made: dict[str, Any]) -> Callable[..., FleetRow]:
    return made["row"]


@pytest.fixture
def an_incident(made: dict[str, Any]) -> Callable[..., Incident]:
    return made["incident"]
