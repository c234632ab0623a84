"""Bundles: whatever an operator attached, each file is read or named with the reason, and the others still tell."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import orjson
import pytest

from app.inspecting import as_document
from service import bundle
from service.bundle import bundles
from service.inspect import inspect

GOOD = Path(__file__).parents[1] / "fixtures" / "real" / "vllm" / "good" / "metrics-1-repeat40.txt.gz"


def told(folder: Path) -> tuple[list[str], list[str]]:
    """Files that told windows, and what is said of the others; the whole passes through JSON."""
    inspections = [inspect(item) for item in bundles([folder])]
    orjson.dumps(as_document(inspections))
    files = {sample.file for inspection in inspections for sample in inspection.samples}
    return sorted(files), [problem for inspection in inspections for problem in inspection.problems]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "page.txt").write_bytes(gzip.decompress(GOOD.read_bytes()))
    return tmp_path


def test_a_damaged_archive_is_named(folder: Path) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)) * 200, mtime=0))
    packed[20:60] = bytes(40)
    (folder / "a.log.gz").write_bytes(packed)
    (folder / "cut.log.gz").write_bytes(gzip.compress(b"line\n" * 1000)[:-20])
    (folder / "none.log.gz").write_bytes(b"no archive")
    files, problems = told(folder)
    assert files == ["page.txt"]
    assert [problem.partition(":")[0] for problem in problems] == ["a.log.gz", "cut.log.gz", "none.log.gz"]


def test_an_archive_that_unpacks_to_too_much_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "UNPACKED_LIMIT_BYTES", 1_000_000)
    (folder / "bomb.log.gz").write_bytes(gzip.compress(bytes(1_000_001)))
    files, problems = told(folder)
    assert files == ["page.txt"]
    assert problems[0].startswith("bomb.log.gz: not read, larger than")


@pytest.mark.parametrize(
    "given",
    [
        '{"num_draft_tokens": 1e300}',
        '{"num_draft_tokens": -4}',
        '{"min_windows": 1e300}',
        '{"timing": {"t1_minus_t0_s": 1e300}}',
        '{"timing": {"t1_minus_t0_s": -15}}',
    ],
)
def test_numbers_beyond_reason_are_refused(folder: Path, given: str) -> None:
    shutil.copy(folder / "page.txt", folder / "page2.txt")
    (folder / "bundle.json").write_text(given)
    _, problems = told(folder)
    assert len(problems) == 1
    assert problems[0].startswith("bundle.json: ")


def test_a_number_beyond_reason_becomes_no_fact(folder: Path) -> None:
    (folder / "bundle.json").write_text('{"num_speculative_tokens": 1e300, "dp": -1e300, "role": "decode"}')
    (item,) = bundles([folder])
    assert item.operator.facts == {"role": "decode"}


def test_a_folder_linked_to_itself_is_read_once(folder: Path) -> None:
    (folder / "again").symlink_to(folder)
    (folder / "gone").symlink_to(folder / "nowhere")
    assert len(bundles([folder])) == 1
