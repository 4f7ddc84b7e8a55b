"""Rows of points with missing entries: distances and means over the observed entries.

With the mask m of a point x, its squared distance is affine in the pair (m x, m) that the rows
hold: sum m (x - theta)^2 = sum m x^2 - 2 <m x, theta> + <m, theta^2>. A sweep adds up these pairs;
their quotient is the mean of each feature over the points that have it (Chi, Chi & Baraniuk 2016,
"k-POD"). Nothing is imputed.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from scipy import sparse

from powermeans.divergences.chunks import dense_chunks
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.sums import ColumnMoments, Sums, recorded
from powermeans.points.affine import PairedPoints, largest_from, medians_of_some, power_of_two_above
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Matrix


@recorded
@dataclass(frozen=True, slots=True)
class ObservedSums(Sums):
    """Add up each feature over the points that have it."""

    # Sum of sample_weight_i * w_ij over the points that have the feature, (n_centers, n_features).
    observed: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    scatter: FloatArray | None = None  # that of `Scattered`

    def __add__(self, other: Self) -> Self:
        added = Sums.__add__(self, other)
        return replace(added, observed=self.observed + other.observed)

    def __mul__(self, unit: float) -> Self:
        return replace(Sums.__mul__(self, unit), observed=self.observed * unit)

    def centers(self, fallback: FloatArray) -> FloatArray:
        """Return weighted means; a feature that no point of a center has keeps its `fallback`."""
        has_points = self.weights > self._least_weight(fallback)
        is_known = (self.observed > 0) & has_points[:, None]
        means = self.points / np.where(is_known, self.observed, 1.0)
        return np.where(is_known, means, fallback)

    def moved(self, former: int, cluster: int, point: FloatArray, weight: float) -> Self:
        """Move the weight of the point with it, as if every entry had been observed."""
        observed = self.observed.copy()
        observed[former] = np.maximum(observed[former] - weight, 0.0)
        observed[cluster] = weight
        moved = Sums.moved(self, former, cluster, point, weight)
        return replace(moved, observed=observed)


class ObservedPoints(PairedPoints):
    """Leave out missing entries, NaN, with two numbers for each entry.

    No row and no column is all NaN; options are as for `EuclideanPoints`.
    """

    def __init__(
        self, points: Matrix, sample_weight: FloatArray | None = None, **options: Any
    ) -> None:
        is_missing = np.isnan(points)
        self._given = points
        self._means = _observed_means(points, is_missing)
        self._shift = observed_medians(points, sample_weight)
        self._unit = float(power_of_two_above(np.nanmax(largest_from(self._shift, points))))
        self.n_features = points.shape[1]
        pairs = np.empty((len(points), 2 * points.shape[1]), dtype=points.dtype)
        shifted = pairs[:, : self.n_features]
        for rows, chunk in dense_chunks(points):
            shifted[rows] = self._in_unit(chunk)
        shifted[is_missing] = 0
        np.logical_not(is_missing, out=pairs[:, self.n_features :], casting="unsafe")
        super().__init__(pairs, sample_weight, **options)
        sq_dist = np.einsum("if,if->i", shifted, shifted, dtype=np.float64)
        self._use_heights(self._unit * sq_dist * self._unit)

    def planes(self, centers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes along the values and along the mask."""
        shifted = centers - self._shift
        slopes = np.hstack([2 * shifted * self._unit, -np.square(shifted)])
        return slopes, -(slopes @ self.native.origin())

    def finished(self, sums: Sums) -> ObservedSums:
        """Return sums of values and of the mask from those of pairs."""
        values, observed = np.hsplit(sums.points, 2)
        return ObservedSums(
            values * self._unit + self._shift * observed,
            sums.weights,
            sums.objective,
            sums.inertia,
            sums.n_skipped,
            np.maximum(observed, 0.0),
            getattr(sums, "scatter", None),
            n_changed=sums.n_changed,
        )

    @property
    def n_observed(self) -> FloatArray:
        counts = np.count_nonzero(~np.isnan(self._given), axis=1)
        return np.asarray(counts, dtype=np.float64)

    def _from_differences(self, differences: FloatArray, beside: FloatArray) -> FloatArray:
        in_unit = np.einsum("ijf,ijf,if->ij", differences, differences, beside)
        return np.asarray(self._unit * in_unit * self._unit)

    def _distances_between(self, rows: slice | IndexArray, centers: FloatArray) -> FloatArray:
        differences = self._given[rows].astype(np.float64) - centers
        return np.asarray(np.nansum(np.square(differences), axis=1))

    def mean_variance(self) -> float:
        """Return the mean over the features of the unweighted variance of observed entries."""
        return float(np.mean(self._squared_deviations()) / self.n_points)

    def column_moments(self) -> ColumnMoments:
        """Return the moments of the observed entries."""
        return ColumnMoments(self._counts(), self._means, self._squared_deviations())

    def _counts(self) -> FloatArray:
        """Return how many entries of each column are observed."""
        return np.rint(self.n_points * self._column_mean[self.n_features :])

    def _squared_deviations(self) -> FloatArray:
        """Return what the observed entries of each column add up to about their mean."""
        means, variances = (
            a[: self.n_features] for a in (self._column_mean, self._column_variance)
        )
        about_shift = self.n_points * (variances + np.square(means))
        off = self._counts() * np.square(self._in_unit(self._means))
        return np.asarray(self._unit * np.maximum(about_shift - off, 0.0) * self._unit)

    def critical_power(self) -> float:
        """Return that of the points with means for missing entries.

        The means become zero to the last bit, since a point at the mean has no direction.
        """
        counts, n = self.sample_weight(np.arange(self.n_points)), self.n_features
        sums = np.zeros(2 * n)
        for rows, pairs in dense_chunks(self._points):
            sums += counts[rows] @ pairs
        means = sums[:n] / np.where(sums[n:] > 0, sums[n:], 1.0)
        about_mean = np.asarray(self._points)[:, :n] - means
        about_mean[np.isnan(self._given)] = 0.0
        return critical_power(about_mean, self._weights)

    def take(self, indices: IndexArray) -> FloatArray:
        """Return these points with means for missing entries."""
        given = self._given[indices].astype(np.float64)
        return np.where(np.isnan(given), self.mean(), given)

    def _middle(self) -> FloatArray:
        return self._means

    def sample(self, indices: IndexArray) -> Matrix:
        """Return these points with NaN for missing entries, where `take` has means."""
        return self._given[indices]


def _observed_means(points: Matrix, is_missing: np.ndarray) -> FloatArray:
    """Return the mean of each column over its observed entries; zero where there are none."""
    counts = np.count_nonzero(~is_missing, axis=0)
    sums = np.sum(points, axis=0, where=~is_missing, dtype=np.float64)
    return np.asarray(sums / np.maximum(counts, 1))


def observed_medians(points: Matrix, sample_weight: FloatArray | None = None) -> FloatArray:
    """Return the medians of some points, or the means of all where these have no entry."""
    medians = medians_of_some(points, sample_weight)
    if not (is_unknown := np.isnan(medians)).any():
        return medians
    return np.where(is_unknown, _observed_means(points, np.isnan(points)), medians)


def filled(points: AnyMatrix, filling: FloatArray | None) -> AnyMatrix:
    """Return the points with these values, (n_features,), in place of missing entries."""
    if filling is None or sparse.issparse(points):
        return points
    return np.where(np.isnan(points), filling.astype(points.dtype), points)
