"""Arrays of NumPy as tables of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from powermeans.errors import TableError
from powermeans.scale.array_files import ArrayFile, open_npy, open_npz
from powermeans.system.arrow import pyarrow_part
from powermeans_tables.reading.table import Rows

if TYPE_CHECKING:
    from powermeans_tables.reading.formats import File


def read_npy(file: File) -> Rows:
    """Return the rows of an NPY file."""
    return _rows_of(open_npy(file.path, file.name))


def read_npz(file: File) -> Rows:
    """Return the rows of an array in an NPZ file, which is in memory."""
    return _rows_of(open_npz(file.path, file.name, file.options.get("array")))


def _rows_of(found: ArrayFile) -> Rows:
    wanted = [place for place in range(len(found.names)) if place not in found.texts]
    if not wanted:
        raise TableError(f"{found.name} contains no numbers")
    names = tuple(found.names[place] for place in wanted)
    dtype: Any = np.dtype(np.float32 if found.stored == np.float32 else np.float64)

    def batches() -> Iterator[Any]:
        pa = pyarrow_part()
        for block in found.blocks(wanted, dtype):
            columns = [pa.array(np.ascontiguousarray(column)) for column in block.T]
            yield pa.RecordBatch.from_arrays(columns, names=list(names))

    return Rows(name=found.name, names=names, read=batches, is_array=True)
