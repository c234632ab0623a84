"""A real vLLM on the CPU: started, awaited, read and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx
from prometheus_client.parser import text_string_to_metric_families

START_SECONDS = 240.0
ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


Process = subprocess.Popen[bytes]


class DidNotStart(Exception):
    """A process ended or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Counters:
    """vLLM's own speculation counters since its process began, read by prometheus_client and not by our readers."""

    steps: int
    accepted: int
    proposed: int
    by_position: tuple[int, ...]


@contextmanager
def vllm(python: Path, models: Path, drafter: str, *, k: int, port: int, log: Path) -> Generator[str]:
    """Serve ``tiny`` with ``drafter``; yields the URL once it answers. ``log`` is appended to."""
    speculation = {"method": "draft_model", "model": str(models / drafter), "num_speculative_tokens": k}
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(models / "tiny"), "--served-model-name", "tiny"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--max-num-seqs", "16"]
    command += ["--speculative-config", json.dumps(speculation), "--per-request-spec-decode-metrics", "detailed"]
    url = f"http://127.0.0.1:{port}"
    with log.open("ab") as output, running(command, output=output, environment=ENVIRONMENT) as process:
        await_answer(f"{url}/health", process, seconds=START_SECONDS)
        yield url


@contextmanager
def running(command: list[str], *, output: IO[bytes], environment: dict[str, str]) -> Generator[Process]:
    """A process with its whole group: SIGTERM at the end, SIGKILL to what is left of it after 20 seconds."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def await_answer(url: str, process: Process, *, seconds: float) -> None:
    """Until ``url`` answers 200; raises ``DidNotStart``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise DidNotStart(f"{url}: the process ended with {process.returncode}")
        with suppress(httpx.TransportError):
            if httpx.get(url, timeout=5.0).status_code == httpx.codes.OK:
                return
        time.sleep(0.5)
    raise DidNotStart(f"{url} did not answer within {seconds:.0f} s")


def counters(url: str) -> Counters:
    """What the metrics page says now."""
    page = httpx.get(f"{url}/metrics", timeout=10.0).raise_for_status().text
    values: dict[str, float] = {}
    positions: dict[int, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            name = sample.name.removeprefix("vllm:spec_decode_num_")
            if "position" in sample.labels and name == "accepted_tokens_per_pos_total":
                positions[int(sample.labels["position"])] = sample.value
            elif name in ("drafts_total", "accepted_tokens_total", "draft_tokens_total"):
                values[name] = sample.value
    return Counters(
        steps=int(values["drafts_total"]),
        accepted=int(values["accepted_tokens_total"]),
        proposed=int(values["draft_tokens_total"]),
        by_position=tuple(int(positions[position]) for position in sorted(positions)),
    )
