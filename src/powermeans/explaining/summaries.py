"""Summaries of clusters in numbers, from sums over rows that may come part by part."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powermeans.divergences.chunks import dense_chunks
from powermeans.types import AnyMatrix, FloatArray, Labels, Matrix

# A mean is high or low if it is this many standard deviations of all points from their mean.
NOTABLE = 0.5


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

    def distinguishing(self, names: list[str], most: int = 3) -> list[tuple[str, float]]:
        """Return the columns in which it differs most from all points, and its z-scores there."""
        order = np.argsort(-np.abs(self.z_scores), kind="stable")[:most]
        found = ((names[feature], float(self.z_scores[feature])) for feature in order)
        return [(name, score) for name, score in found if abs(score) >= NOTABLE]


class Tally:
    """Sums over the rows of each cluster, about the mean of its first rows so that digits stay.

    A weight of three counts like three copies, except in the sizes, which count rows. A missing
    value counts as that of the center.
    """

    def __init__(self, centers: Matrix) -> None:
        n_clusters = len(centers)
        self.sizes, self.weights = np.zeros(n_clusters, dtype=np.int64), np.zeros(n_clusters)
        self.score = 0.0
        # A center would not do: with cosine distances it has length one, wherever its rows are.
        self._origins = np.array(centers, dtype=np.float64)
        self._deviations, self._squares = np.zeros((2, *self._origins.shape))
        self._lowest, self._highest = np.full((2, self._origins.shape[1]), np.nan)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    def add(self, points: AnyMatrix, labels: Labels, weights: FloatArray | None = None) -> None:
        """Add some rows."""
        is_first = self.sizes == 0
        self.sizes += np.bincount(labels, minlength=len(self.sizes))
        counts = np.ones(len(labels)) if weights is None else weights
        self.weights += np.bincount(labels, counts, minlength=len(self.sizes))
        for rows, block in dense_chunks(points):
            own = labels[rows]
            self._place_origins(block, own, is_first)
            is_first[own] = False
            members = self._members(own, counts[rows])
            deviations = block - self._origins[own]
            deviations[np.isnan(deviations)] = 0.0
            self._deviations += members @ deviations
            self._squares += members @ np.square(deviations)
            self._lowest = np.fmin(self._lowest, np.fmin.reduce(block, axis=0))
            self._highest = np.fmax(self._highest, np.fmax.reduce(block, axis=0))

    def _members(self, labels: Labels, counts: FloatArray) -> Any:
        shape = (len(self.sizes), len(labels))
        return sparse.csr_array((counts, (labels, np.arange(len(labels)))), shape=shape)

    def _place_origins(
        self, points: FloatArray, labels: Labels, is_first: NDArray[np.bool_]
    ) -> None:
        """Put the origin of each cluster that is met for the first time at the mean of its rows."""
        sizes = np.bincount(labels, minlength=len(self.sizes))
        is_new = is_first & (sizes > 0)
        if is_new.any():
            sums = self._members(labels, np.ones(len(labels))) @ points
            means = sums[is_new] / sizes[is_new, None]
            # A column with a missing value keeps the value of the center.
            self._origins[is_new] = np.where(np.isnan(means), self._origins[is_new], means)

    def summaries(self, names: list[str]) -> tuple[Columns, list[ClusterSummary]]:
        """Summarize the columns of all rows, and each cluster in the order of the labels."""
        means, squares = self._about_means()
        total = float(self.weights.sum())
        overall = self.weights @ means / total
        of_column = squares.sum(axis=0) + self.weights @ np.square(means - overall)
        of_column[self._lowest == self._highest] = 0.0
        columns = Columns(names, overall, np.sqrt(of_column / total))
        spreads = np.sqrt(squares.sum(axis=1) / self._divisors())
        means = np.where(self.weights[:, None] > 0, means, np.nan)
        z_scores = (means - columns.means) / columns.units()
        return columns, [
            ClusterSummary(
                label=label,
                size=int(size),
                weight=float(self.weights[label]),
                share=float(self.weights[label] / total),
                spread=float(spreads[label]),
                mean=means[label],
                z_scores=z_scores[label],
            )
            for label, size in enumerate(self.sizes)
        ]

    def spreads_in(self, units: FloatArray) -> list[float]:
        """Return the spreads of the clusters after each column is multiplied by its unit."""
        of_clusters = self._about_means()[1] @ np.square(units)
        return [float(spread) for spread in np.sqrt(of_clusters / self._divisors())]

    def _about_means(self) -> tuple[FloatArray, FloatArray]:
        """Return the means, and by column the sums of squares about them."""
        apart = self._deviations / self._divisors()[:, None]
        squares = self._squares - self.weights[:, None] * np.square(apart)
        return self._origins + apart, np.maximum(squares, 0.0)

    def _divisors(self) -> FloatArray:
        return np.where(self.weights > 0, self.weights, 1.0)
