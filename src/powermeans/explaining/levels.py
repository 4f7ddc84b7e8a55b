"""`merge_tree`: which clusters are near enough to be one, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.errors import ArgumentError
from powermeans.explaining.features import is_squared, last_of
from powermeans.mathematics.arguments import check_sample_weight
from powermeans.plots import fitted
from powermeans.types import FloatArray


def merge_tree(model: Any, X: Any, *, sample_weight: ArrayLike | None = None) -> FloatArray:
    """Join clusters two by two, each time those that add least to the sum of squares.

    This is Ward's method on weighted centers, which is exact if centers are means: a merge of
    clusters with the weights v and w and centers at a distance d adds ``v * w / (v + w) * d**2``.
    Its time grows with the square of the number of clusters, whatever the number of rows.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted, with centers that are compared by squared Euclidean distances.
    X : table or array
        Rows as the model takes them, which give the weights of the clusters.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows.

    Returns
    -------
    ndarray of shape (n_clusters - 1, 4)
        The merges as in `scipy.cluster.hierarchy`, whose functions cut and draw them. The square of
        a height is twice what the merge adds to the sum of squares.

    See Also
    --------
    scipy.cluster.hierarchy.linkage : Ward's method on points.
    scipy.cluster.hierarchy.fcluster : Cuts the tree into groups of clusters.
    scipy.cluster.hierarchy.dendrogram : Draws it.

    References
    ----------
    Ward, J. H. "Hierarchical Grouping to Optimize an Objective Function". 1963.

    Examples
    --------
    >>> from powermeans import KMeans, merge_tree
    >>> X = [[0.0], [1.0], [9.0]]
    >>> merge_tree(KMeans.from_centers(X), X).round(2)
    array([[0.  , 1.  , 1.  , 2.  ],
           [2.  , 3.  , 9.81, 3.  ]])
    """
    last = last_of(model)
    centers = fitted.centers_of(last)
    if not is_squared(last):
        raise ArgumentError(
            f"model compares by {last._fitted_needs().measure.divergence!r}, and Ward's cost is of "
            "squared Euclidean distances",
            "fit a model without divergence=",
        )
    labels = fitted.labels_of(model, X)
    weights = check_sample_weight(sample_weight, len(labels))
    # The first is of rows that are left out, with label -1.
    masses = np.bincount(labels + 1, weights, minlength=len(centers) + 1)[1:].astype(np.float64)
    return _ward(centers, masses)


def _ward(centers: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Ward's linkage of weighted centers, by chains of nearest neighbors."""
    n = len(centers)
    places, masses = np.zeros((2 * n - 1, centers.shape[1])), np.zeros(2 * n - 1)
    places[:n], masses[:n] = centers, weights
    is_open, chain = np.arange(2 * n - 1) < n, [0]
    merges, heights = np.empty((n - 1, 2), dtype=np.intp), np.zeros(2 * n - 1)
    for new in range(n, 2 * n - 1):
        chain = chain or [int(np.argmax(is_open))]
        while True:
            others = np.flatnonzero(is_open)
            last, both = chain[-1], masses[others] + masses[chain[-1]]
            costs = np.square(places[others] - places[last]).sum(axis=1) * masses[others]
            costs *= 2 * masses[last] / np.where(both > 0, both, 1.0)
            costs[others == last] = np.inf
            # The one before comes first of several at the same cost, so that chains end.
            nearest = int(others[np.argmin(costs)])
            if len(chain) > 1 and costs[others == chain[-2]][0] <= costs.min():
                break
            chain.append(nearest)
        pair = [chain.pop(), chain.pop()]
        merges[new - n] = sorted(pair)
        # Not below that of its parts, by rounding.
        heights[new] = max(np.sqrt(costs.min()), *heights[pair])
        masses[new] = masses[pair].sum()
        shares = masses[pair] / masses[new] if masses[new] > 0 else np.array([0.5, 0.5])
        places[new], is_open[pair], is_open[new] = shares @ places[pair], False, True
    order = np.argsort(heights[n:], kind="stable")
    numbers = np.arange(2 * n - 1)
    numbers[n + order] = np.arange(n, 2 * n - 1)
    pairs = np.sort(numbers[merges[order]], axis=1)
    counts = np.ones(2 * n - 1)
    for step, pair in enumerate(pairs):
        counts[n + step] = counts[pair].sum()
    return np.column_stack([pairs, heights[n:][order], counts[n:]])
