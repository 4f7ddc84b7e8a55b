"""Readers of each kind of file, some rows at a time and from any row on."""

from __future__ import annotations

import abc
import importlib
import mmap
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from powermeans.errors import Argument
from powermeans.inputs.narrow import is_narrow
from powermeans.sources.block import SourceError
from powermeans.tables import TableError
from powermeans.tables.arrays import Arrays
from powermeans.tables.arrow import Batches, matrix_of, places_among, pyarrow_part
from powermeans.tables.reading import open_reader
from powermeans.tables.table import Columns, NoRowsError, distinct, is_utf8, refusing_damage
from powermeans.tables.text import Text
from powermeans.types import Points

_BATCH_VALUES, _LEAST_BATCH_ROWS = 2**18, 2**10
# Bytes of a column chunk that are read at a time.
_PARQUET_BUFFER = 2**16
_BLOCK_VALUES = 2**20
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

FloatType = np.dtype[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some columns of a file, and its rows from one on."""

    places: Sequence[int]  # of the columns
    dtype: FloatType
    first_row: int = 0
    at_once: int | None = None  # rows at a time, for a format that can choose


class FileFormat(abc.ABC):
    """The columns of a file, as in `tables.table.Columns`, and how to read them."""

    name: str
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    index: frozenset[int] = frozenset()
    beside: dict[int, str]
    decimal: str = ""
    _described: Columns | None = None
    n_rows: int | None  # None until all of the file is read
    can_skip: bool = True  # whether rows can be skipped without reading them

    def dtype_of(self, places: Sequence[int]) -> FloatType:
        """Return float32 if all of these columns fit into it, else float64."""
        return _FLOAT32 if self._fit_float32(places) else _FLOAT64

    @property
    def narrow_dtype(self) -> np.dtype[Any] | None:
        """The dtype of all columns, if it is narrow."""
        return None

    @abc.abstractmethod
    def _fit_float32(self, places: Sequence[int]) -> bool: ...

    @abc.abstractmethod
    def blocks(self, wanted: Selection) -> Iterator[Points]:
        """Yield the selection, some rows at a time."""

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how text writes the numbers of these columns, where that is not plain."""
        return self._described.how_read(wanted) if self._described else ""

    def _copy_columns(self, reader: Columns) -> None:
        self.name, self.names = reader.name, tuple(reader.names)
        self.texts, self.whole, self.index = dict(reader.texts), reader.whole, reader.index
        self.beside, self.decimal, self._described = reader.beside, reader.decimal, reader


def format_of(path: Path, **options: Any) -> FileFormat:
    """Return the format of a file by its content; `tables.read_table` explains the options."""
    if path.is_dir():
        return _Zarr(path, options.get("array"))
    if not is_utf8(path):
        raise SourceError(f"{path} has a name that is no UTF-8, which Arrow cannot open: rename it")
    with open(path, "rb") as file:
        start = file.read(8)
    if start == b"\x89HDF\r\n\x1a\n":
        return _Hdf5(path, options.get("array"))
    if start.startswith(b"\x93NUMPY"):
        return _Npy(path)
    reader = open_reader(path, str(path), **options)
    if isinstance(reader, Text):
        return _OfText(reader)
    if isinstance(reader, Arrays):
        return _OfArrays(reader)
    assert isinstance(reader, Batches)
    return _Parquet(path, reader) if start.startswith(b"PAR1") else _Arrow(path, reader)


def _from_row(first_row: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches without the rows before `first_row`."""
    for batch in batches:
        n_passed = min(first_row, len(batch))
        first_row -= n_passed
        if n_passed < len(batch):
            yield batch[n_passed:]


class _OfText(FileFormat):
    """CSV and similar text, which is read from its start each time."""

    n_rows = None
    can_skip = False

    def __init__(self, reader: Text) -> None:
        self._copy_columns(reader)
        self._reader = reader

    def _fit_float32(self, places: Sequence[int]) -> bool:
        return False

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        for block in _from_row(wanted.first_row, self._reader.blocks(wanted.places)):
            yield block.astype(wanted.dtype, copy=False)


class _OfArrow(FileFormat):
    def __init__(self, path: Path, reader: Batches) -> None:
        self._copy_columns(reader)
        self.n_rows = reader.n_rows
        self._path, self._keys = path, reader.keys

    @abc.abstractmethod
    def _schema(self) -> Any: ...

    def _fit_float32(self, places: Sequence[int]) -> bool:
        types, schema = pyarrow_part("types"), self._schema()
        kinds = [schema.field(place).type for place in places]
        return all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)


class _Parquet(_OfArrow):
    """Parquet, which is skipped by groups of rows."""

    def _schema(self) -> Any:
        return self._open().schema_arrow

    def _open(self) -> Any:
        with refusing_damage(self.name, "Parquet"):
            return pyarrow_part("parquet").ParquetFile(
                self._path, pre_buffer=False, buffer_size=_PARQUET_BUFFER
            )

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        keys = list(dict.fromkeys(self._keys[place] for place in wanted.places))
        with self._open() as file, refusing_damage(self.name, "Parquet"):
            groups, first_row = list(range(file.metadata.num_row_groups)), wanted.first_row
            while groups and file.metadata.row_group(groups[0]).num_rows <= first_row:
                first_row -= file.metadata.row_group(groups.pop(0)).num_rows
            n_rows = _rows_of_a_batch(len(keys))
            batches = file.iter_batches(n_rows, row_groups=groups, columns=keys)
            for batch in _from_row(first_row, batches):
                order = places_among(batch.schema, self._keys, wanted.places)
                yield matrix_of([batch.column(place) for place in order], wanted.dtype)


class _Arrow(_OfArrow):
    """Feather and Arrow, a file or a stream, without a memory map."""

    can_skip = False  # only a batch itself says how long it is

    def _schema(self) -> Any:
        with pyarrow_part().OSFile(str(self._path)) as file:
            return self._open(file)[0]

    def _open(self, file: Any) -> tuple[Any, Any]:
        ipc = pyarrow_part("ipc")
        with refusing_damage(self.name, "Feather or Arrow"):
            if file.read(6) == b"ARROW1":
                opened = ipc.open_file(file)
                numbers = range(opened.num_record_batches)
                return opened.schema, (opened.get_batch(number) for number in numbers)
            file.seek(0)
            stream = ipc.open_stream(file)
            return stream.schema, iter(stream)

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        n_rows = _rows_of_a_batch(len(wanted.places))
        with (
            pyarrow_part().OSFile(str(self._path)) as file,
            refusing_damage(self.name, "Feather or Arrow"),
        ):
            for batch in _from_row(wanted.first_row, self._open(file)[1]):
                for start in range(0, len(batch), n_rows):
                    some = batch.slice(start, n_rows)
                    columns = [some.column(place) for place in wanted.places]
                    yield matrix_of(columns, wanted.dtype)


def _rows_of_a_batch(n_columns: int) -> int:
    """Return fewer rows for more columns, so that all batches take similar memory."""
    return max(_LEAST_BATCH_ROWS, _BATCH_VALUES // n_columns)


class _OfSlices(FileFormat):
    """An array on disk that gives slices of its rows."""

    _shape: tuple[int, int]
    _stored: np.dtype[Any]
    _is_in_rows = True

    def _describe(self, path: Path, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        is_table = len(shape) in (1, 2) and 0 not in shape[1:] and dtype.kind in "biuf"
        if not is_table or not shape[0]:
            kind = NoRowsError if is_table else TableError
            raise kind(
                f"{path} holds an array of dtype {dtype} and shape {tuple(shape)}: pass numbers in "
                "rows and columns"
            )
        self._shape = (int(shape[0]), int(shape[1]) if len(shape) == 2 else 1)
        self._stored, self.n_rows, self.name = dtype, self._shape[0], str(path)
        self.names, self.texts, self.beside = distinct([""] * self._shape[1]), {}, {}
        self.whole = frozenset(range(self._shape[1])) if dtype.kind in "iu" else frozenset()

    def _fit_float32(self, places: Sequence[int]) -> bool:
        return self._stored.kind == "f" and self._stored.itemsize <= 4

    @property
    def narrow_dtype(self) -> np.dtype[Any] | None:
        return self._stored if is_narrow(self._stored) else None

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        n_rows, n_columns = self._shape
        is_all, buffers = list(wanted.places) == [*range(n_columns)], Buffers()
        n_block = max(1, _BLOCK_VALUES // n_columns)
        is_as_stored = is_all and self._is_in_rows and wanted.dtype == self._stored
        if wanted.at_once is not None and is_as_stored:
            n_block = wanted.at_once  # parts need no copy then
        for start in range(wanted.first_row, n_rows, n_block):
            found = self._rows(start, min(start + n_block, n_rows), buffers)
            chosen = found if is_all else found[:, wanted.places]
            points: Points = np.ascontiguousarray(chosen, wanted.dtype)
            del found, chosen
            yield points
            del points

    @abc.abstractmethod
    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        """Return all columns of these rows."""


class _Npy(_OfSlices):
    """NPY, read by position, since a memory map counts against a memory limit."""

    def __init__(self, path: Path) -> None:
        shape, is_fortran, dtype, self._offset = _header_of(path)
        self._path, self._is_in_rows = path, not (is_fortran and len(shape) == 2)
        self._describe(path, shape, dtype)
        n_bytes = self._offset + self._shape[0] * self._shape[1] * dtype.itemsize
        if path.stat().st_size < n_bytes:
            raise TableError(
                f"{path} ends after {path.stat().st_size} of {n_bytes} bytes: write it anew"
            )

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        n_rows, n_columns = self._shape
        found = buffers.array((end - start) * n_columns, self._stored)
        with open(self._path, "rb", buffering=0) as file:
            if self._is_in_rows:
                self._fill(found, file, start * n_columns)
                return found.reshape(-1, n_columns)
            columns = found.reshape(n_columns, -1)
            for f, column in enumerate(columns):
                self._fill(column, file, f * n_rows + start)
            return columns.T

    def _fill(self, values: NDArray[Any], file: Any, first: int) -> None:
        """Fill an array with the values of the file from the `first` on."""
        file.seek(self._offset + first * self._stored.itemsize)
        values_as_bytes: Any = values.view(np.uint8)
        left = memoryview(values_as_bytes)
        while left:
            n_read = file.readinto(left)
            if not n_read:
                raise SourceError(f"{self._path} ends before its array does: write it anew")
            left = left[n_read:]


def _header_of(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, whether the order is Fortran's, dtype, and the offset of the values."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        with open(path, "rb") as file:
            version = npy.read_magic(file)
            if version not in read:
                raise ValueError("it has named fields, so save its columns as one array")
            shape, is_fortran, dtype = read[version](file)
            return shape, is_fortran, dtype, file.tell()
    except Exception as error:  # a mangled header fails in Python's tokenizer and parser
        raise TableError(f"{path} is no array that can be read: {error!s:.200}") from None


class _OfArrays(FileFormat):
    """An array of an NPZ file, held in memory."""

    def __init__(self, reader: Arrays) -> None:
        self._copy_columns(reader)
        self._reader, self.n_rows = reader, len(reader.array)

    def _fit_float32(self, places: Sequence[int]) -> bool:
        return bool(self._reader.array.dtype == np.float32)

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        rows = self._reader.read(wanted.places)[wanted.first_row :]
        yield np.ascontiguousarray(rows, dtype=wanted.dtype)


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


class _Hdf5(_OfSlices):
    def __init__(self, path: Path, array: str | None) -> None:
        self._path = path
        with refusing_damage(str(path), "HDF5"), self._open() as file:
            found: list[str] = []
            file.visititems(lambda name, it: found.append(name) if _is_array(it) else None)
            self._key = _chosen(found, array, path)
            self._describe(path, file[self._key].shape, file[self._key].dtype)

    def _open(self) -> Any:
        return _module("h5py", "HDF5").File(self._path, "r")

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        with refusing_damage(self.name, "HDF5"), self._open() as file:
            return np.asarray(file[self._key][start:end]).reshape(end - start, -1)


class _Zarr(_OfSlices):
    def __init__(self, path: Path, array: str | None) -> None:
        self._path, self._key = path, array
        with refusing_damage(str(path), "Zarr"):
            opened = self._open()
            self._describe(path, opened.shape, opened.dtype)

    def _open(self) -> Any:
        opened = _module("zarr", "Zarr").open(str(self._path), mode="r")
        if hasattr(opened, "shape"):
            return opened
        return opened[_chosen(list(opened.array_keys()), self._key, self._path)]

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        with refusing_damage(self.name, "Zarr"):
            return np.asarray(self._open()[start:end]).reshape(end - start, -1)


def _is_array(stored: Any) -> bool:
    return getattr(stored, "shape", None) is not None


def _chosen(keys: Sequence[str], wanted: str | None, path: Path) -> str:
    if wanted in keys:
        return str(wanted)
    if not keys:
        raise TableError(f"{path} has no arrays: write one of rows and columns into it")
    if wanted is not None or len(keys) != 1:
        raise TableError(
            f"{path} has the arrays {list(keys)[:20]}", "choose one with ", Argument("array")
        )
    return keys[0]


def _module(name: str, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise TableError(f"{kind} files need {name}: pip install {name}") from None
