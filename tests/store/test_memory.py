from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.process
def test_history_in_memory_is_light_to_import() -> None:
    """``draftgauge inspect`` starts with it."""
    program = "import sys, store.memory; print(sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    for heavy in ("duckdb", "pyarrow", "numpy", "pandas", "sqlalchemy", "alembic"):
        assert f"'{heavy}'" not in loaded.stdout
