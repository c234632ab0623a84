from __future__ import annotations

from typing import Any

import pytest

from acceptance.facts import Fact
from acceptance.health import Health
from collectors.target import Target
from service.catalog import TargetStatus
from service.states import Recent, fresh_seconds, state_of
from store.state import AlertRecord

NOW = 10_000.0
BUSY = Recent(steps=500, last=NOW - 10)


def status(
    look: dict[str, Any] | None = None,
    *,
    url: str | None = "http://a",
    facts: dict[str, Any] | None = None,
    **more: Any,
) -> TargetStatus:
    """A target whose page was read 5 s ago, with two requests running, unless ``look`` says otherwise."""
    given = {"at": NOW - 5, "up": True, "running": 2.0, **(look or {})}
    surface = given.pop("surface", "metrics" if url else "log:/a")
    health = Health("a", surface, **given)
    known: dict[str, Any] = {
        "looks": {surface: health},
        "read_at": {surface: health.at} if health.up else {},
        "facts": {name: Fact("a", name, value, "server_info", NOW) for name, value in (facts or {}).items()},
    }
    return TargetStatus(Target("a", url), **{**known, **more})


def alert(
    severity: str = "critical", phase: Any = "firing", finding: str = "dead-drafter", fired_at: float = NOW - 80
) -> AlertRecord:
    return AlertRecord(finding, finding, severity, "a", phase, NOW - 200, NOW, fired_at=fired_at)


@pytest.mark.parametrize(
    ("known", "recent", "alerts", "name", "why"),
    [
        pytest.param(status(), BUSY, [], "ok", "500 verify steps", id="ok"),
        pytest.param(status(), Recent(199, NOW - 10), [], "low-evidence", "199 verify steps", id="few steps"),
        pytest.param(status(), Recent(200, NOW - 10), [], "ok", "200 verify steps", id="just enough steps"),
        pytest.param(status(), BUSY, [alert()], "alerting", "dead-drafter", id="alerting"),
        pytest.param(status(), BUSY, [alert(phase="recovering")], "alerting", "dead-drafter", id="still firing"),
        pytest.param(status(), BUSY, [alert("warning", finding="low")], "alerting", "low", id="warning"),
        pytest.param(status(), BUSY, [alert("notice")], "ok", "", id="a notice does not alert"),
        pytest.param(status(), BUSY, [alert(phase="pending")], "ok", "", id="pending does not alert"),
        pytest.param(status({"running": 0.0}), None, [alert()], "alerting", "", id="an alert outlives its traffic"),
        pytest.param(status({"running": 0.0}), None, [], "idle", "no request is running", id="idle"),
        pytest.param(status({"running": 0.0}), Recent(500, NOW - 121), [], "idle", "", id="idle since lately"),
        pytest.param(status({"running": 0.0}), Recent(500, NOW - 119), [], "ok", "", id="a short pause"),
        pytest.param(status(), None, [], "no-data", "though 2 requests run", id="running, but no step"),
        pytest.param(status({"running": None}), None, [], "no-data", "no verify step", id="nobody knows"),
        pytest.param(
            status({"up": False, "error": "ConnectError: refused"}, read_at={"metrics": NOW - 60}),
            BUSY,
            [alert()],
            "target-down",
            "ConnectError: refused",
            id="down",
        ),
        pytest.param(
            status({"up": False, "error": "TimeoutError: "}), BUSY, [], "target-down", "TimeoutError", id="hanging"
        ),
        pytest.param(
            status({"up": False, "error": "Unreadable: /metrics answered 404"}),
            None,
            [],
            "scrape-error",
            "answered 404",
            id="answers something else",
        ),
        pytest.param(
            status({"up": False, "error": "FileNotFoundError: No such file"}, url=None),
            None,
            [],
            "scrape-error",
            "No such file",
            id="its log cannot be read",
        ),
        pytest.param(status({"at": NOW - 181}), BUSY, [alert()], "stale", "nothing new for 3 min", id="stale"),
        pytest.param(status({"at": NOW - 179}), BUSY, [], "ok", "", id="slow scrapes are not stale"),
        pytest.param(status({"at": NOW - 601}, url=None), None, [], "stale", "10 min", id="silent log"),
        pytest.param(status({"at": NOW - 599}, url=None), BUSY, [], "ok", "", id="quiet log"),
        pytest.param(status(facts={"role": "prefill"}), None, [], "role-has-none", "prefill", id="prefill"),
        pytest.param(status(facts={"role": "decode"}), BUSY, [], "ok", "", id="decode"),
        pytest.param(status(facts={"speculative": False}), None, [], "spec-not-active", "without", id="not asked for"),
        pytest.param(
            status({"speculating": False}, facts={"speculative": True}),
            Recent(500, NOW - 500),
            [],
            "spec-not-active",
            "speculation was asked for, but its metrics shows none",
            id="lost by a restart",
        ),
        pytest.param(
            status({"speculating": False, "running": 0.0}, facts={"speculative": True}),
            None,
            [],
            "idle",
            "",
            id="nothing to speculate on yet",
        ),
        pytest.param(status({"speculating": False}), BUSY, [], "ok", "", id="another source shows steps"),
        pytest.param(status({"speculating": True}), None, [], "no-data", "", id="it speculates, but tells no steps"),
        pytest.param(status(removed_at=NOW - 60), BUSY, [alert()], "removed", "no longer listed", id="removed"),
        pytest.param(TargetStatus(Target("a", "http://a")), None, [], "no-data", "nothing was read", id="never looked"),
        pytest.param(TargetStatus(Target("a", "http://a")), BUSY, [], "ok", "", id="read before the service began"),
    ],
)
def test_state(known: TargetStatus, recent: Recent | None, alerts: list[AlertRecord], name: str, why: str) -> None:
    state = state_of(known, recent, alerts, NOW)
    assert state.name == name
    assert why in state.why


@pytest.mark.parametrize(
    ("known", "recent", "alerts", "since"),
    [
        (
            status(),
            BUSY,
            [alert(), AlertRecord("x", "x", "critical", "a", "firing", 1, 2, fired_at=NOW - 500)],
            NOW - 500,
        ),
        (status({"running": 0.0}), Recent(500, NOW - 300), [], NOW - 300),
        (status({"at": NOW - 700}), None, [], NOW - 700),
        (status({"up": False}, read_at={"metrics": NOW - 90}), None, [], NOW - 90),
        (status(removed_at=NOW - 60), None, [], NOW - 60),
        (status(), BUSY, [], None),
    ],
)
def test_since(known: TargetStatus, recent: Recent | None, alerts: list[AlertRecord], since: float | None) -> None:
    assert state_of(known, recent, alerts, NOW).since == since


@pytest.mark.parametrize(("interval", "seconds"), [(1, 60), (10, 60), (15, 90), (60, 360)])
def test_how_long_a_page_is_about_now(interval: float, seconds: float) -> None:
    assert fresh_seconds(TargetStatus(Target("a", "http://a", scrape_interval_seconds=interval))) == seconds
