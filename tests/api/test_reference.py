from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.api.parameters import PARAMETERS
from service.states import StateName

DOCS = Path(__file__).parents[2] / "docs" / "api.md"


def paths(app: FastAPI) -> list[str]:
    return list(app.openapi()["paths"])


def operations(app: FastAPI) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and operation."""
    return [
        (method.upper(), path, operation)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]


def test_openapi_describes_every_route(app: FastAPI) -> None:
    assert paths(app) == [
        "/api/acceptance",
        "/api/acceptance/latest",
        "/api/targets",
        "/api/targets/{name}",
        "/api/alerts",
        "/api/deliveries",
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/acceptance/requests",
    ]
    operation = app.openapi()["paths"]["/api/acceptance"]["get"]
    assert {parameter["name"] for parameter in operation["parameters"]} == {
        *("from", "to", "step", "by", "source", "offset", "format"),
        *("target", "group", "revision", "role", "engine", "model", "drafter", "rank", "category", "context"),
    }
    row = app.openapi()["components"]["schemas"]["AcceptanceRow"]["properties"]
    assert {"acc_len", "lower", "upper", "bias_bound", "accept_rate", "steps", "emitted", "source"} <= set(row)
    named = app.openapi()["paths"]["/api/targets/{name}"]["get"]["parameters"]
    assert [(each["name"], each["in"]) for each in named] == [("name", "path")]


def test_openapi_tells_of_problems(app: FastAPI) -> None:
    for method, _, operation in operations(app):
        assert set(operation["responses"]) - {"207"} == {"200", "4XX", "5XX"}
        assert ("207" in operation["responses"]) == (method == "POST")


async def test_the_reference_shows_every_path_parameter_and_field(app: FastAPI, client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    for method, path, _ in operations(app):
        assert path in page
        assert f"<h2>{method} " in page
    for text in (
        "step",
        "rows[].acc_len",
        "targets[].state.why",
        "deliveries[].attempts[].outcome",
        "query.step_seconds",
    ):
        assert f"<code>{text}</code>" in page


async def test_the_reference_asks_nobody_else(client: httpx.AsyncClient) -> None:
    answer = await client.get("/docs")
    assert not re.search(r"<script|<link|<img|@import|url\(", answer.text)
    assert not re.search(r"https?://(?!127\.0\.0\.1)", answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "style-src 'sha256-" in answer.headers["content-security-policy"]


async def test_openapi_is_served(client: httpx.AsyncClient) -> None:
    assert (await client.get("/openapi.json")).json()["info"]["title"] == "Draftgauge"


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", DOCS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_endpoint_has_its_section(app: FastAPI) -> None:
    endpoints = {
        f"{method} {route.path.replace(':path', '')}"
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert {name for name in sections() if name.startswith(("GET ", "POST "))} == endpoints


def test_every_parameter_is_documented_where_it_is_allowed(app: FastAPI) -> None:
    for method, path, operation in operations(app):
        section = sections()[f"{method} {path}"]
        for parameter in operation.get("parameters", []):
            assert f"`{parameter['name']}`" in section, (path, parameter["name"])


@pytest.mark.parametrize(
    "name",
    ["AcceptanceRow", "TargetSummary", "TargetDetail", "Alert", "Delivery", "Look", "RecordsAnswer", "RejectedRecord"],
)
def test_every_field_is_documented(app: FastAPI, name: str) -> None:
    text = DOCS.read_text()
    for field in app.openapi()["components"]["schemas"][name]["properties"]:
        assert f"`{field}`" in text, (name, field)


def test_every_state_is_documented() -> None:
    text = DOCS.read_text()
    for name in get_args(StateName):
        assert f"`{name}`" in text, name


def test_every_parameter_has_a_meaning(app: FastAPI) -> None:
    used = {
        parameter["name"]
        for _, _, operation in operations(app)
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query"
    }
    assert used == set(PARAMETERS)
