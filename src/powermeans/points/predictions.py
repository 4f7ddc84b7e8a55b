"""What is told of points by given centers: labels, distances and memberships.

Each is a function that dispatches on the kind of points. This file has those of arrays.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from powermeans.points.checks.centers import check_centers
from powermeans.points.checks.points import dtype_of_centers, exponent_to_square
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.opening import rows_for
from powermeans.points.protocol import distances_in_blocks
from powermeans.system.label_files import write_labels
from powermeans.types import FloatArray, Matrix

_BLOCK_ELEMENTS = 2**17


@functools.singledispatch
def assigned(
    points: Any, centers: FloatArray, known_inertia: float | None = None
) -> tuple[Any, float]:
    """Return labels, None if there are too many, and inertia; a known one may save a pass."""
    given = points.given
    if given.whole is None:
        found: tuple[Any, float] = points.assign(centers)
        return found
    return given.whole().assign(given.of_all_columns(centers))  # type: ignore[no-any-return]


@functools.singledispatch
def n_found(points: Any, centers: FloatArray, labels: Any) -> int:
    """Return how many clusters have points, given the labels of all points."""
    is_found = np.zeros(len(centers), dtype=bool)
    is_found[labels] = True  # unlike bincount without a copy of the labels
    return int(np.count_nonzero(is_found))


@functools.singledispatch
def predicted(points: Any, centers: Matrix, output: str | os.PathLike[str] | None = None) -> Any:
    """Return the labels of new points as the user gave these, or the file with the labels."""
    given = points.given
    if output is not None and given.source is not None:
        given.source.refuse_output(output)
    labels, _ = assigned(points, check_centers(centers, given.n_features))
    return labels if output is None else write_labels(output, [given.of_all_rows(labels)])


@functools.singledispatch
def distances(points: Any, centers: Matrix) -> Any:
    """Return the distance of each new point to each center, not squared."""
    found, measure = _sq_distances(points, centers), points.given.measure
    if measure.divergence.is_squared:
        found = np.sqrt(found, out=found)
    dtype = points.given.dtype if measure.is_plain else centers.dtype
    with np.errstate(over="ignore"):
        narrow = found.astype(dtype, copy=False)
    if narrow is not found and np.isinf(narrow).any():
        row = int(np.argmax(np.isinf(narrow).any(axis=1)))
        raise ValueError(
            f"row {row} of X is too far from a center for {narrow.dtype}: pass X as float64 to "
            "an estimator that was fitted in float64, or scale both"
        )
    return narrow


@functools.singledispatch
def shares(
    points: Any, centers: Matrix, memberships: Callable[[FloatArray], FloatArray], exponent: float
) -> Any:
    """Return memberships of new points, which do not depend on the unit of distance.

    They are in proportion to distances to the power of the exponent.
    """
    sq_dist = _sq_distances(points, centers)
    found = np.empty(sq_dist.shape)
    n_block = max(1, _BLOCK_ELEMENTS // sq_dist.shape[1])
    for start in range(0, len(sq_dist), n_block):
        block = slice(start, start + n_block)
        found[block] = memberships(sq_dist[block].astype(np.float64))
    return found


def _sq_distances(points: Any, centers: Matrix) -> Matrix:
    """Return squared distances, in float64 where they may leave the range of float32."""
    given, array, measure = points.given, points.given.array, points.given.measure
    checked = check_centers(centers, given.n_features)
    largest = max(given.largest, float(np.abs(checked).max()))
    # In float64 too where one row is far, so that squares of the others keep their digits.
    if not measure.is_plain or exponent_to_square(largest, array.dtype):
        wide = array.astype(np.float64, copy=False)
        is_open = wide is array and given.weights is None
        return (points if is_open else rows_for(measure, wide)).sq_distances(checked)
    dtype = dtype_of_centers(array.dtype)
    if given.weights is not None or not isinstance(points, EuclideanPoints):
        points = EuclideanPoints(array, n_threads=measure.n_threads)
    sq_dist: Matrix
    if dtype == points.dtype:
        sq_dist = points.sq_distances(checked)
    else:
        sq_dist = np.empty((points.n_points, len(checked)), dtype)
        for block, of_block in distances_in_blocks(points, checked):
            sq_dist[block] = of_block
    least = np.finfo(dtype).tiny
    if dtype == np.float32 and len(rows := np.flatnonzero((sq_dist < least).any(axis=1))):
        wide = rows_for(measure, array[rows].astype(np.float64)).sq_distances(checked)
        if not np.array_equal(wide > 0, sq_dist[rows] >= least):  # they are not at a center
            sq_dist = sq_dist.astype(np.float64)
            sq_dist[rows] = wide
    return sq_dist
