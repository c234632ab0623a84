"""Emulators as processes: ports, control, clocks, and their end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.demo.faults import DrafterDies
from app.demo.fleet import DEMO, Spec, running
from app.demo.workload import Order

pytestmark = pytest.mark.process


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process ends in time."""
    for _ in range(int(seconds / 0.05)):
        status = Path(f"/proc/{pid}/status")
        if not status.exists() or "\nState:\tZ" in status.read_text():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_on_a_manual_clock_a_process_does_what_the_core_does(
    start: Callable, bench: Callable, tmp_path: Path, engine: str
) -> None:
    log = tmp_path / "engine.log"
    options = ("--engine", engine, "--seed", "4", "--manual-clock", "--epoch", "1796110000", "--log", str(log))
    process = start(*options)
    core = bench(engine=engine, seed=4, name="emulator", port=process.said["port"])
    for seconds in (3.0, 0.25, 30.0):
        state = process.post("advance", {"seconds": seconds})
        core.run(seconds)
    assert state["now"] == 1796110033.25
    process.post("fault", {"kind": "drafter-dies"})
    core.engine.fault(DrafterDies())
    process.post("requests", {"category": "code", "output_tokens": 500, "acc_len": 4, "count": 3})
    core.engine.submit([Order("code", 500, 200, 0, "stop", True, 4.0)] * 3)
    process.post("advance", {"seconds": 20})
    core.run(20)
    assert process.get("requests")["results"] == core.engine.results(0, 1000)
    assert process.page().text == core.page().text
    assert process.get("truth") == core.engine.truth()
    process.post("advance", {"seconds": 0})
    core.engine.answered("GET", "/metrics", 200)
    core.run(0)
    assert log.read_text().splitlines() == core.lines


def test_scaled_time_runs_and_writes_its_own_log(start: Callable, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    emulator = start("--speed", "50", "--log", str(log), "--categories", "code,chat")
    times = [(time.monotonic(), emulator.get("clock")["now"]) for _ in range(2) if not time.sleep(0.5)]
    assert (times[1][1] - times[0][1]) / (times[1][0] - times[0][0]) == pytest.approx(50, rel=0.5)
    assert abs(emulator.said["epoch"] - time.time()) < 60
    deadline = time.monotonic() + 20
    while "Decode batch" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "Decode batch" in log.read_text()
    assert set(emulator.get("truth")["incarnations"][0]["all"]["by_category"]) <= {"", "code", "chat"}


def test_manual_time_stands_still(fresh: Any) -> None:
    fresh.post("requests", {"category": "code", "output_tokens": 4000})
    fresh.post("advance", {"seconds": 5})
    first = fresh.get("truth")
    time.sleep(0.2)
    assert fresh.get("truth") == first
    assert first["unfinished"] == 1


def test_requests_are_put_in_and_their_results_come_out(fresh: Any) -> None:
    asked = [
        {"category": "code", "output_tokens": 20, "count": 2, "streaming": False},
        {"category": "chat", "output_tokens": 300, "acc_len": 1.0},
    ]
    state = fresh.post("requests", asked)
    assert (len(state["requests"]), state["unfinished"]) == (3, 3)
    fresh.post("advance", {"seconds": 60})
    answer = fresh.get("requests")
    assert answer["unfinished"] == 0
    assert [(result["category"], result["sent"]) for result in answer["results"]] == [
        ("", 8),
        ("code", 20),
        ("code", 20),
        ("chat", 300),
    ]
    assert answer["results"][3]["accepted"] == 0
    assert fresh.get(f"requests?after={answer['last']}")["results"] == []
    assert len(fresh.get("requests?after=1&limit=2")["results"]) == 2
    assert fresh.page().total("sglang:num_requests_total", is_streaming="false", category="code") == 2


def test_a_restart_refuses_connections_until_it_is_over(fresh: Any) -> None:
    fresh.post("requests", {"category": "code", "output_tokens": 400})
    fresh.post("advance", {"seconds": 60})
    before = fresh.http.get(f"{fresh.url}/server_info").json()["startup_time"]
    exposed = fresh.page().total("sglang:spec_verify_calls_total")
    assert fresh.post("fault", {"kind": "restart", "seconds": 30})["state"] == "down"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{fresh.url}/metrics")
    refused = fresh.http.post(f"{fresh.control}/requests", json={"output_tokens": 1})
    assert (refused.status_code, refused.json()) == (409, {"detail": "the engine is down"})
    assert fresh.post("advance", {"seconds": 29})["state"] == "down"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", fresh.said["port"]))
    assert fresh.post("advance", {"seconds": 1})["state"] == "up"
    assert httpx.get(f"{fresh.url}/server_info").json()["startup_time"] != before
    assert fresh.page().total("sglang:spec_verify_calls_total") < exposed
    lives = fresh.get("truth")["incarnations"]
    assert [life["ended_at"] is None for life in lives] == [False, True]
    assert lives[0]["exposed"]["finished"]["total"]["steps"] == exposed


async def test_a_hanging_engine_takes_connections_and_does_not_answer(fresh: Any) -> None:
    fresh.post("fault", {"kind": "hang"})
    async with httpx.AsyncClient() as client:
        waiting = asyncio.create_task(client.get(f"{fresh.url}/metrics", timeout=20))
        with pytest.raises(httpx.ReadTimeout):
            await client.get(f"{fresh.url}/metrics", timeout=0.3)
        assert not waiting.done()
        assert fresh.get("clock")["state"] == "hung"
        fresh.post("fault", {"kind": "none"})
        assert (await waiting).status_code == 200


def test_a_hanging_engine_does_nothing_meanwhile(fresh: Any) -> None:
    fresh.post("requests", {"category": "code", "output_tokens": 20_000})
    fresh.post("advance", {"seconds": 20})
    steps = fresh.steps()
    fresh.post("fault", {"kind": "hang", "seconds": 100})
    fresh.post("advance", {"seconds": 99})
    assert fresh.steps() == steps > 0
    assert fresh.post("advance", {"seconds": 60})["state"] == "up"
    assert fresh.steps() > steps


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("fault", {"kind": "gremlins"}, 422, "drafter-dies"),
        ("fault", {"kind": "decay", "floor": 2}, 422, "floor"),
        ("fault", {"kind": "decay", "flor": 0.2}, 422, "flor"),
        ("requests", {"output_tokens": 0}, 422, "output_tokens"),
        ("advance", {"seconds": -1}, 422, "seconds"),
        ("advance", {"seconds": 1}, 409, "--manual-clock"),
    ],
)
def test_bad_input_is_refused_with_a_reason(shared: Any, path: str, body: dict, status: int, says: str) -> None:
    answer = shared.http.post(f"{shared.control}/{path}", json=body)
    assert answer.status_code == status
    assert says in answer.text
    assert shared.http.post(f"{shared.control}/{path}", content=b"{").status_code == 422
    assert shared.http.get(f"{shared.url}/metrics").status_code == 200


def test_paths_and_loopback(shared: Any) -> None:
    url, http = shared.url, shared.http
    assert http.get(f"{url}/version").json() == {"version": "0.33.0"}
    assert http.get(f"{url}/health").content == b""
    assert http.get(f"{url}/metrics/").headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    missing = http.get(f"{url}/server_info")
    assert (missing.status_code, missing.json()) == (404, {"detail": "Not Found"})
    assert http.get(f"{url}/emulator/clock").json()["name"] == "emulator"
    assert http.get(f"{shared.said['control_url']}x/emulator/clock").status_code == 404
    port = f":{shared.said['port']:04X}"
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    listening = [fields[1] for fields in sockets if fields[3] == "0A" and fields[1].endswith(port)]
    assert listening == [f"0100007F{port}"]


def test_many_engines_in_one_process_with_pages_for_benchmarks(launch_many: Callable) -> None:
    with launch_many("--static-page", "--lines", "2000", "--name", "bench", count=5) as engines:
        assert [one.said["name"] for one in engines] == [f"bench-{number}" for number in range(5)]
        assert len({one.url for one in engines}) == 5
        first = engines[4].page().text
        assert first.count("\n") >= 1900
        time.sleep(1.1)
        assert engines[4].page().text != first


def test_a_fleet_runs_and_stops(tmp_path: Path) -> None:
    specs = (replace(DEMO[0], count=1), DEMO[-1])
    with running(specs, tmp_path, speed=20) as fleet:
        names = [(member.name, member.group, member.engine) for member in fleet.members]
        assert names == [("sglang", "kimi-k3-a", "sglang"), ("vllm-rust", "kimi-k3-b", "vllm-rust")]
        pages = [httpx.get(f"{member.url}/metrics").text for member in fleet.members]
        assert "sglang:spec_accept_length" in pages[0]
        assert pages[1].endswith("# EOF\n")
        assert all(member.log.read_text() for member in fleet.members)
    for member in fleet.members:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{member.url}/metrics")


def test_an_emulator_that_does_not_start_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="broken did not start"),
        running((DEMO[0], Spec("broken", "x", ("--engine", "sglang", "--k", "seven"))), tmp_path),
    ):
        pass


def test_a_fleet_does_not_outlive_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time, pathlib\n"
        "from app.demo.fleet import DEMO, launch\n"
        f"fleet = launch(DEMO[:1], pathlib.Path({str(tmp_path)!r}))\n"
        "print(fleet._processes[0].pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not gone(child, seconds=0.1)
        os.kill(parent.pid, signal.SIGKILL)
    assert gone(child)
