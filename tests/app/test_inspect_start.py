"""``draftgauge inspect`` starts at once: it imports nothing that only the service needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "aiohttp",
    "apscheduler",
    "asyncio",
    "dash",
    "duckdb",
    "fastapi",
    "httpx",
    "numpy",
    "pandas",
    "pyarrow",
    "rich",
    "sqlalchemy",
    "structlog",
    "uvicorn",
)
"""Each takes from 50 ms to a second to import."""

CASES = Path(__file__).parents[1] / "fixtures" / "cases"

PROGRAM = """
import json, sys
from app.cli import main
status = main(["inspect", "--json", *sys.argv[1:]])
print(json.dumps({"status": status, "modules": [name for name in sys.modules if "." not in name]}), file=sys.stderr)
"""


@pytest.mark.process
@pytest.mark.parametrize("case", ["006-sg-custom-log-k1-ok", "056-vl-dflash-position-cliff"])
def test_inspect_imports_no_service(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(CASES / case)], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(done.stdout)["samples"]
    told = json.loads(done.stderr)
    assert told["status"] == 0
    assert not set(HEAVY) & set(told["modules"])
