"""Each cluster in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.types import FloatArray, Labels, Points, SparsePoints

_BLOCK_ELEMENTS = 2**18
# A mean counts as high or low from so many standard deviations of all points on.
_NOTABLE = 0.5
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Columns:
    """What there is to know of all points.

    Attributes
    ----------
    names : list of str
    means, deviations : (n_features,)
        Mean and standard deviation.
    """

    names: list[str]
    means: FloatArray
    deviations: FloatArray

    def units(self) -> FloatArray:
        """The deviations, one where there is none to speak of."""
        is_constant = self.deviations <= 1e-12 * np.abs(self.means)
        return np.where(is_constant, 1.0, self.deviations)


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """One cluster.

    Attributes
    ----------
    label : int
    size : int
        How many points it has.
    share : float
        Which part of all that is.
    spread : float
        Root of the mean squared distance of its points from their mean.
    mean : (n_features,)
        Of its points; NaN if it has none.
    heights : (n_features,)
        The mean in standard deviations of all points from the mean of all.
    nearest : int or None
        The cluster whose mean is nearest.
    """

    label: int
    size: int
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
        found = self.distinguishing(names)
        if not found:
            return "Near the mean of all points in every column."
        said = (f"{'high' if z > 0 else 'low'} {name} ({_signed(z)})" for name, z in found)
        text = ", ".join(said) + "."
        return text[0].upper() + text[1:]


def summarize(
    points: Points | SparsePoints, labels: Labels, n_clusters: int, names: list[str]
) -> tuple[Columns, list[ClusterSummary]]:
    """All points, and each cluster.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR, finite.
    labels : (n_points,)
    n_clusters : int
        Some may have no points.
    names : list of str
        Of the columns.

    Returns
    -------
    Columns
    list of ClusterSummary
        In the order of the labels.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    means = _sums_by_cluster(points, labels, n_clusters) / np.maximum(sizes, 1)[:, None]
    overall = sizes @ means / len(labels)
    of_column, of_cluster = _squared_deviations(points, labels, means, overall)
    columns = Columns(names, overall, np.sqrt(of_column / len(labels)))
    means[sizes == 0] = np.nan
    nearest = _nearest(means)
    summaries = [
        ClusterSummary(
            label=label,
            size=int(size),
            share=float(size / len(labels)),
            spread=math.sqrt(of_cluster[label] / max(size, 1)),
            mean=means[label],
            heights=(means[label] - overall) / columns.units(),
            nearest=nearest[label],
        )
        for label, size in enumerate(sizes)
    ]
    return columns, summaries


def _sums_by_cluster(points: Points | SparsePoints, labels: Labels, n_clusters: int) -> FloatArray:
    ones = np.ones(len(labels))
    shape = (n_clusters, len(labels))
    of_cluster = sparse.csr_matrix((ones, (labels, np.arange(len(labels)))), shape=shape)
    sums = of_cluster @ points
    return np.asarray(sums.toarray() if sparse.issparse(sums) else sums)


def _squared_deviations(
    points: Points | SparsePoints, labels: Labels, means: FloatArray, overall: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sums of squares about the mean of all by column, and about its own mean by cluster."""
    of_column, of_cluster = np.zeros(points.shape[1]), np.zeros(len(means))
    for rows, block in _blocks(points):
        of_column += np.square(block - overall).sum(axis=0)
        from_own = np.square(block - means[labels[rows]]).sum(axis=1)
        of_cluster += np.bincount(labels[rows], from_own, minlength=len(means))
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
