"""Points as they lie along their principal axes, where a search among wide points is cheaper."""

import functools
from dataclasses import dataclass

import numpy as np

from powermeans.points.compiled import EuclideanPoints
from powermeans.points.protocol import Points
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray

# Axes leave out this share of the variance: nothing but rounding where there are at most half as
# many places as features, and otherwise so much that few axes suffice.
_ROUNDING, _LEFT_OUT = 1e-6, 0.05
# With fewer features a search takes hardly less time along axes.
_LEAST_FEATURES = 100
# Axes of more points than that follow from so many of them.
_POINTS_FOR_A_FEATURE = 4
# The work of eigenvectors is this multiple of the cube of their number.
_WORK_OF_EIGENVECTORS = 4
_MOST_VALUES = 2**25  # of the points, which are copied as float64
# Points of less weight than this share of the largest have no effect on what a search finds.
_LEAST_WEIGHT = 1e-12
_POINTS_AT_ONCE = 64

Factors = tuple[FloatArray, ...]
"""Matrices whose product is the axes, (n_axes, n_features)."""


@dataclass(frozen=True, slots=True)
class AlongAxes:
    """Points by their coordinates along axes, and the way back."""

    rows: EuclideanPoints  # (n_points, n_axes)
    _origin: FloatArray  # (n_features,)
    _factors: Factors
    leave_out: bool  # whether the axes have not all of the variance

    def lifted(self, centers: FloatArray) -> FloatArray:
        """Return centers with all features."""
        with blas_on_one_thread():
            return self._origin + functools.reduce(np.matmul, self._factors, centers)


def along_axes(rows: Points, n_centers: int, n_sweeps: float) -> AlongAxes | None:
    """Return points by their coordinates, or None where that makes no such search cheaper.

    A search of so many sweeps over all centers must save more than it takes to find the axes.
    """
    if type(rows) is not EuclideanPoints or not _may_pay(rows, n_sweeps * n_centers):
        return None
    rows, weights = _of_places(rows)
    roots = np.sqrt(weights / weights.max())[:, None]
    find = _axes_of_few if rows.n_points < rows.n_features else _axes_of_many
    with blas_on_one_thread():
        scores, factors = find(rows, roots)
    if not scores.shape[1]:
        return None
    farthest = np.take_along_axis(scores, np.abs(scores).argmax(axis=0)[None], axis=0)[0]
    signs = np.where(farthest < 0, -1.0, 1.0)  # solvers choose any
    seen = EuclideanPoints(
        np.ascontiguousarray(scores * signs, dtype=rows.dtype),
        None if (weights == 1).all() else weights,
        team=rows.team,
        n_columns=rows.n_columns,
    )
    axes = (signs[:, None] * factors[0], *factors[1:])
    return AlongAxes(seen, rows.mean(), axes, _left_out(rows) > _ROUNDING)


def _of_places(rows: EuclideanPoints) -> tuple[EuclideanPoints, FloatArray]:
    """Return rows without copies, whose coordinates would differ by rounding, and their weights."""
    _, first, place = np.unique(rows.key_of_places(), return_index=True, return_inverse=True)
    weights = np.bincount(place, rows.sample_weight(np.arange(rows.n_points))).astype(np.float64)
    counted = first[weights > _LEAST_WEIGHT * weights.max()]
    if len(counted) == rows.n_points:
        return rows, weights[place]
    counted.sort()
    return rows.some(counted, weights[place[counted]]), weights[place[counted]]


def _may_pay(rows: EuclideanPoints, n_distances: float) -> bool:
    """Return whether so many distances of each point may save what it takes to find the axes."""
    n_features, n_values = rows.n_features, rows.n_points * rows.n_features
    is_dense = rows.n_stored == n_values
    if not is_dense or n_features < _LEAST_FEATURES or n_values > _MOST_VALUES:
        return False
    n_distinct = rows.n_distinct
    n_axes = min(n_distinct, n_features)
    n_compared = min(n_distinct, _POINTS_FOR_A_FEATURE * n_features)
    work = n_axes * (n_compared * n_features + _WORK_OF_EIGENVECTORS * n_axes**2)
    n_saved = n_features - min(n_distinct, n_features // 2)
    return work < n_distances * n_distinct * n_saved


def _left_out(rows: EuclideanPoints) -> float:
    """Return which share of the variance the axes leave out."""
    return _ROUNDING if 2 * rows.n_distinct <= rows.n_features else _LEFT_OUT


def _axes_of_few(rows: EuclideanPoints, roots: FloatArray) -> tuple[FloatArray, Factors]:
    """Return coordinates and axes of fewer points than features, which combine the points."""
    lengths, vectors = _leading(roots * _products(rows, rows.mean()) * roots.T, rows)
    combinations = vectors.T / lengths[:, None] * roots.T
    return vectors * lengths / roots, (combinations, rows.take(np.arange(rows.n_points)))


def _axes_of_many(rows: EuclideanPoints, roots: FloatArray) -> tuple[FloatArray, Factors]:
    """Return coordinates and axes of more points, by the products of features with each other.

    Some of the points suffice for that.
    """
    some = rows.order_by_place[
        :: max(1, rows.n_points // (_POINTS_FOR_A_FEATURE * rows.n_features))
    ]
    residuals = roots[some] * (rows.take(some) - rows.mean())
    features = EuclideanPoints(np.ascontiguousarray(residuals.T, dtype=rows.dtype), team=rows.team)
    _, vectors = _leading(_products(features, np.zeros(len(some))), rows)
    scores = rows.take(np.arange(rows.n_points)) @ vectors - rows.mean() @ vectors
    return scores, (vectors.T,)


def _products(rows: EuclideanPoints, origin: FloatArray) -> FloatArray:
    """Return the scalar products of all points, seen from the origin, below the diagonal.

    They come from distances, which are the same for any number of threads.
    """
    sq_lengths = rows.sq_distances(origin[None]).astype(np.float64)
    sq_distances = np.zeros((rows.n_points, rows.n_points))
    for start in range(0, rows.n_points, _POINTS_AT_ONCE):
        some = np.arange(start, min(start + _POINTS_AT_ONCE, rows.n_points))
        from_some = rows.some(slice(start, None)).sq_distances(rows.take(some))
        sq_distances[start:, some] = from_some
    return (sq_lengths + sq_lengths.T - sq_distances) / 2


def _leading(products: FloatArray, rows: EuclideanPoints) -> tuple[FloatArray, FloatArray]:
    """Return the lengths, falling, and eigenvectors of the axes that have enough of the variance.

    There are none where that takes most of them, or numbers are too large or small for squares.
    """
    total, left_out = float(np.trace(products)), _left_out(rows)
    if not (np.isfinite(products).all() and total > np.finfo(np.float64).tiny):
        return np.empty(0), np.empty((len(products), 0))
    # Axes that leave something out need no more digits, and take half the time.
    shares = products / total
    values, vectors = np.linalg.eigh(shares if left_out == _ROUNDING else shares.astype(np.float32))
    values, vectors = values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)
    n_axes = 1 + int(np.searchsorted(np.cumsum(values), 1 - left_out))
    n_axes = n_axes if 2 * n_axes <= rows.n_features else 0
    return np.sqrt(total * values[:n_axes]), vectors[:, :n_axes]
