"""Pairs of points that belong together: each group of linked points becomes one weighted point."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from powermeans.errors import ArgumentError
from powermeans.methods.linked.coloring import components
from powermeans.points.needs import Needs
from powermeans.points.opening import MatrixLike, admit_array
from powermeans.types import AnyMatrix, FloatArray, IndexArray

__all__ = ["LinkedPoints", "join_linked"]


class LinkedPoints(NamedTuple):
    """Groups of linked points, each of which acts as one weighted point.

    Attributes
    ----------
    points : {ndarray, sparse matrix} of shape (n_groups, n_features)
        The weighted mean of each group, in the dtype of X.
    sample_weight : ndarray of shape (n_groups,)
        The sum of the weights of each group.
    groups : ndarray of shape (n_samples,)
        The group of each row of X. Groups are numbered by their first rows.
    inertia : float
        The weighted sum of the squared distances of the rows to the means of their groups, which
        any clustering of the groups leaves as it is.

    See Also
    --------
    powermeans.methods.linked.links.join_linked : Makes them.

    Examples
    --------
    >>> from powermeans.methods.linked.links import join_linked
    >>> join_linked([[0.0], [2.0], [9.0]], [[0, 1]]).groups
    array([0, 0, 1])
    """

    points: AnyMatrix
    sample_weight: FloatArray
    groups: IndexArray
    inertia: float


def join_linked(
    X: MatrixLike, must_link: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> LinkedPoints:
    """Join points that belong together, for any method whose centers are means.

    The sum of squared distances of a group to a center is that of its mean, times its weight, plus
    a constant. The same is true of every Bregman divergence. So a method that takes
    `sample_weight` finds in the groups what it would find if linked points could not be separated.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    must_link : array-like of shape (n_pairs, 2)
        Pairs of rows of X that belong together. Links chain: the rows of (0, 1) and (1, 2) are one
        group.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative weights of the rows.

    Returns
    -------
    LinkedPoints
        The tuple (points, sample_weight, groups, inertia).

    See Also
    --------
    powermeans.LinkedKMeans : Keeps other pairs apart too.

    Examples
    --------
    >>> from powermeans import MiniBatchKMeans
    >>> from powermeans.methods.linked.links import join_linked
    >>> X = [[0.0], [1.0], [8.0], [9.0], [5.0]]
    >>> points, weights, groups, inertia = join_linked(X, [[1, 4]])
    >>> model = MiniBatchKMeans(2, random_state=0).fit(points, sample_weight=weights)
    >>> labels = model.labels_[groups]
    >>> bool(labels[1] == labels[4])
    True
    >>> model.inertia_ + inertia  # of the points
    14.5
    """
    admitted = admit_array(X, sample_weight, Needs(name="join_linked"))
    pairs = check_pairs(must_link, "must_link", admitted.points.shape[0])
    return joined(admitted.points, admitted.weights, pairs)


def joined(points: Any, weights: FloatArray | None, pairs: IndexArray) -> LinkedPoints:
    """Return the groups of checked points."""
    n_points = points.shape[0]
    weights = np.ones(n_points) if weights is None else weights
    groups = components(pairs, n_points)
    n_groups = int(groups.max()) + 1
    if n_groups == n_points:
        return LinkedPoints(points, weights, groups, 0.0)
    means = _sums(groups, _shares(groups, weights), points, n_groups).astype(points.dtype)
    is_linked = np.bincount(groups)[groups] > 1
    apart: Any = points[is_linked].astype(np.float64) - means[groups[is_linked]]
    squares = np.square(apart) if isinstance(apart, np.ndarray) else apart.power(2)
    of_rows = np.asarray(squares.sum(axis=1)).ravel()
    inertia = float(np.sum(weights[is_linked] * of_rows))
    sizes = np.bincount(groups, weights).astype(np.float64)
    return LinkedPoints(means, sizes, groups, inertia)


def _shares(groups: IndexArray, weights: FloatArray) -> FloatArray:
    """Return the share of each point in the weight of its group; equal ones of no weight."""
    heaviest = np.zeros(int(groups.max()) + 1)
    np.maximum.at(heaviest, groups, weights)
    of_group = heaviest[groups]
    shares = np.where(of_group > 0, weights / np.where(of_group > 0, of_group, 1.0), 1.0)
    return np.asarray(shares / np.bincount(groups, shares)[groups])


def _sums(labels: IndexArray, weights: FloatArray, points: Any, n_sums: int) -> Any:
    """Return the weighted sum of the points of each label, in float64."""
    n_points = len(labels)
    adding = sparse.coo_array((weights, (labels, np.arange(n_points))), shape=(n_sums, n_points))
    sums: Any = adding.tocsr() @ points
    if hasattr(sums, "sort_indices"):  # sparse: the product leaves them in any order
        sums.sort_indices()
    return sums


def sums_by_label(labels: IndexArray, weights: FloatArray, points: Any, n_sums: int) -> FloatArray:
    """Return the weighted sum of the points of each label, dense, (n_sums, n_features)."""
    sums: Any = _sums(labels, weights, points, n_sums)
    return np.asarray(sums if isinstance(sums, np.ndarray) else sums.toarray(), dtype=np.float64)


def check_pairs(
    pairs: ArrayLike | None, name: str, n_points: int, is_used: NDArray[np.bool_] | None = None
) -> IndexArray:
    """Return pairs of points, (n_pairs, 2), or raise; some rows of X may be left out."""
    n_rows = n_points if is_used is None else len(is_used)
    way_out = "pass an array of the shape (n_pairs, 2) with the numbers of two rows in each"
    try:
        given = np.asarray([] if pairs is None else pairs)
    except ValueError:
        raise ArgumentError(f"{name} has pairs of unlike lengths", way_out) from None
    if given.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if given.ndim != 2 or given.shape[1] != 2:
        raise ArgumentError(f"{name} has the shape {given.shape}", way_out)
    if given.dtype.kind not in "iu":
        raise ArgumentError(f"{name} has the dtype {given.dtype}", way_out)
    outside = (given < 0) | (given >= n_rows)
    if outside.any():
        pair = int(np.argmax(outside.any(axis=1)))
        raise ArgumentError(
            f"{name} has {given[pair].tolist()} as pair {pair}, and X has {n_rows} rows",
            f"pass numbers from 0 to {n_rows - 1}",
        )
    if is_used is None:
        return given.astype(np.intp)
    if not is_used[given].all():
        row = int(given[~is_used[given]][0])
        raise ArgumentError(f"{name} has row {row} of X, which is left out", "drop its pairs")
    return np.asarray((np.cumsum(is_used) - 1)[given])
