"""How each kind of file is read, some rows at a time and from any row on."""

from __future__ import annotations

import abc
import contextlib
import functools
import mmap
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from powermeans.errors import Argument
from powermeans.sources.block import SourceError
from powermeans.tables import TableError
from powermeans.tables.arrays import Arrays
from powermeans.tables.arrow import (
    Batches,
    matrix_of,
    places_among,
    pyarrow_part,
    refusing_damage,
)
from powermeans.tables.reading import open_reader
from powermeans.tables.table import NoRowsError, Reader, distinct
from powermeans.tables.text import Text
from powermeans.types import Points


class Buffers:
    """Memory that is used again once nobody looks at what was in it.

    Memory that the system has just given out costs about as much as reading a piece into it.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.sources.formats import Buffers
    >>> buffers = Buffers()
    >>> values = buffers.array(3, np.dtype(np.float64))
    >>> values.shape, values.flags.writeable
    ((3,), True)
    """

    def __init__(self) -> None:
        self._free: list[mmap.mmap] = []

    def array(self, n_values: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array of so many values, whatever they are.

        Its memory is free again once it is gone, with all its views: NumPy has them hold this
        array and not the memory.
        """
        n_bytes = max(1, n_values * dtype.itemsize)
        buffer = self._free.pop() if self._free else mmap.mmap(-1, n_bytes)
        if len(buffer) < n_bytes:
            buffer = mmap.mmap(-1, n_bytes)
        values: NDArray[Any] = np.frombuffer(buffer, dtype, n_values)
        weakref.finalize(values, self._free.append, buffer).atexit = False
        return values


_BATCH_VALUES, _LEAST_BATCH_ROWS = 2**18, 2**10
# A column chunk is read so many bytes at a time, however long it is.
_PARQUET_BUFFER = 2**16
_BLOCK_VALUES = 2**20
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class FileFormat(abc.ABC):
    """What is known of a file with columns, and how it is read. Nothing of it is kept open.

    Attributes
    ----------
    names : sequence of str
        The columns.
    texts : dict
        For each column that holds no numbers, what it holds.
    whole : frozenset of int
        The columns of whole numbers.
    index : frozenset of int
        The columns that pandas had as an index.
    n_rows : int or None
        None where only reading all of it would tell.
    can_skip : bool
        Whether the rows before one can be left alone; else they are read.
    """

    name: str
    names: Sequence[str]
    texts: dict[int, str]
    whole: frozenset[int]
    index: frozenset[int] = frozenset()
    n_rows: int | None
    can_skip: bool = True

    @abc.abstractmethod
    def dtype_of(self, places: Sequence[int]) -> np.dtype[np.floating[Any]]:
        """Float32 where all of these columns fit into it, else float64."""

    @abc.abstractmethod
    def blocks(
        self,
        places: Sequence[int],
        first_row: int,
        dtype: np.dtype[np.floating[Any]],
        at_once: int | None = None,
    ) -> Iterator[Points]:
        """These columns of all rows from this one on, so many at a time where it is no matter."""

    def read(self, wanted: Sequence[int]) -> Points:
        """These columns of all rows."""
        return np.concatenate(list(self.blocks(wanted, 0, self.dtype_of(wanted))))

    def _know(self, reader: Reader) -> None:
        self.name, self.names = reader.name, tuple(reader.names)
        self.texts, self.whole, self.index = dict(reader.texts), reader.whole, reader.index


def format_of(path: Path, **options: Any) -> FileFormat:
    """The format of a file, by what is in it.

    Parameters
    ----------
    **options
        Of `powermeans.tables.read_table`: `delimiter`, `header`, `array`, `decimal`.
    """
    if path.is_dir():
        return _Zarr(path, options.get("array"))
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


class _OfText(FileFormat):
    """CSV and its kin, which are read from the start each time."""

    n_rows = None
    can_skip = False

    def __init__(self, reader: Text) -> None:
        self._know(reader)
        self._reader = reader

    def dtype_of(self, places: Sequence[int]) -> np.dtype[np.floating[Any]]:
        return _FLOAT64

    def blocks(
        self,
        places: Sequence[int],
        first_row: int,
        dtype: np.dtype[np.floating[Any]],
        at_once: int | None = None,
    ) -> Iterator[Points]:
        for block in self._reader.blocks(places):
            n_passed = min(first_row, len(block))
            first_row -= n_passed
            if n_passed < len(block):
                yield block[n_passed:].astype(dtype, copy=False)


class _OfArrow(FileFormat):
    def __init__(self, path: Path, reader: Batches) -> None:
        self._know(reader)
        self.n_rows = reader.n_rows
        self._path, self._keys = path, reader.keys

    @abc.abstractmethod
    def _schema(self) -> Any: ...

    def dtype_of(self, places: Sequence[int]) -> np.dtype[np.floating[Any]]:
        types, schema = pyarrow_part("types"), self._schema()
        kinds = [schema.field(place).type for place in places]
        is_narrow = all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)
        return _FLOAT32 if is_narrow else _FLOAT64


class _Parquet(_OfArrow):
    """Groups of rows are skipped without reading them."""

    def _schema(self) -> Any:
        return self._open().schema_arrow

    def _open(self) -> Any:
        with refusing_damage(self.name, "Parquet"):
            return pyarrow_part("parquet").ParquetFile(
                self._path, pre_buffer=False, buffer_size=_PARQUET_BUFFER
            )

    def blocks(
        self,
        places: Sequence[int],
        first_row: int,
        dtype: np.dtype[np.floating[Any]],
        at_once: int | None = None,
    ) -> Iterator[Points]:
        keys = list(dict.fromkeys(self._keys[place] for place in places))
        with self._open() as file, refusing_damage(self.name, "Parquet"):
            groups = list(range(file.metadata.num_row_groups))
            while groups and file.metadata.row_group(groups[0]).num_rows <= first_row:
                first_row -= file.metadata.row_group(groups.pop(0)).num_rows
            n_rows = _rows_of_a_batch(len(keys))
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=keys):
                n_passed = min(first_row, batch.num_rows)
                first_row -= n_passed
                if n_passed < batch.num_rows:
                    order = places_among(batch.schema, self._keys, places)
                    yield matrix_of(batch.slice(n_passed), order, dtype)


class _Arrow(_OfArrow):
    """Feather and Arrow, as a file or as a stream, without a map of memory."""

    can_skip = False  # not even in a file, since no batch says how long it is but itself

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

    def blocks(
        self,
        places: Sequence[int],
        first_row: int,
        dtype: np.dtype[np.floating[Any]],
        at_once: int | None = None,
    ) -> Iterator[Points]:
        n_rows = _rows_of_a_batch(len(places))
        with (
            pyarrow_part().OSFile(str(self._path)) as file,
            refusing_damage(self.name, "Feather or Arrow"),
        ):
            for batch in self._open(file)[1]:
                n_passed = min(first_row, batch.num_rows)
                first_row -= n_passed
                for start in range(n_passed, batch.num_rows, n_rows):
                    yield matrix_of(batch.slice(start, n_rows), places, dtype)


def _rows_of_a_batch(n_columns: int) -> int:
    """The wider, the fewer, so that a batch takes about as much memory."""
    return max(_LEAST_BATCH_ROWS, _BATCH_VALUES // n_columns)


class _OfSlices(FileFormat):
    """An array on disk of which rows can be read by number."""

    _shape: tuple[int, int]
    _stored: np.dtype[Any]
    _is_in_rows = True

    def _know_array(self, path: Path, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        is_table = len(shape) in (1, 2) and 0 not in shape[1:] and dtype.kind in "biuf"
        if not is_table or not shape[0]:
            kind = NoRowsError if is_table else TableError
            raise kind(
                f"{path} holds an array of dtype {dtype} and shape {tuple(shape)}: pass numbers in "
                "rows and columns"
            )
        self._shape = (int(shape[0]), int(shape[1]) if len(shape) == 2 else 1)
        self._stored, self.n_rows, self.name = dtype, self._shape[0], str(path)
        self.names, self.texts = distinct([""] * self._shape[1]), {}
        self.whole = frozenset(range(self._shape[1])) if dtype.kind in "iu" else frozenset()

    def dtype_of(self, places: Sequence[int]) -> np.dtype[np.floating[Any]]:
        is_narrow = self._stored.kind == "f" and self._stored.itemsize <= 4
        return _FLOAT32 if is_narrow else _FLOAT64

    def blocks(
        self,
        places: Sequence[int],
        first_row: int,
        dtype: np.dtype[np.floating[Any]],
        at_once: int | None = None,
    ) -> Iterator[Points]:
        n_rows, n_columns = self._shape
        is_all, buffers = list(places) == [*range(n_columns)], Buffers()
        n_block = max(1, _BLOCK_VALUES // n_columns)
        if at_once is not None and is_all and self._is_in_rows and dtype == self._stored:
            n_block = at_once  # since they are passed on as they are read
        for start in range(first_row, n_rows, n_block):
            found = self._rows(start, min(start + n_block, n_rows), buffers)
            points: Points = np.ascontiguousarray(found if is_all else found[:, places], dtype)
            del found
            yield points
            del points

    @abc.abstractmethod
    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        """These rows, with all of their columns."""


class _Npy(_OfSlices):
    """Read by position: a map of memory would count as memory where that is limited."""

    def __init__(self, path: Path) -> None:
        shape, is_fortran, dtype, self._offset = _header_of(path)
        self._path, self._is_in_rows = path, not (is_fortran and len(shape) == 2)
        self._know_array(path, shape, dtype)
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
        """With those of the file from this one on."""
        file.seek(self._offset + first * self._stored.itemsize)
        values_as_bytes: Any = values.view(np.uint8)
        left = memoryview(values_as_bytes)
        while left:
            n_read = file.readinto(left)
            if not n_read:
                raise SourceError(f"{self._path} ends before its array does: write it anew")
            left = left[n_read:]


def _header_of(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether columns lie together, dtype, and where the values begin."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        with open(path, "rb") as file:
            version = npy.read_magic(file)
            if version not in read:
                raise ValueError("it has named fields, so save its columns as one array")
            shape, is_fortran, dtype = read[version](file)
            return shape, is_fortran, dtype, file.tell()
    except (ValueError, EOFError) as error:
        raise TableError(f"{path} is no array that can be read: {error!s:.200}") from None


class _OfArrays(FileFormat):
    """An archive of arrays, which is in memory once it is open."""

    def __init__(self, reader: Arrays) -> None:
        self._know(reader)
        self._reader, self.n_rows = reader, len(reader.array)

    def dtype_of(self, places: Sequence[int]) -> np.dtype[np.floating[Any]]:
        return _FLOAT32 if self._reader.array.dtype == np.float32 else _FLOAT64

    def blocks(
        self,
        places: Sequence[int],
        first_row: int,
        dtype: np.dtype[np.floating[Any]],
        at_once: int | None = None,
    ) -> Iterator[Points]:
        yield np.ascontiguousarray(self._reader.read(places)[first_row:], dtype=dtype)


class _Hdf5(_OfSlices):
    def __init__(self, path: Path, array: str | None) -> None:
        self._path = path
        with refusing_what_is_damaged(path, "HDF5"), self._open() as file:
            found: list[str] = []
            file.visititems(lambda name, it: found.append(name) if _has_shape(it) else None)
            self._key = _chosen(found, array, path)
            self._know_array(path, file[self._key].shape, file[self._key].dtype)

    def _open(self) -> Any:
        return _module("h5py", "HDF5").File(self._path, "r")

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        with refusing_what_is_damaged(self._path, "HDF5"), self._open() as file:
            return np.asarray(file[self._key][start:end]).reshape(end - start, -1)


class _Zarr(_OfSlices):
    def __init__(self, path: Path, array: str | None) -> None:
        self._path, self._key = path, array
        with refusing_what_is_damaged(path, "Zarr"):
            opened = self._open()
            self._know_array(path, opened.shape, opened.dtype)

    def _open(self) -> Any:
        opened = _module("zarr", "Zarr").open(str(self._path), mode="r")
        if hasattr(opened, "shape"):
            return opened
        return opened[_chosen(list(opened.array_keys()), self._key, self._path)]

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        with refusing_what_is_damaged(self._path, "Zarr"):
            return np.asarray(self._open()[start:end]).reshape(end - start, -1)


def _has_shape(found: Any) -> bool:
    return getattr(found, "shape", None) is not None


@contextlib.contextmanager
def refusing_what_is_damaged(path: Path, kind: str) -> Iterator[None]:
    """What a library says of a file, whichever error it is for it, is said of that file.

    Parameters
    ----------
    kind : str
        Of file.
    """
    try:
        yield
    except TableError:
        raise
    except Exception as error:
        problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise TableError(f"{path} is a damaged {kind} file: {problem}") from None


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


@functools.cache
def _module(name: str, kind: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise TableError(f"{kind} files are read by {name}: pip install {name}") from None
