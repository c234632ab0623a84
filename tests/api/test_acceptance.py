from __future__ import annotations

import csv
import io
import math
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from acceptance.counts import Counts, Spread
from acceptance.series import Series
from acceptance.window import Window
from app.api.schemas import AcceptanceAnswer, LatestAnswer
from service import reads as reads_module
from store.history import Batch, History


@pytest.fixture(params=["memory", "duckdb"])
def history_kind(request: pytest.FixtureRequest) -> str:
    return request.param


MINUTES = {"from": "now-2m", "to": "now"}


async def rows(client: httpx.AsyncClient, path: str = "/api/acceptance", **parameters: Any) -> list[dict[str, Any]]:
    given = {"from": "now-2m"} if path == "/api/acceptance" else {}
    answer = await client.get(path, params={**given, **parameters})
    assert answer.status_code == 200, answer.text
    TypeAdapter(AcceptanceAnswer if path == "/api/acceptance" else LatestAnswer).validate_json(answer.content)
    return answer.json()["rows"]


async def test_counts_are_added_and_divided_last_and_sources_never_mixed(client: httpx.AsyncClient) -> None:
    a, b = await rows(client)
    # (300 + 200 + 100) / (100 + 50 + 50), (600 - 200) accepted of 800; the log's 90 steps are not in it
    assert (a["acc_len"], a["accept_rate"], a["draft_yield"]) == (3.0, 0.5, 0.5)
    assert (a["steps"], a["emitted"], a["proposed"], a["requests"]) == (200, 600, 800, 10)
    assert (a["source"], a["exact"], a["windows"], a["note"]) == ("counter", True, 3, None)
    assert (a["first"], a["last"]) == ("2026-12-01T02:59:15Z", "2026-12-01T02:59:45Z")
    assert (a["start"], a["end"]) == ("2026-12-01T02:58:00Z", "2026-12-01T03:00:00Z")
    # (640 + 20) / (160 + 10); trimming may hide 45 tokens in 170 steps; sglang's counters tell no drafts
    assert (b["acc_len"], b["bias_bound"], b["steps"]) == (660 / 170, 45 / 170, 170)
    assert (b["proposed"], b["accept_rate"]) == (None, None)


async def test_the_query_is_told_back(client: httpx.AsyncClient) -> None:
    answer = await client.get(
        "/api/acceptance?from=2026-12-01T02:00:00Z&to=1796094000&step=5m&by=group,rank&group=g1&group=g2&offset=1h"
    )
    assert answer.json()["query"] == {
        "from": "2026-12-01T02:00:00Z",
        "to": "2026-12-01T03:00:00Z",
        "step_seconds": 300.0,
        "offset_seconds": 3600.0,
        "by": ["group", "rank"],
        "where": {"group": ["g1", "g2"]},
        "source": None,
    }


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({"by": "rank", "target": "a"}, [("0", 150, 500 / 150), ("1", 50, 2.0)], id="by rank"),
        pytest.param({"by": "category", "target": "b"}, [("", 10, 2.0), ("code", 160, 4.0)], id="by category"),
        pytest.param({"by": ["category", "rank"], "target": "a", "rank": "1"}, [(None, "1", 50, 2.0)], id="by two"),
        pytest.param({"by": ""}, [(370, 1260 / 370)], id="all together"),
        pytest.param({"by": "model"}, [("kimi", 370, 1260 / 370)], id="by model"),
        pytest.param({"by": "target", "target": ["a", "b"]}, [("a", 200, 3.0), ("b", 170, 660 / 170)], id="two"),
        pytest.param({"by": "target", "target": "nobody"}, [], id="unknown target"),
        pytest.param({"by": "target", "group": "g2"}, [("b", 170, 660 / 170)], id="group"),
        pytest.param({"by": "target", "category": "code"}, [("b", 160, 4.0)], id="category"),
        pytest.param({"by": "target", "category": ""}, [("b", 10, 2.0)], id="unlabelled"),
        pytest.param({"by": "target", "engine": "vllm"}, [("a", 200, 3.0)], id="engine"),
        pytest.param({"by": "target", "model": "kimi", "rank": "1"}, [("a", 50, 2.0)], id="model and rank"),
        pytest.param({"by": "target", "revision": "r2", "role": "unified"}, [("b", 170, 660 / 170)], id="revision"),
        pytest.param({"by": "target", "drafter": "dspark"}, [("a", 200, 3.0)], id="drafter"),
        pytest.param({"by": "target", "context": "32k"}, [], id="nobody tells the context"),
        pytest.param({"by": "target", "source": "log"}, [("a", 90, 3.0), ("b", 400, 1.0)], id="one source"),
        pytest.param({"by": "target", "source": "gauge"}, [], id="a source nobody has"),
        pytest.param({"by": "target", "from": "now-1h", "to": "now-50s"}, [("b", 170, 660 / 170)], id="range"),
        pytest.param({"by": "target", "from": "now-40s"}, [("a", 200, 3.0), ("b", 400, 1.0)], id="start"),
        pytest.param({"by": "target", "from": "now-20s", "to": "now", "offset": "20s"}, [("a", 100, 3.0)], id="offset"),
    ],
)
async def test_parameters(
    client: httpx.AsyncClient, parameters: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    given = parameters["by"]
    by = [given] if isinstance(given, str) and given else list(given)
    found = [(*(row[name] for name in by), row["steps"], row["acc_len"]) for row in await rows(client, **parameters)]
    assert found == expected


async def test_buckets_without_data_are_null_rows(client: httpx.AsyncClient) -> None:
    found = await rows(client, step="15", target="a", **{"from": "now-75s"})
    assert [(row["start"][-6:-1], row["acc_len"], row["steps"], row["windows"]) for row in found] == [
        ("58:45", None, None, 0),
        ("59:00", None, None, 0),
        ("59:15", 3.0, 100, 1),
        ("59:30", 3.0, 100, 2),
        # only the log has a window that ended here
        ("59:45", 3.0, 90, 1),
    ]
    assert [row["source"] for row in found] == [None, None, "counter", "counter", "log"]
    assert found[0]["exact"] is None
    assert found[4]["note"] == "counters did not move in this bucket"
    assert not found[4]["exact"]


async def test_every_series_has_every_bucket(client: httpx.AsyncClient) -> None:
    found = await rows(client, step="15s", by="target,category")
    series = [("a", None), ("b", None), ("b", ""), ("b", "code")]
    assert sorted({(row["target"], row["category"]) for row in found}, key=str) == sorted(series, key=str)
    assert all(sum((row["target"], row["category"]) == key for row in found) == 8 for key in series)


async def test_the_last_bucket_ends_with_the_range(client: httpx.AsyncClient) -> None:
    found = await rows(client, step="50s", target="a")
    assert [row["end"] for row in found][-1] == "2026-12-01T03:00:00Z"
    assert [row["steps"] for row in found] == [None, 100, 100]


async def test_csv_has_the_same_rows(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/acceptance", params={**MINUTES, "format": "csv", "step": "60", "by": "target"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="acceptance.csv"'
    table = list(csv.DictReader(io.StringIO(answer.text)))
    plain = await rows(client, step="60", by="target")
    assert [[row[name] for name in ("target", "acc_len", "source")] for row in table] == [
        [row["target"], "" if row["acc_len"] is None else str(row["acc_len"]), row["source"] or ""] for row in plain
    ]
    assert list(table[0]) == list(plain[0])


@pytest.mark.parametrize("steps", [2.0**53, 1e20, 1e300])
async def test_one_absurd_counter_takes_no_answer_down(
    client: httpx.AsyncClient, history: History, steps: float
) -> None:
    """JSON's writer takes no whole number of more than 64 bits."""
    counts = Counts(steps=steps, emitted=3 * steps, requests=steps, spread=Spread.of(3.0, 1.0))
    history.append(
        Batch([Window(1, Series("absurd"), 1_796_093_970, 1_796_093_985, "counter", exact=True, counts=counts)])
    )
    told = {row["target"]: row["steps"] for row in await rows(client)}
    assert told == {"a": 200, "b": 170, "absurd": steps}


async def test_csv_computes_nothing_in_a_spreadsheet(client: httpx.AsyncClient, history: History) -> None:
    names = ["=1+1", "+1", "-1", "@x", "\t=1", "＝1", 'say "hi", twice', "plain"]
    history.append(
        Batch(
            [
                Window(
                    number, Series("a", category=name), 1_796_093_990, 1_796_093_995, "request", True, Counts(10, 20)
                )
                for number, name in enumerate(names, 1)
            ]
        )
    )
    answer = await client.get("/api/acceptance?format=csv&by=category&source=request")
    cells = [row["category"] for row in csv.DictReader(io.StringIO(answer.text, newline=""))]
    assert sorted(cells) == sorted(["'=1+1", "'+1", "'-1", "'@x", "'\t=1", "'＝1", 'say "hi", twice', "plain"])
    assert '"",' in (await client.get("/api/acceptance?format=csv&by=category&from=now-2m")).text  # unlabelled


async def test_a_figure_that_is_no_number_is_null(client: httpx.AsyncClient, history: History) -> None:
    broken = Counts(steps=10, emitted=math.nan, requests=math.inf)
    history.append(Batch([Window(99, Series("z"), 1_796_093_990, 1_796_093_995, "counter", True, broken)]))
    answer = await client.get("/api/acceptance?target=z")
    assert answer.status_code == 200
    (row,) = answer.json()["rows"]
    assert (row["acc_len"], row["emitted"], row["requests"], row["steps"]) == (None, None, None, 10)
    (line,) = csv.DictReader(io.StringIO((await client.get("/api/acceptance?target=z&format=csv")).text))
    assert (line["acc_len"], line["emitted"], line["requests"], line["steps"]) == ("", "", "", "10")


async def test_latest_is_the_newest_window_of_every_series(client: httpx.AsyncClient) -> None:
    found = await rows(client, "/api/acceptance/latest")
    assert [(row["target"], row["rank"], row["category"], row["steps"], row["acc_len"]) for row in found] == [
        ("a", "0", None, 50, 4.0),
        ("a", "1", None, 50, 2.0),
        ("b", None, "", 10, 2.0),
        ("b", None, "code", 160, 4.0),
    ]
    assert (found[0]["start"], found[0]["end"]) == ("2026-12-01T02:59:30Z", "2026-12-01T02:59:45Z")
    assert (found[0]["model"], found[0]["drafter"], found[0]["revision"]) == ("kimi", "dspark", "r1")


@pytest.mark.parametrize(
    ("parameters", "targets"),
    [({"target": "a"}, ["a", "a"]), ({"source": "log"}, ["a", "b"]), ({"category": "code"}, ["b"])],
)
async def test_latest_is_filtered(client: httpx.AsyncClient, parameters: dict[str, str], targets: list[str]) -> None:
    assert [row["target"] for row in await rows(client, "/api/acceptance/latest", **parameters)] == targets


async def test_latest_as_csv(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/acceptance/latest?format=csv")
    table = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["target"], row["rank"], row["acc_len"]) for row in table][:2] == [("a", "0", "4.0"), ("a", "1", "2.0")]


async def test_an_answer_that_would_be_too_large_is_refused(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads_module, "MAX_ROWS", 15)
    answer = await client.get("/api/acceptance?from=now-2m&step=15s")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "step")
    assert "up to 16 rows, more than 15" in answer.json()["detail"]
    assert (await client.get("/api/acceptance?from=now-2m&step=15s&target=a")).status_code == 200
