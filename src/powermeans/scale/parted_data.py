"""Open rows for users: choose the source and the length of its parts."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.errors import ArgumentError, EntryError
from powermeans.points.needs import Needs
from powermeans.points.opening import load_package_for
from powermeans.points.streams import Stream, are_paths, gives_arrow_batches
from powermeans.scale.arrays import ArraySource, IterableSource
from powermeans.scale.block import Source, SourceError
from powermeans.scale.files import FileSource, are_arrays, is_passed_over
from powermeans.scale.partition import Partition
from powermeans.scale.spooled import spooled
from powermeans.system.attributes import cached_property
from powermeans.system.containers import check_count, check_number, is_dask
from powermeans.system.extensions import extension
from powermeans.types import Part

# At most this many copies of a part exist at a time: one in work, one being read, the blocks that
# it is joined from, and temporary arrays of some distances.
_COPIES_OF_A_PART = 6
_FEWEST_ROWS = 256


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file in which a fit notes its results."""

    path: str
    seconds: float  # between two writes, at least

    def __post_init__(self) -> None:
        check_number(self.seconds, "checkpoint_seconds", "[0, inf]", "for example 60.0")

    def refuse_rows(self, data: PartedData) -> None:
        """Raise if rows are read from this file or from its folder."""
        if data.is_read_from(self.path):
            raise ArgumentError(
                "is a file that rows are read from, or in a folder that is",
                "name another file",
                argument="checkpoint",
                value=self.path,
            )


class PartedData(Stream):
    """Rows that are read part by part, for `fit`, `predict` and `score`.

    `open_data` returns them.

    Attributes
    ----------
    source : Source
        The files, chunks or array that the rows come from.
    rows_per_part : int
        Number of rows in a part. Sums of parts are added in a fixed order, so only this number
        affects the rounding of results.
    is_in_memory : bool
        True if the parts are slices of an array.
    checkpoint : Checkpoint or None
        The file in which a fit notes its results.

    See Also
    --------
    open_data : Opens rows.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans import KMeans, open_data
    >>> data = open_data(np.array([[1.0], [3.0]], dtype=np.float32))
    >>> data.n_features, data.dtype
    (1, dtype('float32'))
    >>> KMeans(1).fit(data).cluster_centers_
    array([[2.]], dtype=float32)
    """

    def __init__(
        self,
        source: Any,
        rows_per_part: int | Callable[[int], int],
        checkpoint: Checkpoint | None = None,
        unit: float = 1.0,
        *,
        is_limited: bool = True,
    ) -> None:
        self._given, self._length = source, rows_per_part
        self.checkpoint, self._unit = checkpoint, unit  # times which weights count
        self.is_limited = is_limited
        self.is_in_memory = isinstance(source, ArraySource)

    @cached_property
    def source(self) -> Any:
        """The files, chunks or array; points of a table are those of a fit without needs."""
        return self.read_for(Needs(name="open_data")).source if self.is_table else self._given

    @property
    def is_table(self) -> bool:
        """Whether the rows become points once it is known for which fit they are."""
        return hasattr(self._given, "points_for")

    @cached_property
    def rows_per_part(self) -> int:
        """Number of rows in a part."""
        if not callable(self._length):
            return self._length
        return self._length(self.n_features * self.dtype.itemsize)

    def read_for(self, needs: Needs) -> PartedData:
        """Return the rows as points for a fit, or for predictions after one."""
        if not self.is_table:
            return self
        found = self._given.points_for(needs, in_parts=self.is_limited)
        return PartedData(found, self._length, self.checkpoint, is_limited=self.is_limited)

    @property
    def preparation(self) -> Any:
        """What made points of a table; None for others."""
        return getattr(self._given, "preparation", None)

    @property
    def is_used(self) -> Any:
        """Which rows of a table have points; None if all have."""
        return getattr(self._given, "is_used", None)

    def explain(self, error: EntryError) -> None:
        """Raise the error of an entry of a table by the names of its file and column."""
        if hasattr(self._given, "explain"):
            self._given.explain(error)

    def whole(self) -> tuple[Any, Any] | None:
        """Return points and weights in memory, where files fit into it and no limit is given."""
        if self.is_limited or not hasattr(self._given, "whole"):
            return None
        found: tuple[Any, Any] | None = self._given.whole()
        return found

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.source.n_features)

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Float32 or float64."""
        dtype: np.dtype[np.floating[Any]] = self.source.dtype
        return dtype

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None until all of them are read."""
        n_rows: int | None = self.source.n_rows
        return n_rows

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have names."""
        names: tuple[str, ...] | None = self.source.feature_names
        return names

    def partition(self, needs: Needs | None = None) -> Partition:
        """Return the parts, which can be read any number of times."""
        needs = needs or Needs(name="read")
        return Partition(self.source, self.rows_per_part, needs, self._unit)

    def read(self) -> Iterator[Part]:
        """Yield checked parts."""
        return self.partition().read()

    def weighing(self, unit: float) -> PartedData:
        """Return the same rows with weights times `unit`."""
        return PartedData(self._given, self._length, unit=unit)

    def is_read_from(self, path: str | os.PathLike[str]) -> bool:
        """Return whether rows are read from this file or would be if it existed."""
        read: Sequence[Path] = getattr(self._given, "paths", ())
        return any(is_read_with(path, other) for other in read)

    def refuse_output(self, path: str | os.PathLike[str]) -> None:
        """Raise where labels would be written to what is read."""
        if self.is_read_from(path):
            raise ValueError(
                f"output={os.fspath(path)!r} is a file that X is read from and that would be "
                "lost, or in a folder that is read, so that the next fit would take labels for "
                "rows: write them elsewhere"
            )

    def fingerprint(self) -> str:
        """Return a text that differs for different rows, and for the same rows cut otherwise."""
        return repr([self.source.fingerprint(), self.rows_per_part, str(self.dtype)])

    def __repr__(self) -> str:
        return (
            f"<rows of {self.source.name}: {self.n_features} columns of {self.dtype}, "
            f"{self.rows_per_part} rows at a time>"
        )


def open_data(
    source: Any,
    *,
    columns: Sequence[str | int] | None = None,
    weights: str | ArrayLike | None = None,
    prepare: Any = None,
    dtype: str | None = None,
    array: str | None = None,
    memory_limit: int | str | None = None,
    rows_per_part: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
) -> Any:
    """Open rows that need not fit into memory, for `fit`, `predict`, `score` and `choose_k`.

    A fit reads the rows part by part, once for each sweep: while the kernels work on one part, the
    next one is read. The result depends neither on the pieces that the rows come in nor on the
    number of threads. Rows of Dask stay in their partitions. Files whose points fit into memory are
    read into it, unless a limit, a length of parts or a checkpoint is given.

    Parameters
    ----------
    source : path, list of paths, array of shape (n_samples, n_features), iterable, callable or Dask
        A file or a folder of files with the same columns. NPY and NPZ are arrays; all others are
        tables, packed or not: CSV and similar text, Parquet, Feather, Arrow, Excel and more, whose
        columns `Prepare` turns into points. If these do not fit into memory, they are written once
        to a temporary file. `open_table` opens what does not tell how it is to be read. Names in a
        folder that begin with a dot or an underscore are skipped, and so are files without rows; a
        file of another kind is an error. Or a query of DuckDB, a LazyFrame of Polars or a
        RecordBatchReader, whose numbers are written once to a temporary file. Or an array, dense or
        CSR, whose parts stay in memory. Or an iterable of arrays or tables, or of pairs of an array
        and weights, that starts again each time it is iterated; or a function that returns a new
        one each time, such as ``lambda: (h5[i : i + 10**5] for i in range(0, len(h5), 10**5))`` for
        a data set of HDF5 or an array of Zarr. Or a Dask array or DataFrame.
    columns : sequence of str or int, optional
        The columns of files or of a Dask DataFrame to read, by name, by number from one, or by
        ranges of these such as "2-4"; by default all but `weights`.
    weights : str or array-like of shape (n_samples,), optional
        The column with the weights of the rows; for an array, the weights themselves.
    prepare : Prepare, optional
        How columns become points, and are scaled; by default ``Prepare()`` for tables in files.
        Arrays, frames and streams stay as they are unless it is given.
    dtype : {"float32", "float64"}, optional
        Dtype of the rows; by default float32 if all columns are, or are narrower floats, else
        float64. By default `KMeans` and `PowerKMeans` read arrays of float16, int8 and uint8 in
        NPY, and chunks of these and bfloat16, as they are.
    array : str, optional
        The array in an NPZ file, if there are several.
    memory_limit : int or str, optional
        Rough limit of the memory for rows, in bytes or as "500MB" or "2GiB". A low limit makes the
        parts smaller.
    rows_per_part : int, optional
        Number of rows in a part: by default those of 16 MiB, or fewer if the limit asks for it. A
        number beyond the limit is an error.
    checkpoint : path, optional
        A file in which a fit notes what it learns from the rows. If the file exists, the same fit,
        with the same parameters and an int as `random_state`, continues from its end, and the
        result is bit-identical to that of a fit that never stopped. The file grows by about
        ``8 * n_clusters * (n_features + 2)`` bytes a sweep; remove it when you no longer need it.
        Arrays in files are recognized by names, sizes and times of the files, tables and an array
        by all values, and chunks only by the first of them: make sure that the others are the same.
    checkpoint_seconds : float, default=60.0
        Time between two writes to the checkpoint. A killed fit loses the work of this time and of
        the current sweep.

    Returns
    -------
    PartedData or, for Dask collections, DaskPoints
        Both have `n_features`, `feature_names`, `dtype` and `checkpoint`.

    See Also
    --------
    PowerKMeans : Takes what this opens, as do `KMeans`, `KHarmonicMeans` and `FuzzyCMeans`.
    MiniBatchPowerKMeans : Takes it part after part, as does `OnlineKMeans`.
    ParallelSeeds : Chooses seeds among such rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from powermeans import KMeans, open_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "points.npy")
    ...     np.save(file, np.array([[1.0], [2.0], [10.0], [11.0]]))
    ...     model = KMeans(2, random_state=0).fit(open_data(file, rows_per_part=3))
    >>> np.sort(model.cluster_centers_, axis=0)
    array([[ 1.5],
           [10.5]])
    """
    _check_options(dtype, rows_per_part)
    wanted: Any = None if dtype is None else np.dtype(dtype)
    where = None if checkpoint is None else Checkpoint(os.fspath(checkpoint), checkpoint_seconds)
    if is_dask(source):
        _refuse_for_dask(rows_per_part, memory_limit, array)
        from powermeans.scale.dask_points import open_dask

        named: Any = columns
        how = {"prepare": prepare, "checkpoint": where}
        return open_dask(source, named, weights, dtype=wanted, **how)
    load_package_for(type(source))
    opened = source_of(source, Wanted(columns, weights, wanted, array, prepare))
    length = length_of_parts(rows_per_part, memory_limit, has_weights=weights is not None)
    is_limited = any(one is not None for one in (memory_limit, rows_per_part, where))
    return PartedData(opened, length, where, is_limited=is_limited)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is told of a source."""

    columns: Sequence[str | int] | None = None
    weights: Any = None
    dtype: Any = None
    array: str | None = None
    prepare: Any = None

    def refuse(self, *names: str) -> None:
        """Raise where something is told that the source has no use for."""
        for name in names:
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is for files, and source is none: leave it out")

    @property
    def name_of_weights(self) -> str | None:
        """The column of weights."""
        if self.weights is not None and not isinstance(self.weights, str):
            raise ValueError("weights of files are one of their columns: pass its name")
        return self.weights


def _check_options(dtype: Any, rows_per_part: Any) -> None:
    if dtype is not None and not _is_for_points(dtype):
        raise ValueError(f'dtype={dtype!r} is not for points: pass "float32" or "float64"')
    if rows_per_part is not None:
        check_count(rows_per_part, "rows_per_part", 1, "for example 100_000")


def _is_for_points(dtype: Any) -> bool:
    try:
        return np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        return False


def _refuse_for_dask(rows_per_part: object, memory_limit: object, array: object) -> None:
    for name, value, way_out in (
        ("rows_per_part", rows_per_part, ", and call X.rechunk or X.repartition"),
        ("memory_limit", memory_limit, ", and set memory_limit of the workers"),
        ("array", array, ""),
    ):
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is for rows that are read part by part, and Dask has those of "
                f"a collection in its partitions: leave it out{way_out}"
            )


@functools.singledispatch
def source_of(source: Any, wanted: Wanted) -> Any:
    """Return the source of rows that are known by what they can do; register those of a type.

    The rows of a table have no points before it is known for which fit they are.
    """
    if are_paths(source) or isinstance(source, Stream) or wanted.prepare is not None:
        return _source_of_table(source, wanted)
    wanted.refuse("array")
    if gives_arrow_batches(source):
        return spooled(source, wanted.columns, wanted.name_of_weights, wanted.dtype)
    wanted.refuse("columns")
    weights = wanted.weights
    if sparse.issparse(source) or hasattr(source, "__array__"):
        if isinstance(weights, str):
            raise ValueError(f"weights={weights!r} names a column of a file: pass the weights")
        return ArraySource(source, weights, dtype=wanted.dtype)
    if weights is not None:
        raise ValueError("weights of chunks come with them: pass pairs of an array and its weights")
    if not (callable(source) or hasattr(source, "__iter__")):
        raise SourceError(
            f"source is a {type(source).__name__}: pass a path, a list of paths, an array, or an "
            "iterable of arrays"
        )
    return IterableSource(source, dtype=wanted.dtype)


def _source_of_table(source: Any, wanted: Wanted) -> Any:
    """Return arrays in files, or the rows of a table, which another package prepares."""
    names = wanted.columns, wanted.name_of_weights
    if are_paths(source):
        paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        if any(os.fspath(path) == "" for path in paths):
            raise SourceError('a path is "": pass the name of a file or a folder, "." for this one')
        if wanted.prepare is None and are_arrays(paths):
            return FileSource(paths, *names, dtype=wanted.dtype, array=wanted.array)
    if wanted.array is not None:
        raise ValueError("array is for NPZ: pass powermeans.open_table(source, array=...)")
    return extension("tables")(source, *names, wanted.prepare, wanted.dtype)


@source_of.register(PartedData)
def refuse_opened(source: Any, *options: Any) -> Source:
    """Raise, since the rows are open already."""
    raise ValueError("source is open already: pass it on as it is")


def length_of_parts(
    asked: int | None, memory_limit: int | str | None, *, has_weights: bool
) -> Callable[[int], int]:
    """Return what tells the number of rows in a part, given the bytes of a point."""
    if memory_limit is not None:
        _bytes_of(memory_limit)  # refuses what is no size
    return functools.partial(_rows_of_a_part, asked, memory_limit, has_weights)


def _rows_of_a_part(
    asked: int | None, memory_limit: int | str | None, has_weights: bool, bytes_of_points: int
) -> int:
    bytes_per_row = bytes_of_points + 8 * has_weights
    n_bytes = 2**24
    if memory_limit is not None:
        within = _bytes_of(memory_limit) // _COPIES_OF_A_PART
        n_bytes = min(n_bytes, within)
        if n_bytes < _FEWEST_ROWS * bytes_per_row:
            least = _FEWEST_ROWS * bytes_per_row * _COPIES_OF_A_PART
            raise ArgumentError(
                f"allows fewer than {_FEWEST_ROWS} rows at a time",
                f"pass at least {least} bytes, or fewer columns",
                argument="memory_limit",
                value=memory_limit,
            )
        if asked is not None and asked > within // bytes_per_row:
            raise ValueError(
                f"rows_per_part={asked!r} does not keep to memory_limit={memory_limit!r}: pass "
                f"at most {within // bytes_per_row} rows, or one of the two"
            )
    if asked is not None:
        return asked
    return max(_FEWEST_ROWS, n_bytes // bytes_per_row) // _FEWEST_ROWS * _FEWEST_ROWS


def _bytes_of(memory_limit: int | str) -> int:
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([kmgt]i?|)b?\s*", str(memory_limit).lower())
    if found is None:
        raise ArgumentError(
            "is no size",
            'pass bytes, or for example "2GB"',
            argument="memory_limit",
            value=memory_limit,
        )
    base, power = 1024 if found[2].endswith("i") else 1000, "kmgt".find(found[2][:1] or "-") + 1
    return int(min(float(found[1]) * base**power, 2.0**62))  # which is no limit


def is_read_with(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether a path is another one, or a file that is read with that folder."""
    if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
        return True
    file, folder = Path(os.path.realpath(path)), Path(os.path.realpath(other))
    if not folder.is_dir():
        return file == folder
    return file.is_relative_to(folder) and not is_passed_over(file.relative_to(folder))
