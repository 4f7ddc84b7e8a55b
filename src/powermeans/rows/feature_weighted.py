"""Points in memory whose features count by weights that may change from sweep to sweep.

The distance sum v (x - theta)^2 is linear in the pair (x, x^2) that the rows hold, and a sweep adds
these pairs up, so that the scatter along each feature is known from its sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from powermeans.critical import critical_power
from powermeans.divergences.chunks import dense_chunks
from powermeans.rows.affine import AffineRows
from powermeans.rules import Rule
from powermeans.sums import Sums
from powermeans.types import FloatArray, IndexArray, Points


@dataclass(frozen=True, slots=True)
class SquaredSums(Sums):
    """Sums that tell the scatter along each feature.

    Attributes
    ----------
    squares : (n_centers, n_features)
        Sum over the points of `sample_weight_i * w_ij * (x_i - shift) ** 2`.
    shift : (n_features,)
    """

    squares: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    shift: FloatArray = field(default_factory=lambda: np.empty(0))

    def __add__(self, other: Self) -> Self:
        added = Sums.__add__(self, other)
        return replace(added, squares=self.squares + other.squares, shift=self.shift)

    def __mul__(self, unit: float) -> Self:
        return replace(Sums.__mul__(self, unit), squares=self.squares * unit, shift=self.shift)

    def scatter(self, centers: FloatArray) -> FloatArray:
        """Weighted sum of squared differences from these centers along each feature."""
        shifted = centers - self.shift
        points = self.points - self.weights[:, None] * self.shift
        by_center = self.squares - 2 * shifted * points + shifted**2 * self.weights[:, None]
        return np.asarray(np.maximum(by_center, 0.0).sum(axis=0))


class FeatureWeightedRows(AffineRows):
    """Rows whose distance is sum v (x - theta)^2. Holds two float64 for each entry.

    Parameters
    ----------
    n_threads : int, optional
        See `powermeans.system.threads.effective_n_threads`.

    Attributes
    ----------
    feature_weights : (n_features,)
        v, the same for all features at first; they add to one. May be set between sweeps.
    """

    def __init__(
        self,
        points: Points,
        sample_weight: FloatArray | None = None,
        *,
        n_threads: int | None = None,
    ) -> None:
        n_points, self._n_features = points.shape
        # Not the mean of points that count for nothing.
        self._shift = np.average(points.astype(np.float64), axis=0, weights=sample_weight)
        self.feature_weights: FloatArray = np.full(self._n_features, 1 / self._n_features)
        pairs = np.empty((n_points, 2 * self._n_features))  # squares leave the range of float32
        shifted = pairs[:, : self._n_features]
        np.subtract(points, self._shift, out=shifted)
        np.square(shifted, out=pairs[:, self._n_features :])
        super().__init__(pairs, sample_weight, n_threads=n_threads)
        self._native.use_heights(np.zeros(n_points))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self._n_features)

    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes along the values and along their squares."""
        v, shifted = self.feature_weights, centers - self._shift
        slopes = np.hstack([2 * v * shifted, np.broadcast_to(-v, shifted.shape)])
        return slopes, np.square(shifted) @ v - slopes @ self._native.origin()

    def sweep(self, centers: FloatArray, rule: Rule) -> SquaredSums:
        """Weigh every point by the rule and add up, squares too."""
        swept = super().sweep(centers, rule)
        shifted, squares = np.hsplit(swept.points, 2)
        return SquaredSums(
            shifted + swept.weights[:, None] * self._shift,
            swept.weights,
            swept.objective,
            swept.inertia,
            swept.n_skipped,
            squares,
            self._shift,
        )

    def sq_distances(self, centers: FloatArray) -> Points:
        """All distances by differences, which unlike sums of products do not cancel."""
        distances: Points = np.empty((self.n_points, len(centers)), dtype=self.dtype)
        shifted = centers - self._shift
        for rows, pairs in dense_chunks(self._points, elements_per_point=shifted.size):
            values, _ = np.hsplit(pairs, 2)
            differences = values[:, None, :] - shifted
            distances[rows] = np.einsum(
                "ijf,ijf,f->ij", differences, differences, self.feature_weights
            )
        return distances

    def _distances_between(self, rows: slice, centers: FloatArray) -> FloatArray:
        values = self._points[rows][:, : self._n_features]
        return np.square(values - (centers - self._shift)) @ self.feature_weights

    def unit_steps(self) -> FloatArray:
        """Long along features that count little."""
        return np.asarray(1 / np.sqrt(np.maximum(self.feature_weights, 1e-12)))

    def mean_variance(self) -> float:
        """Mean over the features of the unweighted variance."""
        return float(np.mean(self._column_variance[: self._n_features]))

    def critical_power(self) -> float:
        """That of the points while all features count the same."""
        return critical_power(self._points[:, : self._n_features], self._weights)

    def take(self, indices: IndexArray) -> FloatArray:
        """These points."""
        values: FloatArray = super().take(indices)[:, : self._n_features] + self._shift
        return values

    def sample(self, indices: IndexArray) -> Points:
        """These points in their dtype."""
        shifted = np.asarray(self._points[indices])[:, : self._n_features]
        values: Points = shifted + self._shift.astype(self.dtype)
        return values

    def _middle(self) -> FloatArray:
        return self._shift
