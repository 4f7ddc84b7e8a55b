"""Rows in memory whose features have weights that may change from sweep to sweep.

The distance sum v ((x - theta) / scale)^2 is linear in the pair (x, x^2) that the rows hold. A
sweep adds up these pairs, and its sums give the scatter along each feature. Each feature has a unit
of its own, since squares of tiny or huge values leave the range. Where entries are missing, the
distance is over the observed entries, and linear in (m x, m x^2, m) with the mask m.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Hard
from powermeans.mathematics.sums import Sums
from powermeans.points.affine import PairedPoints, largest_from, power_of_two_above
from powermeans.points.observed import ObservedSums, observed_medians
from powermeans.types import FloatArray, IndexArray, Labels, Matrix

# The step along a feature that does not count, as a share of the least of the others: none that a
# center could leave its place by, and none whose quotients leave the range.
_HARDLY = 1e-9


@dataclass(frozen=True, slots=True)
class SquaredSums(ObservedSums):
    """Add up squares too, which give the scatter along each feature.

    Whole points have no `observed`.
    """

    # Sum over the points of sample_weight_i * w_ij * ((x_i - shift) / unit) ** 2,
    # (n_centers, n_features).
    squares: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    shift: FloatArray = field(default_factory=lambda: np.empty(0))
    unit: FloatArray = field(default_factory=lambda: np.empty(0))

    def __add__(self, other: Self) -> Self:
        added = Sums.__add__(self, other)
        squares = self.squares + other.squares
        return replace(added, squares=squares, shift=self.shift, unit=self.unit)

    def __mul__(self, unit: float) -> Self:
        product, squares = Sums.__mul__(self, unit), self.squares * unit
        return replace(product, squares=squares, shift=self.shift, unit=self.unit)

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return weighted means, of observed entries where some are missing."""
        kind = ObservedSums if self.observed.size else Sums
        return kind.centers(self, fallback)

    def moved(self, former: int, cluster: int, point: FloatArray, weight: float) -> Self:
        """Move the weight of a point from its former cluster to an empty one."""
        kind = ObservedSums if self.observed.size else Sums
        return kind.moved(self, former, cluster, point, weight)

    def scatter_about(self, centers: FloatArray, scales: FloatArray) -> FloatArray:
        """Return the weighted sum of ((x - center) / scale)^2 by feature."""
        weights = self.observed if self.observed.size else self.weights[:, None]
        shifted = (centers - self.shift) / self.unit
        points = (self.points - weights * self.shift) / self.unit
        by_center = self.squares - 2 * shifted * points + shifted**2 * weights
        by_feature = np.maximum(by_center, 0.0).sum(axis=0)
        return np.asarray(by_feature * np.square(self.unit / scales))


class FeatureWeightedPoints(PairedPoints):
    """Measure by sum v ((x - theta) / scale)^2, with two float64 for each entry.

    `feature_weights`, v, are equal at first, add to one, and may be set between sweeps. The
    `scales` are one unless they are set.
    """

    def __init__(
        self, points: Matrix, sample_weight: FloatArray | None = None, **options: Any
    ) -> None:
        n_points, n_features = points.shape
        self._given, is_missing = points, np.isnan(points)
        self._has_missing = bool(is_missing.any())
        self._shift = observed_medians(points, sample_weight)
        self._unit = power_of_two_above(largest_from(self._shift, points))
        self.feature_weights: FloatArray = np.full(n_features, 1 / n_features)
        self.scales: FloatArray = np.ones(n_features)
        self._n_blocks = 3 if self._has_missing else 2
        values = np.empty(
            (n_points, self._n_blocks * n_features)
        )  # squares leave the range of float32
        shifted = values[:, :n_features]
        np.subtract(points, self._shift, out=shifted)
        np.divide(shifted, self._unit, out=shifted)
        if self._has_missing:
            shifted[is_missing] = 0
            np.logical_not(is_missing, out=values[:, 2 * n_features :], casting="unsafe")
        np.square(shifted, out=values[:, n_features : 2 * n_features])
        super().__init__(values, sample_weight, **options)
        self.n_features = self.n_columns = n_features
        self._use_heights(np.zeros(n_points))

    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes along the values and along their squares."""
        v, shifted = self._prices, self._in_unit(centers)
        slopes = np.hstack([2 * v * shifted, np.broadcast_to(-v, shifted.shape)])
        if self._has_missing:
            slopes = np.hstack([slopes, -v * np.square(shifted)])
            return slopes, -(slopes @ self.native.origin())
        return slopes, np.square(shifted) @ v - slopes @ self.native.origin()

    def finished(self, sums: Sums) -> SquaredSums:
        """Return sums of values and of squares from those of pairs."""
        shifted, squares, *masks = np.hsplit(sums.points, self._n_blocks)
        observed = np.maximum(masks[0], 0.0) if masks else np.empty((0, 0))
        weights = observed if masks else sums.weights[:, None]
        return SquaredSums(
            shifted * self._unit + weights * self._shift,
            sums.weights,
            sums.objective,
            sums.inertia,
            sums.n_skipped,
            observed,
            squares=squares,
            shift=self._shift,
            unit=np.asarray(self._unit),
            n_changed=sums.n_changed,
        )

    def _from_differences(self, differences: FloatArray, beside: FloatArray) -> FloatArray:
        differences = differences * self._roots  # the root's square may leave the range
        return np.asarray(np.einsum("ijf,ijf->ij", differences, differences))

    def _distances_between(self, rows: slice | IndexArray, centers: FloatArray) -> FloatArray:
        differences = self._given[rows].astype(np.float64) - centers
        return np.asarray(np.nansum(np.square(differences / self._unit * self._roots), axis=1))

    def _distances_of(self, indices: IndexArray, centers: FloatArray) -> FloatArray:
        by_center = [self._distances_between(indices, center) for center in centers]
        return np.stack(by_center, axis=1)

    def _tangent_place(self) -> FloatArray:
        return np.zeros(self._points.shape[1])

    def unit_steps(self) -> FloatArray:
        """Return steps, longer along features of less weight."""
        return np.asarray(self.scales / np.sqrt(np.maximum(self.feature_weights, 1e-12)))

    def spread_of_features(self) -> FloatArray:
        """Return steps along the features, and hardly any where there is no weight.

        Such a feature may be constant, and no distance would say that a center left its value.
        """
        spread, has_weight = np.asarray(super().spread_of_features()), self.feature_weights > 0
        return np.where(has_weight, spread, _HARDLY * spread[has_weight].min())

    def critical_power(self) -> float:
        values: FloatArray = np.asarray(self._points)[:, : self.n_features]
        if self._has_missing:
            values = np.where(np.isnan(self._given), self._in_unit(self.mean()), values)
        return critical_power(values * (self._unit / self.scales), self._weights)

    def shares_observed(self) -> float | FloatArray:
        """Return the share of the weight, in each feature, that is of points that have it.

        It is one where only points without weight have the feature, which counts nothing then.
        """
        if not self._has_missing:
            return 1.0
        sums: Any = self.sweep(self.mean()[None, :], Hard())
        return np.where(sums.observed[0] > 0, sums.observed[0] / sums.weights[0], 1.0)

    def spreads(self) -> FloatArray:
        """Return the weighted standard deviation of each feature; zero if it is constant."""
        mean, unit = self.mean(), np.asarray(self._unit)
        sums: Any = self.sweep(mean[None, :], Hard())
        squares = sums.scatter_about(mean[None, :], unit) / self.shares_observed()
        spreads = unit * np.sqrt(squares / self.total_weight)
        # A smaller spread may be rounding of the mean.
        return np.where(spreads > 1e-14 * np.abs(mean), spreads, 0.0)

    def in_weighted_space(self) -> FloatArray:
        """Return points whose squared Euclidean distances are those of these rows."""
        # Features of less weight hardly change a distance.
        used = np.flatnonzero(self.feature_weights > 1e-9)
        points = np.asarray(self._points)[:, used] * self._roots[used]
        return np.where(np.isnan(self._given[:, used]), np.nan, points)

    def means(self, members: IndexArray, labels: Labels, n_centers: int) -> FloatArray:
        """Return the weighted mean of each cluster of some points, the shift if it is empty."""
        weights = np.ones(self.n_points) if self._weights is None else self._weights
        cells = (weights[members], (labels, members))
        of_clusters = sparse.csr_array(cells, shape=(n_centers, self.n_points))
        sums, _, *observed = np.hsplit(np.asarray(of_clusters @ self._points), self._n_blocks)
        totals = np.bincount(labels, weights[members], minlength=n_centers)[:, None]
        totals = np.broadcast_to(observed[0] if observed else totals, sums.shape)
        np.divide(sums, totals, out=sums, where=totals > 0)
        return np.asarray(self._shift + sums * self._unit)

    @property
    def _prices(self) -> FloatArray:
        """Return the factors of squared differences in the unit."""
        return np.asarray(np.square(self._roots))

    @property
    def _roots(self) -> FloatArray:
        return np.asarray(np.sqrt(self.feature_weights) * (self._unit / self.scales))

    def mean_variance(self) -> float:
        in_unit = self._column_variance[: self.n_features]
        if self._has_missing:
            in_unit = np.nanvar((self._given - self._shift) / self._unit, axis=0)
        return float(np.mean(self._unit * in_unit * self._unit))

    def take(self, indices: IndexArray) -> FloatArray:
        """Return these points with means for missing entries."""
        taken = super().take(indices)
        return np.where(np.isnan(taken), self.mean(), taken) if self._has_missing else taken

    def sample(self, indices: IndexArray) -> Matrix:
        if self._has_missing:
            return self._given[indices]
        shifted = np.asarray(self._points[indices])[:, : self.n_features]
        return np.asarray(shifted * self._unit + self._shift)
