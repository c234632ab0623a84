from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="session")
def fixture_bytes() -> Callable[[str], bytes]:
    """The content of a file under tests/fixtures, unpacked where it is stored as NAME.gz."""

    def read(name: str) -> bytes:
        path = FIXTURES / name
        return path.read_bytes() if path.exists() else gzip.decompress((FIXTURES / f"{name}.gz").read_bytes())

    return read
