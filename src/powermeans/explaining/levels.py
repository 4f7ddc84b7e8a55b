"""`merge_tree`: which clusters are near enough to be one, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.errors import ArgumentError
from powermeans.explaining.features import last_of
from powermeans.plots import fitted
from powermeans.points.checks.weights import check_sample_weight
from powermeans.types import FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class MergeTree:
    """Clusters joined two by two; printing it names the next level.

    Attributes
    ----------
    linkage : ndarray of shape (n_clusters - 1, 4)
        As in `scipy.cluster.hierarchy`. The square of a height is twice what the merge adds to the
        sum of squares.

    See Also
    --------
    merge_tree : Returns it.

    Examples
    --------
    >>> from powermeans import KMeans, merge_tree
    >>> X = [[0.0], [1.0], [9.0]]
    >>> print(merge_tree(KMeans.from_centers(X), X))
    3 groups, which are 2 at the next level: 0 and 1; 2
    """

    linkage: FloatArray

    def cut(self, n_groups: int) -> IndexArray:
        """Return the group of each cluster, numbered in the order of their first clusters.

        Parameters
        ----------
        n_groups : int
            How many groups to make, from one to the number of clusters.

        Returns
        -------
        ndarray of shape (n_clusters,)
            ``tree.cut(3)[model.labels_]`` are the groups of the rows.
        """
        n_clusters = len(self.linkage) + 1
        if not 1 <= n_groups <= n_clusters:
            raise ArgumentError(
                "is not possible", f"pass 1 to {n_clusters}", argument="n_groups", value=n_groups
            )
        members = {j: [j] for j in range(n_clusters)}
        for step, (left, right) in enumerate(self.linkage[: n_clusters - n_groups, :2].astype(int)):
            members[n_clusters + step] = members.pop(int(left)) + members.pop(int(right))
        groups = np.empty(n_clusters, dtype=np.intp)
        for number, group in enumerate(sorted(members.values(), key=min)):
            groups[group] = number
        return groups

    @property
    def next_level(self) -> int:
        """The number of groups, below that of clusters, whose next merge costs most more.

        It is the one with the largest ratio between the heights of the next merge and of the last.
        """
        heights = self.linkage[:, 2]
        if len(heights) < 2:
            return 1
        logs = np.log(np.maximum(heights, np.finfo(float).tiny))
        return len(heights) - int(np.argmax(np.diff(logs)))

    def __str__(self) -> str:
        n_clusters, n_groups = len(self.linkage) + 1, self.next_level
        groups = self.cut(n_groups)
        named = (" and ".join(map(str, np.flatnonzero(groups == g))) for g in range(n_groups))
        return f"{n_clusters} groups, which are {n_groups} at the next level: {'; '.join(named)}"

    def plot(self, *, ax: Any = None) -> Any:
        """Draw it; see `powermeans.plots.dendrogram`."""
        from powermeans.plots.trees import dendrogram

        return dendrogram(self, ax=ax)


def merge_tree(model: Any, X: Any, *, sample_weight: ArrayLike | None = None) -> MergeTree:
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
    MergeTree

    See Also
    --------
    scipy.cluster.hierarchy.linkage : Ward's method on points.

    References
    ----------
    Ward, J. H. "Hierarchical Grouping to Optimize an Objective Function". 1963.

    Examples
    --------
    >>> from powermeans import KMeans, merge_tree
    >>> X = [[0.0], [1.0], [9.0]]
    >>> merge_tree(KMeans.from_centers(X), X).cut(2)
    array([0, 0, 1])
    """
    last = last_of(model)
    centers = fitted.centers_of(last)
    if hasattr(last, "_fitted_needs") and not last._fitted_needs().measure.divergence.is_squared:
        raise ArgumentError(
            f"model compares by {last._fitted_needs().measure.divergence!r}, and Ward's cost is of "
            "squared Euclidean distances",
            "fit a model without divergence=",
        )
    labels = fitted.labels_of(model, X)
    weights = check_sample_weight(sample_weight, len(labels))
    masses = np.bincount(labels, weights, minlength=len(centers)).astype(np.float64)
    return MergeTree(_ward(centers, masses))


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
