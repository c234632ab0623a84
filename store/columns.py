"""Arrow tables out of Python values, column by column.

``pyarrow.array`` asks of a list whether it is a pandas Series, and imports pandas to know what that is: a second, and
50 MB for as long as the service runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

LARGEST_OFFSET = 2**31 - 1

_NUMBERS = {pa.float64(): np.float64, pa.int64(): np.int64, pa.int32(): np.int32}
_TEXT, _BOOL, _NUMBER_LIST = pa.string(), pa.bool_(), pa.list_(pa.float64())


def table_of(columns: Mapping[str, Iterable[Any]], schema: pa.Schema) -> pa.Table:
    """The table of ``schema`` with these values; None is null.

    Raises TypeError, ValueError or OverflowError for a value that is not of its column's type.
    """
    arrays = [_array(list(columns[field.name]), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    validity = _bits(value is not None for value in values) if None in values else None
    if kind in _NUMBERS:
        data = pa.py_buffer(np.array([0 if value is None else value for value in values], _NUMBERS[kind]))
        return pa.Array.from_buffers(kind, len(values), [validity, data])
    if kind == _BOOL:
        return pa.Array.from_buffers(kind, len(values), [validity, _bits(map(bool, values))])
    if kind == _TEXT:
        texts = [b"" if value is None else str.encode(value) for value in values]
        buffers = [validity, _offsets(map(len, texts)), pa.py_buffer(b"".join(texts))]
        return pa.Array.from_buffers(kind, len(values), buffers)
    assert kind == _NUMBER_LIST, f"no column of {kind} is made here"
    lists = [() if value is None else value for value in values]
    numbers = _array([number for each in lists for number in each], pa.float64())
    return pa.Array.from_buffers(kind, len(values), [validity, _offsets(map(len, lists))], children=[numbers])


def _bits(values: Iterable[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.fromiter(values, np.bool_), bitorder="little"))


def _offsets(lengths: Iterable[int]) -> pa.Buffer:
    ends = np.cumsum([0, *lengths], dtype=np.int64)
    if ends[-1] > LARGEST_OFFSET:
        raise OverflowError("a column is longer than Arrow can tell")
    return pa.py_buffer(ends.astype(np.int32))
