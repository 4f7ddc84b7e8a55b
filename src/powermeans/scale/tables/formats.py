"""Formats of files: one class each, which names its endings, first bytes and options.

A new format is a class, and a line in `FORMATS`.
"""

from __future__ import annotations

import abc
import importlib
import mmap
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from powermeans.errors import Argument
from powermeans.scale.tables.arrow import (
    ArrowColumns,
    matrix_of,
    places_among,
    pyarrow_part,
    values_of,
)
from powermeans.scale.tables.table import (
    Columns,
    NoRowsError,
    TableError,
    distinct,
    is_utf8,
    listed,
    nearest,
    refusing_damage,
)
from powermeans.scale.tables.text import Text, TextOptions
from powermeans.scale.tables.text_form import first_bytes
from powermeans.types import Points

_BATCH_VALUES, _LEAST_BATCH_ROWS = 2**18, 2**10
_WHOLE_BATCH_ROWS = 2**16  # of a table that is read as a whole
# Bytes of a column chunk that are read at a time.
_PARQUET_BUFFER = 2**16
_BLOCK_VALUES = 2**20
# The first bytes of packed files, and the modules that unpack them.
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "lzma"}
_BYTES_THAT_TELL = 2**10
_KEYS_OF_SPARSE = {"format", "shape", "data"}
_OF_ALL = ("missing_values",)  # options that are for the values, whatever the format
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

FloatType = np.dtype[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some columns of a file, and its rows from one on."""

    places: Sequence[int]  # of the columns
    dtype: FloatType
    first_row: int = 0
    at_once: int | None = None  # rows at a time, for a format that can choose


class FileFormat(Columns):
    """The columns of a file, and how to read them."""

    kind: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    marks: ClassVar[tuple[bytes, ...]]  # of which the file begins with one
    options: ClassVar[tuple[str, ...]] = ()

    n_rows: int | None  # None until all of the file is read
    can_skip: bool = True  # whether rows can be skipped without reading them

    def dtype_of(self, places: Sequence[int]) -> FloatType:
        """Return float32 if all of these columns fit into it, else float64."""
        return _FLOAT32 if self._fit_float32(places) else _FLOAT64

    @property
    def stored(self) -> np.dtype[Any] | None:
        """The dtype of all columns, if the file is one array."""
        return None

    @abc.abstractmethod
    def __init__(self, path: Path, name: str, **options: Any) -> None: ...

    @abc.abstractmethod
    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, in this order."""

    @abc.abstractmethod
    def _fit_float32(self, places: Sequence[int]) -> bool: ...

    @abc.abstractmethod
    def blocks(self, wanted: Selection) -> Iterator[Points]:
        """Yield the selection, some rows at a time."""


def _from_row(first_row: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches without the rows before `first_row`."""
    for batch in batches:
        n_passed = min(first_row, len(batch))
        first_row -= n_passed
        if n_passed < len(batch):
            yield batch[n_passed:]


class _OfReader(FileFormat):
    """A file whose columns another object has found."""

    _reader: Any

    def __getattr__(self, name: str) -> Any:
        if name == "_reader":  # of a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self._reader, name)

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return how text writes the numbers of these columns, where that is not plain."""
        return str(self._reader.how_read(wanted))


class TextFile(_OfReader):
    """CSV and similar text, which is read from its start each time."""

    kind = "text"
    endings = (".csv", ".tsv", ".txt")
    marks = ()
    options = ("delimiter", "header", "decimal", "thousands", "dates", "encoding", "missing_values")
    n_rows = None
    can_skip = False

    def __init__(self, path: Path, name: str, **options: Any) -> None:
        with open(path, "rb") as file:
            self.text = Text.of(path, name, first_bytes(file), TextOptions(**options))
        self._reader = self.text

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, in this order."""
        return self.text.read(wanted)

    def _fit_float32(self, places: Sequence[int]) -> bool:
        return False

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        """Yield the selection, some rows at a time."""
        for block in _from_row(wanted.first_row, self.text.blocks(wanted.places)):
            yield block.astype(wanted.dtype, copy=False)


class _OfArrow(_OfReader):
    options = ("dates",)
    n_rows: int

    def __init__(self, path: Path, name: str, dates: str | None = None) -> None:
        self._path, self.name = path, name
        with refusing_damage(name, self.kind):
            schema, self.n_rows = self._schema_and_length()
            self._reader = ArrowColumns.of(schema, name, reads_dates=dates is not None)
        if not self.n_rows:
            raise NoRowsError(f"{name} has columns and no rows")

    @abc.abstractmethod
    def _schema_and_length(self) -> tuple[Any, int]: ...

    @abc.abstractmethod
    def _columns(self, wanted: Selection) -> Iterator[list[Any]]:
        """Yield the selection as columns of Arrow, at most `at_once` rows at a time."""

    def _fit_float32(self, places: Sequence[int]) -> bool:
        return self._reader.fits_float32.issuperset(places)  # type: ignore[no-any-return]

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, in this order."""
        points, end = np.empty((self.n_rows, len(wanted))), 0
        with refusing_damage(self.name, self.kind):
            for columns in self._columns(Selection(wanted, _FLOAT64, at_once=_WHOLE_BATCH_ROWS)):
                start, end = end, end + len(columns[0])
                for place, column in enumerate(columns):
                    points[start:end, place] = values_of(column, _FLOAT64)
        return points

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        """Yield the selection, fewer rows at a time for more columns."""
        n_rows = max(_LEAST_BATCH_ROWS, _BATCH_VALUES // len(wanted.places))
        with refusing_damage(self.name, self.kind):
            for columns in self._columns(replace(wanted, at_once=n_rows)):
                yield matrix_of(columns, wanted.dtype)


class ParquetFile(_OfArrow):
    """Parquet, which is skipped by groups of rows."""

    kind, endings, marks = "Parquet", (".parquet", ".pq"), (b"PAR1",)

    def _schema_and_length(self) -> tuple[Any, int]:
        with self._open() as file:
            return file.schema_arrow, file.metadata.num_rows

    def _open(self) -> Any:
        return pyarrow_part("parquet").ParquetFile(
            self._path, pre_buffer=False, buffer_size=_PARQUET_BUFFER
        )

    def _columns(self, wanted: Selection) -> Iterator[list[Any]]:
        every: Sequence[str] = self._reader.keys
        keys = list(dict.fromkeys(every[place] for place in wanted.places))
        with self._open() as file:
            groups, first_row = list(range(file.metadata.num_row_groups)), wanted.first_row
            while groups and file.metadata.row_group(groups[0]).num_rows <= first_row:
                first_row -= file.metadata.row_group(groups.pop(0)).num_rows
            batches = file.iter_batches(wanted.at_once, row_groups=groups, columns=keys)
            for batch in _from_row(first_row, batches):
                order = places_among(batch.schema, every, wanted.places)
                yield [batch.column(place) for place in order]


class ArrowFile(_OfArrow):
    """Feather and Arrow, a file or a stream, of which one batch at a time is in memory."""

    kind = "Feather or Arrow"
    endings = (".feather", ".arrow", ".ipc")
    marks = (b"ARROW1", b"\xff\xff\xff\xff")
    can_skip = False  # only a batch itself says how long it is

    def _schema_and_length(self) -> tuple[Any, int]:
        # A memory map leaves out the values, but counts against a memory limit while it is there.
        with pyarrow_part().memory_map(str(self._path)) as file:
            schema, batches = self._open(file)
            return schema, sum(batch.num_rows for batch in batches)

    def _open(self, file: Any) -> tuple[Any, Iterator[Any]]:
        ipc = pyarrow_part("ipc")
        if file.read(6) == b"ARROW1":
            opened = ipc.open_file(file)
            numbers = range(opened.num_record_batches)
            return opened.schema, (opened.get_batch(number) for number in numbers)
        file.seek(0)
        stream = ipc.open_stream(file)
        return stream.schema, iter(stream)

    def _columns(self, wanted: Selection) -> Iterator[list[Any]]:
        assert wanted.at_once is not None
        with pyarrow_part().OSFile(str(self._path)) as file:
            for batch in _from_row(wanted.first_row, self._open(file)[1]):
                for start in range(0, len(batch), wanted.at_once):
                    some = batch.slice(start, wanted.at_once)
                    yield [some.column(place) for place in wanted.places]


class _OfSlices(FileFormat):
    """An array, perhaps with named fields, that gives slices of its rows."""

    options: ClassVar[tuple[str, ...]] = ("array",)
    _width: int
    _stored: np.dtype[Any]
    _is_in_rows = True
    index: frozenset[int] = frozenset()
    decimal = ""

    def _describe(self, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        is_matrix = len(shape) == 2 and shape[1] > 0 and not dtype.names
        is_table = (is_matrix or len(shape) == 1) and shape[0] >= 0
        if not is_table or not shape[0]:
            kind = NoRowsError if is_table else TableError
            raise kind(
                f"{name} holds an array of dtype {dtype} and shape {tuple(shape)}: pass numbers in "
                "rows and columns"
            )
        self._width = int(shape[1]) if len(shape) == 2 else 1
        dtypes = [dtype[key] for key in dtype.names] if dtype.names else [dtype] * self._width
        self._stored, self.n_rows, self.name = dtype, int(shape[0]), name
        self.names, self.beside = dtype.names or distinct([""] * self._width), {}
        self.texts = {j: f"of dtype {of}" for j, of in enumerate(dtypes) if of.kind not in "biuf"}
        self.whole = frozenset(j for j, of in enumerate(dtypes) if of.kind in "iu")

    def _fit_float32(self, places: Sequence[int]) -> bool:
        return self._stored.kind == "f" and self._stored.itemsize <= 4

    @property
    def stored(self) -> np.dtype[Any] | None:
        return self._stored

    def how_read(self, wanted: Sequence[int]) -> str:
        """Return nothing: an array is read as it is."""
        return ""

    def read(self, wanted: Sequence[int]) -> Points:
        """Return these columns, in float32 if the array is, else in float64."""
        dtype = _FLOAT32 if self._stored == np.float32 else _FLOAT64
        blocks = list(self.blocks(Selection(wanted, dtype, at_once=self.n_rows)))
        points: Any = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return np.asarray(points)

    def blocks(self, wanted: Selection) -> Iterator[Points]:
        """Yield the selection, some rows at a time."""
        assert self.n_rows is not None
        is_all, buffers = list(wanted.places) == [*range(self._width)], Buffers()
        n_block = max(1, _BLOCK_VALUES // len(self.names))
        is_as_stored = is_all and self._is_in_rows and wanted.dtype == self._stored
        if wanted.at_once is not None and is_as_stored:
            n_block = wanted.at_once  # parts need no copy then
        for start in range(wanted.first_row, self.n_rows, n_block):
            found = self._rows(start, min(start + n_block, self.n_rows), buffers)
            if self._stored.names:
                fields = [found[self.names[place]] for place in wanted.places]
                chosen = np.stack([field.astype(wanted.dtype) for field in fields], axis=1)
            else:
                table = found.reshape(-1, self._width)
                chosen = table if is_all else table[:, wanted.places]
                del table
            points: Points = np.ascontiguousarray(chosen, wanted.dtype)
            del found, chosen
            yield points
            del points

    @abc.abstractmethod
    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        """Return all columns of these rows."""


class NpyFile(_OfSlices):
    """NPY, read by position, since a memory map counts against a memory limit."""

    kind, endings, marks = "NPY", (".npy",), (b"\x93NUMPY",)
    options = ()

    def __init__(self, path: Path, name: str) -> None:
        shape, is_fortran, dtype, self._offset = _header_of(path, name)
        self._path, self._is_in_rows = path, not (is_fortran and len(shape) == 2)
        self._describe(name, shape, dtype)
        n_bytes = self._offset + shape[0] * self._width * dtype.itemsize
        if path.stat().st_size < n_bytes:
            raise TableError(
                f"{name} ends after {path.stat().st_size} of {n_bytes} bytes: write it anew"
            )

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        assert self.n_rows is not None
        found = buffers.array((end - start) * self._width, self._stored)
        with open(self._path, "rb", buffering=0) as file:
            if self._is_in_rows:
                self._fill(found, file, start * self._width)
                return found
            columns = found.reshape(self._width, -1)
            for f, column in enumerate(columns):
                self._fill(column, file, f * self.n_rows + start)
            return columns.T

    def _fill(self, values: NDArray[Any], file: Any, first: int) -> None:
        """Fill an array with the values of the file from the `first` on."""
        file.seek(self._offset + first * self._stored.itemsize)
        values_as_bytes: Any = values.view(np.uint8)
        left = memoryview(values_as_bytes)
        while left:
            n_read = file.readinto(left)
            if not n_read:
                raise TableError(f"{self.name} ends before its array does: write it anew")
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


class NpzFile(_OfSlices):
    """An array of an NPZ file, held in memory."""

    kind, endings, marks = "NPZ", (".npz",), (b"PK",)

    def __init__(self, path: Path, name: str, array: str | None = None) -> None:
        self._array = _array_of_npz(path, name, array)
        self._describe(name, self._array.shape, self._array.dtype)

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        return self._array[start:end]


def _array_of_npz(path: Path, name: str, wanted: str | None) -> NDArray[Any]:
    """Return the array of this name in an NPZ file, or its only array."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if set(arrays.files) >= _KEYS_OF_SPARSE and wanted is None:
                raise TableError(
                    f"{name} holds a sparse matrix of SciPy: in Python, fit "
                    "scipy.sparse.load_npz(...), or save its toarray() as NPY"
                )
            array = arrays[_chosen(arrays.files, wanted, name)]
    except TableError:
        raise
    except Exception as error:
        raise TableError(f"{name} is no archive of arrays: {error!s:.200}") from None
    if not isinstance(array, np.ndarray):
        raise TableError(f"{name} is no archive of arrays")
    return array


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


class Hdf5File(_OfSlices):
    """HDF5, read by rows."""

    kind, endings, marks = "HDF5", (".h5", ".hdf5"), (b"\x89HDF\r\n\x1a\n",)

    def __init__(self, path: Path, name: str, array: str | None = None) -> None:
        self._path = path
        with refusing_damage(name, "HDF5"), self._open() as file:
            found: list[str] = []
            file.visititems(lambda name, it: found.append(name) if _is_array(it) else None)
            self._key = _chosen(found, array, name)
            self._describe(name, file[self._key].shape, file[self._key].dtype)

    def _open(self) -> Any:
        return _module("h5py", "HDF5").File(self._path, "r")

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        with refusing_damage(self.name, "HDF5"), self._open() as file:
            return np.asarray(file[self._key][start:end])


class ZarrFolder(_OfSlices):
    """Zarr, a folder."""

    kind, endings, marks = "Zarr", (), ()

    def __init__(self, path: Path, name: str, array: str | None = None) -> None:
        self._path, self._key, self.name = path, array, name
        with refusing_damage(name, "Zarr"):
            opened = self._open()
            self._describe(name, opened.shape, opened.dtype)

    def _open(self) -> Any:
        opened = _module("zarr", "Zarr").open(str(self._path), mode="r")
        if hasattr(opened, "shape"):
            return opened
        return opened[_chosen(list(opened.array_keys()), self._key, self.name)]

    def _rows(self, start: int, end: int, buffers: Buffers) -> Any:
        with refusing_damage(self.name, "Zarr"):
            return np.asarray(self._open()[start:end])


def _is_array(stored: Any) -> bool:
    return getattr(stored, "shape", None) is not None


def _chosen(keys: Sequence[str], wanted: str | None, name: str) -> str:
    if not keys:
        raise TableError(f"{name} has no arrays: write one of rows and columns into it")
    if wanted is not None and wanted not in keys:
        suggestion = nearest(wanted, keys) or f": there are {listed(keys)}"
        raise TableError(f'{name} has no array "{wanted}"{suggestion}')
    if wanted is None and len(keys) != 1:
        raise TableError(
            f"{name} has {len(keys)} arrays",
            "choose with ",
            Argument("array"),
            f" one of {listed(keys)}",
        )
    return wanted or keys[0]


def _module(name: str, kind: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise TableError(f"{kind} files need {name}: pip install {name}") from None


FORMATS: tuple[type[FileFormat], ...] = (
    ParquetFile,
    ArrowFile,
    TextFile,
    NpyFile,
    NpzFile,
    Hdf5File,
    ZarrFolder,
)
ENDINGS = tuple(ending for kind in FORMATS for ending in kind.endings)


def format_of(path: Path, name: str | None = None, **options: Any) -> FileFormat:
    """Open a file in the format of its content; `read_table` explains the options."""
    name = str(path) if name is None else name
    if not is_utf8(path):
        raise TableError(f"{name} has a name that is no UTF-8, which Arrow cannot open: rename it")
    try:
        kind = format_at(path)
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror}") from None
    if kind is TextFile:
        _refuse_no_text(path, name)
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in (*kind.options, *_OF_ALL):
            problem = f"is no option of {kind.kind}, which {name} is"
            raise TableError(problem, "leave it out", argument=option, value=value)
    return kind(path, name, **{key: given[key] for key in kind.options if key in given})


def options_of(path: Path) -> tuple[str, ...]:
    """Return the options of the format that a file has."""
    return (*format_at(path).options, *_OF_ALL)


def format_at(path: Path) -> type[FileFormat]:
    """Return the format that a file has by its first bytes; text if it has no other."""
    if path.is_dir():
        return ZarrFolder
    start = start_of(path)
    return next((kind for kind in FORMATS if kind.marks and start.startswith(kind.marks)), TextFile)


def start_of(path: Path) -> bytes:
    """Return the first bytes of a file."""
    with open(path, "rb") as file:
        return file.read(_BYTES_THAT_TELL)


def _refuse_no_text(path: Path, name: str) -> None:
    start = start_of(path)
    if start.startswith(tuple(PACKED)):
        raise TableError(f"{name} is packed: unpack it first")
    if len(start) < _BYTES_THAT_TELL and not start.strip():
        # Any other kind of file has at least a header.
        problem = NoRowsError if path.suffix.lower() in TextFile.endings else TableError
        raise problem(f"{name} is empty")
