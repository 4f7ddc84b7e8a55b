"""Rows that are written once to a temporary file, since they come once or are slow to read."""

import contextlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from powermeans.errors import TableError, listed, writing_temporarily
from powermeans.scale.block import SourceError
from powermeans.scale.files import FileSource
from powermeans.scale.named_columns import places_of
from powermeans.system.arrow import pyarrow_part
from powermeans.types import Matrix

_HEADER = 128  # bytes of NPY before the entries, however many rows there are


class Spool:
    """A temporary NPY file that grows by blocks of rows, and can be changed block by block."""

    def __init__(self, n_columns: int, dtype: Any) -> None:
        self.n_columns, self.dtype, self.n_rows = n_columns, np.dtype(dtype), 0
        with writing_temporarily():
            descriptor, name = tempfile.mkstemp(prefix="powermeans-", suffix=".npy")
        self.path = Path(name)
        self._file = os.fdopen(descriptor, "r+b")
        self._write(b"\0" * _HEADER)
        self._end = weakref.finalize(self, _remove, self._file, self.path)

    def add(self, block: Matrix) -> None:
        """Append rows."""
        self.n_rows += len(block)
        self._write(np.ascontiguousarray(block, self.dtype).data)

    def _write(self, given: Any) -> None:
        with writing_temporarily():
            self._file.write(given)
            self._file.flush()  # nothing is left to write where it cannot be told

    def rows(self, part: slice) -> Matrix:
        """Return the rows from one place to another."""
        row = self.n_columns * self.dtype.itemsize
        self._file.seek(_HEADER + part.start * row)
        read = self._file.read((part.stop - part.start) * row)
        found: Matrix = np.frombuffer(read, self.dtype).reshape(-1, self.n_columns)
        self._file.seek(0, os.SEEK_END)
        return found

    def change(self, change: Callable[[Matrix], Matrix], n_at_once: int) -> None:
        """Replace all rows, some at a time."""
        for start in range(0, self.n_rows, n_at_once):
            rows = change(self.rows(slice(start, min(start + n_at_once, self.n_rows))))
            self._file.seek(_HEADER + start * self.n_columns * self.dtype.itemsize)
            self._write(np.ascontiguousarray(rows, self.dtype).data)
        self._file.seek(0, os.SEEK_END)

    def source(self, called: str, **options: Any) -> FileSource:
        """Return the rows, whose file is removed with them."""
        shape = self.n_rows, self.n_columns
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        self._file.seek(0)
        npy.write_array_header_1_0(self._file, header)
        assert self._file.tell() == _HEADER, "NumPy pads headers for any number of rows"
        self._file.flush()
        found = FileSource([self.path], called=called, are_temporary=True, **options)
        weakref.finalize(found, lambda spool: None, self)  # keeps the file while there are rows
        return found


def _remove(file: Any, path: Path) -> None:
    with contextlib.suppress(OSError):  # of what is left to write to a full disk
        file.close()
    path.unlink(missing_ok=True)


def spooled(
    stream: Any,
    columns: Sequence[str | int] | None,
    weights: str | None,
    dtype: np.dtype[np.floating[Any]] | None,
) -> FileSource:
    """Return the rows of a stream of Arrow batches, which could perhaps not be read twice."""
    reader, called = _reader_of(stream), f"the {type(stream).__name__}"
    if not reader.schema.names:
        raise SourceError(f"{called} has no columns: select some")
    places = places_of(columns, weights, reader.schema.names, called)
    types = [reader.schema.types[place] for place in places]
    refuse_words(reader.schema, places, called)
    pa = pyarrow_part()
    n_features = len(places) - (weights is not None)
    are_narrow = all(kind in (pa.float32(), pa.float16()) for kind in types[:n_features])
    dtype = dtype or np.dtype(np.float32 if are_narrow else np.float64)
    spool = Spool(len(places), dtype if weights is None else np.float64)
    for batch in reader:
        spool.add(matrix_of([batch.column(place) for place in places], spool.dtype))
    if not spool.n_rows:
        raise TableError(f"{called} has columns and no rows")
    names = [reader.schema.names[place] for place in places]
    return spool.source(called, weights=weights, dtype=dtype, names=names)


def refuse_words(schema: Any, places: Iterable[int], name: str) -> None:
    """Raise where columns of a table of Arrow are not numbers."""
    types, kinds = pyarrow_part("types"), ("integer", "floating", "boolean", "decimal", "null")
    are_numbers = [getattr(types, f"is_{kind}") for kind in kinds]
    others = [
        schema.names[place]
        for place in places
        if not any(is_one(schema.types[place]) for is_one in are_numbers)
    ]
    if others:
        raise TableError(
            f"{name} has columns without numbers, {listed(others)}: leave them out, or pass "
            "open_data(..., prepare=powermeans.Prepare()), which reads words and dates"
        )


def _reader_of(stream: Any) -> Any:
    pa = pyarrow_part()
    if hasattr(stream, "sink_ipc"):  # a lazy frame, which Polars works through in batches
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "rows.arrow")
        stream.sink_ipc(path)
        opened = pyarrow_part("ipc").open_file(path)
        numbers = range(opened.num_record_batches)
        batches = (opened.get_batch(number) for number in numbers)
        reader = pa.RecordBatchReader.from_batches(opened.schema, batches)
        weakref.finalize(reader, folder.cleanup)
        return reader
    if isinstance(stream, pa.RecordBatchReader):  # which raises what its batches raise
        return stream
    return pa.RecordBatchReader.from_stream(stream)


def matrix_of(columns: Iterable[Any], dtype: Any) -> Matrix:
    """Return columns of Arrow in C order, with NaN for missing values."""
    arrays = [_values_of(column, np.dtype(dtype)) for column in columns]
    points: Matrix = np.empty((len(arrays[0]), len(arrays)), dtype=dtype)
    n_tile = max(1, 2**14 // len(arrays))  # which stay in the cache while rows are written
    for start in range(0, len(points), n_tile):
        tile = slice(start, start + n_tile)
        for number, array in enumerate(arrays):
            points[tile, number] = array[tile]
    return points


def _values_of(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    wanted = pyarrow_part().from_numpy_dtype(dtype)
    of_dtype = column if column.type == wanted else column.cast(wanted, safe=False)
    values: NDArray[Any] = of_dtype.to_numpy(zero_copy_only=False)
    return values


def table_of(stream: Any) -> Any:
    """Return a stream of Arrow batches as a table in memory."""
    return _reader_of(stream).read_all()
