"""A fleet of emulated engines as child processes: what ``draftgauge demo`` watches."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson


@dataclass(frozen=True, slots=True)
class Spec:
    """Emulators to launch in one process: their name, the group of replicas they belong to, and their options.

    Several are called NAME-0, NAME-1, and so on.
    """

    name: str
    group: str
    options: tuple[str, ...]
    count: int = 1


@dataclass(frozen=True, slots=True)
class Member:
    """A running emulator. ``url`` is the engine's, ``control_url`` is followed by ``/emulator/...``."""

    name: str
    group: str
    engine: str
    url: str
    control_url: str
    log: Path


_RATE = ("--rate", "0.5")
_UNCAPPED = ("--max-running", "64")
"""Set on purpose, as operators do who know that SGLang otherwise resets it to 48."""

DEMO: tuple[Spec, ...] = (
    Spec("sglang", "kimi-k3-a", ("--engine", "sglang", "--tp", "8", "--seed", "1", *_UNCAPPED, *_RATE), 8),
    Spec("vllm", "kimi-k3-b", ("--engine", "vllm", "--ranks", "2", "--seed", "11", *_RATE), 3),
    Spec("vllm-rust", "kimi-k3-b", ("--engine", "vllm-rust", "--seed", "21", *_RATE)),
)
"""Eight SGLang servers in one group and four vLLM servers, one of them behind the Rust frontend, in another."""


class Fleet:
    """Running emulators. They end with ``stop``, and by themselves when this process ends, however it does."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]], members: Sequence[Member]) -> None:
        self.members = tuple(members)
        self._processes = tuple(processes)

    def stop(self) -> None:
        """End all of them and wait until they are gone."""
        _stop(self._processes)


def launch(specs: Sequence[Spec], log_directory: Path, speed: float = 1.0) -> Fleet:
    """Start emulators, and wait until all their ports are open. Their logs are in ``log_directory``.

    Raises RuntimeError where one does not start; the others are ended then.
    """
    log_directory.mkdir(parents=True, exist_ok=True)
    processes = [_start(spec, log_directory, speed) for spec in specs]
    try:
        members = [
            _member(spec, process) for spec, process in zip(specs, processes, strict=True) for _ in range(spec.count)
        ]
    except BaseException:
        _stop(processes)
        raise
    return Fleet(processes, members)


@contextlib.contextmanager
def running(specs: Sequence[Spec], log_directory: Path, speed: float = 1.0) -> Generator[Fleet, None, None]:
    """A fleet for the time of a ``with`` block."""
    fleet = launch(specs, log_directory, speed)
    try:
        yield fleet
    finally:
        fleet.stop()


def _start(spec: Spec, log_directory: Path, speed: float) -> subprocess.Popen[bytes]:
    log = log_directory if spec.count > 1 else log_directory / f"{spec.name}.log"
    own = ("--name", spec.name, "--count", str(spec.count), "--log", str(log), "--speed", str(speed))
    # The pipe to its standard input closes with this process, also when that is killed: nothing is left behind.
    return subprocess.Popen(
        [sys.executable, "-m", "app.demo.emulator", *spec.options, *own, "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _member(spec: Spec, process: subprocess.Popen[bytes]) -> Member:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"emulator {spec.name} did not start (exit code {process.wait()})")
    said = orjson.loads(line)
    return Member(said["name"], spec.group, said["engine"], said["url"], said["control_url"], Path(said["log"]))


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        with process:
            process.wait()
