"""A followed log yields every line once, whatever is done to the file between two looks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.logfile import CHUNK_BYTES, LogFile, Position


def drain(file: LogFile) -> bytes:
    found = b""
    idle = 0
    while idle < 2:
        piece = file.read()
        idle = idle + 1 if piece is None else 0
        found += piece.body if piece else b""
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def file(path: Path) -> Iterator[LogFile]:
    with closing(LogFile(path, Position())) as file:
        yield file


class Log:
    """A log that a server writes, with what an operator's logrotate does to it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "server.log"
        self.written: list[str] = []
        self.file = LogFile(self.path, Position())
        self.seen = b""
        self.rotations = 0

    def write(self) -> None:
        line = f"[2026-12-01 07:07:{len(self.written) % 60:02d}] line {len(self.written)}\n"
        self.written.append(line)
        with self.path.open("a") as file:
            file.write(line)

    def look(self) -> None:
        self.seen += drain(self.file)

    def rename(self) -> None:
        if self.path.exists():
            self.rotations += 1
            self.path.rename(self.path.with_name(f"server.log.{self.rotations}"))
            os.utime(self.path.with_name(f"server.log.{self.rotations}"), (self.rotations, self.rotations))

    def copytruncate(self) -> None:
        if self.path.exists():
            self.rotations += 1
            copy = self.path.with_name(f"server.log.{self.rotations}")
            shutil.copy(self.path, copy)
            os.utime(copy, (self.rotations, self.rotations))
            os.truncate(self.path, 0)

    def restart(self) -> None:
        position = Position(**asdict(self.file.position))
        self.file.close()
        self.file = LogFile(self.path, position)


ACTIONS: dict[str, Callable[[Log], None]] = {
    "write": Log.write,
    "look": Log.look,
    "rename": Log.rename,
    "copytruncate": Log.copytruncate,
    "restart": Log.restart,
}


@settings(max_examples=int(os.environ.get("DRAFTGAUGE_TEST_RUNS", "60")), deadline=None)
@given(st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=25))
def test_every_line_once_over_rotation_and_restart(
    tmp_path_factory: pytest.TempPathFactory, actions: list[str]
) -> None:
    log = Log(tmp_path_factory.mktemp("log"))
    log.write()
    log.look()
    for action in actions:
        ACTIONS[action](log)
    log.write()
    log.look()
    log.look()
    log.file.close()
    assert log.seen.decode() == "".join(log.written)


def test_from_the_start_in_chunks(path: Path, file: LogFile) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    assert len(text) > 4 * CHUNK_BYTES
    path.write_bytes(text)
    assert drain(file) == text


def test_a_torn_line_waits_for_its_end(path: Path, file: LogFile) -> None:
    path.write_bytes(b"whole\nto")
    assert drain(file) == b"whole\n"
    with path.open("ab") as end:
        end.write(b"rn\n")
    assert drain(file) == b"torn\n"


def test_the_last_line_of_a_renamed_file_needs_no_newline(path: Path, file: LogFile) -> None:
    path.write_bytes(b"one\nlast")
    assert drain(file) == b"one\n"
    path.rename(path.with_name("server.log.1"))
    path.write_bytes(b"next\n")
    assert drain(file) == b"last\nnext\n"


def test_a_line_without_an_end_is_passed_over(path: Path, file: LogFile) -> None:
    path.write_bytes(b"x" * (CHUNK_BYTES + 10) + b"\nafter\n")
    first = file.read()
    assert first is not None
    assert first.torn
    assert drain(file).endswith(b"after\n")


def test_invalid_utf8_passes_through(path: Path, file: LogFile) -> None:
    path.write_bytes(b"\xff\xfe broken \x00\n")
    assert drain(file) == b"\xff\xfe broken \x00\n"


def test_a_missing_file_is_waited_for(path: Path, file: LogFile) -> None:
    assert file.read() is None
    path.write_bytes(b"now\n")
    assert drain(file) == b"now\n"
