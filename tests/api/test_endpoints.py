from __future__ import annotations

from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from acceptance.health import Health
from app.api import schemas
from app.api.readiness import Readiness
from collectors.reading import Reading
from collectors.sink import Read
from service.catalog import Catalog


async def document(client: httpx.AsyncClient, path: str, model: type[BaseModel]) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    model.model_validate_json(answer.content)
    return answer.json()


async def test_targets_tell_their_state_facts_and_what_cannot_be_seen(client: httpx.AsyncClient) -> None:
    a, b, c = (await document(client, "/api/targets", schemas.TargetsAnswer))["targets"]
    assert [target["name"] for target in (a, b, c)] == ["a", "b", "c"]
    assert a["state"] == {"name": "ok", "why": "200 verify steps in 15 min", "since": None}
    assert (a["recent"]["acc_len"], a["recent"]["steps"], a["alerts"]) == (3.0, 200, [])
    assert b["state"] == {"name": "alerting", "why": "dead-drafter", "since": "2026-12-01T02:58:40Z"}
    assert (b["engine"], b["group"], b["url"]) == ("sglang", "g2", "http://10.0.0.2:30000")
    assert b["facts"]["k"] == {"value": 3, "source": "server_info", "at": "2026-12-01T02:59:00Z"}
    assert (b["alerts"], b["rejected"]) == (["dead-drafter"], 2)
    assert {"what": "draft backend unknown", "needs": "the start-up log"} in b["unseen"]
    # its counters tell categories
    assert not any(gap["what"] == "categories unknown" for gap in b["unseen"])
    assert b["looks"]["metrics"] == {
        "at": "2026-12-01T02:59:55Z",
        "up": True,
        "error": None,
        "running": 4.0,
        "queued": 0.0,
        "speculating": None,
        "seconds": 0.012,
    }
    assert c["state"]["name"] == "target-down"
    assert c["state"]["why"] == "ConnectError: connection refused"
    assert (c["recent"]["acc_len"], c["recent"]["steps"]) == (None, None)
    assert {"what": "engine unknown", "needs": "a metrics page with sglang: or vllm: families"} in c["unseen"]


async def test_one_target_with_what_its_log_showed(client: httpx.AsyncClient) -> None:
    b = await document(client, "/api/targets/b", schemas.TargetDetail)
    assert b["state"]["name"] == "alerting"
    (hit,) = b["hits"]
    assert (hit["signature"], hit["rank"], hit["count"]) == ("SG-DRAFT-ATTN-FALLBACK", "0", 1)
    assert hit["captures"] == {"to": "fa3"}
    a = await document(client, "/api/targets/a", schemas.TargetDetail)
    assert (a["logs"], a["hits"]) == (["/logs/a.log"], [])


async def test_a_target_that_is_not_there(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/targets/x/y")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "there is no target 'x/y'"


async def test_a_look_is_told_at_once(client: httpx.AsyncClient, catalog: Catalog) -> None:
    look = Health("c", "metrics", 1_796_094_000, True, running=0.0)
    catalog.observe(Read("c", "metrics", look.at, {}, Reading(health=(look,))))
    assert (await client.get("/api/targets/c")).json()["state"]["name"] == "idle"


@pytest.mark.parametrize("path", ["/api/targets", "/api/targets/a", "/api/deliveries", "/metrics", "/docs"])
async def test_a_token_is_never_told(client: httpx.AsyncClient, path: str) -> None:
    assert "sk-never-shown" not in (await client.get(path)).text


async def test_alerts_worst_first(client: httpx.AsyncClient) -> None:
    firing, pending = (await document(client, "/api/alerts", schemas.AlertsAnswer))["alerts"]
    assert (firing["finding"], firing["severity"], firing["phase"]) == ("dead-drafter", "critical", "firing")
    assert (firing["fired_at"], firing["resolved_at"]) == ("2026-12-01T02:58:40Z", None)
    assert firing["detail"] == {"value": 1.0, "why": "acc_len 1.00"}
    assert (pending["finding"], pending["phase"], pending["fired_at"]) == ("low-acceptance", "pending", None)


@pytest.mark.parametrize(("resolved", "seen"), [("3h", True), ("7200", True), ("1h", False), ("", False)])
async def test_alerts_resolved_lately(client: httpx.AsyncClient, resolved: str, seen: bool) -> None:
    found = (await document(client, f"/api/alerts?resolved={resolved}", schemas.AlertsAnswer))["alerts"]
    assert ("target-down/c" in [alert["key"] for alert in found]) is seen


async def test_deliveries_show_every_try(client: httpx.AsyncClient) -> None:
    (delivery,) = (await document(client, "/api/deliveries", schemas.DeliveriesAnswer))["deliveries"]
    assert (delivery["id"], delivery["channel"], delivery["alert"]) == ("m1", "pager", "dead-drafter/b")
    assert (delivery["status"], delivery["next_at"]) == ("delivered", None)
    assert [(each["outcome"], each["detail"]) for each in delivery["attempts"]] == [
        ("retry", "answered 503"),
        ("delivered", ""),
    ]
    assert delivery["body"] == {"title": "Drafter is dead", "target": "b"}


@pytest.mark.parametrize(("query", "number"), [("alert=dead-drafter/b", 1), ("alert=other", 0), ("limit=1", 1)])
async def test_deliveries_are_filtered(client: httpx.AsyncClient, query: str, number: int) -> None:
    answer = await document(client, f"/api/deliveries?{query}", schemas.DeliveriesAnswer)
    assert len(answer["deliveries"]) == number


@pytest.mark.parametrize(
    ("path", "parameter", "reason"),
    [
        ("/api/alerts?resolved=soon", "resolved", "not a duration"),
        ("/api/alerts?finding=x", "finding", "unknown parameter; known here: resolved"),
        ("/api/deliveries?limit=0", "limit", "from 1 to 1000"),
        ("/api/deliveries?limit=1001", "limit", "from 1 to 1000"),
        ("/api/deliveries?limit=ten", "limit", "from 1 to 1000"),
        ("/api/deliveries?limit=1&limit=2", "limit", "more than once"),
        ("/api/targets?group=g1", "group", "there are none here"),
        ("/api/targets/a?x=1", "x", "there are none here"),
    ],
)
async def test_bad_parameters(client: httpx.AsyncClient, path: str, parameter: str, reason: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["parameter"]) == (400, parameter)
    assert reason in answer.json()["detail"]


async def test_health_is_that_the_loop_answers(client: httpx.AsyncClient, readiness: Readiness) -> None:
    readiness.stores_open = False
    assert await document(client, "/healthz?probe=1", schemas.Health) == {"status": "ok"}


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({}, None),
        ({"stores_open": False}, ["the stores are not open yet"]),
        ({"evaluated": False}, ["alerts were not evaluated yet"]),
        ({"stopping": True}, ["it is shutting down"]),
    ],
)
async def test_readiness(
    client: httpx.AsyncClient, readiness: Readiness, change: dict[str, bool], missing: list[str] | None
) -> None:
    for name, value in change.items():
        setattr(readiness, name, value)
    answer = await client.get("/readyz")
    assert answer.status_code == (200 if missing is None else 503)
    assert answer.json().get("missing") == missing
