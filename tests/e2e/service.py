"""A real ``draftgauge serve``: started, asked through its API, stopped, and its history read afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml
from engine import await_answer, running

from acceptance.query import AcceptanceQuery, Sum, parse_time
from acceptance.window import Source
from store.duckdb import DuckHistory

TARGET = "real-vllm"
Found = TypeVar("Found")


class Draftgauge:
    """What its API says."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=30.0)

    def get(self, path: str, **parameters: str | float) -> Any:
        return self._client.get(path, params=parameters).raise_for_status().json()

    def target(self) -> dict[str, Any]:
        (target,) = self.get("/api/targets")["targets"]
        return target

    def scraped_since(self, at: float) -> bool:
        """Whether its metrics page was read after ``at``."""
        look = self.target()["looks"].get("metrics")
        return look is not None and look["up"] and parse_time("at", look["at"], at) > at

    def row(self, source: Source, start: float, **where: str) -> dict[str, Any]:
        """The one row of ``source`` since ``start``; an empty one where nothing is stored."""
        rows = self.get("/api/acceptance", **{"from": start, "to": time.time(), "source": source, **where})["rows"]
        return rows[0] if rows else {}


@contextmanager
def serving(folder: Path, *, target: str, engine_log: Path, pager: str, port: int) -> Generator[Draftgauge]:
    """Watch ``target`` and its log; page ``pager``."""
    config = folder / "draftgauge.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "listen": {"port": port},
                "data_dir": str(folder / "data"),
                "targets": [{"name": TARGET, "url": target, "logs": [str(engine_log)]}],
                "scrape": {"interval": "5s"},
                "evaluation": {"interval": "5s"},
                "channels": {"pager": {"kind": "webhook", "url": pager}},
            }
        )
    )
    command = [".venv/bin/draftgauge", "serve", "--config", str(config)]
    url = f"http://127.0.0.1:{port}"
    with (
        (folder / "draftgauge.log").open("ab") as output,
        running(command, output=output, environment={}) as process,
    ):
        await_answer(f"{url}/readyz", process, seconds=60.0)
        yield Draftgauge(url)


def stored(folder: Path, query: AcceptanceQuery) -> list[Sum]:
    """Sums of a stopped service's history."""
    history = DuckHistory(folder / "data" / "history.duckdb")
    try:
        return history.query(query)
    finally:
        history.close()


def wait_for(look: Callable[[], Found | None], *, seconds: float, every: float = 1.0) -> Found | None:
    """The first thing that ``look`` finds, None where it finds none in time."""
    end = time.monotonic() + seconds
    while (found := look()) is None and time.monotonic() < end:
        time.sleep(every)
    return found
