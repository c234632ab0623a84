from collections.abc import Iterator, Sequence
from typing import Any, Self

class DataType: ...

class Field:
    name: str
    type: DataType

class Schema:
    def __iter__(self) -> Iterator[Field]: ...

class Buffer: ...
class RecordBatchReader: ...

class Array:
    @classmethod
    def from_buffers(
        cls,
        type: DataType,
        length: int,
        buffers: Sequence[Buffer | None],
        children: Sequence[Array] | None = None,
    ) -> Self: ...

class ChunkedArray:
    def to_pylist(self) -> list[Any]: ...

class Table:
    num_rows: int
    columns: list[ChunkedArray]
    @classmethod
    def from_arrays(cls, arrays: Sequence[Array], schema: Schema) -> Self: ...
