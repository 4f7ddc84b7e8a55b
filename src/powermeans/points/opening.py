"""The door: open whatever a user passes as points.

This file opens arrays. `powermeans.tensors` and `powermeans.scale` register what they open, and are
imported when the first of it comes.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from powermeans.divergences import (
    Bregman,
    Cosine,
    Divergence,
    FDivergence,
    Manhattan,
    SquaredEuclidean,
)
from powermeans.errors import NotInPartsError
from powermeans.points.bregman import open_bregman
from powermeans.points.checks.centers import check_centers
from powermeans.points.checks.faults import explain_fault, refuse_dates
from powermeans.points.checks.points import (
    NARROW_DTYPES,
    Admitted,
    admit,
    dtype_of_centers,
    exponent_to_square,
    unlike_scales,
    wanted_dtype,
    warn_of_unlike_scales,
)
from powermeans.points.columns import Columns
from powermeans.points.compiled import CompiledRows, EuclideanRows
from powermeans.points.cosine import CosineRows
from powermeans.points.f_divergences import FDivergenceRows
from powermeans.points.manhattan import ManhattanRows
from powermeans.points.needs import Measure, Needs
from powermeans.points.observed import ObservedRows
from powermeans.points.protocol import Rows
from powermeans.points.streams import Stream, is_stream
from powermeans.points.used_columns import UsedColumns
from powermeans.system.containers import to_array
from powermeans.system.label_files import write_labels
from powermeans.types import FloatArray, Points, SparsePoints

MatrixLike = ArrayLike | SparsePoints | Stream | Iterable[Any] | Callable[[], Iterable[Any]]
# Which module registers what opens the types of a package, or of a module: a function of
# `open_points`, or for points that are read part by part one of `source_of`
# of `powermeans.scale.parted_data`.
_OPENERS = {
    "torch": "powermeans.tensors.opening",
    "dask": "powermeans.scale.on_dask",
    "dask_expr": "powermeans.scale.on_dask",
    "powermeans.scale.dask_points": "powermeans.scale.on_dask",
}
_ROWS_OF: dict[type[Divergence], Callable[..., CompiledRows]] = {
    SquaredEuclidean: EuclideanRows,
    Cosine: CosineRows,
    Manhattan: ManhattanRows,
}
_BLOCK_ELEMENTS = 2**17


# The door.


@functools.singledispatch
def open_points(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> Opened:
    """Return points to work on, or raise where they are not as needed."""
    if needs.known is not None and needs.known.preparation is not None:
        X = in_columns_of(X, needs.known)
    if load_package_for(type(X)):
        return open_points(X, sample_weight, needs)
    # After the types, since a stream is known by what it can do, and other points can be iterated.
    if is_stream(X):
        importlib.import_module("powermeans.scale.opening")
        return open_points.dispatch(Stream)(X, sample_weight, needs)
    return _open_array(X, sample_weight, needs)


def in_columns_of(X: Any, known: Columns) -> Any:
    """Return a table, in whatever it comes, as a stream that is prepared as that of the fit was."""
    if isinstance(X, Stream):
        return X
    has_names = hasattr(X, "columns") or hasattr(X, "column_names") or type(X) is dict
    if not has_names and not is_stream(X):
        known.refuse_points()
    return importlib.import_module("powermeans.scale.parted_data").open_data(
        X, prepare=known.preparation
    )


def load_package_for(kind: type) -> bool:
    """Import what registers an opener for a type, and return whether there is one now."""
    modules = {base.__module__ for base in kind.__mro__}
    homes = modules | {module.partition(".")[0] for module in modules}
    for opener in {_OPENERS[home] for home in homes & _OPENERS.keys()}:
        importlib.import_module(opener)
    return open_points.dispatch(kind) is not open_points.dispatch(object)


# What is opened.


class Opened(AbstractContextManager["Opened"]):
    """The points of a user, opened: the rows to work on, and the way back for what is found."""

    __slots__ = ()

    rows: Any
    noted: Any = None  # attributes that describe the columns; scikit-learn has set those of arrays

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Dtype for centers."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns."""

    @abstractmethod
    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        """Return labels, None if there are too many, and inertia; a known one may save a pass."""

    @abstractmethod
    def n_found(self, centers: FloatArray, labels: Any) -> int:
        """Return how many clusters have points, given the labels of all points."""

    def inertia(self, centers: FloatArray) -> float:
        """Return the inertia of the centers."""
        return self.assign(centers)[1]

    @abstractmethod
    def predicted(self, centers: Points, output: str | os.PathLike[str] | None = None) -> Any:
        """Return the labels of new points as the user gave these, or the file with the labels."""

    @abstractmethod
    def distances(self, centers: Points) -> Any:
        """Return the distance of each new point to each center, not squared."""

    @abstractmethod
    def shares(
        self, centers: Points, memberships: Callable[[FloatArray], FloatArray], exponent: float
    ) -> Any:
        """Return memberships of new points, which do not depend on the unit of distance.

        They are in proportion to distances to the power of the exponent.
        """

    def of_used_columns(self, centers: FloatArray) -> FloatArray:
        """Return centers with the columns that the rows have."""
        return centers

    def of_all_columns(self, centers: Any) -> Any:
        """Return centers of these rows with the columns of the points of the user."""
        return centers

    def of_all_rows(self, values: Any) -> Any:
        """Return results for these rows with those for rows of the user that have no point."""
        return values

    def stop_recording(self) -> None:
        """Write no more into a checkpoint."""

    def __exit__(self, *error: object) -> None:
        return


@dataclass(frozen=True, slots=True)
class InMemory(Opened):
    """Points in one array."""

    points: Points | SparsePoints
    weights: FloatArray | None
    rows: Rows
    largest: float = field(default=math.nan, kw_only=True)  # the largest magnitude, if known
    needs: Needs | None = field(default=None, kw_only=True)  # for which they were opened

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of_centers(self.points.dtype)

    @property
    def n_features(self) -> int:
        return int(self.points.shape[1])

    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        return self.rows.assign(centers)

    def n_found(self, centers: FloatArray, labels: Any) -> int:
        is_found = np.zeros(len(centers), dtype=bool)
        is_found[labels] = True  # unlike bincount without a copy of the labels
        return int(np.count_nonzero(is_found))

    def predicted(self, centers: Points, output: str | os.PathLike[str] | None = None) -> Any:
        labels, _ = self.assign(check_centers(centers, self.n_features))
        return labels if output is None else write_labels(output, [self.of_all_rows(labels)])

    def distances(self, centers: Points) -> Any:
        assert self.needs is not None, "predictions are for points that the door opened"
        found, measure = self._sq_distances(centers), self.needs.measure
        if measure.divergence.is_squared:
            found = np.sqrt(found, out=found)
        dtype = dtype_of_centers(self.points.dtype) if measure.is_plain else centers.dtype
        with np.errstate(over="ignore"):
            distances = found.astype(dtype, copy=False)
        return _without_overflow(distances, has_grown=distances is not found)

    def shares(
        self, centers: Points, memberships: Callable[[FloatArray], FloatArray], exponent: float
    ) -> Any:
        sq_dist = self._sq_distances(centers)
        shares = np.empty(sq_dist.shape)
        n_block = max(1, _BLOCK_ELEMENTS // sq_dist.shape[1])
        for start in range(0, len(sq_dist), n_block):
            block = slice(start, start + n_block)
            shares[block] = memberships(sq_dist[block].astype(np.float64))
        return shares

    def _sq_distances(self, centers: Points) -> Points:
        """Return squared distances, in float64 where they may leave the range of float32."""
        needs, points = self.needs, self.points
        assert needs is not None, "predictions are for points that the door opened"
        checked = check_centers(centers, self.n_features)
        largest = max(self.largest, float(np.abs(checked).max()))
        # In float64 too where one row is far, so that squares of the others keep their digits.
        if not needs.measure.is_plain or exponent_to_square(largest, points.dtype):
            wide = points.astype(np.float64, copy=False)
            is_open = wide is points and self.weights is None
            of_wide = self.rows if is_open else rows_for(needs.measure, wide)
            return of_wide.sq_distances(checked)
        rows, dtype = self.rows, dtype_of_centers(points.dtype)
        if self.weights is not None or not isinstance(rows, EuclideanRows):
            rows = EuclideanRows(points, n_threads=needs.measure.n_threads)
        if dtype == rows.dtype:
            return rows.sq_distances(checked)
        sq_dist = np.empty((rows.n_points, len(checked)), dtype)
        n_block = max(1, _BLOCK_ELEMENTS // len(checked))
        for start in range(0, rows.n_points, n_block):
            block = slice(start, start + n_block)
            sq_dist[block] = rows.sampler.some(block).sq_distances(checked)
        return sq_dist


@dataclass(frozen=True, slots=True)
class InUsedColumns(InMemory):
    """Sparse points of a fit without the columns that have no entry."""

    columns: UsedColumns
    opened_whole: Callable[[], Rows]

    @property
    def n_features(self) -> int:
        """Number of columns, with those that are left out."""
        return self.columns.n_columns

    def assign(self, centers: FloatArray, known_inertia: float | None = None) -> tuple[Any, float]:
        """Return labels and inertia from all columns, with the bits of predictions."""
        return self.opened_whole().assign(self.columns.all_of(centers))

    def of_used_columns(self, centers: FloatArray) -> FloatArray:
        return self.columns.of_centers(centers)

    def of_all_columns(self, centers: Any) -> Any:
        return self.columns.all_of(centers)


def in_memory(opened: Opened) -> InMemory:
    """Return the same points, of an estimator that takes no others."""
    assert isinstance(opened, InMemory), "points in parts are refused when they are opened"
    return opened


# Rows.


def open_rows(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    divergence: Divergence = SquaredEuclidean(),
    has_missing: bool = False,
    **options: Any,
) -> CompiledRows:
    """Open valid points in memory; with `has_missing`, NaN stands for a missing entry.

    Missing entries need squared Euclidean distances. Options are those of `CompiledRows`.
    """
    if has_missing and isinstance(points, np.ndarray):
        return ObservedRows(points, sample_weight, **options)
    if isinstance(divergence, Bregman):
        return open_bregman(points, sample_weight, divergence=divergence, **options)
    if not isinstance(points, np.ndarray) and not divergence.takes_sparse:
        raise ValueError(
            f"X is sparse, and {type(divergence).__name__} needs dense points: pass X.toarray(), "
            "or choose another divergence"
        )
    if isinstance(divergence, FDivergence):
        return FDivergenceRows(np.asarray(points), sample_weight, divergence=divergence, **options)
    return _ROWS_OF[type(divergence)](points, sample_weight, **options)


def open_batch(
    points: Points | SparsePoints,
    sample_weight: FloatArray | None = None,
    *,
    beside: Rows | None = None,
    **options: Any,
) -> CompiledRows:
    """Open points as `open_rows` does, for only a sweep or two.

    The rows share the threads of `team`, or of the rows `beside` them.
    """
    if isinstance(beside, CompiledRows):
        options["team"] = beside.team
    rows = open_rows(points, sample_weight, **options)
    rows.expect_few_sweeps()
    return rows


def rows_for(
    measure: Measure, points: Points | SparsePoints, weights: FloatArray | None = None
) -> Rows:
    """Return the rows of an array that has been admitted."""
    if measure.opener is not None:
        return measure.opener(points, weights, measure)
    return open_rows(
        points,
        weights,
        divergence=measure.divergence,
        has_missing=measure.has_missing,
        n_threads=measure.n_threads,
        n_columns=measure.n_columns,
    )


def rows_of(admitted: Admitted, measure: Measure) -> Rows:
    """Return the rows of an array, in float64 where one is far and others may weigh more."""
    may_weigh_more = admitted.weights is not None or measure.opener is not None
    points = admitted.points
    if may_weigh_more:
        points = wide_if_far(points, admitted.largest)
    return rows_for(measure, points, admitted.weights)


def wide_if_far(points: Points | SparsePoints, largest: float) -> Points | SparsePoints:
    """Return the points in float64 where float32 would not hold the square of the largest."""
    return points.astype(np.float64) if exponent_to_square(largest, points.dtype) else points


# Arrays.


@open_points.register(np.ndarray)
def _open_array(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> InMemory:
    if needs.known is not None:
        needs.known.refuse_points()
    admitted = admit_array(to_array(X), sample_weight, needs)
    points, weights = admitted.points, admitted.weights
    if needs.measure.has_missing and not np.isnan(np.asarray(points)).any():
        needs = needs.measured(has_missing=False)  # whole points have faster rows
    if needs.fit.leaves_out_columns and sparse.issparse(points):
        columns = UsedColumns.of(points, needs.measure.divergence, needs.fit.init)
        if columns is not None:
            return _opened_in_used_columns(admitted, columns, needs)
    rows = rows_of(admitted, needs.measure)
    if needs.known is not None and isinstance(rows, CompiledRows):
        rows.expect_few_sweeps()
    return InMemory(points, weights, rows, largest=admitted.largest, needs=needs)


def _opened_in_used_columns(
    admitted: Admitted, columns: UsedColumns, needs: Needs
) -> InUsedColumns:
    points, weights = columns.of_points(admitted.points), admitted.weights
    rows = rows_for(replace(needs.measure, n_columns=columns.n_columns), points, weights)

    def opened_whole() -> Rows:
        whole = rows_for(needs.measure, admitted.points, weights)
        if isinstance(whole, CompiledRows):
            whole.expect_few_sweeps()
        return whole

    return InUsedColumns(points, weights, rows, columns, opened_whole, largest=admitted.largest)


def admit_array(
    X: Any, sample_weight: ArrayLike | None, needs: Needs, *, name: str = "X", **form: Any
) -> Admitted:
    """Return the checked points of an array, which errors call `name`, and their weights."""
    if not isinstance(X, np.ndarray) and is_stream(X):
        raise not_in_parts(name, needs)
    points, names = _converted(X, needs, name, form)
    admitted = admit(
        points,
        sample_weight,
        n_clusters=needs.fit.n_points,
        name=name,
        feature_names=names,
        must_differ=needs.fit.must_differ,
        has_missing=needs.measure.has_missing,
        way_out=needs.way_out,
    )
    divergence = needs.measure.divergence
    has_units = divergence.depends_on_scale and not needs.measure.weighs_features
    is_warned = needs.fit.warns_of_scales and has_units
    if is_warned and (found := unlike_scales(admitted.points)) is not None:
        warn_of_unlike_scales(*found, names)
    divergence.check_domain(admitted.points, name=name)
    return admitted if needs.as_wide_as is None else wide_enough(admitted, needs.as_wide_as)


def _converted(X: Any, needs: Needs, name: str, form: dict[str, Any]) -> tuple[Any, Any]:
    """Return the points as an array or CSR matrix of floats, and the names of their columns."""
    given = getattr(X, "dtype", None)
    is_kept = str(given) in NARROW_DTYPES and needs.measure.keeps_narrow
    dtype = [given] if is_kept and not sparse.issparse(X) else wanted_dtype(X)
    wanted = {"accept_sparse": "csr", "dtype": dtype, "order": "C", "ensure_all_finite": False}
    refuse_dates(X, name)
    try:
        if needs.estimator is not None:
            points = validate_data(
                needs.estimator, X, reset=needs.known is None, **{**wanted, **form}
            )
            return points, getattr(needs.estimator, "feature_names_in_", None)
        points = check_array(X, input_name=name, **{**wanted, **form})
    except (TypeError, ValueError, OverflowError) as error:
        explain_fault(X, name, error)
        raise
    if needs.known is not None:
        needs.known.check_width(points.shape[1], needs.name)
    return points, None


def not_in_parts(points: str, needs: Needs) -> NotInPartsError:
    """Return the error of points that are read part by part where all are looked at together."""
    reason = needs.refusals.parts or f"{needs.name} looks at all points at once"
    return NotInPartsError(
        f"{points} is read part by part, but {reason}",
        "read the rows into one array first, as Prepare().fit_transform(read_frame(FILE)) does",
    )


def _without_overflow(distances: Points, *, has_grown: bool) -> Points:
    """Return the distances, or raise where the points' dtype cannot store one."""
    if has_grown and np.isinf(distances).any():
        row = int(np.argmax(np.isinf(distances).any(axis=1)))
        raise ValueError(
            f"row {row} of X is too far from a center for {distances.dtype}: pass X as float64 to "
            "an estimator that was fitted in float64, or scale both"
        )
    return distances


def wide_enough(admitted: Admitted, centers: Points) -> Admitted:
    """Return the points in float64 where they cannot be compared with the centers in float32."""
    dtype = admitted.points.dtype
    if dtype == np.float64 or np.asarray(centers).dtype == dtype:
        return admitted
    largest = float(np.abs(check_centers(centers, admitted.points.shape[1])).max())
    if exponent_to_square(largest, dtype) == 0:
        return admitted
    return replace(admitted, points=admitted.points.astype(np.float64))
