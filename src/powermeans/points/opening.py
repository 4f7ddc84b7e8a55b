"""The door: open whatever a user passes as points.

This file opens arrays. `powermeans.tensors` and `powermeans.scale` register what they open, and are
imported when the first of it comes.
"""

import functools
import importlib
from collections.abc import Callable, Iterable
from dataclasses import replace
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
from powermeans.points.compiled import CompiledPoints, EuclideanPoints
from powermeans.points.cosine import CosinePoints
from powermeans.points.f_divergences import FDivergencePoints
from powermeans.points.given import Given
from powermeans.points.manhattan import ManhattanPoints
from powermeans.points.needs import Measure, Needs
from powermeans.points.observed import ObservedPoints
from powermeans.points.protocol import Points
from powermeans.points.streams import Stream, is_stream
from powermeans.points.used_columns import UsedColumns
from powermeans.system.containers import refuse_tensor_elsewhere, to_array
from powermeans.types import AnyMatrix, FloatArray, Matrix, SparseMatrix

MatrixLike = ArrayLike | SparseMatrix | Stream | Iterable[Any] | Callable[[], Iterable[Any]]
# Which module registers what opens the types of a package, or of a module: a function of
# `open_points`, or for points that are read part by part one of `source_of`
# of `powermeans.scale.parted_data`.
_OPENERS = {
    "torch": "powermeans.tensors.opening",
    "dask": "powermeans.scale.on_dask",
    "dask_expr": "powermeans.scale.on_dask",
    "powermeans.scale.dask_points": "powermeans.scale.on_dask",
}
_ROWS_OF: dict[type[Divergence], Callable[..., CompiledPoints]] = {
    SquaredEuclidean: EuclideanPoints,
    Cosine: CosinePoints,
    Manhattan: ManhattanPoints,
}
_BLOCK_ELEMENTS = 2**17


# The door.


@functools.singledispatch
def open_points(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> Points:
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


# Rows.


def open_rows(
    points: AnyMatrix,
    sample_weight: FloatArray | None = None,
    *,
    divergence: Divergence = SquaredEuclidean(),
    has_missing: bool = False,
    **options: Any,
) -> CompiledPoints:
    """Open valid points in memory; with `has_missing`, NaN stands for a missing entry.

    Missing entries need squared Euclidean distances. Options are those of `CompiledPoints`.
    """
    if has_missing and isinstance(points, np.ndarray):
        return ObservedPoints(points, sample_weight, **options)
    if isinstance(divergence, Bregman):
        return open_bregman(points, sample_weight, divergence=divergence, **options)
    if not isinstance(points, np.ndarray) and not divergence.takes_sparse:
        raise ValueError(
            f"X is sparse, and {type(divergence).__name__} needs dense points: pass X.toarray(), "
            "or choose another divergence"
        )
    if isinstance(divergence, FDivergence):
        return FDivergencePoints(
            np.asarray(points), sample_weight, divergence=divergence, **options
        )
    return _ROWS_OF[type(divergence)](points, sample_weight, **options)


def open_batch(
    points: AnyMatrix,
    sample_weight: FloatArray | None = None,
    *,
    beside: Points | None = None,
    **options: Any,
) -> CompiledPoints:
    """Open points as `open_rows` does, for only a sweep or two.

    The rows share the threads of `team`, or of the rows `beside` them.
    """
    if isinstance(beside, CompiledPoints):
        options["team"] = beside.team
    rows = open_rows(points, sample_weight, **options)
    rows.expect_few_sweeps()
    return rows


def rows_for(measure: Measure, points: AnyMatrix, weights: FloatArray | None = None) -> Points:
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


def rows_of(admitted: Admitted, measure: Measure) -> Points:
    """Return the rows of an array, in float64 where one is far and others may weigh more."""
    may_weigh_more = admitted.weights is not None or measure.opener is not None
    points = admitted.points
    if may_weigh_more:
        points = wide_if_far(points, admitted.largest)
    return rows_for(measure, points, admitted.weights)


def wide_if_far(points: AnyMatrix, largest: float) -> AnyMatrix:
    """Return the points in float64 where float32 would not hold the square of the largest."""
    return points.astype(np.float64) if exponent_to_square(largest, points.dtype) else points


# Arrays.


@open_points.register(np.ndarray)
def _open_array(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> Points:
    if needs.known is not None:
        needs.known.refuse_points()
    admitted = admit_array(X, sample_weight, needs)
    if needs.measure.has_missing and not np.isnan(np.asarray(admitted.points)).any():
        needs = needs.measured(has_missing=False)  # whole points have faster rows
    if needs.fit.leaves_out_columns and sparse.issparse(admitted.points):
        columns = UsedColumns.of(admitted.points, needs.measure.divergence, needs.fit.init)
        if columns is not None:
            return _open_used_columns(admitted, columns, needs.measure)
    rows = rows_of(admitted, needs.measure)
    rows.given = given_by(admitted, needs.measure)
    if needs.known is not None and isinstance(rows, CompiledPoints):
        rows.expect_few_sweeps()
    return rows


def _open_used_columns(admitted: Admitted, columns: UsedColumns, measure: Measure) -> Points:
    points, weights = columns.of_points(admitted.points), admitted.weights
    rows = rows_for(replace(measure, n_columns=columns.n_columns), points, weights)

    def open_whole() -> Points:
        whole = rows_for(measure, admitted.points, weights)
        if isinstance(whole, CompiledPoints):
            whole.expect_few_sweeps()
        return whole

    given = given_by(replace(admitted, points=points), measure)
    n_columns = columns.n_columns
    rows.given = replace(given, n_features=n_columns, used_columns=columns, whole=open_whole)
    return rows


def given_by(admitted: Admitted, measure: Measure) -> Given:
    """Return what stands behind the points of an array."""
    points = admitted.points
    return Given(
        points,
        admitted.weights,
        measure,
        dtype=dtype_of_centers(points.dtype),
        n_features=int(points.shape[1]),
        largest=admitted.largest,
    )


def admit_array(
    X: Any, sample_weight: ArrayLike | None, needs: Needs, *, name: str = "X", **form: Any
) -> Admitted:
    """Return the checked points of an array, which errors call `name`, and their weights."""
    if not isinstance(X, np.ndarray):
        if is_stream(X):
            raise not_in_parts(name, needs)
        refuse_tensor_elsewhere(X, name)
        X = to_array(X)
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


def wide_enough(admitted: Admitted, centers: Matrix) -> Admitted:
    """Return the points in float64 where they cannot be compared with the centers in float32."""
    dtype, centers = admitted.points.dtype, to_array(centers)
    if dtype == np.float64 or np.asarray(centers).dtype == dtype:
        return admitted
    largest = float(np.abs(check_centers(centers, admitted.points.shape[1])).max())
    if exponent_to_square(largest, dtype) == 0:
        return admitted
    return replace(admitted, points=admitted.points.astype(np.float64))
