"""Columns from Parquet, Feather and Arrow files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans.scale.tables.checking import identifiers
from powermeans.scale.tables.table import (
    FileFormat,
    NoRowsError,
    distinct,
    from_row,
    refusing_damage,
)
from powermeans.system.arrow import pyarrow_part
from powermeans.types import Points
from powermeans_tables.preparing.cells import days_in, is_date_type

_N_LOOKED_AT = 2_000


class ArrowFile(FileFormat):
    """The columns of Parquet, Feather and Arrow, by the schema of the file."""

    decimal = ""
    n_rows: int

    def __init__(self, kind: str, path: Path, name: str, dates: str | None = None) -> None:
        self.kind, self.name, self._path = kind, name, path
        # Only a batch of Feather or Arrow itself says how long it is.
        self.can_skip = kind == "Parquet"
        with refusing_damage(name, kind):
            schema_of = _schema_of_parquet if self.can_skip else _schema_of_batches
            schema, self.n_rows = schema_of(path)
            self._describe(schema, reads_dates=dates is not None)
        if not self.n_rows:
            raise NoRowsError(f"{name} has columns and no rows")

    def _describe(self, schema: Any, *, reads_dates: bool) -> None:
        types, self._keys = pyarrow_part("types"), tuple(schema.names)

        def those_of(is_kind: Callable[[Any], bool]) -> frozenset[int]:
            return frozenset(j for j, kind in enumerate(schema.types) if is_kind(kind))

        self.names, self.index = distinct(self._keys), _index_of(schema)
        self.whole, self._dates = those_of(types.is_integer), those_of(is_date_type)
        self._narrow = those_of(types.is_float32) | those_of(types.is_float16)
        self.texts = {
            j: f"of the type {kind}"
            for j, kind in enumerate(schema.types)
            if j not in self._dates and not _is_number_type(kind)
        }
        self.beside = {} if reads_dates else dict.fromkeys(self._dates, "dates")
        if self.whole and self.n_rows:
            whole = sorted(self.whole)
            some = next(self._columns(whole, 0, _N_LOOKED_AT))
            numbers = [column.drop_null()[:_N_LOOKED_AT].to_numpy() for column in some]
            self.beside |= identifiers(self.names, dict(zip(whole, numbers, strict=True)))

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how dates are read, which are no numbers in the file."""
        dates = [f'"{self.names[number]}"' for number in wanted if number in self._dates]
        return f"{', '.join(dates)}: dates as days since 1970" if dates else ""

    def fits_float32(self, wanted: Sequence[int]) -> bool:
        """Return whether these columns are of float32 or float16."""
        return self._narrow.issuperset(wanted)

    def as_table(self) -> Any:
        """Return all columns as they are stored, but those of an index."""
        pa = pyarrow_part()
        with refusing_damage(self.name, self.kind):
            if self.can_skip:
                table = pyarrow_part("parquet").read_table(self._path, partitioning=None)
            else:
                with pa.OSFile(str(self._path)) as file:
                    schema, batches = _open_batches(file)
                    table = pa.Table.from_batches(batches, schema)
                table.validate(full=True)  # a damaged file may have texts that end elsewhere
        places = [place for place in range(table.num_columns) if place not in self.index]
        return table.rename_columns(list(self.names)).select(places)

    def blocks(
        self,
        wanted: Sequence[int],
        dtype: np.dtype[np.floating[Any]],
        first_row: int = 0,
        at_once: int | None = None,
    ) -> Iterator[Points]:
        """Yield these columns, fewer rows at a time for more columns."""
        with refusing_damage(self.name, self.kind):
            for columns in self._columns(wanted, first_row, max(2**10, 2**18 // len(wanted))):
                yield matrix_of(columns, dtype)

    def _columns(self, wanted: Sequence[int], first_row: int, at_once: int) -> Iterator[list[Any]]:
        """Return columns of Arrow, at most `at_once` rows at a time."""
        if self.can_skip:
            return _columns_of_parquet(self._path, self._keys, wanted, first_row, at_once)
        return _columns_of_batches(self._path, wanted, first_row, at_once)


def _open_parquet(path: Path) -> Any:
    # Read little of a column at a time.
    return pyarrow_part("parquet").ParquetFile(path, pre_buffer=False, buffer_size=2**16)


def _schema_of_parquet(path: Path) -> tuple[Any, int]:
    with _open_parquet(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def _columns_of_parquet(
    path: Path, every: Sequence[str], wanted: Sequence[int], first_row: int, at_once: int
) -> Iterator[list[Any]]:
    keys = list(dict.fromkeys(every[place] for place in wanted))
    with _open_parquet(path) as file:
        groups = list(range(file.metadata.num_row_groups))
        while groups and file.metadata.row_group(groups[0]).num_rows <= first_row:
            first_row -= file.metadata.row_group(groups.pop(0)).num_rows
        batches = file.iter_batches(at_once, row_groups=groups, columns=keys)
        for batch in from_row(first_row, batches):
            order = places_among(batch.schema, every, wanted)
            yield [batch.column(place) for place in order]


def _open_batches(file: Any) -> tuple[Any, Iterator[Any]]:
    """Open a file or a stream, of which one batch at a time is in memory."""
    ipc = pyarrow_part("ipc")
    if file.read(6) == b"ARROW1":
        opened = ipc.open_file(file)
        numbers = range(opened.num_record_batches)
        return opened.schema, (opened.get_batch(number) for number in numbers)
    file.seek(0)
    stream = ipc.open_stream(file)
    return stream.schema, iter(stream)


def _schema_of_batches(path: Path) -> tuple[Any, int]:
    # A memory map leaves out the values, but counts against a memory limit while it is there.
    with pyarrow_part().memory_map(str(path)) as file:
        schema, batches = _open_batches(file)
        return schema, sum(batch.num_rows for batch in batches)


def _columns_of_batches(
    path: Path, wanted: Sequence[int], first_row: int, at_once: int
) -> Iterator[list[Any]]:
    with pyarrow_part().OSFile(str(path)) as file:
        for batch in from_row(first_row, _open_batches(file)[1]):
            for start in range(0, len(batch), at_once):
                some = batch.slice(start, at_once)
                yield [some.column(place) for place in wanted]


def places_among(schema: Any, keys: Sequence[str], wanted: Iterable[int]) -> list[int]:
    """Return where the selected columns of a file are in a batch with all columns of their names.

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
    """Return the columns with an index of pandas, by the metadata of the file."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return frozenset()
    return frozenset(number for number, key in enumerate(schema.names) if key in index)


def matrix_of(columns: Iterable[Any], dtype: np.dtype[np.floating[Any]]) -> Points:
    """Return columns of Arrow or NumPy in C order, with NaN for missing values."""
    arrays = [values_of(column, dtype) for column in columns]
    points: Points = np.empty((len(arrays[0]), len(arrays)), dtype=dtype)
    n_tile = max(1, 2**14 // len(arrays))  # which stay in the cache while rows are written
    for start in range(0, len(points), n_tile):
        tile = slice(start, start + n_tile)
        for number, array in enumerate(arrays):
            points[tile, number] = array[tile]
    return points


def _is_number_type(kind: Any) -> bool:
    types = pyarrow_part("types")
    names = ("integer", "floating", "boolean", "decimal", "null")
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def values_of(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a column as an array, without a copy if it can be used in place."""
    if isinstance(column, np.ndarray):
        return column
    if is_date_type(column.type):
        return days_in(column).astype(dtype)
    wanted = pyarrow_part().from_numpy_dtype(dtype)
    of_dtype = column if column.type == wanted else column.cast(wanted, safe=False)
    values: NDArray[Any] = of_dtype.to_numpy(zero_copy_only=False)
    return values
