"""Parquet, Feather and Arrow files, and arrays of NumPy, by their types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from powermeans.errors import TableError
from powermeans.scale import limits
from powermeans.scale.array_files import ArrayFile, open_npy, open_npz
from powermeans_tables.cells.arrow import ipc, pa, parquet
from powermeans_tables.reading.damage import NoRowsError, refusing_damage
from powermeans_tables.reading.table import File, Rows
from powermeans_tables.reading.text_form import distinct

_CELLS_AT_ONCE = 2**22


def read_parquet(file: File) -> Rows:
    """Return the rows of a Parquet file, read some at a time."""

    def batches(n_at_once: int) -> Iterator[Any]:
        with _open_parquet(file.path) as opened:
            yield from opened.iter_batches(n_at_once)

    with refusing_damage(file.name, "Parquet"), _open_parquet(file.path) as opened:
        groups = map(opened.metadata.row_group, range(opened.metadata.num_row_groups))
        limits.refuse_growth(
            file.name, file.path.stat().st_size, sum(each.total_byte_size for each in groups)
        )
        return _rows_of(file, "Parquet", opened.schema_arrow, opened.metadata.num_rows, batches)


def read_arrow(file: File) -> Rows:
    """Return the rows of a file or a stream of Arrow, batch after batch."""

    def batches(n_at_once: int) -> Iterator[Any]:
        with pa.OSFile(str(file.path)) as stored:
            for batch in _open_batches(stored)[1]:
                batch.validate(full=True)  # a damaged file may have texts that end elsewhere
                for start in range(0, batch.num_rows, n_at_once):
                    yield batch.slice(start, n_at_once)

    with refusing_damage(file.name, "Feather or Arrow"), pa.memory_map(str(file.path)) as stored:
        schema, stored_batches = _open_batches(stored)
        n_rows = sum(batch.num_rows for batch in stored_batches)
        return _rows_of(file, "Feather or Arrow", schema, n_rows, batches)


def _rows_of(file: File, kind: str, schema: Any, n_rows: int, batches: Any) -> Rows:
    if not n_rows:
        raise NoRowsError(f"{file.name} has columns and no rows")
    index, every = _index_of(schema), distinct(schema.names)
    places = [place for place, name in enumerate(schema.names) if name not in index]
    names = tuple(every[place] for place in places)

    def read() -> Iterator[Any]:
        with refusing_damage(file.name, kind):
            for batch in batches(max(1, _CELLS_AT_ONCE // max(len(names), 1))):
                columns = [batch.column(place) for place in places]
                yield pa.RecordBatch.from_arrays(columns, names=list(names))

    return Rows(name=file.name, names=names, read=read)


def _open_parquet(path: Path) -> Any:
    # Read little of a column at a time.
    return parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**16)


def _open_batches(stored: Any) -> tuple[Any, Iterator[Any]]:
    """Open a file or a stream, of which one batch at a time is in memory."""
    if stored.read(6) == b"ARROW1":
        opened = ipc.open_file(stored)
        numbers = range(opened.num_record_batches)
        return opened.schema, (opened.get_batch(number) for number in numbers)
    stored.seek(0)
    stream = ipc.open_stream(stored)
    return stream.schema, iter(stream)


def _index_of(schema: Any) -> set[str]:
    """Return the columns with an index of pandas, by the metadata of the file."""
    try:
        index = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        return {name for name in index if isinstance(name, str)}
    except (KeyError, TypeError, ValueError):
        return set()


def read_npy(file: File) -> Rows:
    """Return the rows of an NPY file."""
    return _rows_of_array(open_npy(file.path, file.name))


def read_npz(file: File) -> Rows:
    """Return the rows of an array in an NPZ file, which is in memory."""
    return _rows_of_array(open_npz(file.path, file.name, file.options.get("array")))


def _rows_of_array(found: ArrayFile) -> Rows:
    wanted = [place for place in range(len(found.names)) if place not in found.texts]
    if not wanted:
        raise TableError(f"{found.name} contains no numbers")
    names = tuple(found.names[place] for place in wanted)
    dtype: Any = np.dtype(np.float32 if found.stored == np.float32 else np.float64)

    def batches() -> Iterator[Any]:
        for block in found.blocks(wanted, dtype):
            columns = [pa.array(np.ascontiguousarray(column)) for column in block.T]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))

    return Rows(name=found.name, names=names, read=batches, is_array=True)
