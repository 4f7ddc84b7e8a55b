"""Columns from Parquet, Feather and Arrow files."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from powermeans.scale.tables.checking import names_identifiers
from powermeans.scale.tables.table import NoRowsError, TableError, distinct, refusing_damage
from powermeans.types import Points

_BATCH_ROWS = 2**16
# The values of all columns that stay in the cache while they are written as rows.
_VALUES_IN_CACHE = 2**14


@dataclass(frozen=True)
class Batches:
    """A reader of a Parquet, Feather or Arrow file."""

    name: str
    path: Path
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    index: frozenset[int]
    beside: dict[int, str]
    dates: frozenset[int]
    keys: Sequence[str]
    n_rows: int
    open_batches: Any
    decimal: ClassVar[str] = ""

    @classmethod
    def of_parquet(cls, path: Path, name: str, *, reads_dates: bool) -> Batches:
        """Open a Parquet file."""
        parquet = pyarrow_part("parquet")
        with refusing_damage(name, "Parquet"):
            file = parquet.ParquetFile(path)
        return cls._of(
            path,
            name,
            file.schema_arrow,
            file.metadata.num_rows,
            lambda keys: file.iter_batches(_BATCH_ROWS, columns=keys),
            reads_dates=reads_dates,
        )

    @classmethod
    def of_arrow(cls, path: Path, name: str, *, is_stream: bool, reads_dates: bool) -> Batches:
        """Open a Feather or Arrow file, or an Arrow stream."""
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
        return cls._of(
            path, name, schema, n_rows, lambda keys: iter(batches), reads_dates=reads_dates
        )

    @classmethod
    def _of(
        cls,
        path: Path,
        name: str,
        schema: Any,
        n_rows: int,
        open_batches: Any,
        *,
        reads_dates: bool,
    ) -> Batches:
        if not n_rows:
            raise NoRowsError(f"{name} has columns and no rows")
        with refusing_damage(name, "Parquet, Feather or Arrow"):
            keys = tuple(schema.names)
        types = dict(enumerate(schema.types))
        texts = {
            j: f"of the type {kind}"
            for j, kind in types.items()
            if not _is_number_type(kind) and not _is_date_type(kind)
        }
        is_integer = pyarrow_part("types").is_integer
        whole = frozenset(j for j, kind in types.items() if is_integer(kind))
        index, names = _index_of(schema), distinct(keys)
        beside = {j: "identifiers" for j in whole if names_identifiers(names[j])}
        dates = frozenset(j for j, kind in types.items() if _is_date_type(kind))
        beside |= {} if reads_dates else dict.fromkeys(dates, "dates")
        return cls(
            name, path, names, texts, whole, index, beside, dates, keys, n_rows, open_batches
        )

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how dates are read, which are no numbers in the file."""
        dates = [f'"{self.names[number]}"' for number in wanted if number in self.dates]
        return f"{', '.join(dates)}: dates as days since 1970" if dates else ""

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns."""
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
    """Return where the wanted columns of a file are in a batch that has all columns of their names.

    `keys` are the names of all columns of the file, perhaps with repetitions.
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(schema.names):
        places.setdefault(name, []).append(place)
    n_before: dict[str, int] = {}
    ranks = []
    for key in keys:
        ranks.append(n_before.get(key, 0))
        n_before[key] = ranks[-1] + 1
    return [places[keys[number]][ranks[number]] for number in wanted]


def _index_of(schema: Any) -> frozenset[int]:
    """Return the columns that hold an index of pandas, by the metadata of the file."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return frozenset()
    return frozenset(number for number, key in enumerate(schema.names) if key in index)


def matrix_of(columns: Iterable[Any], dtype: np.dtype[np.floating[Any]]) -> Points:
    """Return columns of Arrow or NumPy in C order, with NaN for missing values."""
    arrays = [_values_of(column, dtype) for column in columns]
    points: Points = np.empty((len(arrays[0]), len(arrays)), dtype=dtype)
    n_tile = max(1, _VALUES_IN_CACHE // len(arrays))
    for start in range(0, len(points), n_tile):
        tile = slice(start, start + n_tile)
        for number, array in enumerate(arrays):
            points[tile, number] = array[tile]
    return points


def _is_number_type(kind: Any) -> bool:
    types = pyarrow_part("types")
    names = ("integer", "floating", "boolean", "decimal", "null")
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def _is_date_type(kind: Any) -> bool:
    types = pyarrow_part("types")
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _values_of(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a column as an array, without a copy if it can be used in place."""
    if isinstance(column, np.ndarray):
        return column
    if _is_date_type(column.type):
        return _days_in(column).astype(dtype)
    wanted = pyarrow_part().from_numpy_dtype(dtype)
    of_dtype = column if column.type == wanted else column.cast(wanted, safe=False)
    values: NDArray[Any] = of_dtype.to_numpy(zero_copy_only=False)
    return values


def _days_in(column: Any) -> NDArray[Any]:
    """Return dates as days since 1970, with NaN for missing ones."""
    pa = pyarrow_part()
    zone = getattr(column.type, "tz", None)
    microseconds = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    days: NDArray[Any] = microseconds.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return days / 86400e6


def pyarrow_part(part: str | None = None) -> Any:
    """Import PyArrow, or one of its modules, on first use."""
    try:
        return importlib.import_module("pyarrow" if part is None else f"pyarrow.{part}")
    except ImportError:
        raise TableError('this kind of file needs PyArrow: pip install "powermeans[cli]"') from None
