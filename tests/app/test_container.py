"""The container, as far as it can be tried where none runs: what the Dockerfile does, done in a clean directory."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOKEN = "container-0123456789-abcdef"
PLACES = ("/opt/draftgauge", "/var/lib/draftgauge", "/etc/draftgauge", "/src")
USER = 10001
PATIENCE_SECONDS = 120.0

pytestmark = pytest.mark.process


def instructions() -> list[tuple[str, str]]:
    """(name, rest) of every instruction of the Dockerfile."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in text.splitlines() if line.strip()]


def only(name: str) -> str:
    (rest,) = [rest for instruction, rest in instructions() if instruction == name]
    return rest


@dataclass
class Image:
    """What the Dockerfile makes, under ``root`` instead of /."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"

    def within(self, text: str) -> str:
        """Paths of the image as they are here."""
        return re.sub(rf"(?<![\w.-])({'|'.join(PLACES)})(?![\w-])", rf"{self.root}\1", text)

    def here(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def build(self) -> None:
        for name, rest in instructions():
            match name:
                case "RUN":
                    self._run(rest)
                case "COPY" if "--from=" not in rest:
                    self._copy(*rest.split())
                case "WORKDIR":
                    self.workdir = rest
                    self.here(rest).mkdir(parents=True, exist_ok=True)
                case "ENV":
                    self.environment |= dict(part.split("=", 1) for part in shlex.split(rest))
                case _:
                    pass

    def process(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        """Run what ``CMD`` or ``HEALTHCHECK`` says, as the user of the image and with nothing but its environment."""
        own = {name: self.within(value).replace("$PATH", "/usr/bin:/bin") for name, value in self.environment.items()}
        program = shutil.which(command[0], path=own["PATH"])
        assert program is not None
        return subprocess.Popen(
            [program, *map(self.within, command[1:])],
            cwd=self.here(self.workdir),
            env={**own, "HOME": str(self.root / "tmp"), "TMPDIR": str(self.root / "tmp"), **environment},
            user=USER,
            group=USER,
            extra_groups=[],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _run(self, command: str) -> None:
        python = self.root / "bin"
        environment = {"PATH": f"{python}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/")}
        subprocess.run(
            ["/bin/sh", "-c", self.within(command)],
            cwd=self.here(self.workdir),
            env=environment,
            check=True,
            timeout=900,
        )

    def _copy(self, *sources: str) -> None:
        *names, target = sources
        base = self.here(target) if target.startswith("/") else self.here(self.workdir) / target
        for name in names:
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines(), f"{name} is not sent to the builder"
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, base, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place = base / name if target.endswith("/") else base
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    if os.geteuid() != 0:
        pytest.skip("gives directories to the user of the image, which only root can")
    with tempfile.TemporaryDirectory(prefix="draftgauge-image-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        (root / "bin").mkdir()
        (root / "bin" / "python").symlink_to(_python(root))
        (root / "tmp").mkdir(mode=0o777)
        (root / "tmp").chmod(0o1777)
        image = Image(root)
        image.build()
        yield image


def _python(root: Path) -> Path:
    """A Python that the user of the image can run: that of this machine, or its copy where others cannot get at it."""
    prefix = Path(sys.base_prefix)
    if not prefix.is_relative_to("/usr"):
        ignored = shutil.ignore_patterns("__pycache__", "test", "site-packages")
        shutil.copytree(prefix, root / "usr", symlinks=True, ignore=ignored, copy_function=_linked)
        prefix = root / "usr"
    return prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def files(root: Path) -> set[str]:
    return {str(path) for path in root.rglob("*")}


def packaged(root: Path) -> set[str]:
    """Every file of our packages that is no program: without it something does not work, and no import fails."""
    tracked = subprocess.run(["git", "ls-files"], cwd=root, text=True, capture_output=True, check=True).stdout.split()
    copied = {rest.split()[0] for name, rest in instructions() if name == "COPY"}
    return {name for name in tracked if name.split("/")[0] in copied and "/" in name and not name.endswith(".py")}


def test_what_the_dockerfile_does_gives_a_service_that_is_healthy(image: Image, port: int) -> None:
    (site,) = image.here("/opt/draftgauge/lib").glob("python*/site-packages")
    missing = [name for name in packaged(ROOT) if not (site / name).exists()]
    assert not missing
    before = files(image.root)
    command = json.loads(only("CMD"))
    check = json.loads(only("HEALTHCHECK").partition("CMD ")[2].replace(":8400/", f":{port}/"))
    service = image.process([*command, "--port", str(port)], DRAFTGAUGE_TOKEN=TOKEN)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (checking := image.process(check)).wait() != 0:
            checking.communicate()
            assert service.poll() is None, service.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        checking.communicate()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert client.get("/api/targets").status_code == 401
            client.headers["authorization"] = f"Bearer {TOKEN}"
            assert client.get("/api/targets").json() == {"demo": False, "targets": []}
            page = client.get("/", headers={"accept": "text/html"})
            assets = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg)[^"]*)"', page.text)
            assert len(assets) > 10
            assert {client.get(path).status_code for path in assets} == {200}
    finally:
        service.send_signal(signal.SIGTERM)
        said = service.communicate(timeout=30)[0]
    assert service.returncode == 0, said
    # Nothing else may be written: the root of the container is read-only.
    written = {path for path in files(image.root) - before if not path.startswith(f"{image.root}/tmp")}
    assert written == {f"{image.here('/var/lib/draftgauge')}/{name}" for name in ("history.duckdb", "state.sqlite")}


def test_without_a_token_it_does_not_start_and_says_why(image: Image) -> None:
    service = image.process(json.loads(only("CMD")))
    said = service.communicate(timeout=PATIENCE_SECONDS)[0]
    assert service.returncode == 2
    assert "access.tokens[0].token" in said
    assert "DRAFTGAUGE_TOKEN" in said


def test_the_image_does_not_run_as_root() -> None:
    user, _, group = only("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert str(USER) == user


COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
PROFILES = ("demo", "monitoring", "victoriametrics")


def compose(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``docker compose``, or Debian's docker-compose where docker does not have it."""
    plugin = (
        shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    )
    command = ["docker", "compose"] if plugin else ["docker-compose"]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, env={**os.environ, **environment}, text=True, capture_output=True
    )


@pytest.mark.parametrize("profiles", [(), *((profile,) for profile in PROFILES), PROFILES])
def test_the_compose_file_is_valid(profiles: tuple[str, ...]) -> None:
    chosen = [word for profile in profiles for word in ("--profile", profile)]
    result = compose(*chosen, "config", DRAFTGAUGE_TOKEN=TOKEN)
    assert result.returncode == 0, result.stderr
    assert not re.search(r"warn|deprecat", result.stderr, re.IGNORECASE), result.stderr
    assert yaml.safe_load(result.stdout)["services"]["draftgauge"]["environment"] == {"DRAFTGAUGE_TOKEN": TOKEN}


def test_what_is_mounted_is_there_and_everything_of_ours_is_locked_down() -> None:
    for name, service in COMPOSE["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], (name, mount)
        if "build" in service:
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]
            assert any(place.startswith("/tmp") for place in service["tmpfs"])
        else:
            assert re.fullmatch(r"[\w./-]+:v?\d[\w.]*", service["image"]), "a version, never latest"
            assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    written = (ROOT / "deploy" / "prometheus.yml").read_text()
    (tmp_path / "prometheus.yml").write_text(written.replace("/tmp/draftgauge.token", str(tmp_path / "token")))
    shutil.copy(ROOT / "deploy" / "rules.yml", tmp_path)
    result = subprocess.run(
        ["promtool", "check", "config", tmp_path / "prometheus.yml"], text=True, capture_output=True
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_rules_are_about_metrics_that_there_are() -> None:
    known = (ROOT / "docs" / "metrics.md").read_text()
    for rule in yaml.safe_load((ROOT / "deploy/rules.yml").read_text())["groups"][0]["rules"]:
        for metric in re.findall(r"draftgauge_\w+", rule["expr"]):
            assert f"`{metric}`" in known


def test_the_docs_say_what_was_not_tried() -> None:
    assert "image not built here" in (ROOT / "docs" / "operations.md").read_text()
