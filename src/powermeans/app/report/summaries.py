"""Summaries of clusters in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from powermeans.divergences.chunks import dense_chunks
from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

# A mean is high or low if it is this many standard deviations of all points from their mean.
NOTABLE = 0.5
_DISTANCES_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class Columns:
    """Name, mean and standard deviation of each column of all points."""

    names: list[str]
    means: FloatArray  # (n_features,)
    deviations: FloatArray  # (n_features,)

    def are_constant(self) -> NDArray[np.bool_]:
        """Tell which columns do not vary, or only by rounding."""
        return self.deviations <= 1e-12 * np.abs(self.means)

    def units(self) -> FloatArray:
        """Return the deviations, one for constant columns."""
        return np.where(self.are_constant(), 1.0, self.deviations)


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """The figures of one cluster."""

    label: int
    size: int  # how many points it has
    weight: float  # of its points; the size if points have no weights
    share: float  # of the weight of all points
    spread: float  # root of the mean squared distance of its points from their mean
    mean: FloatArray  # (n_features,), NaN if its points weigh nothing
    z_scores: FloatArray  # (n_features,), the mean in standard deviations from that of all points
    nearest: int | None  # the cluster whose mean is nearest

    def distinguishing(self, names: list[str], most: int = 3) -> list[tuple[str, float]]:
        """Return the columns in which it differs most from all points, and its z-scores there."""
        order = np.argsort(-np.abs(self.z_scores), kind="stable")[:most]
        found = ((names[feature], float(self.z_scores[feature])) for feature in order)
        return [(name, score) for name, score in found if abs(score) >= NOTABLE]


def summarize(
    points: Points | SparsePoints,
    labels: Labels,
    n_clusters: int,
    names: list[str],
    sample_weight: FloatArray | None = None,
) -> tuple[Columns, list[ClusterSummary]]:
    """Summarize the columns of finite points, and each cluster in the order of the labels.

    A weight of three counts like three copies, except in the sizes, which count points.
    """
    counts = np.ones(len(labels)) if sample_weight is None else sample_weight
    sizes = np.bincount(labels, minlength=n_clusters)
    weights = np.bincount(labels, counts, minlength=n_clusters)
    divisors, total = np.where(weights > 0, weights, 1.0), float(weights.sum())
    means = _sums_by_cluster(points, labels, counts, n_clusters) / divisors[:, None]
    overall = weights @ means / total
    of_column, of_cluster = _squared_deviations(points, labels, counts, means, overall)
    columns = Columns(names, overall, np.sqrt(of_column / total))
    summed: FloatArray = np.asarray(weights, dtype=np.float64)
    return columns, summaries_of_sums(columns, sizes, summed, means, of_cluster)


def summaries_of_sums(
    columns: Columns,
    sizes: IndexArray,
    weights: FloatArray,
    means: FloatArray,
    squares: FloatArray,
) -> list[ClusterSummary]:
    """Summarize each cluster, given the sums of squared distances of its points from their mean."""
    divisors, total = np.where(weights > 0, weights, 1.0), float(weights.sum())
    means = np.where(weights[:, None] > 0, means, np.nan)
    nearest = _nearest(means)
    return [
        ClusterSummary(
            label=label,
            size=int(size),
            weight=float(weights[label]),
            share=float(weights[label] / total),
            spread=math.sqrt(squares[label] / divisors[label]),
            mean=means[label],
            z_scores=(means[label] - columns.means) / columns.units(),
            nearest=nearest[label],
        )
        for label, size in enumerate(sizes)
    ]


def _sums_by_cluster(
    points: Points | SparsePoints, labels: Labels, counts: FloatArray, n_clusters: int
) -> FloatArray:
    shape = (n_clusters, len(labels))
    of_cluster = sparse.csr_matrix((counts, (labels, np.arange(len(labels)))), shape=shape)
    sums = of_cluster @ points
    return np.asarray(sums.toarray() if sparse.issparse(sums) else sums)


def _squared_deviations(
    points: Points | SparsePoints,
    labels: Labels,
    counts: FloatArray,
    means: FloatArray,
    overall: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Add up squares by column about the mean of all points, and by cluster about its own mean."""
    of_column, of_cluster = np.zeros(points.shape[1]), np.zeros(len(means))
    varies, first = np.zeros(points.shape[1], dtype=bool), None
    for rows, block in dense_chunks(points):
        first = block[0] if first is None else first
        varies |= (block != first).any(axis=0)
        of_column += counts[rows] @ np.square(block - overall)
        from_own = counts[rows] * np.square(block - means[labels[rows]]).sum(axis=1)
        of_cluster += np.bincount(labels[rows], from_own, minlength=len(means))
    of_column[~varies] = 0.0  # rounding moves the mean off equal values
    return of_column, of_cluster


def _nearest(means: FloatArray) -> list[int | None]:
    found: list[int | None] = []
    n_block = max(1, _DISTANCES_AT_ONCE // len(means))
    for start in range(0, len(means), n_block):
        for label, sq_dist in enumerate(
            cdist(means[start : start + n_block], means, "sqeuclidean"), start
        ):
            sq_dist[label] = math.nan
            is_alone: bool | np.bool_ = np.isnan(sq_dist).all()
            found.append(None if is_alone else int(np.nanargmin(sq_dist)))
    return found
