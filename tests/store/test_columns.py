"""Arrow tables out of Python values equal those that pyarrow makes, without the pandas that it imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import columns
from store.columns import table_of

SCHEMA = pa.schema(
    [
        ("whole", pa.int64()),
        ("short", pa.int32()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("list", pa.list_(pa.float64())),
    ]
)
REALS = st.floats(allow_nan=False)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | REALS,
        st.none() | st.booleans(),
        st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | st.lists(REALS, max_size=3).map(tuple),
    )
)


@given(ROWS)
def test_a_table_is_as_pyarrow_makes_it(rows: list[tuple[Any, ...]]) -> None:
    values = {field.name: [row[at] for row in rows] for at, field in enumerate(SCHEMA)}

    table = table_of(values, SCHEMA)

    table.validate(full=True)
    assert table.equals(pa.table(values, schema=SCHEMA))


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        ("whole", 2**63, OverflowError),
        ("whole", "seven", ValueError),
        ("real", "seven", ValueError),
        ("real", {}, TypeError),
        ("text", 7, TypeError),
        ("list", 7.0, TypeError),
    ],
)
def test_a_value_of_another_type_is_refused(column: str, value: object, problem: type[Exception]) -> None:
    with pytest.raises(problem):
        table_of({field.name: [value if field.name == column else None] for field in SCHEMA}, SCHEMA)


def test_a_column_of_more_text_than_arrow_can_tell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "LARGEST_OFFSET", 10)
    with pytest.raises(OverflowError):
        table_of({"text": ["1234567", "8901"]}, pa.schema([("text", pa.string())]))


PROGRAM = """
import sys
from acceptance.counts import Counts
from acceptance.query import AcceptanceQuery
from acceptance.series import Series
from acceptance.window import Window
from store.duckdb import DuckHistory
from store.history import Batch

history = DuckHistory(sys.argv[1])
history.append(Batch([Window(1, Series("t"), 0.0, 5.0, "counter", True, Counts(steps=2, by_position=(1.0,)))], [], []))
assert history.query(AcceptanceQuery(0.0, 10.0))[0].counts.steps == 2
print("pandas" in sys.modules)
"""


@pytest.mark.process
def test_history_is_written_and_read_without_pandas(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "history.duckdb")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "False\n"
