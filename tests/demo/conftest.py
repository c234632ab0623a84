from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.demo.engine import EmulatedEngine
from app.demo.settings import Settings
from app.demo.workload import Order, Workload

FIXTURES = Path(__file__).parents[1] / "fixtures"
EPOCH = 1_796_110_000.0


class Page:
    """A metrics page taken apart, by rules of its own: line by line and quote by quote."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.order: list[str] = []
        self.help: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.label_names: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        self.sample_names: defaultdict[str, list[str]] = defaultdict(list)
        self.values: defaultdict[str, list[tuple[dict[str, str], str]]] = defaultdict(list)
        family = ""
        for line in text.splitlines():
            if line.startswith("# HELP "):
                _, _, family, self.help[family] = line.split(" ", 3)
                self.order.append(family)
            elif line.startswith("# TYPE "):
                assert line.split(" ")[2] == family, line
                self.types[family] = line.split(" ")[3]
            elif not line.startswith("#"):
                found = re.fullmatch(r"([^{ ]+)(?:\{(.*)\})? (\S+)", line)
                assert found, line
                labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or "")
                self.label_names[family].add(tuple(name for name, _ in labels))
                self.values[found[1]].append((dict(labels), found[3]))
                if found[1] not in self.sample_names[family]:
                    self.sample_names[family].append(found[1])

    def total(self, name: str, **labels: str) -> float:
        """The sum of the samples of a name that have these labels."""
        return sum(float(value) for own, value in self.values[name] if labels.items() <= own.items())


@pytest.fixture(scope="session")
def sample() -> Callable[[str], str]:
    """The text of a file under tests/fixtures, unpacked where it is stored as NAME.gz."""

    def read(name: str) -> str:
        path = FIXTURES / name
        content = path.read_bytes() if path.exists() else gzip.decompress((FIXTURES / f"{name}.gz").read_bytes())
        return content.decode()

    return read


@pytest.fixture(scope="session")
def taken_apart() -> Callable[[str | bytes], Page]:
    return lambda text: Page(text if isinstance(text, str) else text.decode())


class Bench:
    """An engine without a process, and the log that it wrote."""

    def __init__(self, **settings: Any) -> None:
        self.lines: list[str] = []
        self.engine = EmulatedEngine(Settings(**settings), EPOCH, self.lines.extend)

    def run(self, seconds: float) -> Bench:
        self.engine.advance(self.engine.at + seconds)
        return self

    def finish(self) -> Bench:
        """Let all that runs come to its end."""
        self.engine.pause()
        while self.engine.unfinished:
            self.run(10.0)
        return self.run(60.0)

    def ask(self, *outputs: int, category: str = "code", reason: str = "stop", acc_len: float = 4.0) -> Bench:
        self.engine.submit([Order(category, tokens, 300, 40, reason, True, acc_len) for tokens in outputs])
        return self

    def page(self) -> Page:
        return Page(self.engine.metrics().decode())

    def truth(self, life: int = -1) -> dict[str, Any]:
        return self.engine.truth()["incarnations"][life]


@pytest.fixture
def bench() -> Callable[..., Bench]:
    """Makes an engine whose time moves as the test says; ``quiet`` ones have no traffic of their own."""

    def make(quiet: bool = False, **settings: Any) -> Bench:
        made = Bench(**settings)
        if quiet:
            made.engine.pause()
        return made

    return make


@pytest.fixture
def workload() -> Workload:
    return Workload(abort_share=0.0, burst_share=0.0)


class Emulator:
    """One engine of a running emulator process."""

    def __init__(self, process: subprocess.Popen[bytes], said: dict[str, Any], http: httpx.Client) -> None:
        self.process = process
        self.said = said
        self.url: str = said["url"]
        self.control: str = said["control_url"] + "/emulator"
        self.http = http

    def post(self, path: str, body: Any = None) -> dict[str, Any]:
        answer = self.http.post(f"{self.control}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str) -> dict[str, Any]:
        return self.http.get(f"{self.control}/{path}").json()

    def page(self) -> Page:
        return Page(self.http.get(f"{self.url}/metrics").text)

    def steps(self) -> int:
        return self.get("truth")["incarnations"][-1]["all"]["total"]["steps"]


@contextmanager
def emulators(*options: str, count: int = 1) -> Generator[list[Emulator], None, None]:
    """The engines of one emulator process, which is gone when the block is left."""
    command = [sys.executable, "-m", "app.demo.emulator", "--exit-with-stdin", "--count", str(count), *options]
    with (
        httpx.Client(timeout=20) as http,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        assert process.stdin is not None
        yield [Emulator(process, json.loads(process.stdout.readline()), http) for _ in range(count)]
        process.stdin.close()
        process.wait(20)


@pytest.fixture
def start() -> Iterator[Callable[..., Emulator]]:
    """Starts emulator processes of one engine; they are gone when the test is over."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(emulators(*options))[0]


@pytest.fixture
def launch_many() -> Callable[..., AbstractContextManager[list[Emulator]]]:
    return emulators


@pytest.fixture(scope="module")
def _fresh() -> Iterator[Iterator[Emulator]]:
    with emulators("--manual-clock", "--rate", "0", "--epoch", str(EPOCH), count=6) as engines:
        yield iter(engines)


@pytest.fixture
def fresh(_fresh: Iterator[Emulator]) -> Emulator:
    """An SGLang that nobody has used, without traffic, on a manual clock; its process has some more."""
    return next(_fresh)


@pytest.fixture(scope="module")
def shared() -> Iterator[Emulator]:
    """A vLLM with traffic, for tests that change nothing."""
    with emulators("--engine", "vllm") as engines:
        yield engines[0]
