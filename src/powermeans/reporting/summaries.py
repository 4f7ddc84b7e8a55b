"""Each cluster in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.types import FloatArray, IndexArray, Labels, Points, SparsePoints

_BLOCK_ELEMENTS = 2**18
# A mean counts as high or low from so many standard deviations of all points on.
_NOTABLE = 0.5
_MOST_NAMED = 3
# A column that deviates by no more than this part of its mean is constant but for rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Columns:
    """What there is to know of all points.

    Attributes
    ----------
    means, deviations : (n_features,)
        Mean and standard deviation.
    """

    names: list[str]
    means: FloatArray
    deviations: FloatArray

    def are_constant(self) -> NDArray[np.bool_]:
        """Which columns do not vary, or by no more than rounding."""
        return self.deviations <= _ROUNDING * np.abs(self.means)

    def units(self) -> FloatArray:
        """The deviations, one where there is none to speak of."""
        return np.where(self.are_constant(), 1.0, self.deviations)


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster.

    Attributes
    ----------
    size : int
        How many points it has.
    weight : float
        What they weigh; the size where points have no weights.
    share : float
        Which part of the weight of all that is.
    spread : float
        Root of the mean squared distance of its points from their mean.
    mean : (n_features,)
        Of its points; NaN if none of them weighs anything.
    heights : (n_features,)
        The mean in standard deviations of all points from the mean of all.
    nearest : int or None
        The cluster whose mean is nearest.
    """

    label: int
    size: int
    weight: float
    share: float
    spread: float
    mean: FloatArray
    heights: FloatArray
    nearest: int | None

    def distinguishing(self, names: list[str], most: int = _MOST_NAMED) -> list[tuple[str, float]]:
        """The columns in which it differs most from all points, and by how much."""
        order = np.argsort(-np.abs(self.heights), kind="stable")[:most]
        return [
            (names[feature], float(self.heights[feature]))
            for feature in order
            if abs(self.heights[feature]) >= _NOTABLE
        ]

    def words(self, names: list[str]) -> str:
        """What sets the cluster apart, as a sentence."""
        if self.size == 0:
            return "No point is nearest to this center."
        if self.weight == 0:
            return "Its points weigh nothing."
        found = self.distinguishing(names)
        if not found:
            return "Near the mean of all points in every column."
        said = (f"{'high' if z > 0 else 'low'} {name} ({_signed(z)})" for name, z in found)
        text = ", ".join(said) + "."
        return text[0].upper() + text[1:]


def summarize(
    points: Points | SparsePoints,
    labels: Labels,
    n_clusters: int,
    names: list[str],
    sample_weight: FloatArray | None = None,
) -> tuple[Columns, list[ClusterSummary]]:
    """All points, and each cluster.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR, finite.
    n_clusters : int
        Some may have no points.
    names : list of str
        Of the columns.
    sample_weight : (n_points,), optional
        A weight of three is the same as three copies, but for the sizes, which count points.

    Returns
    -------
    list of ClusterSummary
        In the order of the labels.
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
    """Each cluster, from what its points add up to.

    Parameters
    ----------
    columns : Columns
        Of all points.
    sizes, weights : (n_clusters,)
        How many points there are, and what they weigh.
    means : (n_clusters, n_features)
        Any where nothing weighs.
    squares : (n_clusters,)
        Sum of the squared distances from the mean.

    Returns
    -------
    list of ClusterSummary
        In the order of the labels.
    """
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
            heights=(means[label] - columns.means) / columns.units(),
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
    """Sums of squares about the mean of all by column, and about its own mean by cluster."""
    of_column, of_cluster = np.zeros(points.shape[1]), np.zeros(len(means))
    varies, first = np.zeros(points.shape[1], dtype=bool), None
    for rows, block in _blocks(points):
        first = block[0] if first is None else first
        varies |= (block != first).any(axis=0)
        of_column += counts[rows] @ np.square(block - overall)
        from_own = counts[rows] * np.square(block - means[labels[rows]]).sum(axis=1)
        of_cluster += np.bincount(labels[rows], from_own, minlength=len(means))
    of_column[~varies] = 0.0  # the mean of equal values is off by rounding
    return of_column, of_cluster


def _blocks(points: Points | SparsePoints) -> Iterator[tuple[slice, FloatArray]]:
    """Some points at a time, dense."""
    step = max(1, _BLOCK_ELEMENTS // points.shape[1])
    for start in range(0, points.shape[0], step):
        rows = slice(start, start + step)
        block = points[rows]
        dense = block.toarray() if sparse.issparse(block) else block
        yield rows, np.asarray(dense, dtype=np.float64)


def _nearest(means: FloatArray) -> list[int | None]:
    found: list[int | None] = []
    for label, mean in enumerate(means):
        sq_dist = np.square(means - mean).sum(axis=1)
        sq_dist[label] = math.nan
        is_alone: bool | np.bool_ = np.isnan(sq_dist).all()
        found.append(None if is_alone else int(np.nanargmin(sq_dist)))
    return found


def along_the_line(
    points: FloatArray | SparsePoints, labels: Labels, one: ClusterSummary, other: ClusterSummary
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The points of two clusters on the line through their means, which are at 0 and 1."""
    way = other.mean - one.mean
    unit = way / max(float(way @ way), np.finfo(np.float64).tiny)
    from_one, from_other = (
        np.asarray((points[labels == cluster.label] @ unit) - one.mean @ unit)
        for cluster in (one, other)
    )
    return from_one, from_other


def _signed(height: float) -> str:
    return f"{height:+.1f} sd".replace("-", "−")
