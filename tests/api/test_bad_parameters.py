from __future__ import annotations

import httpx
import pytest

from acceptance.query import MAX_BUCKETS


@pytest.mark.parametrize(
    ("query", "parameter", "reason"),
    [
        ("from=yesterday", "from", "not a time"),
        ("from=NaN", "from", "not a time"),
        ("to=inf", "to", "not a time"),
        ("from=now&to=now-1h", "from", "must lie before to"),
        ("from=now-1h&from=now-2h", "from", "more than once"),
        ("step=0", "step", "not a duration above 0"),
        ("step=-5s", "step", "not a duration above 0"),
        ("step=5 parsecs", "step", "not a duration above 0"),
        (f"from=now-{MAX_BUCKETS + 1}s&step=1", "step", "more than 11000 buckets"),
        ("by=colour", "by", "is not a dimension"),
        ("source=oracle", "source", "must be one of counter, request, log, gauge"),
        ("offset=x", "offset", "not a duration"),
        ("format=xml", "format", "must be json or csv"),
        ("targets=a", "targets", "unknown parameter"),
        ("&".join(f"target={number}" for number in range(201)), "target", "more than 200 values"),
    ],
)
async def test_a_bad_parameter_is_named_with_the_reason(
    client: httpx.AsyncClient, query: str, parameter: str, reason: str
) -> None:
    answer = await client.get(f"/api/acceptance?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == "urn:draftgauge:problem:bad-parameter"
    assert (problem["title"], problem["status"], problem["parameter"]) == ("Bad Request", 400, parameter)
    assert problem["detail"].startswith(f"{parameter}: ")
    assert reason in problem["detail"]


@pytest.mark.parametrize("query", ["from=now-1h", "to=now", "step=60", "by=target", "offset=1h", "format=xml"])
async def test_latest_takes_no_range(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/api/acceptance/latest?{query}")
    assert (answer.status_code, answer.json()["parameter"]) == (400, query.partition("=")[0])
