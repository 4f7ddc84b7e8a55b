"""A bound for clusters far apart: points of two of them are too far from each other for one center.

Let each point have a price. If no set of points has prices of more than s above what it costs about
its mean, then k clusters cost at least the sum of all prices less k s. The prices here leave just s
to each of the clusters given, and nothing to points that would share a center with those of others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import linalg, sparse
from scipy.spatial.distance import cdist

from powermeans.optimality.prices import bound_by_prices
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

_EPSILON = float(np.finfo(np.float64).eps)
_MOST_VALUES = 2**26  # of one cluster, which is copied as float64
_MOST_EIGENVALUES = 1500  # beyond, the root of their sum of squares is near enough
_MOST_AT_ONCE = 2**22  # projections
_MOST_CLUSTERS = 3000  # each of which is compared with all others


def bound_of_clusters_apart(
    points: Points | SparsePoints,
    weights: FloatArray,
    labels: Labels,
    n_clusters: int,
    is_late: Callable[[], bool],
) -> float:
    """Return a bound on the inertia of so many clusters, zero where time is over before.

    It is the inertia of the clusters given where these lie far enough apart.
    """
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    n_features = points.shape[1]
    if max(map(len, members)) * n_features > _MOST_VALUES or len(members) > _MOST_CLUSTERS:
        return 0.0
    means = np.stack([_mean(points, weights, mine) for mine in members])
    lengths, most = cdist(means, means), 0.0
    sq_dist, reach = np.empty(len(labels)), np.zeros_like(lengths)
    for place, mine in enumerate(members):
        residuals = _dense(points, mine) - means[place]
        sq_dist[mine] = np.einsum("if,if->i", residuals, residuals)
        most = max(most, _most_between_halves(residuals, weights[mine]))
        ways = _on_the_way(residuals, means - means[place], lengths[place])
        reach[place] = np.max([some.max(axis=0) for some in ways], axis=0)
        if is_late():
            return 0.0
    width = float(lengths.max() + 2 * math.sqrt(sq_dist.max()))
    left = lengths - reach.T - 32 * _EPSILON * width * math.sqrt(n_features)
    np.fill_diagonal(left, np.inf)
    prices = np.empty(len(labels))
    for place, mine in enumerate(members):
        residuals = _dense(points, mine) - means[place]
        ways = _on_the_way(residuals, means - means[place], lengths[place])
        nearest = np.concatenate([(left[place] - some).min(axis=1) for some in ways])
        wanted = sq_dist[mine] + most / weights[mine].sum()
        affordable = np.square(np.maximum(nearest, 0.0)) / 2
        prices[mine] = weights[mine] * np.minimum(wanted, affordable)
        if is_late():
            return 0.0
    # Means far from the origin are rounded, and are not quite means any more.
    off = n_features * (4 * _EPSILON * float(np.abs(means).max())) ** 2 * float(weights.sum())
    return bound_by_prices(prices, weights, width, n_features, most + off, n_clusters)


def _dense(points: Points | SparsePoints, rows: IndexArray) -> FloatArray:
    block = points[rows]
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


def _mean(points: Points | SparsePoints, weights: FloatArray, rows: IndexArray) -> FloatArray:
    some = _dense(points, rows)
    first = some[0].copy()
    return np.asarray(first + np.average(some - first, axis=0, weights=weights[rows]))


def _most_between_halves(residuals: FloatArray, weights: FloatArray) -> float:
    """Return what a cluster costs at most more than its two halves, however it is divided.

    That is the square of the weighted points along a vector of length one, and at most the largest
    eigenvalue of their products.
    """
    scaled = np.sqrt(weights)[:, None] * residuals
    products = scaled @ scaled.T if len(scaled) < scaled.shape[1] else scaled.T @ scaled
    rounding = 8 * _EPSILON * (sum(scaled.shape) + 16) * float(np.trace(products))
    if len(products) > _MOST_EIGENVALUES:
        return float(np.linalg.norm(products)) + rounding
    return float(linalg.eigvalsh(products, check_finite=False)[-1]) + rounding


def _on_the_way(
    residuals: FloatArray, lines: FloatArray, lengths: FloatArray
) -> Iterator[FloatArray]:
    """Yield how far some points at a time lie from their mean towards each of the other means."""
    units = np.divide(lines, lengths[:, None], out=np.zeros_like(lines), where=lengths[:, None] > 0)
    n_at_once = max(1, _MOST_AT_ONCE // len(lines))
    for start in range(0, len(residuals), n_at_once):
        yield residuals[start : start + n_at_once] @ units.T
