"""Files of one array, which give slices of their rows: NPY and NPZ."""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from powermeans.errors import Argument, TableError, listed, nearest
from powermeans.scale.limits import refuse_growth
from powermeans.types import Matrix

NPY, NPZ = b"\x93NUMPY", b"PK"  # the first bytes of files


class NoRowsError(TableError):
    """A file is a table without rows; among several files it may be skipped."""


class ArrayFile:
    """An array, perhaps with named fields, of which a function returns all columns of some rows.

    The function takes the first row, the row behind the last, and `Buffers`.
    """

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        rows: Callable[[int, int, Buffers], Any],
        *,
        is_in_rows: bool = True,
    ) -> None:
        self._rows, self._is_in_rows = rows, is_in_rows
        is_matrix = len(shape) == 2 and shape[1] > 0 and not dtype.names
        is_table = (is_matrix or len(shape) == 1) and shape[0] >= 0
        if not is_table or not shape[0]:
            kind = NoRowsError if is_table else TableError
            raise kind(
                f"{name} contains an array of dtype {dtype} and shape {tuple(shape)}: pass numbers "
                "in rows and columns"
            )
        self._width = int(shape[1]) if len(shape) == 2 else 1
        dtypes = [dtype[key] for key in dtype.names] if dtype.names else [dtype] * self._width
        self.stored, self.n_rows, self.name = dtype, int(shape[0]), name
        self.names = dtype.names or tuple(f"c{number + 1}" for number in range(self._width))
        self.texts = {j: f"of dtype {of}" for j, of in enumerate(dtypes) if of.kind not in "biuf"}

    def blocks(
        self,
        wanted: Sequence[int],
        dtype: np.dtype[np.floating[Any]],
        first_row: int = 0,
        at_once: int | None = None,
    ) -> Iterator[Matrix]:
        """Yield these columns, some rows at a time."""
        is_all, buffers = list(wanted) == [*range(self._width)], Buffers()
        n_block = max(1, 2**20 // len(self.names))
        if at_once is not None and is_all and self._is_in_rows and dtype == self.stored:
            n_block = at_once  # parts need no copy then
        for start in range(first_row, self.n_rows, n_block):
            found = self._rows(start, min(start + n_block, self.n_rows), buffers)
            if self.stored.names:
                fields = [found[self.names[place]] for place in wanted]
                chosen = np.stack([field.astype(dtype) for field in fields], axis=1)
            else:
                table = found.reshape(-1, self._width)
                chosen = table if is_all else table[:, wanted]
                del table
            points: Matrix = np.ascontiguousarray(chosen, dtype)
            del found, chosen
            yield points
            del points


def open_npy(path: Path, name: str) -> ArrayFile:
    """Open NPY, read by position, since a memory map counts against a memory limit."""
    shape, is_fortran, dtype, offset = _header_of(path, name)
    is_in_rows = not (is_fortran and len(shape) == 2)
    width = math.prod(shape[1:])

    def rows(start: int, end: int, buffers: Buffers) -> Any:
        found = buffers.array((end - start) * width, dtype)
        with open(path, "rb", buffering=0) as file:
            if is_in_rows:
                file.seek(offset + start * width * dtype.itemsize)
                _fill(found, file, name)
                return found
            columns = found.reshape(width, -1)
            for f, column in enumerate(columns):
                file.seek(offset + (f * shape[0] + start) * dtype.itemsize)
                _fill(column, file, name)
            return columns.T

    n_bytes = offset + math.prod(shape) * max(dtype.itemsize, 1)
    if path.stat().st_size < n_bytes:  # before columns get names, of which a head may promise any
        raise TableError(
            f"{name} ends after {path.stat().st_size} of {n_bytes} bytes: write it anew"
        )
    return ArrayFile(name, shape, dtype, rows, is_in_rows=is_in_rows)


def _fill(values: NDArray[Any], file: Any, name: str) -> None:
    values_as_bytes: Any = values.view(np.uint8)
    left = memoryview(values_as_bytes)
    while left:
        n_read = file.readinto(left)
        if not n_read:
            raise TableError(f"{name} ends before its array does: write it anew")
        left = left[n_read:]


def _header_of(path: Path, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, whether the order is Fortran's, dtype, and the offset of the values."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        with open(path, "rb") as file:
            version = npy.read_magic(file)
            if version in read:
                return *read[version](file), file.tell()
        mapped: Any = np.load(path, mmap_mode="r", allow_pickle=False)  # has names beyond Latin 1
        return mapped.shape, False, mapped.dtype, mapped.offset
    except Exception as error:  # a mangled header fails in Python's tokenizer and parser
        raise TableError(f"{name} is no array that can be read: {error!s:.200}") from None


def open_npz(path: Path, name: str, array: str | None = None) -> ArrayFile:
    """Open an array of an NPZ file in memory."""
    found = _array_of_npz(path, name, array)
    return ArrayFile(name, found.shape, found.dtype, lambda start, end, _: found[start:end])


def _array_of_npz(path: Path, name: str, wanted: str | None) -> NDArray[Any]:
    """Return the array of this name in an NPZ file, or its only array."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if set(arrays.files) >= {"format", "shape", "data"} and wanted is None:
                raise TableError(
                    f"{name} contains a SciPy sparse matrix: in Python, fit "
                    "scipy.sparse.load_npz(...), or save its toarray() as NPY"
                )
            chosen = _chosen(arrays.files, wanted, name)
            for each in arrays.zip.infolist():
                if each.filename in (chosen, f"{chosen}.npy"):
                    refuse_growth(name, each.compress_size, each.file_size)
            array = arrays[chosen]
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{name} is no archive of arrays: {error!s:.200}") from None
    if not isinstance(array, np.ndarray):
        raise TableError(f"{name} is no archive of arrays")
    return array


def _chosen(keys: Sequence[str], wanted: str | None, name: str) -> str:
    if not keys:
        raise TableError(f"{name} has no arrays: write one of rows and columns into it")
    if wanted is not None and wanted not in keys:
        suggestion = nearest(wanted, keys) or f": there are {listed(keys)}"
        raise TableError(f'{name} has no array "{wanted}"{suggestion}')
    if wanted is None and len(keys) != 1:
        raise TableError(
            f"{name} has {len(keys)} arrays",
            *("choose with ", Argument("array"), f" one of {listed(keys)}"),
        )
    return wanted or keys[0]


class Buffers:
    """Memory that is used again once no array refers to it.

    Fresh memory from the system costs about as much time as reading a block into it.
    """

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def array(self, n_values: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an uninitialized array; its buffer is free again once all its views are gone."""
        n_bytes = max(1, n_values * dtype.itemsize)
        buffer = self._free.pop() if self._free else mmap.mmap(-1, n_bytes)
        if len(buffer) < n_bytes:
            buffer = mmap.mmap(-1, n_bytes)
        values: NDArray[Any] = np.frombuffer(buffer, dtype, n_values)
        # NumPy lets views refer to this array, not to the buffer.
        weakref.finalize(values, self._free.append, buffer).atexit = False
        return values
