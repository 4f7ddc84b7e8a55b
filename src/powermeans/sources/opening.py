"""What users open: a source, how it is cut into parts, and how it is scaled."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.errors import ArgumentError
from powermeans.sources.arrays import ArraySource, IterableSource
from powermeans.sources.block import Block, Source, SourceError
from powermeans.sources.files import FileSource, is_passed_over
from powermeans.sources.kinds import Kind, are_paths, is_dask
from powermeans.sources.partition import Admission, Part, Partition, cut
from powermeans.sources.scaling import Scale, Scaling, learned_scaling

_BYTES_OF_A_PART = 2**24
# At most this many copies of a part exist at a time: one in work, one being read, one of the blocks
# that it is joined from, and what some kinds of distances add.
_COPIES_OF_A_PART = 6
_FEWEST_ROWS = 256
# Scaling is learned from copies in float64, so few at a time, whatever the pieces are.
_VALUES_TO_LEARN_FROM = 2**18
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 2 ** (10 * power) for power, unit in enumerate("kmgt", start=1)}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a fit writes down how far it is, and how often at most.

    `when_used` is called once a fit finds that all that is there is its own, and goes on from it.
    """

    path: str
    seconds: float
    when_used: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        given: object = self.seconds
        if isinstance(given, bool) or not isinstance(given, Real) or not self.seconds >= 0:
            raise ValueError(
                f"checkpoint_seconds={self.seconds!r} must be a number and at least 0: pass for "
                "example 60.0"
            )

    def refuse_rows(self, data: PartedData) -> None:
        """Raise if the rows are read from this file, or from a folder that it would be in."""
        if data.is_read_from(self.path):
            raise ArgumentError(
                "is a file that rows are read from, or in a folder that is",
                "name another file",
                argument="checkpoint",
                value=self.path,
            )


class PartedData:
    """Rows that are read part by part, to be passed to `fit`, `predict` or `score`.

    `open_data` makes them.

    Attributes
    ----------
    source : Source
        Where the rows are from.
    rows_per_part : int
        How many rows are worked on at a time. The sums of parts are added in a fixed order, so
        this is all that decides how results are rounded.
    is_in_memory : bool
        Whether the parts are slices of an array.
    checkpoint : Checkpoint or None
        Where a fit writes down how far it is.

    See Also
    --------
    open_data : Makes them.

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

    kind: ClassVar[Kind] = Kind.PARTS

    def __init__(
        self,
        source: Source,
        rows_per_part: int,
        scale: Scale | Scaling | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.source, self.rows_per_part, self._scale = source, rows_per_part, scale
        self.checkpoint = checkpoint
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
        """Number of rows, None if only reading all of them would tell."""
        return self.source.n_rows

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, if there are any."""
        return self.source.feature_names

    @cached_property
    def scaling(self) -> Scaling | None:
        """What is done to the columns; the first look at it may take a pass over the rows."""
        if self._scale is None or isinstance(self._scale, Scaling):
            return self._scale
        n_rows = min(self.rows_per_part, max(1, _VALUES_TO_LEARN_FROM // self.n_features))
        pieces = cut(self.source.blocks(), n_rows)
        blocks = (Block(points, weights, self.source.name) for points, weights in pieces)
        return learned_scaling(blocks, self.n_features, self._scale)

    def partition(self, admission: Admission | None = None) -> Partition:
        """Return the parts, to be read again and again."""
        return Partition(self.source, self.rows_per_part, admission or Admission(), self.scaling)

    def read(self) -> Iterator[Part]:
        """Read the parts once, each checked."""
        return self.partition().read()

    def weighing(self, unit: float) -> PartedData:
        """Return the same rows with weights this many times as large."""
        source: Any = _Weighing(self.source, unit)
        data = PartedData(source, self.rows_per_part, self.scaling)
        data.is_in_memory = self.is_in_memory
        return data

    def is_read_from(self, path: str | os.PathLike[str]) -> bool:
        """Return whether rows are from this file, or would be if it were in its folder."""
        read: Sequence[Path] = getattr(self.source, "paths", ())
        return any(is_read_with(path, other) for other in read)

    def fingerprint(self) -> str:
        """Return a text that differs for other rows, and for rows that are cut in other places."""
        scaling = self.scaling
        values = [] if scaling is None else [scaling.offsets.tolist(), scaling.units.tolist()]
        return repr([self.source.fingerprint(), self.rows_per_part, str(self.dtype), values])

    def __repr__(self) -> str:
        return (
            f"<rows of {self.source.name}: {self.n_features} columns of {self.dtype}, "
            f"{self.rows_per_part} rows at a time>"
        )


@dataclass(frozen=True, slots=True)
class _Weighing:
    """A source with weights this many times as large."""

    source: Source
    unit: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        for block in self.source.blocks(first_row, at_once):
            assert block.weights is not None
            yield replace(block, weights=block.weights * self.unit)


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
    delimiter: str | None = None,
    header: bool | None = None,
    array: str | None = None,
    decimal: str | None = None,
) -> Any:
    """Open rows that need not fit into memory, for `fit`, `predict`, `score` and `choose_k`.

    They are read part by part, once for each sweep: while the kernels work on one part, the next
    one is read. What the result is does not depend on the pieces that the rows come in, nor on
    the number of threads. Those of Dask stay in the partitions where Dask has them.

    Parameters
    ----------
    source : path, list of paths, array of shape (n_samples, n_features), iterable, callable or Dask
        A file or a folder of files: Parquet, Feather or Arrow, CSV and its kin, NPY, and HDF5 or
        Zarr where `h5py` or `zarr` is installed; NPZ, an archive, is read into memory as a whole.
        In a folder, what begins with a dot or an underscore is passed over, and a file of another
        kind is refused. Files without rows are passed over, if others have some. Or an array,
        dense or CSR, whose parts stay in memory. Or an iterable of arrays or tables, or of pairs
        of one and weights, which must start anew each time it is iterated; or a function that
        returns a new one each time. Or a Dask array or DataFrame.
    columns : sequence of str or int, optional
        Of files and Dask DataFrames, the columns to read, by name or, of files, by number from
        one. None is all but `weights`, and then all files must have the same.
    weights : str or array-like of shape (n_samples,), optional
        The column that holds weights of the rows; for an array, the weights themselves.
    scale : {"standard", "minmax"} or Scaling, optional
        Scale each column to mean zero and variance one, or to lie between zero and one. That takes
        one more pass. A `Scaling`, such as `scaling` of other data, is applied as it is.
    dtype : {"float32", "float64"}, optional
        What to work in; by default float32 where all columns are, else float64.
    memory_limit : int or str, optional
        Roughly how much memory the rows may take at a time, in bytes or as "500MB" or "2GiB". A
        small one makes the parts smaller.
    rows_per_part : int, optional
        How many rows are in a part. By default as many as take 16 MiB, or fewer by the limit; one
        that does not keep to the limit is refused.
    checkpoint : path, optional
        A file in which a fit writes down what it has found out about the rows. If there is one
        already, the same fit, with the same parameters and an int as `random_state`, goes on from
        its end, and gives the same bits as if it had never stopped. It grows by about
        ``8 * n_clusters * (n_features + 2)`` bytes a sweep; remove it once it is of no more use.
        Files are recognized by their names, sizes and times, an array by all of its values, and
        chunks only by the first of them: you must see to it that the others are the same.
    checkpoint_seconds : float, default=60.0
        How often the checkpoint is written at most: where a fit is killed, so much work is lost at
        most, and the sweep that was going on.
    delimiter, header, decimal
        Of text, as in `powermeans.tables.read_table`.
    array : str, optional
        Which array of an NPZ, HDF5 or Zarr file to read; not needed if there is one.

    Returns
    -------
    PartedData or, of what is Dask's, DaskPoints
        Both have `n_features`, `feature_names`, `dtype`, `scaling` and `checkpoint`.

    See Also
    --------
    PowerKMeans : Takes what this opens, as do `KMeans`, `KHarmonicMeans` and `FuzzyCMeans`.
    MiniBatchPowerKMeans : Takes it part after part, as does `OnlineKMeans`.
    ParallelSeeds : How seeds of such rows are found.

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
    if isinstance(getattr(type(source), "kind", None), Kind):
        raise ValueError("source is open already: pass it on as it is")
    _check_options(scale, dtype, rows_per_part)
    wanted: Any = None if dtype is None else np.dtype(dtype)
    reading = {"delimiter": delimiter, "header": header, "array": array, "decimal": decimal}
    where = None if checkpoint is None else Checkpoint(os.fspath(checkpoint), checkpoint_seconds)
    if is_dask(source):
        _refuse_for_dask(rows_per_part, memory_limit, reading)
        from powermeans.sources.dask import open_dask

        named: Any = columns
        return open_dask(source, named, weights, dtype=wanted, scale=scale, checkpoint=where)
    opened = _source_of(source, columns, weights, wanted, reading)
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


def _refuse_for_dask(rows_per_part: object, memory_limit: object, reading: dict[str, Any]) -> None:
    if rows_per_part is not None:
        raise ValueError(
            f"rows_per_part={rows_per_part!r} is for rows that are read part by part, and the "
            "parts of a Dask collection are its partitions: leave it out, and call X.rechunk or "
            "X.repartition"
        )
    if memory_limit is not None:
        raise ValueError(
            f"memory_limit={memory_limit!r} is for rows that are read part by part, and those of a "
            "Dask collection are held by its workers, whose memory_limit Dask minds: leave it out"
        )
    for name, value in reading.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is for files, and source is a Dask collection: leave it out"
            )


def _source_of(
    source: Any,
    columns: Sequence[str | int] | None,
    weights: Any,
    dtype: Any,
    reading: dict[str, Any],
) -> Source:
    if are_paths(source):
        if weights is not None and not isinstance(weights, str):
            raise ValueError("weights of files are one of their columns: pass its name")
        paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        return FileSource(paths, columns=columns, weights=weights, dtype=dtype, options=reading)
    for name, value in {"columns": columns, **reading}.items():
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


def _rows_of_a_part(asked: int | None, memory_limit: int | str | None, bytes_per_row: int) -> int:
    n_bytes = _BYTES_OF_A_PART
    if memory_limit is not None:
        within = _bytes_of(memory_limit) // _COPIES_OF_A_PART
        n_bytes = min(n_bytes, within)
        if n_bytes < _FEWEST_ROWS * bytes_per_row:
            least = _FEWEST_ROWS * bytes_per_row * _COPIES_OF_A_PART
            raise ArgumentError(
                f"leaves room for fewer than {_FEWEST_ROWS} rows at a time",
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
    found = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?i?)b?\s*", str(memory_limit).lower())
    try:
        assert found is not None
        n_bytes = int(float(found[1]) * _UNITS[found[2]])
    except (AssertionError, KeyError, ValueError):
        raise ArgumentError(
            "is no size",
            'pass bytes, or for example "2GB"',
            argument="memory_limit",
            value=memory_limit,
        ) from None
    return n_bytes


def is_read_with(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether a file is another one that is read, or one of a folder that is read."""
    if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
        return True
    file, folder = Path(os.path.realpath(path)), Path(os.path.realpath(other))
    if not folder.is_dir():
        return file == folder
    return file.is_relative_to(folder) and not is_passed_over(file.relative_to(folder))
