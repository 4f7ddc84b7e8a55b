"""An update that learns the covariance that clusters share, for Mahalanobis distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powermeans.divergences.chunks import dense_chunks
from powermeans.divergences.mahalanobis import Mahalanobis
from powermeans.loop.updates import RelocateEmpty, Sweep, Update
from powermeans.sums import Sums
from powermeans.types import FloatArray, Points, SparsePoints

# A scatter of less than this share of the total is summed anew, since a difference loses digits.
_LEAST_LEFT = 1e-6
# The least eigenvalue of a covariance, as a share of the largest.
_LEAST_EIGENVALUE = 1e-6


@dataclass(frozen=True, slots=True)
class Scatter:
    """Weighted products of deviations from the mean, summed over all points, and the mean."""

    total: FloatArray
    mean: FloatArray

    @classmethod
    def of(
        cls, points: Points | SparsePoints, sample_weight: FloatArray | None, mean: FloatArray
    ) -> Scatter:
        """Return the scatter of these points about their weighted mean."""
        total = np.zeros((len(mean), len(mean)))
        for rows, chunk in dense_chunks(points):
            deviations = chunk - mean
            weighted = (
                deviations if sample_weight is None else (deviations * sample_weight[rows, None])
            )
            total += weighted.T @ deviations
        return cls(total, mean)

    @property
    def scales(self) -> FloatArray:
        """The root of the total along each feature; one where a feature is constant."""
        squares = np.diag(self.total)
        return np.sqrt(np.where(squares > 0, squares, 1.0))

    def within(self, sums: Sums) -> FloatArray:
        """Return the scatter about the centers of a hard sweep."""
        has_points = sums.weights > 0
        weights = sums.weights[has_points, None]
        centers = sums.points[has_points] / weights - self.mean
        return np.asarray(self.total - (weights * centers).T @ centers)

    def is_lost_in(self, within: FloatArray) -> bool:
        """Return whether so little is left of the total that digits are lost."""
        left = np.diag(within) / self.scales**2
        return bool(np.any((left < _LEAST_LEFT) & (np.diag(self.total) > 0)))


def unit_covariance(scatter: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the covariance of this shape with the determinant one, kept from being singular.

    Eigenvalues are compared in units of these scales of the features.
    """
    correlation = scatter / np.outer(scales, scales)
    values, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    largest = max(float(values[-1]), float(np.finfo(np.float64).tiny))
    values = np.maximum(values / largest, _LEAST_EIGENVALUE)
    values /= np.exp(np.mean(np.log(values)))
    relative = scales / np.exp(np.mean(np.log(scales)))
    covariance = (vectors * values) @ vectors.T * np.outer(relative, relative)
    return np.asarray((covariance + covariance.T) / 2)


@dataclass(frozen=True, slots=True)
class LearnCovariance(Update):
    """After each hard sweep measure distances by the scatter within the clusters.

    With the determinant held at one, this scatter is the best covariance for these clusters, so
    that sweeps lower its determinant (Friedman & Rubin 1967). `use` gives the rows a divergence.
    """

    use: Callable[[Mahalanobis], None]
    points: Points | SparsePoints
    sample_weight: FloatArray | None
    scatter: Scatter

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return sums without empty clusters, and give the rows a new covariance."""
        sums = RelocateEmpty().after(sweep, sums)
        within = self.scatter.within(sums)
        if self.scatter.is_lost_in(within):
            within = self._within_directly(sweep, sums.centers(fallback=sweep.centers))
        self.use(Mahalanobis(unit_covariance(within, self.scatter.scales)))
        return sums

    def _within_directly(self, sweep: Sweep, centers: FloatArray) -> FloatArray:
        """Return the scatter of the points about the new centers of their clusters."""
        labels, _ = sweep.rows.assign(sweep.centers)
        within = np.zeros_like(self.scatter.total)
        for part, chunk in dense_chunks(self.points):
            deviations = chunk - centers[labels[part]]
            weight = 1.0 if self.sample_weight is None else self.sample_weight[part, None]
            within += (weight * deviations).T @ deviations
        return within
