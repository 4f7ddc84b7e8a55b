"""Open rows for users: choose the source, the length of its parts and its scaling."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.errors import ArgumentError
from powermeans.points.needs import Needs
from powermeans.points.opening import load_package_for
from powermeans.points.scaling import Scaling
from powermeans.points.streams import Stream, are_paths, gives_arrow_batches
from powermeans.scale.arrays import ArraySource, IterableSource
from powermeans.scale.block import Block, Source, SourceError
from powermeans.scale.files import FileSource, is_passed_over
from powermeans.scale.partition import Partition, cut
from powermeans.scale.scaling import Scale, learned_scaling
from powermeans.scale.spooled import spooled
from powermeans.system.host_memory import is_dask
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
        given: object = self.seconds
        if isinstance(given, bool) or not isinstance(given, Real) or not self.seconds >= 0:
            raise ValueError(
                f"checkpoint_seconds={self.seconds!r} must be a number of at least 0: pass for "
                "example 60.0"
            )

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
    >>> data = open_data(np.array([[1.0], [3.0]], dtype=np.float32), scale="minmax")
    >>> data.n_features, data.dtype, data.scaling.units
    (1, dtype('float32'), array([2.]))
    >>> KMeans(1).fit(data).cluster_centers_
    array([[0.5]], dtype=float32)
    """

    def __init__(
        self,
        source: Source,
        rows_per_part: int,
        scale: Scale | Scaling | None = None,
        checkpoint: Checkpoint | None = None,
        unit: float = 1.0,
    ) -> None:
        self.source, self.rows_per_part, self._scale = source, rows_per_part, scale
        self.checkpoint, self._unit = checkpoint, unit  # times which weights count
        self.is_in_memory = isinstance(source, ArraySource)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.source.n_features

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Float32 or float64."""
        return self.source.dtype

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None until all of them are read."""
        return self.source.n_rows

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have names."""
        return self.source.feature_names

    @cached_property
    def scaling(self) -> Scaling | None:
        """The scaling of the columns; the first access may take a pass over the rows."""
        if self._scale is None or isinstance(self._scale, Scaling):
            return self._scale
        # Learning makes float64 copies, so it takes few values at a time.
        n_rows = min(self.rows_per_part, max(1, 2**18 // self.n_features))
        pieces = cut(self.source.blocks(), n_rows)
        blocks = (Block(points, weights, self.source.name) for points, weights in pieces)
        return learned_scaling(blocks, self.n_features, self._scale)

    def partition(self, needs: Needs | None = None) -> Partition:
        """Return the parts, which can be read any number of times."""
        needs = needs or Needs(name="read")
        return Partition(self.source, self.rows_per_part, needs, self.scaling, self._unit)

    def read(self) -> Iterator[Part]:
        """Yield checked parts."""
        return self.partition().read()

    def weighing(self, unit: float) -> PartedData:
        """Return the same rows with weights times `unit`."""
        return PartedData(self.source, self.rows_per_part, self.scaling, unit=unit)

    def is_read_from(self, path: str | os.PathLike[str]) -> bool:
        """Return whether rows are read from this file or would be if it existed."""
        read: Sequence[Path] = getattr(self.source, "paths", ())
        return any(is_read_with(path, other) for other in read)

    def fingerprint(self) -> str:
        """Return a text that differs for different rows, and for the same rows cut otherwise."""
        scaling = self.scaling
        values = [] if scaling is None else [scaling.offsets.tolist(), scaling.units.tolist()]
        return repr([self.source.fingerprint(), self.rows_per_part, str(self.dtype), values])

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
    scale: Scale | Scaling | None = None,
    dtype: str | None = None,
    memory_limit: int | str | None = None,
    rows_per_part: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    **options: Any,
) -> Any:
    """Open rows that need not fit into memory, for `fit`, `predict`, `score` and `choose_k`.

    A fit reads the rows part by part, once for each sweep: while the kernels work on one part, the
    next one is read. The result depends neither on the pieces that the rows come in nor on the
    number of threads. Rows of Dask stay in their partitions.

    Parameters
    ----------
    source : path, list of paths, array of shape (n_samples, n_features), iterable, callable or Dask
        A file or a folder of files: Parquet, Feather or Arrow, CSV and similar text, NPY, and HDF5
        or Zarr if `h5py` or `zarr` is installed; NPZ, an archive, is read into memory as a whole.
        Names in a folder that begin with a dot or an underscore are skipped, and so are files
        without rows; a file of another kind is an error. Or a query of DuckDB, a LazyFrame of
        Polars or a RecordBatchReader, whose rows are written once to a temporary file. Or an array,
        dense or CSR, whose parts stay in memory. Or an iterable of arrays or tables, or of pairs of
        an array and weights, that starts again each time it is iterated; or a function that returns
        a new one each time. Or a Dask array or DataFrame.
    columns : sequence of str or int, optional
        The columns of files or of a Dask DataFrame to read, by name or, in files, by number from
        one, or by ranges of these such as "2-4"; by default all numbers but `weights` and what
        identifies the rows. Then all files must have the same columns.
    weights : str or array-like of shape (n_samples,), optional
        The column with the weights of the rows; for an array, the weights themselves.
    scale : {"standard", "minmax"} or Scaling, optional
        Scale each column to mean zero and variance one, or to between zero and one. That takes one
        more pass. A `Scaling`, such as `scaling` of other data, is applied as it is.
    dtype : {"float32", "float64"}, optional
        Dtype of the rows; by default float32 if all columns are, or are narrower floats, else
        float64. By default `KMeans` and `PowerKMeans` read arrays of float16, int8 and uint8 in
        NPY, HDF5 and Zarr, and chunks of these and bfloat16, as they are.
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
        Files are recognized by their names, sizes and times, an array by all of its values, and
        chunks only by the first of them: make sure that the others are the same.
    checkpoint_seconds : float, default=60.0
        Time between two writes to the checkpoint. A killed fit loses the work of this time and of
        the current sweep.
    **options
        How to read files, where they do not tell: for text `delimiter`, `header`,
        `decimal`, `thousands`, `dates` and `encoding`; for NPZ, HDF5 and Zarr the `array`, if there
        are several; for all `missing_values`.

    Returns
    -------
    PartedData or, for Dask collections, DaskPoints
        Both have `n_features`, `feature_names`, `dtype`, `scaling` and `checkpoint`.

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
    _check_options(scale, dtype, rows_per_part)
    wanted: Any = None if dtype is None else np.dtype(dtype)
    where = None if checkpoint is None else Checkpoint(os.fspath(checkpoint), checkpoint_seconds)
    if is_dask(source):
        _refuse_for_dask(rows_per_part, memory_limit, options)
        from powermeans.scale.dask_points import open_dask

        named: Any = columns
        return open_dask(source, named, weights, dtype=wanted, scale=scale, checkpoint=where)
    load_package_for(type(source))
    opened = source_of(source, columns, weights, wanted, options)
    n_bytes = opened.n_features * opened.dtype.itemsize + 8 * (weights is not None)
    return PartedData(opened, _rows_of_a_part(rows_per_part, memory_limit, n_bytes), scale, where)


def _check_options(scale: object, dtype: Any, rows_per_part: Any) -> None:
    if not (scale is None or isinstance(scale, Scaling) or scale in ("standard", "minmax")):
        raise ValueError(f'scale={scale!r} is unknown: pass "standard", "minmax" or a Scaling')
    if dtype is not None and not _is_for_points(dtype):
        raise ValueError(f'dtype={dtype!r} is not for points: pass "float32" or "float64"')
    if rows_per_part is None:
        return
    if isinstance(rows_per_part, bool) or not hasattr(rows_per_part, "__index__"):
        raise ValueError(f"rows_per_part={rows_per_part!r} is no integer: pass how many rows")
    if int(rows_per_part) < 1:
        raise ValueError(f"rows_per_part={rows_per_part!r} must be at least 1")


def _is_for_points(dtype: Any) -> bool:
    try:
        return np.dtype(dtype) in (np.float32, np.float64)
    except TypeError:
        return False


def _refuse_for_dask(rows_per_part: object, memory_limit: object, options: dict[str, Any]) -> None:
    if rows_per_part is not None:
        raise ValueError(
            f"rows_per_part={rows_per_part!r} is for rows that are read part by part, and the "
            "parts of a Dask collection are its partitions: leave it out, and call X.rechunk or "
            "X.repartition"
        )
    if memory_limit is not None:
        raise ValueError(
            f"memory_limit={memory_limit!r} is for rows that are read part by part, and workers "
            "store those of a Dask collection: leave it out, and set memory_limit of the workers"
        )
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is for files, and source is a Dask collection: leave it out"
            )


@functools.singledispatch
def source_of(
    source: Any,
    columns: Sequence[str | int] | None,
    weights: Any,
    dtype: Any,
    options: dict[str, Any],
) -> Source:
    """Return the source of rows that are known by what they can do; register those of a type."""
    if are_paths(source):
        _refuse_weights_beside_columns(weights)
        paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        return FileSource(paths, columns=columns, weights=weights, dtype=dtype, options=options)
    if gives_arrow_batches(source):
        _refuse_weights_beside_columns(weights)
        given: dict[str, Any] = {"columns": columns, "weights": weights, "options": options}
        return spooled(source, dtype=dtype, **given)
    for name, value in {"columns": columns, **options}.items():
        if value is not None:
            raise ValueError(f"{name} is for files, and source is none: leave it out")
    if sparse.issparse(source) or hasattr(source, "__array__"):
        if isinstance(weights, str):
            raise ValueError(f"weights={weights!r} names a column of a file: pass the weights")
        return ArraySource(source, weights, dtype=dtype)
    if weights is not None:
        raise ValueError("weights of chunks come with them: pass pairs of an array and its weights")
    if not (callable(source) or hasattr(source, "__iter__")):
        raise SourceError(
            f"source is a {type(source).__name__}: pass a path, a list of paths, an array, or an "
            "iterable of arrays"
        )
    return IterableSource(source, dtype=dtype)


@source_of.register(PartedData)
def refuse_opened(source: Any, *options: Any) -> Source:
    """Raise, since the rows are open already."""
    raise ValueError("source is open already: pass it on as it is")


def _refuse_weights_beside_columns(weights: object) -> None:
    if weights is not None and not isinstance(weights, str):
        raise ValueError("weights of files are one of their columns: pass its name")


def _rows_of_a_part(asked: int | None, memory_limit: int | str | None, bytes_per_row: int) -> int:
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
    return int(float(found[1]) * base**power)


def is_read_with(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether a path is another one, or a file that is read with that folder."""
    if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
        return True
    file, folder = Path(os.path.realpath(path)), Path(os.path.realpath(other))
    if not folder.is_dir():
        return file == folder
    return file.is_relative_to(folder) and not is_passed_over(file.relative_to(folder))
