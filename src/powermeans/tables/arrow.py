"""Columns from Parquet, Feather and Arrow files."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.tables.table import NoRowsError, TableError, distinct
from powermeans.types import Points

_BATCH_ROWS = 2**16
# As many values of all columns stay in the cache while they are put into rows.
_VALUES_IN_CACHE = 2**14


@dataclass(frozen=True)
class Batches:
    """A reader of a file whose columns have types."""

    name: str
    path: Path
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    index: frozenset[int]
    keys: Sequence[str]
    n_rows: int
    open_batches: Any

    @classmethod
    def of_parquet(cls, path: Path, name: str) -> Batches:
        """Open a Parquet file, to be read block by block."""
        parquet = pyarrow_part("parquet")
        with refusing_damage(name, "Parquet"):
            file = parquet.ParquetFile(path)
        return cls._of(
            path,
            name,
            file.schema_arrow,
            file.metadata.num_rows,
            lambda keys: file.iter_batches(_BATCH_ROWS, columns=keys),
        )

    @classmethod
    def of_arrow(cls, path: Path, name: str, *, is_stream: bool) -> Batches:
        """Open a Feather or Arrow file, or a stream of Arrow."""
        ipc = pyarrow_part("ipc")
        with refusing_damage(name, "Feather or Arrow"):
            mapped = pyarrow_part().memory_map(os.fspath(path))
            if is_stream:
                table = ipc.open_stream(mapped).read_all()
                schema, batches = table.schema, table.to_batches()
            else:
                file = ipc.open_file(mapped)
                schema = file.schema
                batches = [file.get_batch(i) for i in range(file.num_record_batches)]
        n_rows = sum(batch.num_rows for batch in batches)
        return cls._of(path, name, schema, n_rows, lambda keys: iter(batches))

    @classmethod
    def _of(cls, path: Path, name: str, schema: Any, n_rows: int, open_batches: Any) -> Batches:
        if not n_rows:
            raise NoRowsError(f"{name} has columns and no rows")
        texts = {
            number: f"of the type {field.type}"
            for number, field in enumerate(schema)
            if not _is_number_type(field.type)
        }
        whole = frozenset(
            number
            for number, field in enumerate(schema)
            if pyarrow_part("types").is_integer(field.type)
        )
        keys = tuple(schema.names)
        index = _index_of(schema)
        return cls(name, path, distinct(keys), texts, whole, index, keys, n_rows, open_batches)

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, written block by block."""
        points = np.empty((self.n_rows, len(wanted)))
        start = 0
        with refusing_damage(self.name, "table"):
            keys = list(dict.fromkeys(self.keys[number] for number in wanted))
            for batch in self.open_batches(keys):
                end = start + batch.num_rows
                for place, number in enumerate(places_among(batch.schema, self.keys, wanted)):
                    points[start:end, place] = _values_of(batch.column(number), points.dtype)
                start = end
        return points


def places_among(schema: Any, keys: Sequence[str], wanted: Iterable[int]) -> list[int]:
    """Return the places of columns of a file in a batch that has all columns of some names.

    `keys` are the names of all columns of the file; several may be the same.
    """
    return [
        schema.get_all_field_indices(keys[number])[keys[:number].count(keys[number])]
        for number in wanted
    ]


def _index_of(schema: Any) -> frozenset[int]:
    """Return the columns in which pandas wrote the index of a table, by its metadata."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return frozenset()
    return frozenset(number for number, key in enumerate(schema.names) if key in index)


def matrix_of(batch: Any, places: Iterable[int], dtype: np.dtype[np.floating[Any]]) -> Points:
    """Return the columns of a batch at these places in C order, NaN where there is no value."""
    columns = [_values_of(batch.column(place), dtype) for place in places]
    points: Points = np.empty((batch.num_rows, len(columns)), dtype=dtype)
    n_tile = max(1, _VALUES_IN_CACHE // max(1, len(columns)))
    for start in range(0, batch.num_rows, n_tile):
        tile = slice(start, start + n_tile)
        for number, column in enumerate(columns):
            points[tile, number] = column[tile]
    return points


def _is_number_type(kind: Any) -> bool:
    types = pyarrow_part("types")
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _values_of(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return Arrow's numbers as an array, uncopied where the dtype is right and none is missing."""
    wanted = pyarrow_part().from_numpy_dtype(dtype)
    of_dtype = column if column.type == wanted else column.cast(wanted, safe=False)
    values: NDArray[Any] = of_dtype.to_numpy(zero_copy_only=False)
    return values


@contextlib.contextmanager
def refusing_damage(name: str, kind: str) -> Iterator[None]:
    """Turn errors of reading into a table error in one line."""
    try:
        yield
    except TableError:
        raise
    except (pyarrow_part().ArrowException, OSError, ValueError) as error:
        problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise TableError(f"{name} is a damaged {kind} file: {problem}") from None


def pyarrow_part(part: str | None = None) -> Any:
    """Import PyArrow, or a part of it, when it is needed."""
    try:
        return importlib.import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError:
        raise TableError(
            'this kind of file is read by PyArrow: pip install "powermeans[cli]"'
        ) from None
